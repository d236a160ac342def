/* SPDX-License-Identifier: Apache-2.0 */
/* pid_namespace.h - tids and pids as a target in a PID namespace has them.
 *
 * Layer: dump.
 */
#ifndef WP_PID_NAMESPACE_H
#define WP_PID_NAMESPACE_H

#include "wallprof/snapshot.h"

/* Set LOOK->level; its process is open. */
void wp_pid_namespace_find(struct wp_snapshot_process *look);
/* The thread that the target numbers OWN, as numbered here; 0: none. */
pid_t wp_pid_namespace_thread(struct wp_snapshot_process *look, pid_t own);
/* The same for a child of the process. */
pid_t wp_pid_namespace_child(const struct wp_snapshot_process *look, pid_t own);
/* P_PIDFD of linux/wait.h, which C libraries have only lately. */
enum { WP_P_PIDFD = 3 };
/* The process that the target's descriptor FD, a pidfd, is of; 0: not known, or
 * it has been waited for. */
pid_t wp_pid_namespace_pidfd(const struct wp_snapshot_process *look, int fd);

#endif
