/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_timeout.h - run a command for so long; say why it hung.
 *
 * Layer: cmd.
 */
#ifndef WP_TIMEOUT_H
#define WP_TIMEOUT_H

#include "options.h"

/* Run the command as OPTIONS say, like timeout(1); returns the exit status. */
int wp_cmd_timeout(const struct wp_options *options);

#endif
