/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - why the kernel denies access to a process.
 *
 * Layer: proc.
 */
#ifndef WP_ACCESS_H
#define WP_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "wallprof/err.h"

/* The pid of the tracer of PID (ptrace(2)), 0 if it has none or /proc does not
 * say. */
pid_t wp_access_tracer(pid_t pid);

/* Does process PID trace this process or its parent, or what traces those?  A tracer
 * that is stopped lets no tracee go on, so that whoever stops his own waits for
 * ever. */
bool wp_access_traces_us(pid_t pid);

/* Is there a process or thread PID, whatever /proc shows (kill(2))? */
bool wp_access_exists(pid_t pid);

/* Is there a process PID that /proc does not show?  Everybody may read the status of
 * all, but where /proc is mounted with hidepid (proc(5)). */
bool wp_access_is_hidden(pid_t pid);

/* kernel.yama.ptrace_scope, 0 where there is no Yama. */
int wp_access_yama_scope(void);

/* Set ERR to the reason why wallprof may not read or stop process PID and to
 * what the user can do: another owner, Yama, another tracer, a container
 * without the capability, hidepid of /proc, a process that is not dumpable.
 * Returns -EPERM. */
int wp_access_denied(pid_t pid, struct wp_err *err);

#endif
