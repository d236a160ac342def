/* SPDX-License-Identifier: Apache-2.0 */
/* escape.h - escape text that comes from a target, for what will read it. */
#ifndef WP_ESCAPE_H
#define WP_ESCAPE_H

#include "buf.h"
#include "wallprof/utf8.h"

/* Add S to BUF for a file: each byte that is not UTF-8 becomes U+FFFD, control
 * characters become \xNN and \uNNNN. */
void wp_escape_file(struct wp_buf *buf, const char *s);

/* Add S to BUF for a terminal: the same, but bytes that are not UTF-8 become
 * \xNN. */
void wp_escape_terminal(struct wp_buf *buf, const char *s);

/* Add S to BUF as a frame of a folded stack: ';' becomes ':', control
 * characters '?', bytes that are not UTF-8 U+FFFD. */
void wp_escape_folded(struct wp_buf *buf, const char *s);

/* Add escaped text S[0..n) to BUF in at most WIDTH code points, with "..." for the
 * middle of a longer text.  WIDTH 0: no limit. */
void wp_escape_fit(struct wp_buf *buf, const char *s, size_t n, size_t width);

#endif
