/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_marks.h - which goroutines have run between two looks, and which groups
 * only grow.
 *
 * Layer: sample.
 */
#ifndef WP_GOROUTINE_MARKS_H
#define WP_GOROUTINE_MARKS_H

#include "wallprof/goroutine_looks.h"
#include "wallprof/process.h"

/* What one look tells of a goroutine. */
struct wp_goroutine_mark {
	struct wp_goroutine_words words;
	/* Its group: the go statement that made it, its first function, and the
	 * number of the wait reason. */
	uint64_t created_avma;
	uint64_t start_avma;
	uint8_t reason;
	/* It waits for what another goroutine must do (a channel, a lock). */
	bool waits_inside;
	/* It is one of Go's runtime, and runs nothing that the program gave it; it
	 * waits for signals (os/signal). */
	bool is_runtime;
	bool takes_signals;
};

/* The mark of a goroutine of PROGRAM that has these words. */
struct wp_goroutine_mark
wp_goroutine_marks_make(const struct wp_go_program *program,
			const struct wp_goroutine_words *words,
			const struct wp_goroutine_more *more);

/* Goroutines of one go statement and first function that have ended: the id of the last
 * that was made, as far as no other has its struct. */
struct wp_goroutine_ended {
	uint64_t created_avma;
	uint64_t start_avma;
	uint64_t id;
};

struct wp_goroutine_marks {
	/* v[0..n) by id, owned; none of a program that is not Go's. */
	struct wp_goroutine_mark *v;
	uint32_t n, cap;
	/* Owned; of the first so many go statements that are met. */
	struct wp_goroutine_ended *ended;
	uint32_t nended, cap_ended;
	/* Goroutines that were not read, for --max-memory or else: nothing is
	 * concluded. */
	uint32_t nunread;
	/* What is taken of the budget. */
	uint64_t taken;
	/* CLOCK_MONOTONIC of the look. */
	uint64_t time_ns;
};

#define WP_GOROUTINE_MARKS_INIT                                                \
	{                                                                      \
		0                                                              \
	}

/* Look at the goroutines of PROCESS, whose threads are not looked at; nothing is
 * stopped.  *RET, which the caller clears in any case, stays empty if there are none
 * or they cannot be read.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_marks_read(struct wp_goroutine_marks *ret,
			    struct wp_process *process);
void wp_goroutine_marks_clear(struct wp_goroutine_marks *marks);

/* What became from one look to the next. */
struct wp_goroutine_change {
	/* A group of which all that there were wait inside as before and have not
	 * run, and which has got more, the most of all such: an id of it, how
	 * many there were and are.  0: there is none.  It may be a queue, if there is
	 * none that cannot be: some have ended, and those were made before most of the
	 * ones that wait. */
	uint64_t grown_id;
	bool is_queue;
	uint32_t nbefore;
	uint32_t nafter;
	/* Goroutines but for those of Go's runtime; all of these wait inside, and
	 * none has run; but for one that waits for signals. */
	uint32_t nown;
	bool all_wait_inside;
	bool takes_signals;
};

/* 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_marks_compare(const struct wp_goroutine_marks *before,
			       const struct wp_goroutine_marks *after,
			       struct wp_goroutine_change *ret);

#endif
