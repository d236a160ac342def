/* escape.c - see escape.h. */
#include "escape.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

/* How many bytes follow FIRST, and the least code point that needs so many. */
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
	 * change the direction of text (Unicode UAX 9); byte order mark. */
	return code < 0x20 || (code >= 0x7f && code < 0xa0) ||
	       code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

static void escape(struct wp_buf *buf, const char *s, bool show_bytes)
{
	size_t left = strlen(s), n;
	uint32_t code;

	for (; left; s += n, left -= n) {
		n = wp_utf8_next(s, left, &code);
		if (n && !wp_utf8_is_control(code)) {
			wp_buf_add(buf, s, n);
		} else if (n > 1) {
			wp_buf_printf(buf, "\\u%04x", code);
		} else if (n || show_bytes) {
			wp_buf_printf(buf, "\\x%02x", (unsigned char)*s);
			n = 1;
		} else {
			wp_buf_str(buf, replacement);
			n = 1;
		}
	}
}

void wp_escape_file(struct wp_buf *buf, const char *s)
{
	escape(buf, s, false);
}

void wp_escape_terminal(struct wp_buf *buf, const char *s)
{
	escape(buf, s, true);
}

void wp_escape_folded(struct wp_buf *buf, const char *s)
{
	size_t left = strlen(s), n;
	uint32_t code;

	for (; left; s += n, left -= n) {
		n = wp_utf8_next(s, left, &code);
		if (!n) {
			wp_buf_str(buf, replacement);
			n = 1;
		} else if (wp_utf8_is_control(code)) {
			wp_buf_char(buf, '?');
		} else if (code == ';') {
			wp_buf_char(buf, ':');
		} else {
			wp_buf_add(buf, s, n);
		}
	}
}

size_t wp_utf8_length(const char *s, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += ((unsigned char)s[i] & 0xc0) != 0x80;
	return len;
}

/* The number of bytes that the first LEN code points of S[0..n) take. */
static size_t bytes_of(const char *s, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] & 0xc0) != 0x80 && !len--)
			return i;
	return n;
}

void wp_escape_fit(struct wp_buf *buf, const char *s, size_t n, size_t width)
{
	static const char dots[] = "...";
	size_t len = wp_utf8_length(s, n), head, tail, tail_at;

	if (!width || len <= width) {
		wp_buf_add(buf, s, n);
		return;
	}
	if (width <= strlen(dots)) {
		wp_buf_fill(buf, '.', width);
		return;
	}
	head = (width - strlen(dots) + 1) / 2;
	tail = width - strlen(dots) - head;
	wp_buf_add(buf, s, bytes_of(s, n, head));
	wp_buf_str(buf, dots);
	tail_at = bytes_of(s, n, len - tail);
	wp_buf_add(buf, s + tail_at, n - tail_at);
}
