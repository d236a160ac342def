/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dump.h - a dump of a process: --threads and --check.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_DUMP_H
#define WP_CMD_DUMP_H

#include "wallprof/snapshot.h"
#include "options.h"

/* Sample the process once and write its dump; returns the exit status. */
int wp_cmd_dump(const struct wp_options *options);

/* Take two snapshots and say whether the process hangs; returns the exit status. */
int wp_cmd_check(const struct wp_options *options);

/* A snapshot without processes, to be made as OPTIONS say, which are borrowed. */
struct wp_snapshot wp_cmd_dump_snapshot(const struct wp_options *options);

/* Say on standard error what SNAPSHOT, which is complete, lacks. */
void wp_cmd_dump_say_losses(const struct wp_snapshot *snapshot);

/* Write SNAPSHOT's dump to OUT, as the text or JSON that OPTIONS ask for.
 * 0, -ENOMEM or the -errno of the stream. */
WP_MUST_CHECK
int wp_cmd_dump_write(const struct wp_snapshot *snapshot,
		      const struct wp_options *options, FILE *out);

#endif
