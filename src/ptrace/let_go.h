/* SPDX-License-Identifier: Apache-2.0 */
/* let_go.h - how a thread that has stopped goes on as if it had not.
 *
 * Layer: ptrace.  Private to src/ptrace/.
 */
#ifndef WP_LET_GO_H
#define WP_LET_GO_H

#include "wallprof/tracer.h"

/* A thread on another CPU stops within some microseconds: for so long polling is
 * cheaper than sleeping.  A thread that must first get a CPU takes longer, and
 * may be waiting for the CPU that polls.
 */
#define WP_SPIN_NS (40 * WP_NS_PER_US)

/* The signal with which the thread that stopped with STATUS is to be detached; 0:
 * none. */
int wp_signal_of_stop(int status);

/* Is the stop of TID with STATUS (waitpid(2)) the one at the end of execve(2)
 * (PTRACE_O_TRACEEXEC)?  Then let TID go on to its program's first instruction, where it
 * stops once more, as by PTRACE_INTERRUPT: before that the result of execve(2) is still to
 * be written into its registers. */
bool wp_let_go_to_entry(pid_t tid, int status);

/* Let TRACEE, which is stopped, go.  False: its call has to be made first. */
bool wp_let_go(struct wp_tracee *tracee);

/* The same of TRACEE, which nobody waits for, and which has stopped with STATUS
 * (waitpid(2)). */
bool wp_let_unwanted_go(struct wp_tracee *tracee, int status);

#endif
