/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.h - recordings that go on, behind HTTP.
 *
 * Layer: cmd.
 */
#ifndef WP_CMD_SERVE_H
#define WP_CMD_SERVE_H

#include "options.h"

/* Record the processes that OPTIONS name and answer clients until a signal ends it.
 * The exit status. */
int wp_cmd_serve(const struct wp_options *options);

#endif
