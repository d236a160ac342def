/* SPDX-License-Identifier: Apache-2.0 */
/* extent.c - see extent.h. */
#include "extent.h"

#include <elf.h>
#include <string.h>

#include "wallprof/lower_bound.h"
#include "wallprof/reader.h"

enum {
	/* Encodings (LSB 5.0, 10.5.1). */
	PCREL_SDATA4 = 0x1b,
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b,
	/* Bytes of .eh_frame_hdr before its table, and of an entry. */
	HEADER = 12,
	ENTRY = 8,
	/* Length and CIE pointer of an FDE. */
	FDE_HEADER = 8,
	/* A function of unknown size reaches no further. */
	REACH_MAX = 65536,
};

/* The search table: N entries at DATA, relative to SVMA. */
struct table {
	const uint8_t *data;
	uint64_t svma;
	uint32_t n;
};

static bool find_table(struct wp_elf_image *image, struct table *ret)
{
	const struct wp_elf_range *hdr = &image->eh_frame_hdr;
	const uint8_t *p = hdr->size >= HEADER ?
				   wp_elf_image_at(image, hdr->off, HEADER) :
				   NULL;
	uint64_t n;

	if (!p || p[0] != 1 || p[1] != PCREL_SDATA4 || p[2] != UDATA4 ||
	    p[3] != DATAREL_SDATA4)
		return false;
	n = (uint64_t)p[8] | (uint64_t)p[9] << 8 | (uint64_t)p[10] << 16 |
	    (uint64_t)p[11] << 24;
	if (n > (hdr->size - HEADER) / ENTRY)
		n = (hdr->size - HEADER) / ENTRY;
	ret->n = (uint32_t)n;
	ret->svma = hdr->svma;
	ret->data = n ? wp_elf_image_at(image, hdr->off + HEADER, n * ENTRY) :
			NULL;
	return ret->data;
}

/* Number FIELD (0: the function's start, 1: its FDE) of entry I, as an address. */
static uint64_t entry_at(const struct table *t, uint32_t i, unsigned int field)
{
	int32_t value;

	memcpy(&value, t->data + (size_t)i * ENTRY + 4 * (size_t)field,
	       sizeof(value));
	return t->svma + (uint64_t)(int64_t)value;
}

/* The end of the function at START, by its FDE at SVMA; UINT64_MAX: not known. */
static uint64_t find_end(struct wp_elf_image *image, uint64_t start,
			 uint64_t svma)
{
	const uint8_t *p;
	struct wp_reader r;
	uint64_t off, begin;
	int32_t rel;

	if (!wp_elf_image_offset(image, svma, &off))
		return UINT64_MAX;
	p = wp_elf_image_at(image, off, FDE_HEADER + 8);
	if (!p)
		return UINT64_MAX;
	r = wp_reader_of(p + FDE_HEADER, 8);
	rel = (int32_t)wp_read_u32(&r);
	begin = svma + FDE_HEADER + (uint64_t)(int64_t)rel;
	/* Another encoding than the usual one gives another start. */
	return begin == start ? start + wp_read_u32(&r) : UINT64_MAX;
}

bool wp_extent_start(struct wp_elf_image *image, uint64_t svma,
		     uint64_t *ret_start)
{
	struct table t;
	uint64_t start;
	uint32_t i;

	if (!find_table(image, &t))
		return false;
	i = (uint32_t)WP_LOWER_BOUND(t.n, k, entry_at(&t, k, 0) <= svma);
	if (!i)
		return false;
	start = entry_at(&t, i - 1, 0);
	if (svma < start ||
	    svma >= find_end(image, start, entry_at(&t, i - 1, 1)))
		return false;
	*ret_start = start;
	return true;
}

/* Whether code[0..n) has a system call after a return; bytes inside of another
 * instruction count as well. */
static bool has_call_after_return(const uint8_t *code, uint64_t n,
				  uint16_t machine)
{
	static const uint8_t svc[] = { 0x01, 0x00, 0x00, 0xd4 };
	static const uint8_t ret[] = { 0xc0, 0x03, 0x5f, 0xd6 };
	bool is_arm = machine == EM_AARCH64, returned = false;

	for (uint64_t i = 0; i < n; i += is_arm ? 4 : 1) {
		uint64_t left = n - i;

		if (is_arm && left >= 4 && !memcmp(code + i, svc, 4) &&
		    returned)
			return true;
		if (!is_arm && left >= 2 && code[i] == 0x0f &&
		    code[i + 1] == 0x05 && returned)
			return true;
		returned |= is_arm ? left >= 4 && !memcmp(code + i, ret, 4) :
				     code[i] == 0xc3;
	}
	return false;
}

bool wp_extent_reaches(struct wp_elf_image *image, uint64_t start,
		       uint64_t svma)
{
	const uint8_t *code;
	uint64_t function, off, n = svma - start;

	if (n > REACH_MAX ||
	    (wp_extent_start(image, svma, &function) && function > start))
		return false;
	/* A return address less one is the last byte of a system call. */
	code = wp_elf_image_offset(image, start, &off) ?
		       wp_elf_image_at(image, off, n + 1) :
		       NULL;
	return code && !has_call_after_return(code, n + 1, image->machine);
}
