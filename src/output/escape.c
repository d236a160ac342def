/* SPDX-License-Identifier: Apache-2.0 */
/* escape.c - see escape.h. */
#include "escape.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

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
