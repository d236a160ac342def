/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - UTF-8 from hostile sources, and control characters in it.
 *
 * Layer: base.
 */
#ifndef WP_UTF8_H
#define WP_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the well-formed UTF-8 sequence that S[0..n) begins
 * with (RFC 3629: no surrogates, nothing overlong, up to U+10FFFF), its code
 * point in *RET_CODE; 0 when there is none. */
size_t wp_utf8_next(const char *s, size_t n, uint32_t *ret_code);

/* Whether code point CODE moves the cursor, ends the line, or changes how other
 * characters are displayed; or may be in no XML (www.w3.org/TR/xml, Char). */
bool wp_utf8_is_control(uint32_t code);

/* The number of code points in the UTF-8 text S[0..n). */
size_t wp_utf8_length(const char *s, size_t n);

/* Replace in S each byte that is not part of UTF-8, and each byte of a control
 * character, by '?'. */
void wp_utf8_tame(char *s);

#endif
