/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.h - record a process or a command.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_RECORD_H
#define WP_CMD_RECORD_H

#include "options.h"

/* Record as OPTIONS say and write the result; returns the exit status. */
int wp_cmd_record(const struct wp_options *options);

#endif
