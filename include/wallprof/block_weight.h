/* SPDX-License-Identifier: Apache-2.0 */
/* block_weight.h - how much one sampled wait stands for.
 *
 * Layer: profile.  Pure computation.
 *
 * A sample that was taken with probability P counts 1 / P times, for its count
 * and for its time: whatever decides P, the sums are right on average, and no
 * kind of wait drowns another (Horvitz and Thompson, 1952).
 */
#ifndef WP_BLOCK_WEIGHT_H
#define WP_BLOCK_WEIGHT_H

#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/profile.h"

/* Which waits are kept. */
struct wp_block_rate {
	/* One of so many switches gives its stack; 0: as many as are cheap. */
	uint32_t every;
	/* One sample for so much time waited, on average; 0: all are kept. */
	uint64_t ns;
};

/* Keep a wait of DELAY_NS with probability DELAY_NS / RATE_NS, longer ones
 * always; RATE_NS 0 keeps all.  RANDOM is uniform over all numbers.
 *
 * Returns the weight of the wait, 0 when it is not kept.  Go keeps waits the
 * same way (runtime/mprof.go, blocksampled).
 */
double wp_block_weight_keep(uint64_t rate_ns, uint64_t delay_ns,
			    uint64_t random);

/* Parts of one wait's count and time. */
struct wp_block_parts {
	double count;
	double time;
};

/* One look in each interval of INTERVAL_NS, at a random time in its first half,
 * tells waits that are seen three times: one for each, and for each look the
 * time since the one before.  What looks are expected to miss of a wait of DELAY_NS, as shares of
 * its count and time, is for those who know its length: all of it up to one
 * and a half intervals, none from three and a half on.
 */
enum { WP_BLOCK_LOOKS = 3 };
struct wp_block_parts wp_block_weight_missed_by_looks(uint64_t delay_ns,
						      uint64_t interval_ns);

/* The weight of a wait that began and ended in a window of WINDOW_NS, one such
 * window in each CYCLE_NS, at a random time; 0: no such wait fits. */
double wp_block_weight_window_weight(uint64_t delay_ns, uint64_t window_ns,
				     uint64_t cycle_ns);

/* Waits of one thread that are alike in length: a class from 1 to
 * WP_BLOCK_CLASSES, two to each power of two. */
enum { WP_BLOCK_CLASSES = 128 };
uint32_t wp_block_weight_class(uint64_t delay_ns);

/* The stack of a sample that tells how many waits a thread had in a class, and
 * how long they took, with or without a stack. */
#define WP_BLOCK_ALL UINT32_MAX

/* While recording, the object of a sample of the block profile is its class, 0
 * for a wait of which all is known, and samples with stack WP_BLOCK_ALL tell
 * what there was of each.  Now make the samples of each class add up to that,
 * so that only the shares of stacks are an estimate, and put classes together.
 * NO_STACK is for a class of which no stack was sampled.  0 or -ENOMEM, and
 * the samples are of no use. */
WP_MUST_CHECK
int wp_profile_finish_block(struct wp_profile *profile, uint32_t no_stack);

/* X up or down to a whole number that is X on average. */
uint64_t wp_block_weight_round(double x, uint64_t random);

#endif
