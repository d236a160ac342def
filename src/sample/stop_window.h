/* SPDX-License-Identifier: Apache-2.0 */
/* stop_window.h - stop a thread, copy its stack, let it go.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Each function that returns int returns 0 or -ENOMEM.
 */
#ifndef WP_STOP_WINDOW_H
#define WP_STOP_WINDOW_H

#include "stack_walk.h"
#include "thread.h"
#include "wallprof/tracer.h"

struct wp_target;

/* What was read of a thread in its stop. */
struct wp_stop_window {
	struct wp_regs regs;
	struct wp_stop_facts facts;
	/* The scheduler's books of it, and when they were read. */
	struct wp_schedstat times;
	uint64_t time_ns;
	/* "" if it was not read. */
	char name[WP_COMM_MAX];
	/* Valid if its stack is to be walked in the window. */
	struct wp_stack_walk walk;
};

/* The thread that was interrupted as TRACEE; NULL: it is not waited for any more. */
static inline struct wp_thread *
wp_stop_window_thread(const struct wp_tracee *tracee)
{
	return (struct wp_thread *)(uintptr_t)tracee->cookie;
}

/* Is a stop of T still to come?  If T ended before it came, no longer: the time
 * set aside for it is owed. */
bool wp_stop_window_is_open(struct wp_thread *t);

/* Make the stops that are listed, as --stop says.  A stop that does not come soon
 * is taken by wp_stop_window_take later. */
WP_MUST_CHECK
int wp_stop_window_make(struct wp_target *target);

/* Take one of the threads that are listed, any, so that a short budget is shared
 * fairly: it is interrupted or put off.  MAY_REST: nobody is held meanwhile. */
WP_MUST_CHECK
int wp_stop_window_begin_any(struct wp_target *target, struct wp_thread **ret,
			     bool may_rest);

/* T has stopped as TRACEE: copy, release, walk, record. */
WP_MUST_CHECK
int wp_stop_window_take(struct wp_thread *t, struct wp_tracee *tracee);

/* The two halves of that, of one that stands still with others.  Read and release it: 1;
 * 0: there is nothing to finish, as it died in the stop, or as the stop was too long for
 * those that are read after it; or -ENOMEM.  Then, with the loop's stack copy as it is after
 * that, walk and record. */
WP_MUST_CHECK
int wp_stop_window_read_held(struct wp_tracee *tracee,
			     struct wp_stop_window *ret);
WP_MUST_CHECK
int wp_stop_window_finish(struct wp_thread *t, struct wp_stop_window *window);

/* Was T's whole stack walked in the stop?  Then WINDOW holds until the next walk. */
bool wp_stop_window_is_walked(const struct wp_thread *t,
			      const struct wp_stop_window *window);

/* What stops of TARGET may still take: its own share, and its part of the sum. */
uint64_t wp_stop_window_credit(struct wp_target *target, uint64_t now_ns);

/* Stops of TARGET that have not come. */
size_t wp_stop_window_count(const struct wp_target *target);

/* Thread TID of one of SAMPLER's targets was stopped from STOPPED_NS until now, by a stop
 * that was given up: no wait of its own.  For wp_tracer.on_late. */
void wp_stop_window_note_late(void *sampler, pid_t tid, uint64_t stopped_ns);

/* Was a stop of TARGET that has not come requested less than MAX_AGE_NS ago, or
 * has its thread not got a CPU since? */
bool wp_stop_window_may_come(const struct wp_target *target,
			     uint64_t max_age_ns);

/* Give up stops requested MAX_AGE_NS ago and earlier, unless the thread has been
 * waiting for a CPU since: its stop is still to come.  0: all stops; the time of
 * a thread that waits for a CPU stays owed. */
WP_MUST_CHECK
int wp_stop_window_expire(struct wp_target *target, uint64_t max_age_ns);

#endif
