/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - see buf.h. */
#include "buf.h"

#include <stdarg.h>
#include <string.h>

#include "wallprof/vec.h"

static char *room(struct wp_buf *buf, size_t n)
{
	if (!buf->rc)
		buf->rc = WP_VEC_ROOM(buf->data, buf->len, buf->cap, n);
	return buf->rc ? NULL : buf->data + buf->len;
}

void wp_buf_add(struct wp_buf *buf, const void *data, size_t n)
{
	char *p = n ? room(buf, n) : NULL;

	if (!p)
		return;
	memcpy(p, data, n);
	buf->len += n;
}

void wp_buf_str(struct wp_buf *buf, const char *s)
{
	wp_buf_add(buf, s, strlen(s));
}

void wp_buf_char(struct wp_buf *buf, char c)
{
	wp_buf_add(buf, &c, 1);
}

void wp_buf_fill(struct wp_buf *buf, char c, size_t n)
{
	char *p = room(buf, n);

	if (!p || !n)
		return;
	memset(p, c, n);
	buf->len += n;
}

void wp_buf_printf(struct wp_buf *buf, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	p = n < 0 ? NULL : room(buf, (size_t)n + 1);
	if (!p)
		return;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)n;
}

void wp_buf_reset(struct wp_buf *buf)
{
	buf->len = 0;
}

void wp_buf_write(struct wp_buf *buf, FILE *out)
{
	if (!buf->rc && buf->len) {
		errno = 0;
		if (fwrite(buf->data, 1, buf->len, out) != buf->len)
			buf->rc = errno ? -errno : -EIO;
	}
	buf->len = 0;
}

int wp_buf_finish(struct wp_buf *buf, FILE *out)
{
	int rc;

	wp_buf_write(buf, out);
	if (!buf->rc && fflush(out))
		buf->rc = errno ? -errno : -EIO;
	rc = buf->rc;
	wp_buf_clear(buf);
	return rc;
}

void wp_buf_clear(struct wp_buf *buf)
{
	free(buf->data);
	*buf = (struct wp_buf)WP_BUF_INIT;
}
