/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - the command that wallprof starts.
 *
 * Layer: cmd.
 */
#ifndef WP_CHILD_H
#define WP_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "wallprof/err.h"

/* Start ARGV (NULL-ended) with signal mask MASK (NULL: wallprof's own) and
 * wallprof's standard streams and limits, so call it before these are changed.
 * On return the program is being executed.
 *
 * Returns 0 and its pid; -ENOENT, -EACCES, ... when it cannot be executed, with
 * ERR saying so.
 */
WP_MUST_CHECK
int wp_child_start(pid_t *ret_pid, char **argv, const sigset_t *mask,
		   struct wp_err *err);

/* "exited with status 3", "was killed by signal 9 (Killed)" into BUF. */
void wp_child_describe(int status, char *buf, size_t size);

#endif
