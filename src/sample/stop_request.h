/* SPDX-License-Identifier: Apache-2.0 */
/* stop_request.h - threads that are to be stopped, and why.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * A sample that cannot do without a stop lists the thread; the stops are made
 * after all threads of the tick have been sampled.  A request is
 *
 *   listed    until the tick's stops are made or given up
 *   pending   from PTRACE_INTERRUPT until the stop is taken or given up
 */
#ifndef WP_STOP_REQUEST_H
#define WP_STOP_REQUEST_H

#include <stddef.h>

#include "wallprof/procfs.h"
#include "wallprof/state.h"

struct wp_thread;

/* Part of a thread. */
struct wp_stop_request {
	bool listed;
	bool pending;
	/* The tick that it belongs to. */
	uint64_t tick_ns;
	/* Length, in ns, of the region of the look that asked for it; 0: none. */
	uint64_t weight_ns;
	/* schedstat's slices of the thread at its sample; when it was
	 * interrupted; of a thread that slept when it was stopped, in that
	 * sleep. */
	uint64_t slices;
	/* How often it had gone to sleep at its sample, the sleep that this found
	 * counted, and what stops before the one at hand made of it; UINT64_MAX: not
	 * known, or that sleep has ended. */
	uint64_t sleeps;
	/* The thread waits and only its registers are missing: its stack pointer
	 * at the sample, the stack as far as it is known without them, and what
	 * the sample found. */
	bool for_registers;
	/* By the time it stopped it stood elsewhere. */
	bool moved;
	uint64_t sp_avma;
	uint32_t partial_stack;
	struct wp_thread_facts facts;
};

/* The threads listed in a tick. */
struct wp_stop_requests {
	/* v[0..n), each thread borrowed; owned. */
	struct wp_thread **v;
	size_t n, cap;
	/* Threads that have been interrupted and have not stopped. */
	size_t npending;
};

/* Make room for N threads, so that listing allocates nothing.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_stop_requests_reserve(struct wp_stop_requests *list, size_t n);
void wp_stop_requests_clear(struct wp_stop_requests *list);

/* Is T to be stopped already? */
bool wp_stop_request_exists(const struct wp_thread *t);

/* List T, which is ready to run and has been put on a CPU SLICES times.  WEIGHT_NS:
 * the region of the look that asks for it; 0: none. */
void wp_stop_request_stack(struct wp_thread *t, uint64_t slices,
			   uint64_t weight_ns);

/* List T, which waits; SAMPLE has what its sample found. */
void wp_stop_request_registers(struct wp_thread *t,
			       const struct wp_stop_request *sample);

/* Take v[I] off LIST; the last one moves into its place. */
struct wp_thread *wp_stop_requests_take(struct wp_stop_requests *list,
					size_t i);

/* T has been interrupted, having been put on a CPU SLICES times. */
void wp_stop_request_sent(struct wp_thread *t, uint64_t slices);
/* T's stop has been taken or given up. */
void wp_stop_request_done(struct wp_thread *t);

#endif
