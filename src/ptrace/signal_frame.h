/* SPDX-License-Identifier: Apache-2.0 */
/* signal_frame.h - has a signal handler just returned to where a thread is?
 *
 * Layer: ptrace.  Private to src/ptrace/.
 *
 * On aarch64 no register tells a call that is about to end by EINTR from one that
 * has, and whose signal's handler has returned.  The kernel's frame, which the handler
 * was called with, is still on the stack in the second case.
 */
#ifndef WP_SIGNAL_FRAME_H
#define WP_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a thread is: its stack pointer and pc, and what its call returned. */
struct wp_signal_frame {
	uint64_t sp_avma;
	uint64_t pc_avma;
	uint64_t result;
};

/* Is such a frame, of aarch64, in the LEN bytes of BUF?  It has x0 to x30, sp and pc
 * in a row (arch/arm64/include/uapi/asm/sigcontext.h). */
bool wp_signal_frame_find(const struct wp_signal_frame *frame, const void *buf,
			  size_t len);

/* The same, below the stack pointer of thread TID.  Not found: a handler that ran on
 * a stack of its own (sigaltstack(2)). */
bool wp_signal_frame_is_below(pid_t tid, const struct wp_signal_frame *frame);

#endif
