/* SPDX-License-Identifier: Apache-2.0 */
/* lower_bound.h - binary search.
 *
 * Layer: base.
 */
#ifndef WP_LOWER_BOUND_H
#define WP_LOWER_BOUND_H

#include <stdint.h>

/* The number of elements of x[0..N) that are below what is searched for, which
 * is the index of the first that is not; N if all are.  IS_BELOW is an
 * expression that says so of x[I], true for a first part of x and false for the
 * rest; I is declared here and must shadow nothing. */
#define WP_LOWER_BOUND(n, i, is_below)                                         \
	({                                                                     \
		uint64_t bound_low_ = 0, bound_high_ = (n);                    \
		while (bound_low_ < bound_high_) {                             \
			uint64_t i = bound_low_ +                              \
				     (bound_high_ - bound_low_) / 2;           \
			if (is_below)                                          \
				bound_low_ = i + 1;                            \
			else                                                   \
				bound_high_ = i;                               \
		}                                                              \
		bound_low_;                                                    \
	})

#endif
