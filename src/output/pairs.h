/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.h - sums by a pair of numbers. */
#ifndef WP_PAIRS_H
#define WP_PAIRS_H

#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/index.h"

struct wp_pair {
	uint64_t a;
	uint64_t b;
	/* What was added; SPLIT is a part of SELF that the user chooses, TOTAL
	 * a sum apart. */
	uint64_t self;
	uint64_t split;
	uint64_t total;
	/* Free for the user; 0 at first. */
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

/* The index of (A, B), made with sums of 0 if new; UINT32_MAX when there is no
 * memory.  Not after wp_pairs_sort. */
uint32_t wp_pairs_add(struct wp_pairs *pairs, uint64_t a, uint64_t b);
/* Largest SELF first, then largest TOTAL, then least pair. */
void wp_pairs_sort(struct wp_pairs *pairs);
void wp_pairs_clear(struct wp_pairs *pairs);

#endif
