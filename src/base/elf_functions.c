/* SPDX-License-Identifier: Apache-2.0 */
/* elf_functions.c - the functions that an ELF file has and links, by name: see
 * wallprof/elf_image.h. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/elf_image.h"

enum {
	/* Symbols that are read at once. */
	PIECE = 256,
	/* Chromium has 3 million. */
	SYMBOLS_MAX = 16 << 20,
	/* A table of up to NAMES_WHOLE bytes of names is read at once; a larger one by
	 * NAMES_PIECE bytes from the name that is sought, NAMES_READS times at most.
	 * Linkers write most names in the order of symbols. */
	NAMES_WHOLE = 1 << 20,
	NAMES_PIECE = 4096,
	NAMES_READS = 1 << 20,
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

/* Names that are read and not kept: the image's budget is the unwinder's. */
struct names {
	struct wp_elf_image *image;
	const struct wp_elf_range *range;
	/* bytes[0..len) are at OFF of RANGE; owned. */
	char *bytes;
	uint64_t off, len;
	uint32_t nreads;
	/* All that were sought could be read. */
	bool is_whole;
};

/* Read what is at OFF of NAMES, and what follows it. */
static bool read_names(struct names *names, uint64_t off)
{
	uint64_t left = names->range->size - off, most = NAMES_PIECE;

	if (names->range->size <= NAMES_WHOLE) {
		off = 0;
		left = most = names->range->size;
	}
	names->off = off;
	names->len = left < most ? left : most;
	if (!names->bytes)
		names->bytes = malloc(most);
	if (!names->bytes || names->nreads++ == NAMES_READS ||
	    !wp_elf_image_copy(names->image, names->range->off + off,
			       names->len, names->bytes)) {
		names->is_whole = false;
		names->len = 0;
	}
	return names->len;
}

/* As name_at; borrowed until the next call. */
static const char *find_name(struct names *names, uint64_t off)
{
	uint64_t left = off < names->range->size ? names->range->size - off : 0;
	uint64_t len = left < WP_ELF_NAME_MAX ? left : WP_ELF_NAME_MAX;
	const char *text;

	if (!len)
		return NULL;
	if ((off < names->off || off - names->off > names->len ||
	     names->len - (off - names->off) < len) &&
	    !read_names(names, off))
		return NULL;
	text = names->bytes + (off - names->off);
	return memchr(text, 0, len) ? text : NULL;
}

bool wp_elf_image_each_function(struct wp_elf_image *image,
				const struct wp_elf_symbols *table,
				void (*each)(void *ctx, const char *name,
					     uint64_t svma, uint64_t size),
				void *ctx)
{
	uint64_t all = table->entries.size / sizeof(Elf64_Sym);
	uint64_t n = all < SYMBOLS_MAX ? all : SYMBOLS_MAX, len;
	struct names names = { .image = image,
			       .range = &table->names,
			       .is_whole = n == all };

	for (uint64_t i = 0; i < n && names.is_whole; i += len) {
		Elf64_Sym symbols[PIECE];

		len = n - i < PIECE ? n - i : PIECE;
		names.is_whole = wp_elf_image_copy(
			image, table->entries.off + i * sizeof(*symbols),
			len * sizeof(*symbols), symbols);
		for (uint64_t k = 0; k < len && names.is_whole; k++) {
			const Elf64_Sym *sym = &symbols[k];
			const char *name;

			if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC ||
			    sym->st_shndx == SHN_UNDEF)
				continue;
			name = find_name(&names, sym->st_name);
			if (name)
				each(ctx, name, sym->st_value, sym->st_size);
		}
	}
	free(names.bytes);
	return names.is_whole;
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
