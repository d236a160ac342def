/* SPDX-License-Identifier: Apache-2.0 */
/* descendants.h - what a command has started, as one.
 *
 * Layer: cmd.
 */
#ifndef WP_DESCENDANTS_H
#define WP_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "wallprof/process.h"

/* Replace PIDS by ROOT's descendants, none where they cannot be listed. */
void wp_descendants_list(struct wp_tids *pids, pid_t root);

/* Has PID ended?  A zombie has, though its parent may never ask, unless it is the first
 * of threads that live. */
bool wp_descendants_has_ended(pid_t pid);

/* The status (waitpid(2)) of PID, a zombie.  0 and *RET; -EACCES: the kernel does not tell
 * it to who may not look at PID; -EBUSY: it is none, or not so far. */
int wp_descendants_status(pid_t pid, int *ret);

/* Send SIG (0: none) to ROOT's descendants but SPARED (0: none is); returns how many have
 * not ended, those too that this process may not signal. */
size_t wp_descendants_signal(pid_t root, pid_t spared, int sig);

/* The same of PID and its descendants. */
size_t wp_descendants_signal_with(pid_t pid, int sig);

/* Has PID descendants? */
bool wp_descendants_has_any(pid_t pid);

/* Send SIG to those of ROOT's descendants that have another session than this
 * process: its terminal's signals do not reach them. */
void wp_descendants_signal_others(pid_t root, int sig);

#endif
