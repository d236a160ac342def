/* SPDX-License-Identifier: Apache-2.0 */
/* block_weight.h - the weights of sampled waits.
 *
 * Layer: profile.  Pure computation.
 *
 * A wait that was sampled with probability P counts 1 / P times, in its count and
 * in its time.  Then sums are right on average, whatever P depends on (Horvitz and
 * Thompson, 1952).
 */
#ifndef WP_BLOCK_WEIGHT_H
#define WP_BLOCK_WEIGHT_H

#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/profile.h"

/* Which waits get a stack (--block-rate). */
struct wp_block_rate {
	/* One switch in EVERY gives its stack; 0: as many as are cheap. */
	uint32_t every;
	/* Keep one wait per NS of time waited, on average; 0: keep all. */
	uint64_t ns;
};

/* Keep a wait of DELAY_NS with probability DELAY_NS / RATE_NS, or surely if that is
 * over 1 or RATE_NS is 0.  RANDOM is a random number, uniform over all 64 bits.
 *
 * Returns the wait's weight; 0: not kept.  Go keeps waits in the same way
 * (runtime/mprof.go, blocksampled).
 */
double wp_block_weight_keep(uint64_t rate_ns, uint64_t delay_ns,
			    uint64_t random);

/* Shares, from 0 to 1, of one wait's count and time. */
struct wp_block_parts {
	double count;
	double time;
};

/* Ticks come once in each interval of INTERVAL_NS, at a random time in it, and record
 * waits that three ticks find: the wait's count at the third, and an interval's
 * time for each tick.
 *
 * Returns the expected shares of a wait of DELAY_NS that ticks miss, which context
 * switches are to record: 1 up to one interval, 0 from four intervals on.
 */
enum { WP_BLOCK_TICKS = 3 };
struct wp_block_parts wp_block_weight_missed_by_ticks(uint64_t delay_ns,
						      uint64_t interval_ns);

/* The weight of a wait of DELAY_NS that began and ended within a window of
 * WINDOW_NS, where one window in each CYCLE_NS is recorded, at a random time; 0: so
 * long a wait does not fit. */
double wp_block_weight_in_window(uint64_t delay_ns, uint64_t window_ns,
				 uint64_t cycle_ns);

/* The class of waits of about DELAY_NS: from 1 to WP_BLOCK_CLASSES, two classes for
 * each power of two. */
enum { WP_BLOCK_CLASSES = 128 };
uint32_t wp_block_weight_class(uint64_t delay_ns);

/* The object of a sample while recording: string WAKER of who woke the thread (0:
 * nobody is known) and CLASS; 0: a wait that needs no scaling. */
static inline uint32_t wp_block_weight_object(uint32_t waker, uint32_t class)
{
	return waker < 1u << 24 ? waker << 8 | class : class;
}

/* The class in OBJECT; 0: none. */
static inline uint32_t wp_block_weight_class_of(uint32_t object)
{
	return object & 0xff;
}

/* Stack of the samples that hold count and time of all waits of a thread in a
 * class, with or without a stack. */
#define WP_BLOCK_ALL UINT32_MAX

/* After the last sample: scale the block profile's samples with stacks so that those
 * of each thread, state and class add up to its sample with stack WP_BLOCK_ALL, then
 * merge the classes.  So only the shares of stacks are an estimate.  Before, scale
 * the waits of each thread to what its wall-clock samples say that it waited: those
 * by records, unless they are less than half of what is left for them; those by
 * ticks too, if more than twice as much was told by records as they leave.
 *
 * While recording, the object of a sample is that of wp_block_weight_object; after,
 * it is the waker.  NO_STACK is the stack for classes of which no stack was sampled.
 * 0; -ENOMEM, and the block profile is of no use. */
WP_MUST_CHECK
int wp_block_weight_finish(struct wp_profile *profile, uint32_t no_stack);

/* Round X up or down at random, so that the result is X on average. */
uint64_t wp_block_weight_round(double x, uint64_t random);

#endif
