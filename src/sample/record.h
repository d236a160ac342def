/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - add samples to the profile of a target.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Each returns 0 or -ENOMEM.  A STACK of UINT32_MAX, what adding a stack gives
 * without memory, is -ENOMEM.
 */
#ifndef WP_RECORD_H
#define WP_RECORD_H

#include "thread.h"
#include "wait_queue.h"

/* Describe WAIT and add it. */
WP_MUST_CHECK
int wp_record_wait(const struct wp_queued_wait *wait);

/* The wait that T's last look found has held for NTICKS ticks more, the last of which was
 * at TICK_NS and of a region that ends at REGION_END_NS. */
WP_MUST_CHECK
int wp_record_unchanged(struct wp_thread *t, uint64_t nticks, uint64_t tick_ns,
			uint64_t region_end_ns);

/* A look found T ready to run, with STACK, and in STATE (running or runnable): pay
 * what is owed as running and runnable and all CPU samples to STACK.  WEIGHT_NS: the
 * region that the look stands for. */
WP_MUST_CHECK
int wp_record_running(struct wp_thread *t, uint32_t stack, enum wp_state state,
		      uint64_t weight_ns);

/* A CPU sample of T brought STACK: pay all that is owed. */
WP_MUST_CHECK
int wp_record_cpu(struct wp_thread *t, uint32_t stack);

/* T's stop did not come because of WHY: pay what is owed to no stack.  WEIGHT_NS: as
 * above. */
WP_MUST_CHECK
int wp_record_without_stack(struct wp_thread *t, enum wp_stack_end why,
			    uint64_t weight_ns);

/* T or the recording has ENDED (true: T): pay what is owed as running and runnable
 * to the last stack that T ran with, what is owed as waiting to its last wait. */
WP_MUST_CHECK
int wp_record_end(struct wp_thread *t, bool ended);

#endif
