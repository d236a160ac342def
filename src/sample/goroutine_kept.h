/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_kept.h - what looks at goroutines share with their recording: the
 * program, the profile's entries, threads, stacks.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_GOROUTINE_KEPT_H
#define WP_GOROUTINE_KEPT_H

#include "goroutine_times.h"

/* Find TARGET's goroutines, if it is a Go program and that has not been done; it is
 * tried again while its runtime has not begun.  Until then, and for other programs,
 * threads are recorded.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_kept_open(struct wp_target *target);

/* The entry of goroutine ID, made if new; UINT32_MAX without memory. */
uint32_t wp_goroutine_kept_entry(struct wp_goroutine_times *times, uint64_t id,
				 const struct wp_goroutine_more *more,
				 bool is_runtime);
/* Of those of the runtime that wait. */
uint32_t wp_goroutine_kept_idle(struct wp_goroutine_times *times);

/* Of threads that run no goroutine, and of goroutines without labels. */
uint32_t wp_goroutine_kept_scheduler(struct wp_goroutine_times *times);
uint32_t wp_goroutine_kept_unlabelled(struct wp_goroutine_times *times);

/* Is S of one of TIMES' entries? */
bool wp_goroutine_kept_owns(const struct wp_goroutine_times *times,
			    const struct wp_profile_sample *s);

/* The thread with TID in the program's PID namespace; NULL: none is known. */
struct wp_thread *wp_goroutine_kept_thread(struct wp_goroutine_times *times,
					   int32_t tid);

/* Walks a goroutine's stack (wp_goroutine_user; CTX is the times): g->stack becomes
 * the index of the profile's. */
bool wp_goroutine_kept_walk(void *ctx, struct wp_goroutine *g,
			    const struct wp_goroutine_stack *stack, bool last);

/* Say in the profile how it was made.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_goroutine_kept_describe(const struct wp_goroutine_times *times);

#endif
