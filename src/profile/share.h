/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - divides a sum by weights, and loses nothing to rounding.
 *
 * Layer: profile.  Private to src/profile/.
 */
#ifndef WP_SHARE_H
#define WP_SHARE_H

#include <stdint.h>

/* The part of ALL that goes with X more of SUM, of which *SEEN was before: once SUM is
 * seen, all parts are ALL. */
static inline uint64_t wp_share_next(uint64_t *seen, uint64_t x, uint64_t sum,
				     uint64_t all)
{
	uint64_t before;

	if (!sum)
		return 0;
	before = (uint64_t)((__uint128_t)all * *seen / sum);
	*seen += x;
	return (uint64_t)((__uint128_t)all * *seen / sum) - before;
}

#endif
