/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - the text of a dump: what its parts share.
 *
 * One fact per line and one line per fact, so that grep finds it.  All text that
 * comes from a target is escaped.
 */
#ifndef WP_PRINT_H
#define WP_PRINT_H

#include "escape.h"
#include "wallprof/output.h"
#include "wallprof/state.h"

struct wp_print {
	const struct wp_dump *dump;
	FILE *out;
	struct wp_buf buf;
	/* Scratch: a part of a name. */
	struct wp_buf part;
	/* Indices of dump->threads[] by tid, and of dump->edges[] by the thread
	 * that they start from; owned. */
	uint32_t *by_tid;
	uint32_t *by_from;
	/* A part was written: an empty line goes before the next. */
	bool begun;
};

/* What differs among the threads of a group, which have equal stacks and waits.
 * A single thread is a group of one. */
struct wp_print_same {
	uint32_t nthreads;
	/* How many of them did not run between two snapshots. */
	uint32_t nstill;
	/* The shortest and the longest wait; UINT64_MAX: none is known. */
	uint64_t least_ns;
	uint64_t most_ns;
};

#define WP_PRINT_SAME_INIT                                                     \
	{                                                                      \
		0, 0, UINT64_MAX, UINT64_MAX                                   \
	}

enum { WP_PRINT_CALL_MAX = 32 };

/* The name of CALL, "" for none; BUF holds the name of an unknown one. */
static inline const char *wp_print_call_name(const struct wp_dump_call *call,
					     char buf[WP_PRINT_CALL_MAX])
{
	return call->nr < 0 ? "" :
			      wp_syscall_name(call->nr, buf, WP_PRINT_CALL_MAX);
}

/* The ending of a noun after N. */
static inline const char *wp_print_plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* Add THREAD to SAME. */
void wp_print_same_add(struct wp_print_same *same,
		       const struct wp_dump_thread *thread);

/* Write NS as "340 ms", "1.5 s", "12 s", "3 min", "2 h 5 min", "3 d 4 h". */
void wp_print_time(struct wp_buf *buf, uint64_t ns);
/* Write string ID in quotes, with quotes and backslashes in it escaped. */
void wp_print_quoted(struct wp_print *t, uint32_t id);
/* Write 'thread 42 "name"'. */
void wp_print_thread(struct wp_print *t, const struct wp_dump_thread *thread);
/* The same for a TID that may not be in the dump.  The thread's process is named
 * unless it is number FROM. */
void wp_print_tid(struct wp_print *t, int32_t tid, uint32_t from);
/* Write 'process 99 "name"', with the name of its main thread. */
void wp_print_process(struct wp_print *t, int32_t pid);
/* Write what EDGE leads to: a thread, a process, "itself". */
void wp_print_target(struct wp_print *t, const struct wp_edge *edge);
/* Write "[waiting: lock ..., 3 min]" of THREAD and the group SAME that it is of. */
void wp_print_state(struct wp_print *t, const struct wp_dump_thread *thread,
		    const struct wp_print_same *same);
/* Write FRAME's function, file and line, and its module after BEFORE_MODULE if
 * ALWAYS or if it has no file. */
void wp_print_place(struct wp_print *t, const struct wp_dump_frame *frame,
		    bool always, const char *before_module);
/* Write BEFORE and "at FUNCTION FILE:LINE" if the wait at STACK has a site. */
void wp_print_site(struct wp_print *t, const char *before,
		   const struct wp_dump_stack *stack);

/* Write " <queue+8>" if THREAD waits at a variable that has a name. */
void wp_print_variable(struct wp_print *t, const struct wp_dump_thread *thread);

/* Write the empty line between two parts. */
void wp_print_gap(struct wp_print *t);
/* Write a line per frame, and one that says why the stack is cut; WHY_NONE says
 * why there is none. */
void wp_print_frames(struct wp_print *t, const struct wp_dump_stack *stack,
		     const char *why_none);
/* The same of THREAD's stack. */
void wp_print_thread_frames(struct wp_print *t,
			    const struct wp_dump_thread *thread);
/* Write all of THREAD, after an empty line. */
void wp_print_whole(struct wp_print *t, const struct wp_dump_thread *thread);
/* Write a line for each futex without a known holder that several threads wait
 * for.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_print_waiters(struct wp_print *t);
/* Write the threads ORDER[0..n) of one process as groups, in the order of their
 * first threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_print_groups(struct wp_print *t, const uint32_t *order, uint32_t n);

/* Write a line about PROCESS's goroutines, or why there are none, if Go built
 * it. */
void wp_print_goroutine_count(struct wp_print *t,
			      const struct wp_dump_process *process);
/* Write a line of what GROUP[0..n) wait for, if that is known.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_print_goroutine_waits(struct wp_print *t,
			     const struct wp_dump_goroutine *const *group,
			     uint32_t n);
/* Write a line for each lock that several of PROCESS's goroutines wait for, those with
 * the most first.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_print_goroutine_locks(struct wp_print *t,
			     const struct wp_dump_process *process);
/* Write PROCESS's goroutines: each, or GROUP: those with equal states, labels
 * and stacks once, the largest groups first.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_print_goroutines(struct wp_print *t,
			const struct wp_dump_process *process, bool group);

#endif
