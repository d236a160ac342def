/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - see wallprof/reader.h. */
#include "wallprof/reader.h"

#include <string.h>

/* The next LEN bytes; NULL if they are not all there, or R has failed. */
static const uint8_t *next_bytes(struct wp_reader *r, uint64_t len)
{
	const uint8_t *p = r->pos;

	if (r->failed || len > (uint64_t)(r->end - r->pos)) {
		r->failed = true;
		return NULL;
	}
	r->pos += len;
	return p;
}

uint8_t wp_read_u8(struct wp_reader *r)
{
	const uint8_t *p = next_bytes(r, 1);

	return p ? *p : 0;
}

uint16_t wp_read_u16(struct wp_reader *r)
{
	const uint8_t *p = next_bytes(r, 2);

	return p ? (uint16_t)(p[0] | p[1] << 8) : 0;
}

uint32_t wp_read_u32(struct wp_reader *r)
{
	uint32_t val = 0;
	const uint8_t *p = next_bytes(r, 4);

	/* Both supported machines are little-endian. */
	if (p)
		memcpy(&val, p, sizeof(val));
	return val;
}

uint64_t wp_read_u64(struct wp_reader *r)
{
	uint64_t val = 0;
	const uint8_t *p = next_bytes(r, 8);

	if (p)
		memcpy(&val, p, sizeof(val));
	return val;
}

/* Bits of a LEB128 number; *RET_SHIFT is how many were read, *RET_LAST the
 * last byte.  Ten bytes hold 64 bits, more is malformed.
 */
static uint64_t read_leb(struct wp_reader *r, unsigned int *ret_shift,
			 uint8_t *ret_last)
{
	uint64_t val = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = wp_read_u8(r);
		if (shift >= 70)
			r->failed = true;
		if (shift < 64)
			val |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (!r->failed && (byte & 0x80));
	*ret_shift = shift;
	*ret_last = byte;
	return r->failed ? 0 : val;
}

uint64_t wp_read_uleb(struct wp_reader *r)
{
	unsigned int shift;
	uint8_t last;

	return read_leb(r, &shift, &last);
}

int64_t wp_read_sleb(struct wp_reader *r)
{
	unsigned int shift;
	uint8_t last;
	uint64_t val = read_leb(r, &shift, &last);

	if (!r->failed && shift < 64 && (last & 0x40))
		val |= ~UINT64_C(0) << shift;
	return (int64_t)val;
}

void wp_read_skip(struct wp_reader *r, uint64_t len)
{
	(void)next_bytes(r, len);
}

const char *wp_read_cstr(struct wp_reader *r)
{
	const uint8_t *nul = NULL;
	size_t left = wp_reader_left(r);

	if (left)
		nul = memchr(r->pos, '\0', left);
	if (!nul) {
		r->failed = true;
		return NULL;
	}
	return (const char *)next_bytes(r, (uint64_t)(nul - r->pos) + 1);
}
