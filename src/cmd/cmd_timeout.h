/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_timeout.h - run a command with a time limit; dump it when it hangs.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_TIMEOUT_H
#define WP_CMD_TIMEOUT_H

#include "options.h"

/* Run OPTIONS->command as timeout(1) does; returns the exit status. */
int wp_cmd_timeout(const struct wp_options *options);

#endif
