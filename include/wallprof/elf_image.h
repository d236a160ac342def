/* SPDX-License-Identifier: Apache-2.0 */
/* elf_image.h - the bytes of one ELF file, fetched as they are asked for.
 *
 * Layer: base.
 *
 * The file belongs to somebody else, who may truncate or rewrite it at any
 * time, so it is not mapped (a truncated mapping is a SIGBUS): blocks are read
 * into reserved memory when first touched.  What was touched is what costs.
 */
#ifndef WP_ELF_IMAGE_H
#define WP_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

enum {
	WP_BUILD_ID_MAX = 64,
	WP_ELF_LOADS_MAX = 32,
};

/* One PT_LOAD segment (gABI, Program Header). */
struct wp_elf_load {
	uint64_t svma;
	uint64_t off;
	uint64_t filesz;
	uint64_t memsz;
	/* PF_R | PF_W | PF_X. */
	uint32_t flags;
};

/* A range of the file that has an address: SIZE 0 where absent. */
struct wp_elf_range {
	uint64_t svma;
	uint64_t off;
	uint64_t size;
};

enum wp_elf_packed_state {
	/* Not wanted so far. */
	WP_ELF_PACKED,
	WP_ELF_UNPACKED,
	/* It is not what its header says. */
	WP_ELF_BROKEN,
};

/* A compressed section: unpacked, behind the file, when first asked for.  SIZE
 * 0 where absent. */
struct wp_elf_packed {
	/* What wp_elf_image_at takes, past the file's end. */
	uint64_t off;
	uint64_t size;
	/* The compressed bytes in the file. */
	uint64_t src_off;
	uint64_t src_size;
	enum wp_elf_packed_state state;
};

struct wp_elf_image {
	/* Reads SRC at OFF; NULL after clear.  Returns bytes read or -errno. */
	long (*read)(void *src, void *buf, size_t len, uint64_t off);
	void *src;
	/* Reserved memory; the file is its first SIZE bytes, one byte of LOADED
	 * per block: 1 = loaded. */
	uint8_t *data;
	uint8_t *loaded;
	uint64_t size;
	uint64_t reserved;
	/* Owned, -1 when the image is of memory. */
	int fd;

	/* ET_EXEC or ET_DYN; EM_*. */
	uint16_t type;
	uint16_t machine;
	uint8_t build_id[WP_BUILD_ID_MAX];
	uint32_t build_id_len;
	struct wp_elf_load loads[WP_ELF_LOADS_MAX];
	uint32_t nloads;
	/* From program headers: .eh_frame_hdr.  From section headers, absent in
	 * an image of memory: the others. */
	struct wp_elf_range eh_frame_hdr;
	struct wp_elf_range eh_frame;
	/* .text; .gopclntab, see go_table.h. */
	struct wp_elf_range text;
	struct wp_elf_range go_table;
	/* No address: svma is 0.  That of PACKED when it is compressed (by zlib,
	 * to at most 64 MiB; absent when otherwise). */
	struct wp_elf_range debug_frame;
	struct wp_elf_packed packed;
};

#define WP_ELF_IMAGE_INIT                                                      \
	{                                                                      \
		.fd = -1                                                       \
	}

/* Open the file behind FD, which the image owns on success.
 *
 * Returns 0; -ENOTSUP if it is not a 64-bit little-endian ELF file of this
 * machine's kind; -EBADMSG if its headers are malformed; -EOVERFLOW if it is
 * over 8 GiB; -ENOMEM; another -errno of fstat or pread.
 */
WP_MUST_CHECK
int wp_elf_image_open(struct wp_elf_image *ret, int fd, struct wp_err *err);

/* Open an ELF image of SIZE bytes that READ delivers, such as the vDSO: file
 * offsets are offsets in the memory.  SRC must live as long as the image.
 * Errors as above.
 */
WP_MUST_CHECK
int wp_elf_image_open_memory(struct wp_elf_image *ret, uint64_t size,
			     long (*read)(void *, void *, size_t, uint64_t),
			     void *src, struct wp_err *err);

/* The bytes [OFF, OFF + LEN) of the file, or of what is unpacked behind it, or
 * NULL when they are not all there or not readable.  Valid until the image is
 * cleared.  The only way to them. */
const uint8_t *wp_elf_image_at(struct wp_elf_image *image, uint64_t off,
			       uint64_t len);

/* How many bytes follow OFF in the file, or in what is unpacked behind it (0
 * when OFF is past the end). */
uint64_t wp_elf_image_left(const struct wp_elf_image *image, uint64_t off);

/* File offset of SVMA: true and *RET_OFF, or false if no PT_LOAD has file
 * bytes for it. */
bool wp_elf_image_offset(const struct wp_elf_image *image, uint64_t svma,
			 uint64_t *ret_off);

/* Svma of file offset OFF by the PT_LOAD that holds it, as mmap would see it:
 * an executable mapping of the file at OFF shows that address plus the load
 * bias.  Of several in one page the last with code, or the last.  False if
 * none does. */
bool wp_elf_image_svma(const struct wp_elf_image *image, uint64_t off,
		       uint64_t *ret_svma);

/* Free what IMAGE holds; safe on WP_ELF_IMAGE_INIT and twice. */
void wp_elf_image_clear(struct wp_elf_image *image);

#endif
