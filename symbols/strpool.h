/* SPDX-License-Identifier: Apache-2.0 */
/* strpool.h - a set of strings that never move.
 *
 * Layer: symbols.
 */
#ifndef WP_STRPOOL_H
#define WP_STRPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "wallprof/index.h"

struct wp_strpool_chunk;

struct wp_strpool {
	/* Newest first; strings go into the newest; owned. */
	struct wp_strpool_chunk *chunks;
	/* v[0..len), strings inside CHUNKS, and their index. */
	const char **v;
	uint32_t len;
	uint32_t cap;
	struct wp_index index;
};

#define WP_STRPOOL_INIT                                                        \
	{                                                                      \
		0                                                              \
	}

/* The pool's copy of S[0..n), which ends at a NUL if there is one; bytes that
 * are not UTF-8 are replaced by '?'.  Equal strings are one pointer, valid
 * until the pool is cleared.  NULL without memory.
 */
const char *wp_strpool_add(struct wp_strpool *pool, const char *s, size_t n);
const char *wp_strpool_add_str(struct wp_strpool *pool, const char *s);

void wp_strpool_clear(struct wp_strpool *pool);

#endif
