/* SPDX-License-Identifier: Apache-2.0 */
/* stop_guard.h - may a thread be stopped without it noticing?
 *
 * Layer: sample.  Private to src/sample/.
 *
 * A stop ends the sleep of a thread in a system call, which is then restarted.
 * Where the call has a time limit, that starts over; where the thread has a seccomp
 * filter with a supervisor (seccomp_unotify(2)), the supervisor is told of the call
 * twice and may do twice what it asks for.  No file of /proc tells whether a filter
 * has a supervisor.
 */
#ifndef WP_STOP_GUARD_H
#define WP_STOP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/procfs.h"
#include "wallprof/state.h"

struct wp_thread;

/* Part of a thread. */
struct wp_stop_guard {
	/* It has a seccomp filter, which it keeps for life. */
	bool has_filter;
	/* How often a thread with a filter had slept when it was last seen ready
	 * to run, and the CPU time it had used when that number was first seen. */
	uint64_t sleeps;
	uint64_t run_ns;
	/* See wp_stop_guard_is_worker; valid once it is known. */
	bool is_worker;
	bool worker_is_known;
};

/* Is T a worker of the kernel's (io_uring's iou-wrk-PID, vhost)?  It has no user stack
 * and is in no call.  It is not to be stopped: that ends the wait of a request that it
 * carries out, which nothing restarts. */
bool wp_stop_guard_is_worker(struct wp_thread *t);

/* Has T a seccomp filter? */
bool wp_stop_guard_has_filter(struct wp_thread *t);

/* May T, which waits as FACTS say, be stopped?  The kind of the call's descriptor is
 * filled in where that matters. */
bool wp_stop_guard_lets_waiting(struct wp_thread *t,
				struct wp_thread_facts *facts);

/* T is ready to run by schedstat NOW, and may be stopped later. */
void wp_stop_guard_see_running(struct wp_thread *t,
			       const struct wp_schedstat *now);

/* May T be stopped now, having been seen?  If it has a filter: only if it has run
 * for a millisecond of CPU time without a sleep, so that it is most likely not about to
 * make a call.  Time without a CPU does not count: a thread that makes a call wakes the
 * supervisor, which may take its CPU before it sleeps. */
bool wp_stop_guard_lets_running(struct wp_thread *t);

/* Has it not run for so long?  A rest lets it, if it has a CPU. */
bool wp_stop_guard_wants_rest(struct wp_thread *t);
void wp_stop_guard_rest(void);

#endif
