/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.c - see wallprof/inflate.h. */
#include "wallprof/inflate.h"

#include <libdeflate.h>

bool wp_inflate(const void *src, size_t src_len, void *dst, size_t dst_len)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	size_t used = 0;
	bool is_whole;

	is_whole = d &&
		   libdeflate_zlib_decompress_ex(d, src, src_len, dst, dst_len,
						 &used,
						 NULL) == LIBDEFLATE_SUCCESS &&
		   used == src_len;
	libdeflate_free_decompressor(d);
	return is_whole;
}
