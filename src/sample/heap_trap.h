/* SPDX-License-Identifier: Apache-2.0 */
/* heap_trap.h - threads that are on their way through a heap probe.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_HEAP_TRAP_H
#define WP_HEAP_TRAP_H

#include "heap_sites.h"

/* REGS are of a thread that may be in the trap of a probe: let them be before the instruction
 * that it is on, or behind it if the kernel has made that already (x86-64).  MEM has its
 * stack. */
void wp_heap_trap_leave(const struct wp_heap_sites *sites,
			const struct wp_mem *mem, struct wp_regs *regs);

#endif
