/* SPDX-License-Identifier: Apache-2.0 */
/* privileges.h - give up capabilities that wallprof's file has.
 *
 * Layer: cmd.
 */
#ifndef WP_PRIVILEGES_H
#define WP_PRIVILEGES_H

#include "wallprof/err.h"

/* Drop CAP_SYS_PTRACE if file capabilities gave it (capabilities(7)) and Yama
 * does not keep users from their own processes.  Call it first thing in main.
 * Afterwards wp_process_open tells which processes the user may look at.
 *
 * Returns 0; -EPERM when wallprof is set-user-ID or set-group-ID, or the -errno
 * of capset(2), with ERR. */
WP_MUST_CHECK
int wp_privileges_drop(struct wp_err *err);

#endif
