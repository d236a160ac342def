/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h - a stream that compresses into a file. */
#ifndef WP_GZIP_H
#define WP_GZIP_H

#include <zlib.h>

#include "buf.h"

struct wp_gzip {
	z_stream z;
	/* Borrowed. */
	FILE *out;
	/* Compressed bytes, until they are written. */
	Bytef block[16384];
	/* 0, -ENOMEM, or the -errno of a write; sticks. */
	int rc;
};

/* 0 or -ENOMEM; the caller calls wp_gzip_finish in both cases. */
WP_MUST_CHECK
int wp_gzip_init(struct wp_gzip *gz, FILE *out);
/* Compress BUF's bytes and empty BUF; wp_gzip_finish returns the errors. */
void wp_gzip_add(struct wp_gzip *gz, struct wp_buf *buf);
/* Write the rest, flush OUT, and return the first error. */
WP_MUST_CHECK
int wp_gzip_finish(struct wp_gzip *gz);

/* Unpack the gzip streams DATA[0..n), one behind the other, to *RET (owned by the
 * caller) and *RET_N.  0; -EBADMSG: malformed or cut short; -EOVERFLOW: over MAX
 * bytes; -ENOMEM. */
WP_MUST_CHECK
int wp_gzip_unpack(const void *data, size_t n, size_t max, char **ret,
		   size_t *ret_n);

#endif
