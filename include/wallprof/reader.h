/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - a sticky little-endian byte reader.
 *
 * Layer: base.
 *
 * Reads past the end give 0 and set FAILED for good, so parsers check once.
 */
#ifndef WP_READER_H
#define WP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wp_reader {
	/* Borrowed: the bytes [pos, end). */
	const uint8_t *pos;
	const uint8_t *end;
	/* A read went past the end or was malformed. */
	bool failed;
};

static inline struct wp_reader wp_reader_of(const void *data, size_t len)
{
	const uint8_t *p = data;

	return (struct wp_reader){ p, p ? p + len : p, p == NULL };
}

static inline size_t wp_reader_left(const struct wp_reader *r)
{
	return r->failed ? 0 : (size_t)(r->end - r->pos);
}

uint8_t wp_read_u8(struct wp_reader *r);
uint16_t wp_read_u16(struct wp_reader *r);
uint32_t wp_read_u32(struct wp_reader *r);
uint64_t wp_read_u64(struct wp_reader *r);
/* LEB128 (DWARF 5, 7.6).  Bits past the 64th are dropped; over 10 bytes fails.
 */
uint64_t wp_read_uleb(struct wp_reader *r);
int64_t wp_read_sleb(struct wp_reader *r);
void wp_read_skip(struct wp_reader *r, uint64_t len);
/* A NUL-terminated string inside the bytes, or NULL (and failed). */
const char *wp_read_cstr(struct wp_reader *r);

#endif
