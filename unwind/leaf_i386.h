/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_i386.h - out of functions of i386 programs that have pushed little and call nothing.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_LEAF_I386_H
#define WP_LEAF_I386_H

#include "arch.h"

/* Is CODE[0..4) that by which position-independent code finds its own address: mov
 * (%esp), REG; ret? */
bool wp_leaf_i386_finds_address(const uint8_t *code);

/* Make STEP, out of a function that has pushed PUSHED bytes since it was called; the
 * return address must be behind a call.  WP_STEP_NO_INFO: it is not.  Else as a back
 * end. */
enum wp_step_result wp_leaf_i386_pop(struct wp_step *step,
				     const struct wp_unwind_modules *modules,
				     uint64_t pushed);

/* Make STEP, of an i386 program, if its pc is exact and at a return, or where code finds
 * its own address: linkers leave that without unwind info.  Else as wp_leaf_i386_pop. */
enum wp_step_result wp_leaf_i386_step(struct wp_step *step,
				      const struct wp_unwind_modules *modules);

/* Make STEP, whose unwind info leads to no code, if its pc is exact or behind a call of
 * the code that finds its own address.  So glibc's i386 functions are that were written by
 * hand: they push up to three registers, and memcpy one, that their unwind info does not
 * count.  Else as wp_leaf_i386_pop. */
enum wp_step_result wp_leaf_i386_scan(struct wp_step *step,
				      const struct wp_unwind_modules *modules);

#endif
