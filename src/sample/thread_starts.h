/* SPDX-License-Identifier: Apache-2.0 */
/* thread_starts.h - threads, by the stack that created them.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_THREAD_STARTS_H
#define WP_THREAD_STARTS_H

#include <stdint.h>

#include "wallprof/err.h"

struct wp_common;
struct wp_renumber;
struct wp_sampler;
struct wp_target;

/* Begin to record thread starts; where perf events are not permitted, by the ticks'
 * lists of threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_thread_starts_open(struct wp_target *target);

/* The recording of TARGET, or its process, started at SINCE_NS: threads that started before
 * are not counted. */
void wp_thread_starts_begin(struct wp_target *target, uint64_t since_ns);

/* Read the perf records, in a tick that has listed the threads.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_thread_starts_tick(struct wp_target *target);

/* Read those of all targets of COMMON, between ticks.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_thread_starts_read(struct wp_common *common, struct wp_sampler *loop);

/* Between ticks: count how long the threads have lived that do.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_thread_starts_settle(struct wp_target *target);

/* The same of TARGET after its last tick. */
WP_MUST_CHECK
int wp_thread_starts_finish(struct wp_target *target);

/* See wp_sampler_renumber. */
void wp_thread_starts_renumber(struct wp_target *target,
			       struct wp_renumber *renumber);

void wp_thread_starts_close(struct wp_target *target);

#endif
