/* SPDX-License-Identifier: Apache-2.0 */
/* probed_return.h - stacks of threads in functions whose return is probed.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * At a call of such a function the kernel puts another return address, that of its
 * trampoline, in the place of the caller's.  Which that was our own heap probes know.
 */
#ifndef WP_PROBED_RETURN_H
#define WP_PROBED_RETURN_H

#include <stdbool.h>

#include "stack_copy.h"

/* May COPY's stack have such addresses? */
static inline bool wp_probed_return_may_be(const struct wp_stack_copy *copy)
{
	return copy->time_ns && copy->space->uprobes_avma;
}

/* Put the true ones into BUF[0..len), which was read from AVMA in COPY's stack: WP_MEM_OK;
 * WP_MEM_PROBED: that of the last word, where a frame has its return address, is not
 * known. */
enum wp_mem_result wp_probed_return_restore(struct wp_stack_copy *copy,
					    uint64_t avma, void *buf,
					    size_t len);

/* REGS, of COPY's thread, are in the trampoline: let them be in the caller, if that is
 * known. */
void wp_probed_return_leave(struct wp_stack_copy *copy, struct wp_regs *regs);

#endif
