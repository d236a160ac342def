/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_bytes.h - hand-assembled CFI, and images made of bytes.
 *
 * Include after cmocka.h.
 */
#ifndef CFI_BYTES_H
#define CFI_BYTES_H

#include <string.h>

#include "../../unwind/cfi.h"

/* An image whose file is BYTES[0..LEN), in exact-size heap memory so that
 * sanitizers see one byte too far; one segment, file offset 0 at SVMA. */
static inline struct wp_elf_image image_of(const void *bytes, size_t len,
					   uint64_t svma)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	size_t blocks = (len >> WP_ELF_BLOCK_BITS) + 1;

	image.data = test_malloc(len ? len : 1);
	memcpy(image.data, bytes, len);
	image.size = len;
	image.loaded = test_malloc(blocks);
	memset(image.loaded, 1, blocks);
	image.loads[0] = (struct wp_elf_load){ svma, 0, len, len, 4 | 1 };
	image.nloads = 1;
	return image;
}

static inline void image_free(struct wp_elf_image *image)
{
	test_free(image->data);
	test_free(image->loaded);
}

/* The whole of IMAGE as .eh_frame or .debug_frame. */
static inline struct wp_cfi_section section_of(struct wp_elf_image *image,
					       bool is_debug)
{
	return (struct wp_cfi_section){ image,
					{ is_debug ? 0 : image->loads[0].svma,
					  0, image->size },
					is_debug,
					true };
}

/* An assembler of bytes. */
struct bytes {
	uint8_t v[4096];
	size_t len;
	/* Where the length of the entry being written is. */
	size_t entry;
};

static inline void put(struct bytes *b, uint64_t val, unsigned int size)
{
	assert_true(b->len + size <= sizeof(b->v));
	for (unsigned int i = 0; i < size; i++)
		b->v[b->len++] = (uint8_t)(val >> 8 * i);
}

static inline void put_bytes(struct bytes *b, const void *v, size_t len)
{
	assert_true(b->len + len <= sizeof(b->v));
	memcpy(b->v + b->len, v, len);
	b->len += len;
}

/* An entry with a length of 4 bytes: what is put between is its body. */
static inline size_t begin_entry(struct bytes *b)
{
	b->entry = b->len;
	put(b, 0, 4);
	return b->entry;
}

static inline void end_entry(struct bytes *b)
{
	size_t len = b->len - b->entry - 4;

	for (unsigned int i = 0; i < 4; i++)
		b->v[b->entry + i] = (uint8_t)(len >> 8 * i);
}

/* What gcc writes for x86-64 (version 1, "zR", code 1, data -8, column 16)
 * with DW_EH_PE_udata8, so that addresses are easy to read; then INSNS. */
static inline size_t put_cie(struct bytes *b, const char *insns, size_t len)
{
	size_t off = begin_entry(b);

	put(b, 0, 4);
	put_bytes(b, "\x01zR\0\x01\x78\x10\x01\x04", 9);
	put_bytes(b, insns, len);
	end_entry(b);
	return off;
}

/* An FDE of such a CIE, for [START, START + SIZE). */
static inline size_t put_fde(struct bytes *b, size_t cie, uint64_t start,
			     uint64_t size, const void *insns, size_t len)
{
	size_t off = begin_entry(b);

	put(b, b->len - cie, 4);
	put(b, start, 8);
	put(b, size, 8);
	put(b, 0, 1);
	put_bytes(b, insns, len);
	end_entry(b);
	return off;
}

/* A string literal's bytes and how many, NULs inside included. */
#define LIT(s) (s), sizeof(s) - 1

/* .eh_frame_hdr at svma 0x2000 and .eh_frame at 0x2030 of
 *	int use(void *);
 *	int kept(int a, int b) { return use(&a) + use(&b) + a; }
 *	int framed(int n) { char v[n]; return use(v); }
 *	int aligned(int n) {
 *		char w[n] __attribute__((aligned(64)));
 *		char x[64] __attribute__((aligned(64)));
 *		return use(w) + use(x); }
 * made by gcc 12 -O2 -shared -nostdlib -fPIC and objcopy -O binary: functions
 * at 0x1020, 0x1050, 0x1070 (realigned: expressions), .plt at 0x1000.
 */
/* clang-format off */
static const uint8_t small_hdr[] = {
	0x01, 0x1b, 0x03, 0x3b, 0x2c, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,
	0x00, 0xf0, 0xff, 0xff, 0xb8, 0x00, 0x00, 0x00, 0x20, 0xf0, 0xff, 0xff,
	0x48, 0x00, 0x00, 0x00, 0x50, 0xf0, 0xff, 0xff, 0x68, 0x00, 0x00, 0x00,
	0x70, 0xf0, 0xff, 0xff, 0x88, 0x00, 0x00, 0x00,
	/* The gap up to .eh_frame. */
	0x00, 0x00, 0x00, 0x00,
};
/* clang-format on */
static const uint8_t small_eh_frame[] = {
	0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x7a, 0x52, 0x00,
	0x01, 0x78, 0x10, 0x01, 0x1b, 0x0c, 0x07, 0x08, 0x90, 0x01, 0x00, 0x00,
	0x1c, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x00, 0xd0, 0xef, 0xff, 0xff,
	0x2f, 0x00, 0x00, 0x00, 0x00, 0x41, 0x0e, 0x10, 0x83, 0x02, 0x44, 0x0e,
	0x20, 0x68, 0x0e, 0x10, 0x41, 0x0e, 0x08, 0x00, 0x1c, 0x00, 0x00, 0x00,
	0x3c, 0x00, 0x00, 0x00, 0xe0, 0xef, 0xff, 0xff, 0x1c, 0x00, 0x00, 0x00,
	0x00, 0x41, 0x0e, 0x10, 0x86, 0x02, 0x4e, 0x0d, 0x06, 0x4c, 0x0c, 0x07,
	0x08, 0x00, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x00, 0x5c, 0x00, 0x00, 0x00,
	0xe0, 0xef, 0xff, 0xff, 0x4e, 0x00, 0x00, 0x00, 0x00, 0x45, 0x0c, 0x0a,
	0x00, 0x57, 0x10, 0x06, 0x02, 0x76, 0x00, 0x42, 0x0f, 0x03, 0x76, 0x78,
	0x06, 0x45, 0x10, 0x03, 0x02, 0x76, 0x70, 0x65, 0x0c, 0x0a, 0x00, 0x45,
	0x0c, 0x07, 0x08, 0x00, 0x20, 0x00, 0x00, 0x00, 0x8c, 0x00, 0x00, 0x00,
	0x40, 0xef, 0xff, 0xff, 0x20, 0x00, 0x00, 0x00, 0x00, 0x0e, 0x10, 0x46,
	0x0e, 0x18, 0x4a, 0x0f, 0x0b, 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b,
	0x2a, 0x33, 0x24, 0x22,
};

enum { SMALL_SVMA = 0x2000 };

/* The two, as a file whose first LEN bytes are there. */
static inline struct wp_elf_image small_image(size_t len)
{
	uint8_t both[sizeof(small_hdr) + sizeof(small_eh_frame)];
	struct wp_elf_image image;
	size_t hdr = sizeof(small_hdr), eh = sizeof(small_eh_frame);

	memcpy(both, small_hdr, hdr);
	memcpy(both + hdr, small_eh_frame, eh);
	image = image_of(both, len, SMALL_SVMA);
	image.eh_frame_hdr = (struct wp_elf_range){ SMALL_SVMA, 0, hdr - 4 };
	image.eh_frame = (struct wp_elf_range){ SMALL_SVMA + hdr, hdr, eh };
	return image;
}

#endif
