/* SPDX-License-Identifier: Apache-2.0 */
/* go_end.h - where the stacks of Go programs end.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_GO_END_H
#define WP_GO_END_H

#include "step.h"
#include "wallprof/elf_image.h"

/* What a step comes to from a return address whose call has a byte at SVMA, in the
 * function of IMAGE from START to END, if the bytes there are those of a call that
 * Go's runtime makes first on a stack:
 *
 * WP_STEP_ROOT: the frame is the first of its thread or goroutine.
 * WP_STEP_UNKNOWN_REG: the caller is on another stack, which only registers of the
 * thread lead to.
 * WP_STEP_OK: the bytes are other code, whose rules hold. */
enum wp_step_result wp_go_end(struct wp_elf_image *image, uint64_t start_svma,
			      uint64_t end_svma, uint64_t svma);

#endif
