/* SPDX-License-Identifier: Apache-2.0 */
/* wake_weight.h - the weights of sampled wakes.
 *
 * Layer: profile.  Pure computation.
 *
 * The thread of a sample's key is the one that woke another, or where who woke is not
 * recorded the one that was woken; its object is the woken thread's index in threads[]
 * until wp_wake_weight_finish, and its wait is why that one had waited.
 */
#ifndef WP_WAKE_WEIGHT_H
#define WP_WAKE_WEIGHT_H

#include "wallprof/profile.h"

/* Stack of the samples that hold count and time of all wakes of one thread by another,
 * with or without a stack. */
#define WP_WAKE_ALL UINT32_MAX

/* The key of the sample that holds all wakes of KEY's thread by KEY's waker. */
static inline struct wp_sample_key
wp_wake_weight_all(const struct wp_sample_key *key)
{
	return (struct wp_sample_key){ .stack = WP_WAKE_ALL,
				       .thread = key->thread,
				       .state = key->state,
				       .object = key->object };
}

/* After the last sample: scale the wake profile's samples with stacks so that those of
 * one waker and one woken thread add up to the sample that holds all their wakes, and
 * drop that: only the shares of stacks are an estimate.  Samples of which there is no
 * such sum stay as they are.  Before, those that do not tell why the woken thread waited
 * are shared out over those that do, of the same stack, waker and woken thread.  After,
 * the wakes of a thread are scaled down so that the waits which they ended are no more
 * than its wall-clock samples say that it waited, and the objects become string ids of
 * what woken threads are called, "worker (4711)".  NO_STACK is the stack for wakes of
 * which no stack was sampled.  0; -ENOMEM, and the wake profile is of no use. */
WP_MUST_CHECK
int wp_wake_weight_finish(struct wp_profile *profile, uint32_t no_stack);

#endif
