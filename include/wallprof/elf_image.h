/* SPDX-License-Identifier: Apache-2.0 */
/* elf_image.h - the one reader of ELF files.
 *
 * Layer: base.
 *
 * Others may truncate or rewrite the file at any time, so it is not mapped
 * (touching a page that was cut off is a SIGBUS): blocks are read into reserved
 * memory when first asked for, and only those cost memory.  A library that
 * wants the whole file in memory gets it mapped (wp_elf_image_whole), in a
 * process that may die of a SIGBUS.
 */
#ifndef WP_ELF_IMAGE_H
#define WP_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "wallprof/err.h"

enum {
	WP_BUILD_ID_MAX = 64,
	WP_ELF_LOADS_MAX = 32,
	/* Sections that hold the variables of a Go program. */
	WP_ELF_GO_DATA = 3,
	/* .dynsym and .symtab. */
	WP_ELF_SYMBOL_TABLES = 2,
	/* Log of the bytes that are read at once: a search touches few bytes in
	 * many places. */
	WP_ELF_BLOCK_BITS = 12,
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

/* A range of the file and its address; SIZE 0: absent. */
struct wp_elf_range {
	uint64_t svma;
	uint64_t off;
	uint64_t size;
};

/* A table of symbols, and the text that its names are in. */
struct wp_elf_symbols {
	struct wp_elf_range entries;
	struct wp_elf_range names;
};

enum wp_elf_packed_state {
	/* Not asked for so far. */
	WP_ELF_PACKED,
	WP_ELF_UNPACKED,
	/* Not the size that its header says, or malformed. */
	WP_ELF_BROKEN,
};

/* A compressed section, unpacked behind the file when first asked for; SIZE 0:
 * absent. */
struct wp_elf_packed {
	/* Where it is for wp_elf_image_at: past the file's end. */
	uint64_t off;
	uint64_t size;
	/* The compressed bytes in the file. */
	uint64_t src_off;
	uint64_t src_size;
	enum wp_elf_packed_state state;
};

struct wp_elf_image {
	/* The file, owned; -1: not of a file, or wholly mapped. */
	int fd;
	/* Of FD when it was opened: device, inode and time of the last write. */
	uint64_t dev, ino;
	struct timespec written;
	/* Without FD: reads SRC at OFF.  Returns bytes read or -errno. */
	long (*read)(void *src, void *buf, size_t len, uint64_t off);
	void *src;
	/* The file is data[0..size).  RESERVED: bytes of address space from
	 * DATA on, owned; 0: DATA is borrowed. */
	uint8_t *data;
	uint64_t size;
	uint64_t reserved;
	/* A byte per block of DATA, 1: was read; owned.  NULL: all bytes are
	 * there. */
	uint8_t *loaded;
	/* DATA maps the file. */
	bool is_mapped;
	/* Bytes of a page: 4, 16 or 64 KiB on aarch64, as the kernel was built. */
	uint64_t page;
	/* What the image takes of the budget; something more was refused. */
	uint64_t taken;
	bool lacks_memory;
	/* Its owner's mark, while it looks which of its images are needed. */
	bool is_held;

	/* ET_EXEC or ET_DYN; EM_*. */
	uint16_t type;
	uint16_t machine;
	/* Where a program or loader begins; 0: nowhere. */
	uint64_t entry_svma;
	uint8_t build_id[WP_BUILD_ID_MAX];
	uint32_t build_id_len;
	struct wp_elf_load loads[WP_ELF_LOADS_MAX];
	uint32_t nloads;
	/* From program headers: .eh_frame_hdr.  From section headers, absent in
	 * an image of memory: the others. */
	struct wp_elf_range eh_frame_hdr;
	struct wp_elf_range eh_frame;
	/* Of a 64-bit file alone, to GO_DATA:
	 * .gopclntab and .go.module, see go_table.h; .rela.dyn. */
	struct wp_elf_range go_table;
	struct wp_elf_range go_module;
	struct wp_elf_range rela;
	/* .rela.plt. */
	struct wp_elf_range plt_rela;
	struct wp_elf_symbols symbols[WP_ELF_SYMBOL_TABLES];
	/* .go.buildinfo; .noptrdata, .data and .data.rel.ro, see go_module.h. */
	struct wp_elf_range go_buildinfo;
	struct wp_elf_range go_data[WP_ELF_GO_DATA];
	/* Has no address: SVMA is 0.  The range of PACKED where the section is
	 * compressed (by zlib, to at most 64 MiB; else absent). */
	struct wp_elf_range debug_frame;
	struct wp_elf_packed packed;
};

#define WP_ELF_IMAGE_INIT                                                      \
	{                                                                      \
		.fd = -1, .page = 4096                                         \
	}

/* Has IMAGE's code, and what describes it, addresses of 32 bits? */
static inline bool wp_elf_image_is_32bit(const struct wp_elf_image *image)
{
	return image->machine == EM_386;
}

/* Take BYTES of the budget for what belongs to IMAGE, until it is cleared.  False if
 * that is over a file's share, or that of all. */
bool wp_elf_image_take(struct wp_elf_image *image, uint64_t bytes);

/* Open the file behind FD, which the image owns on success.
 *
 * Returns 0; -ENOTSUP if it is not a little-endian ELF file of this machine's kind
 * (x86-64: of 64 bits, or an i386 one of 32); -EBADMSG if its headers are malformed;
 * -EOVERFLOW if it is over 8 GiB; -ENOMEM; another -errno of fstat or pread.
 */
WP_MUST_CHECK
int wp_elf_image_open(struct wp_elf_image *ret, int fd, struct wp_err *err);

/* Is the file behind FD, as it is now, the one that IMAGE was opened of, as it was then?
 * A file that is written over in its place is not.  Links to it make no difference.  True
 * if the file cannot be asked about. */
bool wp_elf_image_is_of(const struct wp_elf_image *image, int fd);

/* Has IMAGE's file been written over since it was opened?  What is read of it now is
 * another program's.  Not if it still has the build-id: it was touched only. */
bool wp_elf_image_has_changed(const struct wp_elf_image *image);

/* Open an ELF image of SIZE bytes that READ delivers, such as the vDSO: file
 * offsets are offsets in the memory.  SRC must live as long as the image.
 * Errors as above.
 */
WP_MUST_CHECK
int wp_elf_image_open_memory(struct wp_elf_image *ret, uint64_t size,
			     long (*read)(void *, void *, size_t, uint64_t),
			     void *src, struct wp_err *err);

/* Open the ELF image DATA[0..size), which is borrowed for the image's life.
 * Errors as above. */
WP_MUST_CHECK
int wp_elf_image_open_bytes(struct wp_elf_image *ret, void *data, uint64_t size,
			    struct wp_err *err);

/* The bytes [OFF, OFF + LEN) of the file, or of what is unpacked behind it, or
 * NULL when they are not all there or not readable.  Valid until the image is
 * cleared. */
const uint8_t *wp_elf_image_at(struct wp_elf_image *image, uint64_t off,
			       uint64_t len);

/* Copy the bytes [OFF, OFF + LEN) of the file to BUF; false when they cannot be read.
 * Those of a file are not kept, and take nothing of the budget. */
bool wp_elf_image_copy(struct wp_elf_image *image, uint64_t off, uint64_t len,
		       void *buf);

/* All bytes of the image, data[0..size), or NULL when they cannot be had.  A
 * file is mapped for that, private and writable, and closed: from then on the
 * process dies of SIGBUS when it touches what somebody cut off the file. */
uint8_t *wp_elf_image_whole(struct wp_elf_image *image);

/* Give back the memory of all pages of a mapped file but those that hold
 * [KEEP, KEEP + KEEP_LEN).  They are read again when touched; what was written
 * to them is gone. */
void wp_elf_image_drop(struct wp_elf_image *image, uint64_t keep,
		       uint64_t keep_len);

/* How many bytes follow OFF in the file, or in what is unpacked behind it (0
 * when OFF is past the end). */
uint64_t wp_elf_image_left(const struct wp_elf_image *image, uint64_t off);

/* File offset of SVMA: true and *RET_OFF, or false if no PT_LOAD has file
 * bytes for it. */
bool wp_elf_image_offset(const struct wp_elf_image *image, uint64_t svma,
			 uint64_t *ret_off);

/* May a mapping of the file that begins at offset OFF be of segment I?  *RET_SVMA:
 * where it begins then, less the load bias.  Several segments may share a page of the
 * file, which each of them has mapped at an address of its own: of the mapping alone it
 * cannot be told which it is (load_bias.h). */
bool wp_elf_image_shown(const struct wp_elf_image *image, uint32_t i,
			uint64_t off, uint64_t *ret_svma);

/* Read the word at file offset OFF, which is loaded at SVMA, as an svma.  In a
 * file that the dynamic linker moves it may be in a relocation; ld sorts these by
 * address, the relative ones first (-z combreloc).  False if it cannot be read or
 * is 0 without a relocation. */
bool wp_elf_image_word(struct wp_elf_image *image, uint64_t off, uint64_t svma,
		       uint64_t *ret_svma);

/* A dynamic relocation that puts the bias plus TARGET at PLACE. */
struct wp_elf_relative {
	uint64_t place_svma;
	uint64_t target_svma;
};

/* Entry I of the dynamic relocations; one of another kind comes behind all of
 * these, as does one that cannot be read. */
struct wp_elf_relative wp_elf_image_relative(struct wp_elf_image *image,
					     uint64_t i);

/* Call EACH for each function that TABLE of IMAGE has, with its name; all borrowed
 * until EACH returns.  What is malformed is left out, as is a name longer than
 * WP_ELF_NAME_MAX - 1.  Of a file nothing is kept, and nothing taken of the budget.
 * False: not all of them could be read. */
enum { WP_ELF_NAME_MAX = 256 };
bool wp_elf_image_each_function(struct wp_elf_image *image,
				const struct wp_elf_symbols *table,
				void (*each)(void *ctx, const char *name,
					     uint64_t svma, uint64_t size),
				void *ctx);

/* The name of the symbol whose address the dynamic linker puts at SVMA; NULL: it puts
 * none there, or that is not found in *LEFT relocations, of which those that are read are
 * taken.  Borrowed until IMAGE is cleared. */
const char *wp_elf_image_linked_name(struct wp_elf_image *image, uint64_t svma,
				     uint64_t *left);

/* Free what IMAGE holds; safe on WP_ELF_IMAGE_INIT and twice. */
void wp_elf_image_clear(struct wp_elf_image *image);

#endif
