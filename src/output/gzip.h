/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h - compress into a file as it is written. */
#ifndef WP_GZIP_H
#define WP_GZIP_H

#include <zlib.h>

#include "buf.h"

struct wp_gzip {
	z_stream z;
	/* Borrowed. */
	FILE *out;
	/* Where zlib puts what it made. */
	Bytef block[16384];
	/* 0, -ENOMEM, or the -errno of a write; sticks. */
	int rc;
};

/* Returns 0 or -ENOMEM; to be ended with wp_gzip_finish in both cases. */
WP_MUST_CHECK
int wp_gzip_init(struct wp_gzip *gz, FILE *out);
/* Compress BUF and empty it; errors are kept for wp_gzip_finish. */
void wp_gzip_add(struct wp_gzip *gz, struct wp_buf *buf);
/* Write what is left, flush, and return the first error. */
WP_MUST_CHECK
int wp_gzip_finish(struct wp_gzip *gz);

#endif
