/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.h - look at profiles that were saved.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_REPORT_H
#define WP_CMD_REPORT_H

#include "options.h"

/* Print OPTIONS->files[0], a saved pprof file, or write it in another format; print
 * or draw what changed from files[0] to files[1].  Returns the exit status. */
int wp_cmd_report(const struct wp_options *options);
int wp_cmd_diff(const struct wp_options *options);

#endif
