/* SPDX-License-Identifier: Apache-2.0 */
/* wakes.h - wakes, by the stack of the thread that woke another.
 *
 * Layer: sample.  Private to src/sample/, of block_records.c and block_waits.c.
 *
 * Records of wakes tell who made each, samples at every Nth wake the stack of that
 * thread.  Both are those of the waits of the block profile, in the same windows, with
 * the same weights.
 */
#ifndef WP_WAKES_H
#define WP_WAKES_H

#include "block_records.h"

/* One wake in so many gives a stack until their rate is known: few, as one of the first
 * window stands for as many. */
enum { WP_WAKES_FIRST_EVERY = 17 };

/* RECORD tells that T was woken.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wakes_note(struct wp_block_waits *waits, struct wp_thread *t,
		  const struct wp_perf_record *record);

/* RECORD is a sample of who wakes T, which was noted.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wakes_sample(struct wp_block_waits *waits, struct wp_thread *t,
		    const struct wp_perf_record *record);

/* T, whose wait ended at END_NS, is on a CPU at NOW: keep the wake.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wakes_keep(struct wp_thread *t, uint64_t end_ns, uint64_t now);

/* Why wakes are not recorded. */
const char *wp_wakes_denied(const struct wp_block_waits *waits);

/* Add wake W to the profile, WEIGHT times.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wakes_add(struct wp_block_waits *waits, const struct wp_block_wait *w,
		 double weight);

/* After the last: scale the samples, and say how they were made.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wakes_finish(struct wp_block_waits *waits, uint32_t no_stack);

#endif
