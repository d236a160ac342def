/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.h - look at profiles that were saved.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_REPORT_H
#define WP_CMD_REPORT_H

/* "report FILE": write a saved pprof file in another format; "diff BEFORE AFTER":
 * write what changed.  ARGV[0] is the word.  Returns the exit status. */
int wp_cmd_report(int argc, char **argv);
int wp_cmd_diff(int argc, char **argv);

#endif
