/* SPDX-License-Identifier: Apache-2.0 */
/* timeout_worker.h - --timeout's worker: the parent of the command, and what looks
 * at it.
 *
 * Layer: cmd.
 */
#ifndef WP_TIMEOUT_WORKER_H
#define WP_TIMEOUT_WORKER_H

#include <limits.h>
#include <signal.h>

#include "options.h"

/* What a worker sends its supervisor, a packet each, and then SIGCHLD. */
struct wp_timeout_packet {
	enum {
		/* VALUE is the command's pid; TEXT the name that the file for
		 * the dump has until it is whole, "": none. */
		WP_TIMEOUT_STARTED = 1,
		/* VALUE is the command's status by waitpid(2). */
		WP_TIMEOUT_ENDED,
		/* The command is in a deadlock; TEXT says which. */
		WP_TIMEOUT_DEADLOCKED,
		/* The dump is whole. */
		WP_TIMEOUT_DUMPED,
	} what;
	int value;
	char text[PATH_MAX];
};

/* Signals that are handed on to the command and what it started. */
extern const int wp_timeout_signals[];
enum { WP_TIMEOUT_NSIGNALS = 6 };

/* What the supervisor orders a dump by, if there is time for one, and to stay after it
 * until it is killed: it keeps together what the command has started. */
enum { WP_TIMEOUT_ORDER = SIGALRM };

/* In a worker: start the command of OPTIONS, reap it and its orphans, look for
 * deadlocks, and dump when ordered.  The messages of all that, and a dump that is
 * for no file, are written to TEXT_FD.  The signals are blocked.  Returns an exit
 * status: of a command that could not be started, or when it has ended. */
int wp_timeout_work(const struct wp_options *options, int text_fd);

#endif
