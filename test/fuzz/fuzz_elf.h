/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_elf.h - ELF files for libelf and libdw, which no sanitizer watches. */
#ifndef WP_FUZZ_ELF_H
#define WP_FUZZ_ELF_H

#include "../../symbols/elf_file.h"
#include "fuzz.h"

struct fuzz_elf {
	struct fuzz_pages pages;
	struct wp_elf_image image;
	struct wp_elf_file file;
};

/* Open DATA[0..size); false if it is no ELF file. */
static inline bool fuzz_elf_open(struct fuzz_elf *e, const uint8_t *data,
				 size_t size)
{
	e->image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
	e->file = (struct wp_elf_file){ .image = &e->image };
	if (!size || !fuzz_pages_make(&e->pages, data, size))
		return false;
	if (!wp_elf_image_open_bytes(&e->image, e->pages.data, size, NULL) &&
	    !wp_elf_file_open(&e->file))
		return true;
	fuzz_pages_free(&e->pages);
	return false;
}

static inline void fuzz_elf_close(struct fuzz_elf *e)
{
	wp_elf_file_close(&e->file);
	fuzz_pages_free(&e->pages);
}

#endif
