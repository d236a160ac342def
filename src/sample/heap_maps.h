/* SPDX-License-Identifier: Apache-2.0 */
/* heap_maps.h - sampled memory that the target had the kernel map, and what of it is
 * mapped still.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_HEAP_MAPS_H
#define WP_HEAP_MAPS_H

#include "wallprof/heap_probe.h"
#include "wallprof/profile.h"

/* [START, END), a whole mapping or what is left of one. */
struct wp_heap_map {
	uint64_t start_avma, end_avma;
	uint64_t time_ns;
	/* Of its sample. */
	uint64_t id;
	/* Index of its sample in the profile; how many mappings it stands for, and
	 * as a count of objects (0: another part of the mapping is the object). */
	uint32_t at;
	uint32_t count;
	double weight;
	/* What its sample has added to the profile, and the variance of that. */
	uint64_t bytes, variance;
};

struct wp_heap_maps {
	/* v[0..n), by address, not overlapping; owned. */
	struct wp_heap_map *v;
	size_t n, cap;
	/* Samples whose place is not known so far, from the oldest on: owned. */
	struct wp_heap_map *fresh;
	size_t nfresh, cap_fresh;
	/* What was mapped at a time that samples have not reached: owned. */
	struct wp_heap_mapped *pending;
	size_t npending, cap_pending;
	/* Left out for want of memory. */
	uint64_t ndropped;
};

/* Keep the sample MAP, whose place is still to come.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_maps_add(struct wp_heap_maps *maps, const struct wp_heap_map *map);

/* The call of sample ID failed: it is taken out of SET, the profile's.  Returns its
 * bytes; 0: it is none of these. */
uint64_t wp_heap_maps_take_back(struct wp_heap_maps *maps,
				struct wp_sample_set *set, uint64_t id);

/* Enter that RANGE is mapped: what was there before is forgotten, and the sample of its
 * id is there.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_maps_place(struct wp_heap_maps *maps,
		       const struct wp_heap_mapped *range);

/* Enter what PROBE says was mapped before UNTIL_NS; all samples of before then were
 * added.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_heap_maps_read(struct wp_heap_maps *maps, struct wp_heap_probe *probe,
		      uint64_t until_ns);

/* Enter into SET what of before UNTIL_NS is mapped. */
void wp_heap_maps_count(const struct wp_heap_maps *maps,
			struct wp_sample_set *set, uint64_t until_ns);

/* All of it is gone, as by an exec. */
void wp_heap_maps_forget_all(struct wp_heap_maps *maps);

void wp_heap_maps_clear(struct wp_heap_maps *maps);

#endif
