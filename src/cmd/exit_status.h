/* SPDX-License-Identifier: Apache-2.0 */
/* exit_status.h - how wallprof ends.
 *
 * Layer: cmd.
 */
#ifndef WP_EXIT_STATUS_H
#define WP_EXIT_STATUS_H

/* The first three and USAGE are eu-stack's; the last three are timeout(1)'s. */
enum {
	/* All of it was written. */
	WP_EXIT_WHOLE = 0,
	/* Written, with losses over the limit that the man page states. */
	WP_EXIT_LOSSES = 1,
	/* Nothing was written. */
	WP_EXIT_NOTHING = 2,
	/* --check found a deadlock, or no progress. */
	WP_EXIT_DEADLOCK = 3,
	WP_EXIT_NO_PROGRESS = 4,
	/* The command line makes no sense. */
	WP_EXIT_USAGE = 64,
	/* --timeout: the time was up; the command could not be executed; it
	 * was not found. */
	WP_EXIT_TIMEOUT = 124,
	WP_EXIT_CANNOT_RUN = 126,
	WP_EXIT_NOT_FOUND = 127,
};

#endif
