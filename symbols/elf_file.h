/* SPDX-License-Identifier: Apache-2.0 */
/* elf_file.h - an ELF file's bytes, and what its headers say of it.
 *
 * Layer: symbols.
 */
#ifndef WP_ELF_FILE_H
#define WP_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "file_map.h"
#include "wallprof/err.h"

enum {
	WP_ELF_FILE_LOADS_MAX = 32,
	WP_ELF_FILE_ID_MAX = 64,
};

struct wp_elf_file {
	struct wp_file_map map;
	/* NULL until opened; owned. */
	Elf *elf;
	/* PT_LOAD segments, loads[0..nloads). */
	GElf_Phdr loads[WP_ELF_FILE_LOADS_MAX];
	uint32_t nloads;
	/* Build-id, length 0 when there is none. */
	uint8_t id[WP_ELF_FILE_ID_MAX];
	uint32_t id_len;
};

#define WP_ELF_FILE_INIT                                                       \
	{                                                                      \
		.map = WP_FILE_MAP_INIT                                        \
	}

/* Read the headers of FILE->map, which is set.  Returns 0, or -ENOTSUP if it is
 * not an ELF file. */
WP_MUST_CHECK
int wp_elf_file_open(struct wp_elf_file *file);

/* Give back what libelf holds, and the memory of the map: both come back when
 * they are needed again. */
void wp_elf_file_close(struct wp_elf_file *file);
/* Give back the memory of the map only, FILE staying open. */
void wp_elf_file_trim(struct wp_elf_file *file);
void wp_elf_file_clear(struct wp_elf_file *file);

/* Svma of file offset OFF in a mapping of FILE; false if no segment has it. */
bool wp_elf_file_svma(const struct wp_elf_file *file, uint64_t off,
		      uint64_t *ret);

/* The section NAME with its header, or NULL. */
Elf_Scn *wp_elf_file_section(const struct wp_elf_file *file, const char *name,
			     GElf_Shdr *ret);

/* True if FILE has a .symtab with names in it. */
bool wp_elf_file_has_symtab(const struct wp_elf_file *file);
/* True if FILE has DWARF, be it compressed. */
bool wp_elf_file_has_dwarf(const struct wp_elf_file *file);

#endif
