/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.c - see json_text.h. */
#include "json_text.h"

#include "escape.h"

void wp_json_text(struct wp_buf *buf, const char *s)
{
	struct wp_buf clean = WP_BUF_INIT;

	wp_escape_file(&clean, s);
	wp_buf_char(buf, '"');
	for (size_t i = 0; i < clean.len; i++) {
		char c = clean.data[i];

		if (c == '"' || c == '\\')
			wp_buf_char(buf, '\\');
		if (c == '<')
			wp_buf_str(buf, "\\u003c");
		else
			wp_buf_char(buf, c);
	}
	wp_buf_char(buf, '"');
	if (clean.rc)
		buf->rc = clean.rc;
	wp_buf_clear(&clean);
}
