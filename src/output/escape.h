/* escape.h - make text from a target fit to be shown.
 *
 * Names of threads, files and functions are whatever the target chose.
 */
#ifndef WP_ESCAPE_H
#define WP_ESCAPE_H

#include <stdbool.h>

#include "buf.h"

/* The length in bytes of the well-formed UTF-8 sequence that S[0..n) begins
 * with (RFC 3629: no surrogates, nothing overlong, up to U+10FFFF), its code
 * point in *RET_CODE; 0 when there is none. */
size_t wp_utf8_next(const char *s, size_t n, uint32_t *ret_code);

/* Whether CODE would move the cursor, end the line, or change how other
 * characters are shown. */
bool wp_utf8_is_control(uint32_t code);

/* Add S to BUF for a file that people will look at with other programs: each
 * byte that is not UTF-8 becomes U+FFFD, control characters are written as
 * \xNN and \uNNNN. */
void wp_escape_file(struct wp_buf *buf, const char *s);

/* The same for a terminal: bytes that are not UTF-8 become \xNN. */
void wp_escape_terminal(struct wp_buf *buf, const char *s);

/* Add S to BUF as a frame of a folded stack: ';' becomes ':', control
 * characters '?', bytes that are not UTF-8 U+FFFD. */
void wp_escape_folded(struct wp_buf *buf, const char *s);

/* How many code points the UTF-8 text S[0..n) has. */
size_t wp_utf8_length(const char *s, size_t n);

/* Add escaped text S[0..n) to BUF in at most WIDTH code points: of longer text
 * the middle is replaced by "...".  WIDTH 0 is no limit. */
void wp_escape_fit(struct wp_buf *buf, const char *s, size_t n, size_t width);

#endif
