/* SPDX-License-Identifier: Apache-2.0 */
/* wait_queue.h - samples of waiting threads that are not described yet.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * To say what a descriptor is takes a readlink and perhaps the tables of
 * /proc/PID/net: that is left until the threads of the tick have been sampled.
 */
#ifndef WP_WAIT_QUEUE_H
#define WP_WAIT_QUEUE_H

#include <stddef.h>

#include "wallprof/profile.h"
#include "wallprof/state.h"

struct wp_thread;

struct wp_queued_wait {
	/* Borrowed. */
	struct wp_thread *thread;
	/* Without object and system call. */
	struct wp_sample_key key;
	uint64_t wall_ns;
	/* The region that the look stands for; 0: it did not find this wait. */
	uint64_t weight_ns;
	/* Any other moment of the region was as likely: the look divides time. */
	bool by_chance;
	struct wp_thread_facts facts;
};

struct wp_wait_queue {
	/* v[0..n); owned. */
	struct wp_queued_wait *v;
	size_t n, cap;
};

/* Make room for N samples, so that adding allocates nothing.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wait_queue_reserve(struct wp_wait_queue *queue, size_t n);
void wp_wait_queue_clear(struct wp_wait_queue *queue);

/* A look that stands for WEIGHT_NS found T waiting (or stopped, or exiting) as FACTS
 * say, with STACK: pay what is owed as waiting to it.  0, or -ENOMEM if STACK is
 * UINT32_MAX or the queue is full. */
WP_MUST_CHECK
int wp_wait_queue_add(struct wp_thread *t, const struct wp_thread_facts *facts,
		      uint32_t stack, uint64_t weight_ns);

#endif
