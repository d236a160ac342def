/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - what is text that may be shown, and what is not.
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

/* Whether CODE would move the cursor, end the line, or change how other
 * characters are shown. */
bool wp_utf8_is_control(uint32_t code);

/* How many code points the UTF-8 text S[0..n) has. */
size_t wp_utf8_length(const char *s, size_t n);

/* Replace each byte of S that is not UTF-8, and each of control characters, by
 * '?'. */
void wp_utf8_tame(char *s);

#endif
