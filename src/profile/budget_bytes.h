/* SPDX-License-Identifier: Apache-2.0 */
/* budget_bytes.h - what the entries of a profile take of the budget.  An array that grows
 * doubles, and is there twice while it is copied.
 *
 * Layer: profile.  Private to src/profile/.
 */
#ifndef WP_BUDGET_BYTES_H
#define WP_BUDGET_BYTES_H

#include "wallprof/profile.h"

enum {
	WP_SAMPLE_BYTES = 2 * (sizeof(struct wp_profile_sample) +
			       sizeof(struct wp_index_slot)),
	/* A frame that no stack before had. */
	WP_FRAME_BYTES = 2 * (sizeof(struct wp_frame) +
			      sizeof(struct wp_index_slot)),
};

/* A stack of DEPTH frames, besides them. */
static inline uint64_t wp_stack_bytes(uint32_t depth)
{
	return sizeof(struct wp_profile_stack) +
	       2 * sizeof(struct wp_index_slot) +
	       (uint64_t)2 * depth * sizeof(uint32_t);
}

#endif
