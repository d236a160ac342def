/* SPDX-License-Identifier: Apache-2.0 */
/* children.h - the children of a process.
 *
 * Layer: proc.
 */
#ifndef WP_CHILDREN_H
#define WP_CHILDREN_H

#include <stddef.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/process.h"

/* Replace PIDS by the children of process PID, those of all its threads.
 * 0, -ESRCH, -ENOMEM. */
WP_MUST_CHECK
int wp_children_list(struct wp_tids *pids, pid_t pid);

/* Replace PIDS by the descendants of process PID, parents before their children,
 * at most MAX.  0, -ESRCH, -ENOMEM. */
WP_MUST_CHECK
int wp_children_list_all(struct wp_tids *pids, pid_t pid, size_t max);

/* Append to PIDS the pids in TEXT[0..len), from /proc/TID/children ("12 34 ").
 * 0, -EBADMSG, -ENOMEM. */
WP_MUST_CHECK
int wp_children_parse(struct wp_tids *pids, const char *text, size_t len);

#endif
