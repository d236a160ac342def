/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table.h - how stacks are found.
 *
 * Layer: profile.  Private to src/profile/.
 */
#ifndef WP_STACK_TABLE_H
#define WP_STACK_TABLE_H

#include "wallprof/profile.h"

/* The hash of a stack of FRAMES with END, an enum wp_stack_end, in END_MAPPING. */
uint64_t wp_stack_table_hash(const struct wp_frame *frames, uint32_t depth,
			     uint8_t end, uint32_t end_mapping);

#endif
