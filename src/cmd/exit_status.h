/* SPDX-License-Identifier: Apache-2.0 */
/* exit_status.h - the exit statuses of wallprof.
 *
 * Layer: cmd.
 */
#ifndef WP_EXIT_STATUS_H
#define WP_EXIT_STATUS_H

/* WHOLE, LOSSES, NOTHING and USAGE are as eu-stack's, the last four as
 * timeout(1)'s. */
enum {
	/* The output was written and is complete. */
	WP_EXIT_WHOLE = 0,
	/* The output was written, with losses over the man page's limit. */
	WP_EXIT_LOSSES = 1,
	/* Nothing was written. */
	WP_EXIT_NOTHING = 2,
	/* --check found a deadlock, or no progress. */
	WP_EXIT_DEADLOCK = 3,
	WP_EXIT_NO_PROGRESS = 4,
	/* Wrong command line. */
	WP_EXIT_USAGE = 64,
	/* run: the time was up; wallprof itself failed, and the command was not run or how
	 * it ended is not known; it cannot be executed; it was not found. */
	WP_EXIT_TIMEOUT = 124,
	WP_EXIT_OWN_FAILURE = 125,
	WP_EXIT_CANNOT_RUN = 126,
	WP_EXIT_NOT_FOUND = 127,
};

#endif
