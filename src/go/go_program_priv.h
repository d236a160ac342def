/* SPDX-License-Identifier: Apache-2.0 */
/* go_program_priv.h - what is known of a Go program.
 *
 * Layer: go.  Private to src/go/.
 */
#ifndef WP_GO_PROGRAM_PRIV_H
#define WP_GO_PROGRAM_PRIV_H

#include <string.h>

#include "go_layout.h"
#include "go_memory.h"
#include "wallprof/go_buckets.h"
#include "wallprof/go_module.h"

enum {
	/* Wait reasons (runtime/runtime2.go, waitReasonStrings; 1.27 has 46). */
	WP_GO_REASONS_MAX = 96,
	WP_GO_REASON_LEN = 64,
	/* Goroutines that are read, at most. */
	WP_GOROUTINES_MAX = 1 << 20,
};

struct wp_go_program {
	struct wp_go_memory memory;
	struct wp_go_table table;
	struct wp_go_module module;
	/* avma - svma. */
	uint64_t bias;
	const struct wp_go_layout *layout;
	/* The code that Go's linker laid out: START <= avma < END. */
	uint64_t text_start_avma;
	uint64_t text_end_avma;
	/* runtime.allgs: pointer, length and capacity. */
	uint64_t allgs_avma;
	/* Whether they were looked for, and runtime.mbuckets, bbuckets and
	 * xbuckets by enum wp_go_book; 0: not found. */
	bool has_books;
	uint64_t books_avma[WP_NGO_BOOKS];
	char reasons[WP_GO_REASONS_MAX][WP_GO_REASON_LEN];
	uint32_t nreasons;
	/* Of a goroutine that waits at a semaphore: which word of its stack led to
	 * its sudog last. */
	size_t sudog_word;
};

/* A search of the program's variables. */
struct wp_go_probe {
	struct wp_go_program *program;
	/* Reads that may still be made. */
	uint32_t left;
	/* Where it was found. */
	uint64_t avma;
};

/* Is what begins with the words V, at AVMA, what is looked for? */
typedef bool (*wp_go_found_fn)(struct wp_go_probe *probe, const uint64_t *v,
			       uint64_t avma);

/* go_locate.c: look at each word of RANGE that WORDS - 1 others follow, at most
 * five.  1: found, PROBE says where; 0: not; -errno of the reader, -ENOMEM. */
WP_MUST_CHECK
int wp_go_scan(struct wp_go_probe *probe, const struct wp_go_range *range,
	       size_t words, wp_go_found_fn is_found);

/* Can a structure of words be at AVMA? */
bool wp_go_is_pointer(uint64_t avma);

/* Is AVMA in Go's code? */
static inline bool wp_go_is_code(const struct wp_go_program *p, uint64_t avma)
{
	return avma >= p->text_start_avma && avma < p->text_end_avma;
}

/* A word of a structure. */
static inline uint64_t wp_go_u64(const uint8_t *bytes, size_t off)
{
	uint64_t val;

	memcpy(&val, bytes + off, sizeof(val));
	return val;
}

static inline uint32_t wp_go_u32(const uint8_t *bytes, size_t off)
{
	uint32_t val;

	memcpy(&val, bytes + off, sizeof(val));
	return val;
}

/* A g's status (runtime/runtime2.go, _Gidle ff.), and the flag in it that its stack is
 * being scanned. */
enum {
	WP_GO_SCAN = 0x1000,
	WP_GO_IDLE = 0,
	WP_GO_RUNNABLE = 1,
	WP_GO_RUNNING = 2,
	WP_GO_SYSCALL = 3,
	WP_GO_WAITING = 4,
	WP_GO_DEAD = 6,
	WP_GO_COPYSTACK = 8,
	WP_GO_PREEMPTED = 9,
	WP_GO_LEAKED = 10,
	WP_GO_DEAD_EXTRA = 11,
};

/* goroutines.c: does a goroutine with STATUS live, and in which state?  COPYSTACK
 * is being moved: it is in no state for a moment. */
bool wp_go_find_state(uint32_t status, enum wp_goroutine_state *ret);

static inline uint32_t wp_go_status(const struct wp_go_layout *layout,
				    const uint8_t *g)
{
	return wp_go_u32(g, layout->g_status) & ~(uint32_t)WP_GO_SCAN;
}

/* The bytes of a g that are read: up to the last field of LAYOUT. */
static inline size_t wp_go_g_len(const struct wp_go_layout *layout)
{
	size_t last = layout->g_labels > layout->g_parent ? layout->g_labels :
							    layout->g_parent;

	return last + 8;
}

/* goroutines.c: the tid of the struct m at M_AVMA, 0 for none. */
int32_t wp_go_read_tid(struct wp_go_program *program, uint64_t m_avma);

/* go_locate.c: find allgs_avma and the wait reasons in the program's memory.  0;
 * -EAGAIN: no list of goroutines is there; -ENOMEM, -EPERM, -ESRCH. */
WP_MUST_CHECK
int wp_go_locate(struct wp_go_program *program);

#endif
