/* SPDX-License-Identifier: Apache-2.0 */
/* elf_functions.c - the functions that an ELF file has and links, by name: see
 * wallprof/elf_image.h. */
#include <elf.h>
#include <string.h>

#include "wallprof/elf_image.h"

enum {
	/* Symbols that are read at once. */
	PIECE = 256,
	/* Chromium has 3 million. */
	SYMBOLS_MAX = 16 << 20,
};

/* The name at OFF of NAMES, which is NUL-terminated within WP_ELF_NAME_MAX bytes;
 * NULL: there is none. */
static const char *name_at(struct wp_elf_image *image,
			   const struct wp_elf_range *names, uint32_t off)
{
	uint64_t left = off < names->size ? names->size - off : 0;
	uint64_t len = left < WP_ELF_NAME_MAX ? left : WP_ELF_NAME_MAX;
	const void *text = len ? wp_elf_image_at(image, names->off + off, len) :
				 NULL;

	return text && memchr(text, 0, len) ? text : NULL;
}

void wp_elf_image_each_function(struct wp_elf_image *image,
				const struct wp_elf_symbols *table,
				void (*each)(void *ctx, const char *name,
					     uint64_t svma, uint64_t size),
				void *ctx)
{
	uint64_t n = table->entries.size / sizeof(Elf64_Sym);

	if (n > SYMBOLS_MAX)
		n = SYMBOLS_MAX;
	for (uint64_t i = 0; i < n; i += PIECE) {
		uint64_t len = n - i < PIECE ? n - i : PIECE;
		const uint8_t *bytes = wp_elf_image_at(
			image, table->entries.off + i * sizeof(Elf64_Sym),
			len * sizeof(Elf64_Sym));

		if (!bytes)
			return;
		for (uint64_t k = 0; k < len; k++) {
			Elf64_Sym sym;
			const char *name;

			memcpy(&sym, bytes + k * sizeof(sym), sizeof(sym));
			if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC ||
			    sym.st_shndx == SHN_UNDEF)
				continue;
			name = name_at(image, &table->names, sym.st_name);
			if (name)
				each(ctx, name, sym.st_value, sym.st_size);
		}
	}
}

/* The name of symbol I of .dynsym. */
static const char *dynamic_name(struct wp_elf_image *image, uint64_t i)
{
	const struct wp_elf_symbols *table = &image->symbols[0];
	const uint8_t *bytes;
	Elf64_Sym sym;

	if (i >= table->entries.size / sizeof(sym))
		return NULL;
	bytes = wp_elf_image_at(image, table->entries.off + i * sizeof(sym),
				sizeof(sym));
	if (!bytes)
		return NULL;
	memcpy(&sym, bytes, sizeof(sym));
	return name_at(image, &table->names, sym.st_name);
}

/* The same by the relocations in RANGE. */
static const char *linked_by(struct wp_elf_image *image,
			     const struct wp_elf_range *range, uint64_t svma,
			     uint64_t *left)
{
	uint64_t n = range->size / sizeof(Elf64_Rela);

	for (uint64_t i = 0; i < n && *left; i++, --*left) {
		const uint8_t *bytes = wp_elf_image_at(
			image, range->off + i * sizeof(Elf64_Rela),
			sizeof(Elf64_Rela));
		Elf64_Rela rela;

		if (!bytes)
			return NULL;
		memcpy(&rela, bytes, sizeof(rela));
		if (rela.r_offset == svma && ELF64_R_SYM(rela.r_info))
			return dynamic_name(image, ELF64_R_SYM(rela.r_info));
	}
	return NULL;
}

const char *wp_elf_image_linked_name(struct wp_elf_image *image, uint64_t svma,
				     uint64_t *left)
{
	const char *name = linked_by(image, &image->plt_rela, svma, left);

	return name ? name : linked_by(image, &image->rela, svma, left);
}
