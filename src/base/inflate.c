/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.c - see wallprof/inflate.h. */
#include "wallprof/inflate.h"

#include <limits.h>
#include <zlib.h>

bool wp_inflate(const void *src, size_t src_len, void *dst, size_t dst_len)
{
	z_stream z = { 0 };
	bool is_whole;

	if (src_len > UINT_MAX || dst_len > UINT_MAX || inflateInit(&z) != Z_OK)
		return false;
	z.next_in = (Bytef *)src;
	z.avail_in = (uInt)src_len;
	z.next_out = dst;
	z.avail_out = (uInt)dst_len;
	is_whole = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_out &&
		   !z.avail_in;
	inflateEnd(&z);
	return is_whole;
}
