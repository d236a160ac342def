/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dump.h - one look at a process, printed: --threads and --check.
 *
 * Layer: cmd.
 */
#ifndef WP_THREADS_H
#define WP_THREADS_H

#include "wallprof/snapshot.h"
#include "options.h"

/* Dump the threads as OPTIONS say; returns the exit status. */
int wp_cmd_dump(const struct wp_options *options);

/* Look twice and say whether the process hangs; returns the exit status. */
int wp_cmd_check(const struct wp_options *options);

/* Write the dump of LOOKS to OUT in the text or JSON that OPTIONS ask for.
 * 0, -ENOMEM or the -errno of the stream. */
WP_MUST_CHECK
int wp_cmd_dump_write(const struct wp_snapshot *looks,
		      const struct wp_options *options, FILE *out);

#endif
