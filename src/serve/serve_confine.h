/* SPDX-License-Identifier: Apache-2.0 */
/* serve_confine.h - what the process that parses HTTP gives up.
 *
 * Layer: serve.
 */
#ifndef WP_SERVE_CONFINE_H
#define WP_SERVE_CONFINE_H

#include "wallprof/serve.h"

/* Close all descriptors but HOW's and standard error. */
void wp_serve_close_others(const struct wp_serve_http *how);

/* After that, and once the library has its own: allow this process only calls on
 * memory and on sockets that are there (wallprof/sandbox.h).  0 or -errno. */
WP_MUST_CHECK
int wp_serve_confine(const struct wp_serve_http *how);

#endif
