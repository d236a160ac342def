/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - why the kernel lets us look at a process, or does not.
 *
 * Layer: proc.
 */
#ifndef WP_ACCESS_H
#define WP_ACCESS_H

#include <sys/types.h>

#include "wallprof/err.h"

/* The process that traces PID, 0 if none does or it cannot be told. */
pid_t wp_access_tracer(pid_t pid);

/* kernel.yama.ptrace_scope, 0 where there is no Yama. */
int wp_access_yama_scope(void);

/* Fill ERR with why PID may not be looked at or stopped, and what to do:
 * another owner, yama, another tracer, a container without the capability, a
 * process that is not dumpable.  Returns -EPERM. */
int wp_access_denied(pid_t pid, struct wp_err *err);

#endif
