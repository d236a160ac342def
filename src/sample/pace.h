/* SPDX-License-Identifier: Apache-2.0 */
/* pace.h - how many intervals one tick stands for, so that sampling takes no more CPU
 * time than it may.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_PACE_H
#define WP_PACE_H

#include <stdint.h>

struct wp_pace {
	/* Intervals between two ticks on average, from 1 on; 0: before the first. */
	double mean;
	/* What the strides so far are short of that, under 1. */
	double left;
	/* When it was looked at last, and the CPU time used by then; 0: never. */
	uint64_t since_ns;
	uint64_t used_ns;
};

/* The intervals from the tick at NOW_NS to the next, USED_NS of CPU time having been
 * used in all: as many, on average, as it takes for MAX_SHARE of one core (0: any), at
 * most MOST. */
uint64_t wp_pace_stride(struct wp_pace *pace, uint64_t now_ns, uint64_t used_ns,
			double max_share, uint64_t most);

#endif
