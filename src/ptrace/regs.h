/* SPDX-License-Identifier: Apache-2.0 */
/* regs.h - the machine's part of a stop.
 *
 * Layer: ptrace.  Private to src/trace/.
 */
#ifndef WP_TRACE_REGS_H
#define WP_TRACE_REGS_H

#include "wallprof/tracer.h"

/* As wp_tracer_read_regs; TID is stopped.  With REPAIR false the registers are
 * left alone (a signal is about to be delivered). */
int wp_regs_read(pid_t tid, bool repair, struct wp_regs *ret_regs,
		 struct wp_stop_facts *ret_facts);

#endif
