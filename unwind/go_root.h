/* SPDX-License-Identifier: Apache-2.0 */
/* go_root.h - where the stacks of Go programs end.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_GO_ROOT_H
#define WP_GO_ROOT_H

#include "step.h"
#include "wallprof/elf_image.h"

/* The code at SVMA, in a function of IMAGE from START to END, is one byte of a
 * call that Go's runtime makes first on a stack.  What that says of a step from
 * the return address behind it:
 *
 * WP_STEP_ROOT: the frame is the outermost.
 * WP_STEP_UNKNOWN_REG: its caller is on another stack, which only the thread's
 * own registers lead to.
 * WP_STEP_OK: nothing, its rules hold.
 *
 * By the very bytes of that code, nothing else. */
enum wp_step_result wp_go_end(struct wp_elf_image *image, uint64_t start_svma,
			      uint64_t end_svma, uint64_t svma);

#endif
