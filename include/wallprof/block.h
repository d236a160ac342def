/* block.h - how much one sampled wait stands for.
 *
 * Layer: profile.  Pure computation.
 *
 * A sample that was taken with probability P counts 1 / P times, for its count
 * and for its time: whatever decides P, the sums are right on average, and no
 * kind of wait drowns another (Horvitz and Thompson, 1952).
 */
#ifndef WP_BLOCK_H
#define WP_BLOCK_H

#include <stdint.h>

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
double wp_block_keep(uint64_t rate_ns, uint64_t delay_ns, uint64_t random);

/* Parts of one wait's count and time. */
struct wp_block_parts {
	double count;
	double time;
};

/* Looks at intervals of INTERVAL_NS tell waits that are seen WP_BLOCK_LOOKS
 * times: count one for each, and the time from look to look.  What they are
 * expected to miss of a wait of DELAY_NS, as shares of its count and time, is
 * for those who know its length: all of it up to two intervals, none from three
 * on.
 */
enum { WP_BLOCK_LOOKS = 3 };
struct wp_block_parts wp_block_missed_by_looks(uint64_t delay_ns,
					       uint64_t interval_ns);

/* The weight of a wait that began and ended in a window of WINDOW_NS, one such
 * window in each CYCLE_NS, at a random time; 0: no such wait fits. */
double wp_block_window_weight(uint64_t delay_ns, uint64_t window_ns,
			      uint64_t cycle_ns);

/* X up or down to a whole number that is X on average. */
uint64_t wp_block_round(double x, uint64_t random);

#endif
