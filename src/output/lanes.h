/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - a profile by thread: intervals in order of time, or sums. */
#ifndef WP_LANES_H
#define WP_LANES_H

#include <stdbool.h>

#include "wallprof/profile.h"

/* What a thread did for a time: an interval of the timeline, or a sample, which is
 * the sum of all its intervals. */
struct wp_lane_row {
	/* Both NULL: the thread was not watched. */
	const struct wp_profile_sample *sample;
	const struct wp_sample_key *key;
	/* The sample's main value: nanoseconds, or a number. */
	uint64_t value;
	/* Index + 1 of the thread that held the lock; 0: none known. */
	uint32_t holder;
};

struct wp_lanes {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	/* order[first[t]..first[t + 1]) are the rows of thread T: indices of the
	 * timeline's intervals if TIMED[T], else of the samples.  Owned. */
	uint32_t *first;
	uint32_t *order;
	bool *timed;
	/* Earliest first_ns of a thread. */
	uint64_t begin_ns;
	uint32_t nrows;
};

/* 0 or -ENOMEM; the caller clears LANES in both cases. */
WP_MUST_CHECK
int wp_lanes_init(struct wp_lanes *lanes, const struct wp_profile *profile,
		  enum wp_profile_kind kind);
void wp_lanes_clear(struct wp_lanes *lanes);

/* Row I, from 0 to below lanes->nrows; those of thread T begin at first[T]. */
struct wp_lane_row wp_lanes_row(const struct wp_lanes *lanes, uint32_t thread,
				uint32_t i);

/* When the rows of THREAD begin, after lanes->begin_ns. */
uint64_t wp_lanes_start_ns(const struct wp_lanes *lanes, uint32_t thread);

#endif
