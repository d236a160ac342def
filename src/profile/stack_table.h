/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table.h - how stacks are found.
 *
 * Layer: profile.  Private to src/profile/.
 */
#ifndef WP_STACK_TABLE_H
#define WP_STACK_TABLE_H

#include "wallprof/profile.h"

/* The hash of a stack is that of its end, END, an enum wp_stack_end, in END_MAPPING, and
 * going on from there that of each of its frames.  That of a frame alone goes on from
 * 0. */
uint64_t wp_stack_table_hash_end(uint8_t end, uint32_t end_mapping);
uint64_t wp_stack_table_hash_frame(uint64_t seed, const struct wp_frame *frame);

#endif
