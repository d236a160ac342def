/* SPDX-License-Identifier: Apache-2.0 */
/* elf_file.h - an ELF image as libelf sees it.
 *
 * Layer: symbols.
 *
 * libelf and libdw read symbol tables and DWARF here and there in files of
 * hundreds of megabytes, and trust that the bytes stay.  So the image is mapped
 * whole (wp_elf_image_whole): who cuts the file off ends this process.
 */
#ifndef WP_ELF_FILE_H
#define WP_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "wallprof/elf_image.h"
#include "wallprof/err.h"

struct wp_elf_file {
	/* Borrowed; NULL: there is no such file. */
	struct wp_elf_image *image;
	/* NULL while closed; owned. */
	Elf *elf;
};

/* Open FILE->image in libelf.  Returns 0, or -ENOTSUP if libelf takes it for no
 * ELF file or it cannot be mapped. */
WP_MUST_CHECK
int wp_elf_file_open(struct wp_elf_file *file);

/* Free what libelf holds and give back the memory of the image's pages.  FILE
 * may be opened again. */
void wp_elf_file_close(struct wp_elf_file *file);
/* Give back the memory of the image's pages only; FILE stays open. */
void wp_elf_file_trim(struct wp_elf_file *file);

/* The section NAME with its header, or NULL. */
Elf_Scn *wp_elf_file_section(const struct wp_elf_file *file, const char *name,
			     GElf_Shdr *ret);

/* Whether FILE has a .symtab with names in it. */
bool wp_elf_file_has_symtab(const struct wp_elf_file *file);
/* Whether FILE has DWARF, compressed or not. */
bool wp_elf_file_has_dwarf(const struct wp_elf_file *file);

#endif
