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

/* A process that is held before it executes the command. */
struct wp_child {
	pid_t pid;
	/* argv[0]; borrowed. */
	const char *name;
	/* A socket to it, through which it is told to go on, and tells why it
	 * cannot; -1: it is not held. */
	int fd;
};

#define WP_CHILD_INIT                                                          \
	{                                                                      \
		.fd = -1                                                       \
	}

/* Make a process that will execute ARGV (NULL-ended, borrowed) with the signal mask
 * and the limit of descriptors that wallprof was started with, and the worker's process
 * group, session, standard streams and other limits, so call it before these are
 * changed.  0 or -errno with ERR. */
WP_MUST_CHECK
int wp_child_hold(struct wp_child *ret, char **argv, struct wp_err *err);

/* Execute ARGV in a process of its own, as timeout(1) does, which takes no descriptors:
 * it acts on SIGTERM, and why ARGV cannot be executed is said by it, and by its status.
 * Returns as fork(2) does to its parent. */
pid_t wp_child_start(char **argv);

/* Let CHILD execute its command; on return the program is being executed.  0;
 * -ENOENT, -EACCES, ... when it cannot be executed, with ERR saying so. */
WP_MUST_CHECK
int wp_child_exec(struct wp_child *child, struct wp_err *err);

/* If CHILD is still held, end it. */
void wp_child_discard(struct wp_child *child);

/* "exited with status 3", "was killed by signal 9 (Killed)" into BUF. */
void wp_child_describe(int status, char *buf, size_t size);

#endif
