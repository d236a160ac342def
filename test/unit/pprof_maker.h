/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_maker.h - for tests: pprof files by hand. */
#ifndef PPROF_MAKER_H
#define PPROF_MAKER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../src/output/proto.h"

static inline void put_strings(struct wp_buf *b, const char *const *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		wp_proto_bytes(b, 6, s[i], strlen(s[i]));
}

static inline void put_type(struct wp_buf *b, uint64_t type, uint64_t unit)
{
	size_t begin = wp_proto_begin(b, 1);

	wp_proto_uint(b, 1, type);
	wp_proto_uint(b, 2, unit);
	wp_proto_end(b, begin);
}

#endif
