/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.h - what was compressed by zlib, whole or not at all.
 *
 * Layer: base.
 */
#ifndef WP_INFLATE_H
#define WP_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	/* Deflate makes no byte stand for more (zlib, Technical Details). */
	WP_INFLATE_RATIO_MAX = 1032,
};

/* Unpack the zlib stream SRC[0..SRC_LEN) (RFC 1950) into DST, which it must
 * fill to the last byte and not pass.  False, with anything in DST, when the
 * stream is malformed, has another length, has bytes behind it, or there is no
 * memory.  Never more than DST_LEN bytes are written. */
bool wp_inflate(const void *src, size_t src_len, void *dst, size_t dst_len);

#endif
