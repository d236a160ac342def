/* SPDX-License-Identifier: Apache-2.0 */
/* go_switch.h - out of Go's functions that go to another stack.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * runtime.systemstack, asmcgocall, time.now and others set sp to the stack of the
 * thread, and leave the frame pointer alone: in them it is the last link to the
 * goroutine's stack.  A function that has a frame has its own frame pointer there,
 * right below its return address.  One that has none (systemstack and asmcgocall
 * up to Go 1.20) has its caller's, and its return address somewhere below that, as
 * far as the caller's frame is large at the call.  What is found counts only where
 * the return address is behind a direct call of the very function.
 */
#ifndef WP_GO_SWITCH_H
#define WP_GO_SWITCH_H

#include "step.h"

/* Make STEP out of such a function, whose frame has SIZE bytes.
 *
 * WP_STEP_UNKNOWN_REG: the frame pointer is not known, or leads nowhere.
 * WP_STEP_BAD_INFO: the table of Go's functions is malformed.
 * As wp_step_read. */
enum wp_step_result wp_go_switch_step(struct wp_step *step, uint32_t size);

#endif
