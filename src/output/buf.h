/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - a growing array of bytes to be written to a file. */
#ifndef WP_BUF_H
#define WP_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wallprof/err.h"

/* After the first error, which RC keeps, adding does nothing. */
struct wp_buf {
	/* data[0..len), owned. */
	char *data;
	size_t len;
	size_t cap;
	/* 0, -ENOMEM, or the -errno of a write. */
	int rc;
};

#define WP_BUF_INIT                                                            \
	{                                                                      \
		0                                                              \
	}

void wp_buf_add(struct wp_buf *buf, const void *data, size_t n);
void wp_buf_str(struct wp_buf *buf, const char *s);
void wp_buf_char(struct wp_buf *buf, char c);
/* Add C, N times. */
void wp_buf_fill(struct wp_buf *buf, char c, size_t n);
void wp_buf_printf(struct wp_buf *buf, const char *fmt, ...) WP_PRINTF(2, 3);

/* Empty BUF, keeping its memory and its error. */
void wp_buf_reset(struct wp_buf *buf);
/* Write BUF to OUT and empty it. */
void wp_buf_write(struct wp_buf *buf, FILE *out);
/* The same, flush OUT, free BUF and return its error. */
WP_MUST_CHECK
int wp_buf_finish(struct wp_buf *buf, FILE *out);
void wp_buf_clear(struct wp_buf *buf);

#endif
