/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - see wallprof/utf8.h. */
#include "wallprof/utf8.h"

#include <string.h>

/* The number of bytes that follow FIRST, and the least code point of that
 * length. */
static size_t follow(unsigned char first, uint32_t *ret_code,
		     uint32_t *ret_least)
{
	size_t n;

	if (first >= 0xf0 && first < 0xf8)
		n = 3;
	else if (first >= 0xe0 && first < 0xf0)
		n = 2;
	else if (first >= 0xc0 && first < 0xe0)
		n = 1;
	else
		return 0;
	*ret_code = first & (0x3fu >> n);
	*ret_least = n == 1 ? 0x80 : n == 2 ? 0x800 : 0x10000;
	return n;
}

size_t wp_utf8_next(const char *s, size_t n, uint32_t *ret_code)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t code, least;
	size_t more;

	if (!n)
		return 0;
	*ret_code = p[0];
	if (p[0] < 0x80)
		return 1;
	more = follow(p[0], &code, &least);
	if (!more || more >= n)
		return 0;
	for (size_t i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return more + 1;
}

bool wp_utf8_is_control(uint32_t code)
{
	/* C0, DEL and C1; line and paragraph separator; the marks that
	 * change the direction of text (Unicode UAX 9); byte order mark,
	 * and the two that XML has not. */
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff ||
	       code == 0xfffe || code == 0xffff;
}

size_t wp_utf8_length(const char *s, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += ((unsigned char)s[i] & 0xc0) != 0x80;
	return len;
}

void wp_utf8_tame(char *s)
{
	uint32_t code;
	size_t n;

	for (; *s; s += n) {
		n = wp_utf8_next(s, strlen(s), &code);
		if (n && !wp_utf8_is_control(code))
			continue;
		n = n ? n : 1;
		memset(s, '?', n);
	}
}
