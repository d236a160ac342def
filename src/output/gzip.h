/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h - gzip (RFC 1952): a stream that compresses into a file, and whole buffers. */
#ifndef WP_GZIP_H
#define WP_GZIP_H

#include "buf.h"

/* isa-l's state and its buffers. */
struct wp_gzip_state;

struct wp_gzip {
	/* Owned; NULL: no memory. */
	struct wp_gzip_state *state;
	/* Borrowed. */
	FILE *out;
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

/* Add to DST the gzip stream of SRC's bytes, which is smaller than that of struct
 * wp_gzip.  DST keeps the error. */
void wp_gzip_pack(const struct wp_buf *src, struct wp_buf *dst);

/* Unpack the gzip streams DATA[0..n), one behind the other, to *RET (owned by the
 * caller) and *RET_N.  0; -EBADMSG: malformed or cut short; -EOVERFLOW: over MAX
 * bytes; -ENOMEM. */
WP_MUST_CHECK
int wp_gzip_unpack(const void *data, size_t n, size_t max, char **ret,
		   size_t *ret_n);

#endif
