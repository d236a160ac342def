/* SPDX-License-Identifier: Apache-2.0 */
/* pid_namespace.h - from tids and pids of a target's PID namespace to ours.
 *
 * Layer: dump.
 */
#ifndef WP_PID_NAMESPACE_H
#define WP_PID_NAMESPACE_H

#include "wallprof/snapshot.h"

/* Set PROCESS->level; the process is open. */
void wp_pid_namespace_find(struct wp_snapshot_process *process);
/* Free what is listed of PROCESS. */
void wp_pid_namespace_clear(struct wp_snapshot_process *process);
/* The tid in wallprof's PID namespace of the thread that has tid OWN in
 * PROCESS's, and had at SINCE_NS (CLOCK_MONOTONIC; 0: at the sample).  0: none;
 * -EAGAIN: not known, as the threads were listed before, and too often already. */
pid_t wp_pid_namespace_thread(struct wp_snapshot_process *process, pid_t own,
			      uint64_t since_ns);
/* List PROCESS's children in PROCESS->children, unless they have been since
 * SINCE_NS.  0 or -ENOMEM; of a process that has ended there are none. */
WP_MUST_CHECK
int wp_pid_namespace_children(struct wp_snapshot_process *process,
			      uint64_t since_ns);
/* The pid of the child that has pid OWN in PROCESS's namespace and has been there
 * since SINCE_NS or longer; 0: none. */
pid_t wp_pid_namespace_child(struct wp_snapshot_process *process, pid_t own,
			     uint64_t since_ns);
/* P_PIDFD of waitid(2), Linux 5.4, later than some C libraries' headers. */
enum { WP_P_PIDFD = 3 };
/* The pid of the process that pidfd FD of PROCESS's thread TID (0: the first) refers
 * to; 0: not known, or it has been waited for. */
pid_t wp_pid_namespace_pidfd(const struct wp_snapshot_process *process,
			     pid_t tid, int fd);

#endif
