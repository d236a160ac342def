/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.h - record a process or a command.
 *
 * Layer: cmd.
 */
#ifndef WP_RUN_H
#define WP_RUN_H

#include "options.h"

/* Record as OPTIONS say and write the result; returns the exit status. */
int wp_cmd_record(const struct wp_options *options);

#endif
