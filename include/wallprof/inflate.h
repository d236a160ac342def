/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.h - unpacks zlib streams of known size.
 *
 * Layer: base.
 */
#ifndef WP_INFLATE_H
#define WP_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	/* The greatest compression ratio of deflate (zlib, Technical Details).
	 */
	WP_INFLATE_RATIO_MAX = 1032,
};

/* Unpack the zlib stream SRC[0..src_len) (RFC 1950) into DST[0..dst_len).
 * False, with anything in DST, when the stream is malformed, has not that size
 * unpacked, is followed by more bytes, or there is no memory.  Never writes
 * past DST_LEN. */
bool wp_inflate(const void *src, size_t src_len, void *dst, size_t dst_len);

#endif
