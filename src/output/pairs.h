/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.h - sums per pair of numbers. */
#ifndef WP_PAIRS_H
#define WP_PAIRS_H

#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/index.h"

struct wp_pair {
	uint64_t a;
	uint64_t b;
	/* Sums that the owner adds to: SPLIT is a part of SELF, TOTAL is
	 * apart. */
	uint64_t self;
	uint64_t split;
	uint64_t total;
	/* For the owner; 0 at first. */
	uint32_t mark;
	uint32_t loc;
	uint32_t level;
};

struct wp_pairs {
	/* v[0..len), in order of first sight until sorted, owned. */
	struct wp_pair *v;
	uint32_t len;
	uint32_t cap;
	/* By A and B, until sorted. */
	struct wp_index index;
};

#define WP_PAIRS_INIT                                                          \
	{                                                                      \
		0                                                              \
	}

/* The index of (A, B), which is entered with sums of 0 if new; UINT32_MAX: no
 * memory.  Not after wp_pairs_sort. */
uint32_t wp_pairs_add(struct wp_pairs *pairs, uint64_t a, uint64_t b);
/* Sort by falling SELF, then falling TOTAL, then rising pair. */
void wp_pairs_sort(struct wp_pairs *pairs);
void wp_pairs_clear(struct wp_pairs *pairs);

#endif
