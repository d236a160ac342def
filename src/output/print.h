/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - what the parts of a dump's text share.
 *
 * One fact a line and one line a fact, so that grep finds it.  Nothing a target
 * chose is shown unescaped.
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
	/* Part of a name on its way into BUF. */
	struct wp_buf part;
	/* Threads by number, and edges by the thread they start from: indices
	 * of dump->threads[] and dump->edges[], owned. */
	uint32_t *by_tid;
	uint32_t *by_from;
	/* Something was put: an empty line goes before the next part. */
	bool begun;
};

/* What threads with equal stacks and waits differ in.  A thread alone is a
 * group of one. */
struct wp_print_same {
	uint32_t nthreads;
	/* Of those, the ones that did not run between two looks. */
	uint32_t nstill;
	/* The shortest and longest wait; UINT64_MAX: not known of any. */
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

/* Count THREAD in. */
void wp_print_same_add(struct wp_print_same *same,
		       const struct wp_dump_thread *thread);

/* NS in words: "340 ms", "1.5 s", "12 s", "3 min", "2 h 5 min", "3 d 4 h". */
void wp_print_time(struct wp_buf *buf, uint64_t ns);
/* String ID in quotes, those inside it and backslashes escaped. */
void wp_print_quoted(struct wp_print *t, uint32_t id);
/* 'thread 42 "name"'. */
void wp_print_thread(struct wp_print *t, const struct wp_dump_thread *thread);
/* The same for the number of a thread that may not be in the dump, seen from
 * process FROM: another process is named. */
void wp_print_tid(struct wp_print *t, int32_t tid, uint32_t from);
/* 'process 99 "name"', the name being its main thread's. */
void wp_print_process(struct wp_print *t, int32_t pid);
/* Whom EDGE leads to: a thread, a process, "itself". */
void wp_print_target(struct wp_print *t, const struct wp_edge *edge);
/* "[waiting: lock ..., 3 min]", SAME being of THREAD and those like it. */
void wp_print_state(struct wp_print *t, const struct wp_dump_thread *thread,
		    const struct wp_print_same *same);
/* BEFORE and "at FUNCTION FILE:LINE", when THREAD's wait has a site. */
void wp_print_site(struct wp_print *t, const char *before,
		   const struct wp_dump_thread *thread);

/* The empty line between two parts. */
void wp_print_gap(struct wp_print *t);
/* A line for each frame, and one that says what is missing. */
void wp_print_frames(struct wp_print *t, const struct wp_dump_thread *thread);
/* Everything of a thread, after an empty line. */
void wp_print_whole(struct wp_print *t, const struct wp_dump_thread *thread);
/* The threads ORDER[0..n) of one process, in that order, as groups.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_print_groups(struct wp_print *t, const uint32_t *order, uint32_t n);

#endif
