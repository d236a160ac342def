/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - runs what looks at a process in a worker, and answers for it.
 *
 * Layer: cmd.
 */
#ifndef WP_SUPERVISOR_H
#define WP_SUPERVISOR_H

#include "options.h"

/* Run WORK(OPTIONS) in a worker (worker.h).  SIGINT, SIGTERM and SIGHUP are handed
 * on to it; SIGTSTP, SIGTTIN and SIGTTOU stop this process, upon which the worker
 * pauses; a worker that somebody stops is set going again.  Returns WORK's exit
 * status, or WP_EXIT_NOTHING when the worker is stuck in a call that no signal
 * ends (a file server that does not answer): it is left behind.  If a signal
 * killed the worker, it kills this process. */
int wp_supervise(int (*work)(const struct wp_options *options),
		 const struct wp_options *options);

#endif
