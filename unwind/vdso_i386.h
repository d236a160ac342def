/* SPDX-License-Identifier: Apache-2.0 */
/* vdso_i386.h - out of the C functions of an i386 program's vDSO.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * The kernel compiles them with a frame pointer and without unwind info
 * (arch/x86/entry/vdso/Makefile, KBUILD_CFLAGS_32).  They call nothing but the few
 * instructions by which position-independent code finds its own address.
 */
#ifndef WP_VDSO_I386_H
#define WP_VDSO_I386_H

#include "arch.h"

/* Make STEP, if its pc is in an image that is read from the memory of an i386 program,
 * by what its code does before pc and at it; the return address must be behind a call.
 *
 * WP_STEP_NO_INFO: it is not, or its code is another.  Else as
 * wp_frame_pointer_step. */
enum wp_step_result wp_vdso_i386_step(struct wp_step *step,
				      const struct wp_unwind_modules *modules);

#endif
