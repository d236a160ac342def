/* SPDX-License-Identifier: Apache-2.0 */
/* find_process.h - from the name of a process to its id.
 *
 * Layer: cmd.
 */
#ifndef WP_FIND_PROCESS_H
#define WP_FIND_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "wallprof/err.h"

struct wp_tids;

/* Find the one process of which NAME is the name (/proc/PID/comm), the last part of
 * its program's path, or that path.  Of a name that the kernel has cut its command line
 * has the rest.  0; -ENOENT: there is none; -ENOTUNIQ: there are
 * several; in both cases candidates are printed to standard error, and ERR says what to
 * do; -errno. */
WP_MUST_CHECK
int wp_find_process(pid_t *ret, const char *name, struct wp_err *err);

/* Add to PIDS all processes that NAME names in one of these ways; what a process has in
 * its memory is not read, so that of scripts whose name the kernel has cut some may have
 * another one: see wp_find_is_called.  0 or -errno. */
WP_MUST_CHECK
int wp_find_processes(struct wp_tids *pids, const char *name);

/* Does NAME name process PID?  Reads its command line, which may block. */
bool wp_find_is_called(pid_t pid, const char *name);

#endif
