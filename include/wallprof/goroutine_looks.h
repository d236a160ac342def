/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_looks.h - look at all goroutines of a program again and again.
 *
 * Layer: go.
 *
 * A look reads the structs of all goroutines, which lie close together, and no
 * stack: one that has not run since the last look has the same words.
 */
#ifndef WP_GOROUTINE_LOOKS_H
#define WP_GOROUTINE_LOOKS_H

#include "wallprof/go_program.h"

/* What tells whether a goroutine has run. */
struct wp_goroutine_words {
	uint64_t id;
	uint64_t sp_avma;
	uint64_t pc_avma;
	/* As the runtime has it (_Gwaiting, ...); what that is as a state. */
	uint8_t status;
	uint8_t state;
	/* Counts the times that it left the state running (g.trackingSeq). */
	uint8_t seq;
};

/* What else a struct says. */
struct wp_goroutine_more {
	/* The thread's struct (runtime.m) while it runs or is in a system call. */
	uint64_t m_avma;
	uint64_t labels_avma;
	uint64_t start_avma;
	/* Return address of the go statement that created it. */
	uint64_t created_avma;
	/* Index of what it waits for, in Go's words. */
	uint8_t reason;
};

/* Called with each goroutine that has ended and whose struct no other has yet. */
typedef void (*wp_goroutine_ended_fn)(void *ctx, uint64_t id,
				      const struct wp_goroutine_more *more);

struct wp_goroutine_looks;

/* Called with each goroutine that is not dead, at INDEX of the list of all, by the
 * order of addresses.  BYTES, its struct, is borrowed for the call. */
typedef void (*wp_goroutine_look_fn)(void *ctx, uint32_t index,
				     const struct wp_goroutine_words *words,
				     const uint8_t *bytes);

/* PROGRAM is borrowed.  0 and *RET, which the caller frees, or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_looks_new(struct wp_goroutine_looks **ret,
			   struct wp_go_program *program);
/* Accepts NULL. */
void wp_goroutine_looks_free(struct wp_goroutine_looks *looks);

/* Bring the list of goroutines up to date: sets *RET_N to its length, dead ones
 * included, and *RET_NLEFT to how many there are beyond those that --max-memory
 * lets be read.  0, -ENOMEM, -EPERM, -ESRCH. */
WP_MUST_CHECK
int wp_goroutine_looks_update(struct wp_goroutine_looks *looks, uint32_t *ret_n,
			      uint32_t *ret_nleft);

/* From now on call EACH, too, with the CTX of wp_goroutine_looks_make. */
void wp_goroutine_looks_tell_ended(struct wp_goroutine_looks *looks,
				   wp_goroutine_ended_fn each);

/* Call EACH for all goroutines in that list that live.  *RET_NUNREAD: those whose
 * struct could not be read.  0, -EPERM, -ESRCH. */
WP_MUST_CHECK
int wp_goroutine_looks_make(struct wp_goroutine_looks *looks,
			    wp_goroutine_look_fn each, void *ctx,
			    uint32_t *ret_nunread);

/* What else BYTES, a goroutine's struct, says. */
struct wp_goroutine_more
wp_goroutine_looks_more(const struct wp_goroutine_looks *looks,
			const uint8_t *bytes);

/* The tid of the thread whose runtime.m is at M_AVMA, in the program's PID
 * namespace; 0: none. */
int32_t wp_goroutine_looks_tid(struct wp_goroutine_looks *looks,
			       uint64_t m_avma);

/* The goroutine whose struct is at G_AVMA, by what is there now.  If that is a
 * thread's own (g0), *RET_IS_THREADS is set, and it is the one that the thread
 * runs.  False: there is none. */
bool wp_goroutine_looks_at(struct wp_goroutine_looks *looks, uint64_t g_avma,
			   uint64_t *ret_id, struct wp_goroutine_more *ret,
			   bool *ret_is_threads);

/* Add the goroutines INDICES[0..n) of the list to GOROUTINES, with their stacks, as
 * wp_goroutines_read does; returns what that does. */
WP_MUST_CHECK
int wp_goroutine_looks_read(struct wp_goroutine_looks *looks,
			    const struct wp_goroutine_user *user,
			    const uint32_t *indices, size_t n,
			    struct wp_goroutines *goroutines);

/* Is a goroutine that begins with the function at START_AVMA one of Go's runtime? */
bool wp_go_program_is_runtime(const struct wp_go_program *program,
			      uint64_t start_avma);

/* What REASON means, in Go's words; "" if it has none. */
const char *wp_go_program_reason(const struct wp_go_program *program,
				 unsigned int reason);

#endif
