/* go_root.h - where the stacks of Go programs end.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_GO_ROOT_H
#define WP_GO_ROOT_H

#include "cfi.h"

/* The code at SVMA, which FDE covers, is one byte of a call that Go's runtime
 * makes first on a stack.  What that says of a step from the return address
 * behind it:
 *
 * WP_STEP_ROOT: the frame is the outermost.
 * WP_STEP_UNKNOWN_REG: its caller is on another stack, which only the thread's
 * own registers lead to.
 * WP_STEP_OK: nothing, its rules hold.
 *
 * By the very bytes of that code, nothing else. */
enum wp_step_result wp_go_end(const struct wp_cfi_fde *fde, uint64_t svma);

#endif
