/* go_root.h - where the stacks of Go programs end.
 *
 * Layer: unwind.  Private to unwind/.
 */
#ifndef WP_GO_ROOT_H
#define WP_GO_ROOT_H

#include "cfi.h"

/* The code at SVMA, which FDE covers, is one byte of a call that Go's runtime
 * makes from the outermost frame of a stack: the return address behind it is
 * the last of its stack.  By the very bytes of that code, nothing else. */
bool wp_go_is_root(const struct wp_cfi_fde *fde, uint64_t svma);

#endif
