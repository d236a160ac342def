/* SPDX-License-Identifier: Apache-2.0 */
/* thread_starts.h - threads, by the stack that created them.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_THREAD_STARTS_H
#define WP_THREAD_STARTS_H

#include "wallprof/err.h"

struct wp_renumber;
struct wp_target;

/* Begin to record thread starts; where perf events are not permitted, by the ticks'
 * lists of threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_thread_starts_open(struct wp_target *target);

/* Read the perf records, in a tick that has listed the threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_thread_starts_tick(struct wp_target *target);

/* The same between ticks, and after the last tick. */
WP_MUST_CHECK
int wp_thread_starts_read(struct wp_target *target);
WP_MUST_CHECK
int wp_thread_starts_finish(struct wp_target *target);

/* See wp_sampler_renumber. */
void wp_thread_starts_renumber(struct wp_target *target,
			       struct wp_renumber *renumber);

void wp_thread_starts_close(struct wp_target *target);

#endif
