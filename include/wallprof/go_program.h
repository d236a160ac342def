/* SPDX-License-Identifier: Apache-2.0 */
/* go_program.h - the goroutines of a live Go program, read from its memory.
 *
 * Layer: go.
 *
 * Nothing is stopped and nothing of the program's own is called.  All that is
 * read is hostile until checked: every pointer, count and length is bounded, and
 * what changes while it is read is read again or given up, which is counted.
 */
#ifndef WP_GO_PROGRAM_H
#define WP_GO_PROGRAM_H

#include "wallprof/elf_image.h"
#include "wallprof/epolls.h"
#include "wallprof/err.h"
#include "wallprof/go_module.h"
#include "wallprof/intern.h"
#include "wallprof/process.h"

/* Reads the program's memory: v[0..n), of each is_read is set when all of it is
 * read.  0, or -errno: nothing can be read any more. */
struct wp_go_reader {
	int (*read)(void *ctx, struct wp_process_range *v, size_t n);
	void *ctx;
	/* Is code at AVMA, of whichever file, as a plugin's?  NULL: not known. */
	bool (*is_code)(void *ctx, uint64_t avma);
};

/* States of a goroutine (runtime/runtime2.go, _Gidle ff.), in Go's words. */
#define WP_GOROUTINE_STATES(X)                                                 \
	X(RUNNABLE, "runnable")                                                \
	X(RUNNING, "running")                                                  \
	X(SYSCALL, "syscall")                                                  \
	X(WAITING, "waiting")                                                  \
	X(PREEMPTED, "preempted")                                              \
	X(LEAKED, "leaked")

enum wp_goroutine_state {
#define X(name, text) WP_GOROUTINE_##name,
	WP_GOROUTINE_STATES(X)
#undef X
		WP_NGOROUTINE_STATES
};

const char *wp_go_program_state_name(enum wp_goroutine_state state);

/* A profiler label (runtime/pprof, Do): string ids. */
struct wp_goroutine_label {
	uint32_t key;
	uint32_t value;
};

struct wp_goroutine {
	uint64_t id;
	/* Who created it; 0: not known (Go 1.20 and earlier). */
	uint64_t parent_id;
	enum wp_goroutine_state state;
	/* String id of what it waits for, in Go's words ("chan receive"); 0: it
	 * does not wait. */
	uint32_t reason;
	/* CLOCK_MONOTONIC of the end of the garbage collection before the first
	 * that met it in its wait (runtime/mgc.go, work.tstart), so of a moment
	 * before the wait began; 0: not known. */
	uint64_t since_ns;
	/* The thread that runs it or is in its system call; that it is locked to
	 * (runtime.LockOSThread): tids in the program's PID namespace, 0: none. */
	int32_t tid;
	int32_t locked_tid;
	/* Return address of the go statement that created it; 0: none. */
	uint64_t created_avma;
	/* The function that it began with. */
	uint64_t start_avma;
	/* labels[first_label..first_label + nlabels) of all goroutines. */
	uint32_t first_label;
	uint32_t nlabels;
	/* Where the program keeps its labels, which are never changed; 0: it has
	 * none. */
	uint64_t labels_avma;
	/* Its place in the list of all goroutines (runtime.allgs). */
	uint32_t index;
	/* For who walks the stack: what became of it. */
	uint32_t stack;
	/* Its struct (runtime.g), and the count in it of the times that it ran. */
	uint64_t avma;
	uint8_t seq;
	/* What it waits for, as far as Go's runtime tells: objects[first_object..
	 * first_object + nobjects); several of a select, which waits for any. */
	uint32_t first_object;
	uint32_t nobjects;
};

enum wp_go_object_kind {
	WP_GO_OBJECT_CHANNEL,
	/* A word that locks and sync.WaitGroup wait at. */
	WP_GO_OBJECT_SEMAPHORE,
	WP_GO_OBJECT_COND,
	WP_GO_OBJECT_FD,
};

enum {
	WP_GO_OBJECT_WORDS = 10,
	/* Where words[] begin before a semaphore. */
	WP_GO_OBJECT_BEFORE = 16,
};

/* What a goroutine waits for. */
struct wp_go_object {
	enum wp_go_object_kind kind;
	/* Of a descriptor: it waits to write, else to read. */
	bool writes;
	/* Of a channel: it is closed; a timer's (Go 1.23 and later); empty, with room for one
	 * value of time.Time's size, as a timer's. */
	bool is_closed;
	bool is_timers;
	bool may_be_timers;
	int32_t fd;
	/* Of a channel, or of a semaphore's word; sync.Cond. */
	uint64_t avma;
	/* Values in a channel, and how many it has room for. */
	uint64_t len;
	uint64_t cap;
	/* The 32-bit words around a semaphore, if HAS_WORDS. */
	bool has_words;
	uint32_t words[WP_GO_OBJECT_WORDS];
};

/* A goroutine's stack, copied while it did not run. */
struct wp_goroutine_stack {
	uint64_t pc_avma;
	uint64_t sp_avma;
	/* Frame pointer; 0: not known. */
	uint64_t fp_avma;
	/* bytes[0..len) are at SP_AVMA; borrowed for the call. */
	const uint8_t *bytes;
	size_t len;
	/* The stack ends there. */
	bool is_whole;
};

struct wp_goroutines {
	/* v[0..len) by the order of their creation, but for reused structs;
	 * owned. */
	struct wp_goroutine *v;
	uint32_t len, cap;
	/* labels[0..nlabels), owned. */
	struct wp_goroutine_label *labels;
	uint32_t nlabels, cap_labels;
	/* objects[0..nobjects), owned. */
	struct wp_go_object *objects;
	uint32_t nobjects, cap_objects;
	/* Goroutines whose stack changed each time it was read; goroutines that
	 * were not read, being too many (also for --max-memory) or ended. */
	uint64_t nmoved;
	uint64_t nunread;
	/* What is taken of the budget: half of it for what is made of them. */
	uint64_t taken;
};

#define WP_GOROUTINES_INIT                                                     \
	{                                                                      \
		0                                                              \
	}

/* Who walks stacks and keeps strings. */
struct wp_goroutine_user {
	/* Walk STACK of G and note in g->stack what came of it.  False: the walk
	 * did not reach the stack's end, and unless LAST the stack is read and
	 * walked again.  STACK is NULL for a goroutine that runs, or (LAST) has
	 * changed each time. */
	bool (*walk)(void *ctx, struct wp_goroutine *g,
		     const struct wp_goroutine_stack *stack, bool last);
	void *ctx;
	/* Gets the strings; borrowed. */
	struct wp_intern *strings;
	/* Goroutines' labels are not read. */
	bool skips_labels;
	/* What they wait for is read, but for descriptors. */
	bool reads_objects;
};

struct wp_go_program;

/* Find the goroutines of the program IMAGE, loaded at BIAS, in the memory that
 * READER reads.  IMAGE and READER's ctx are borrowed for the program's life.
 *
 * Returns 0 and *RET, which the caller frees; -ENOENT: not a Go program;
 * -ENOTSUP: of a version whose structures are not known; -EAGAIN: its runtime
 * has not begun, or they are not where that version has them; -ENOMEM; -EPERM;
 * -ESRCH.  ERR says why.
 */
WP_MUST_CHECK
int wp_go_program_open(struct wp_go_program **ret, struct wp_elf_image *image,
		       uint64_t bias, const struct wp_go_reader *reader,
		       struct wp_err *err);
/* Accepts NULL. */
void wp_go_program_free(struct wp_go_program *program);

/* "go1.22.3". */
const char *wp_go_program_version(const struct wp_go_program *program);

/* The name of the function whose code holds AVMA; NULL: none's.  Borrowed until
 * the next call. */
const char *wp_go_program_function(const struct wp_go_program *program,
				   uint64_t avma);

/* Add all goroutines but those that have ended to *GOROUTINES.  0, -ENOMEM,
 * -EPERM, -ESRCH. */
WP_MUST_CHECK
int wp_goroutines_read(struct wp_go_program *program,
		       const struct wp_goroutine_user *user,
		       struct wp_goroutines *goroutines);

/* Add the labels at LABELS_AVMA to GOROUTINES and set *RET_FIRST and *RET_N; what
 * is malformed is left out.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_labels_read(struct wp_go_program *program,
			     uint64_t labels_avma, struct wp_intern *strings,
			     struct wp_goroutines *goroutines,
			     uint32_t *ret_first, uint32_t *ret_n);

/* Add to those of GOROUTINES that wait in the runtime's poller which of POLLED[0..n)
 * they wait for; to which this does not tell, nothing is added.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_objects_poll(struct wp_go_program *program,
			      const struct wp_epoll_watch *polled, size_t n,
			      struct wp_goroutines *goroutines);

void wp_goroutines_clear(struct wp_goroutines *goroutines);

#endif
