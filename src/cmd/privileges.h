/* SPDX-License-Identifier: Apache-2.0 */
/* privileges.h - capabilities that wallprof's file has given it.
 *
 * Layer: cmd.
 */
#ifndef WP_PRIVILEGES_H
#define WP_PRIVILEGES_H

#include "wallprof/err.h"

/* Drop CAP_SYS_PTRACE if file capabilities gave it (capabilities(7)) and Yama
 * does not keep users from their own processes.  Call it first thing in main.
 * Whom the user may look at is then for wp_process_open to find out.
 *
 * Returns 0; -EPERM when wallprof is set-user-ID or set-group-ID, or the -errno
 * of capset(2), with ERR. */
WP_MUST_CHECK
int wp_privileges_drop(struct wp_err *err);

#endif
