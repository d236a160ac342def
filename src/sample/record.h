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

/* Add WALL_NS to the wait that T's last sample found, which holds. */
WP_MUST_CHECK
int wp_record_unchanged(struct wp_thread *t, uint64_t wall_ns);

/* T was ready to run, with STACK, and in STATE (running or runnable): pay what
 * is owed in STATE and all CPU samples to STACK. */
WP_MUST_CHECK
int wp_record_running(struct wp_thread *t, uint32_t stack, enum wp_state state);

/* A CPU sample of T brought STACK: pay all that is owed. */
WP_MUST_CHECK
int wp_record_cpu(struct wp_thread *t, uint32_t stack);

/* T's stop did not come because of WHY: pay what was set aside, and all that is
 * owed, to no stack. */
WP_MUST_CHECK
int wp_record_without_stack(struct wp_thread *t, enum wp_stack_end why);

/* T or the recording has ended: pay all that is owed to the last stack that T
 * ran with. */
WP_MUST_CHECK
int wp_record_end(struct wp_thread *t);

#endif
