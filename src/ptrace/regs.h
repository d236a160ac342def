/* SPDX-License-Identifier: Apache-2.0 */
/* regs.h - the registers of a stopped thread, by architecture.
 *
 * Layer: ptrace.  Private to src/ptrace/.
 */
#ifndef WP_REGS_H
#define WP_REGS_H

#include "wallprof/tracer.h"

/* As wp_tracer_read_regs, of stopped thread TID.  REPAIR false: the thread's
 * registers are not written, for a signal is about to be delivered. */
int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts);

#endif
