/* threads.h - one look at a process, printed: --threads and --check.
 *
 * Layer: main.
 */
#ifndef WP_THREADS_H
#define WP_THREADS_H

#include "look.h"
#include "options.h"

/* Dump the threads as OPTIONS say; returns the exit status. */
int wp_run_threads(const struct wp_options *options);

/* Look twice and say whether the process hangs; returns the exit status. */
int wp_run_check(const struct wp_options *options);

/* Write the dump of LOOKS to OUT in the text or JSON that OPTIONS ask for.
 * 0, -ENOMEM or the -errno of the stream. */
WP_MUST_CHECK
int wp_threads_write(const struct wp_looks *looks,
		     const struct wp_options *options, FILE *out);

#endif
