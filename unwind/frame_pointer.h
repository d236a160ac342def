/* SPDX-License-Identifier: Apache-2.0 */
/* frame_pointer.h - steps by a frame pointer that was checked.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * Code may use the frame pointer's register for anything: what is in it then may
 * be a frame pointer of a caller further out, which leaves out frames.  Each
 * frame that is left out has its return address between sp and that place.
 */
#ifndef WP_FRAME_POINTER_H
#define WP_FRAME_POINTER_H

#include "arch.h"

/* Make STEP by the frame pointer: it lies in the stack above sp, its word is the
 * caller's frame pointer, and the next word is where a call returns to.
 * IS_CERTAIN: the pc's code says that it is the frame's own, which may be on
 * another stack; else it is taken where the caller's is above it and no word from
 * sp to it may be a return address.
 *
 * Other results: WP_STEP_ROOT, the frame is the first; WP_STEP_UNKNOWN_REG, the
 * frame pointer is not known; WP_STEP_NO_INFO, it is not believed; as
 * wp_step_read.
 */
enum wp_step_result
wp_frame_pointer_step(struct wp_step *step,
		      const struct wp_unwind_modules *modules, bool is_certain);

/* May a function return to AVMA: is it in a module's code, behind a call, or
 * where interpreters have those return that they jump to, or a signal trampoline? */
bool wp_frame_pointer_may_return(const struct wp_unwind_modules *modules,
				 const struct wp_mem *mem, uint64_t avma);

#endif
