/* SPDX-License-Identifier: Apache-2.0 */
/* return_path.h - steps from aarch64's code without unwind info.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * Where a function returns to, its code tells: on each way from the pc to `ret` the
 * return address either stays in lr or is read back into it from the stack.  A frame
 * pointer alone does not tell: a function without a frame record, as a leaf has none
 * and musl's have none, has its caller's in x29.
 */
#ifndef WP_RETURN_PATH_H
#define WP_RETURN_PATH_H

#include "arch.h"

/* Make STEP by the ways from its pc to a return, where they agree; else by the frame
 * record, if it can be the frame's own.  Where there is no code to follow (x86-64),
 * by the frame pointer.
 *
 * Other results: as of wp_frame_pointer_step; WP_STEP_TOO_SLOW.
 */
enum wp_step_result
wp_return_path_step(struct wp_step *step,
		    const struct wp_unwind_modules *modules);

#endif
