/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as text (RFC 4648, section 4). */
#ifndef WP_BASE64_H
#define WP_BASE64_H

#include <stddef.h>
#include <stdio.h>

#include "wallprof/err.h"

/* Write DATA[0..n) to OUT, in one line.  0, or the -errno of a failed write. */
WP_MUST_CHECK
int wp_base64_write(const void *data, size_t n, FILE *out);

#endif
