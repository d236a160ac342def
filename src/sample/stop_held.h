/* SPDX-License-Identifier: Apache-2.0 */
/* stop_held.h - all threads that stand still are read and let go before the first of their
 * stacks is walked.
 *
 * A walk may open files, read tables and prove what code does: none of them waits for that
 * of another.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_STOP_HELD_H
#define WP_STOP_HELD_H

#include "stack_copy.h"
#include "stop_window.h"

struct wp_sampler;

/* A thread that goes on, and whose stack is still to be walked. */
struct wp_stop_held {
	struct wp_thread *thread;
	struct wp_stop_window window;
	/* Its stack copy, whose bytes begin at OFF of those that are kept. */
	struct wp_stack_copy copy;
	size_t off;
};

/* Part of the loop: what is held is kept from tick to tick. */
struct wp_stops_held {
	/* v[0..n), owned. */
	struct wp_stop_held *v;
	size_t n, cap;
	/* bytes[0..len), owned. */
	uint8_t *bytes;
	size_t len, cap_bytes;
};

/* Read and release what LOOP's tracer holds, then walk and record it.  Where their stacks
 * are over 64 MiB, or there is no memory, those that are read then are walked at once.
 * 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_stops_held_take(struct wp_sampler *loop);

void wp_stops_held_clear(struct wp_stops_held *held);

#endif
