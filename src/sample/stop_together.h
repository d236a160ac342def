/* SPDX-License-Identifier: Apache-2.0 */
/* stop_together.h - --stop=all: the threads that run stand still at once.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * They are interrupted first, then the threads that wait are read, then those that
 * stand still are.  How long that may take is bounded.
 *
 * Each function that returns int returns 0 or -ENOMEM.
 */
#ifndef WP_STOP_TOGETHER_H
#define WP_STOP_TOGETHER_H

#include "pause.h"
#include "wallprof/err.h"

struct wp_target;

struct wp_stop_together {
	/* What those that are held pay with, and until when they are at most; 0: there are
	 * none. */
	struct wp_pause_bill bill;
	uint64_t end_ns;
	/* When stops are noted next. */
	uint64_t next_ns;
};

/* Interrupt the listed threads. */
WP_MUST_CHECK
int wp_stop_together_begin(struct wp_target *target);

/* Note which threads have stopped: how long they are held counts from then.  Where the
 * bounds let them be held no longer they are read and released, but for a dump, whose
 * threads are to be of one moment. */
WP_MUST_CHECK
int wp_stop_together_go_on(struct wp_target *target);

/* Interrupt those that are listed since then, hold them until the last has stopped, read
 * and release them. */
WP_MUST_CHECK
int wp_stop_together_make(struct wp_target *target);

#endif
