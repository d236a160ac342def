/* SPDX-License-Identifier: Apache-2.0 */
/* go_table_search.c - Go's table of functions in a section of another name.
 *
 * The C compiler links what Go builds as a shared library, and its linker may join
 * .data.rel.ro.gopclntab with .data.rel.ro: no header tells where the table is then.
 */
#include <endian.h>
#include <string.h>

#include "wallprof/go_table.h"

enum {
	WORD = 8,
	/* Bytes that are read at a time, and at most of a section. */
	PIECE = 1 << 15,
	SECTION_MAX = 32 << 20,
	/* What begins as a table does and is none. */
	WRONG_MAX = 16,
};

/* Does a table of 64 bits begin with WORD (go_table.c), of any version? */
static bool is_header(uint64_t word)
{
	const uint32_t magic = (uint32_t)word;

	return (magic == 0xfffffff0 || magic == 0xfffffff1) &&
	       !(word >> 32 & 0xffff) && word >> 56 == 8;
}

/* Is the table that IMAGE has now one whose functions are in its code? */
static bool is_table(struct wp_elf_image *image)
{
	struct wp_go_table table;
	struct wp_go_func first, last;
	uint64_t off;

	return !wp_go_table_open(&table, image) && table.nfuncs &&
	       !wp_go_table_func(&table, 0, &first) &&
	       !wp_go_table_func(&table, table.nfuncs - 1, &last) &&
	       first.start_svma <= last.start_svma &&
	       wp_elf_image_offset(image, first.start_svma, &off) &&
	       wp_elf_image_offset(image, last.start_svma, &off);
}

/* Take what of SECTION begins AT so many bytes in for IMAGE's table; false if it is
 * none. */
static bool take(struct wp_elf_image *image, const struct wp_elf_range *section,
		 uint64_t at)
{
	image->go_table = (struct wp_elf_range){ section->svma + at,
						 section->off + at,
						 section->size - at };
	if (is_table(image))
		return true;
	image->go_table.size = 0;
	return false;
}

/* True ends the search. */
static bool search(struct wp_elf_image *image,
		   const struct wp_elf_range *section, unsigned int *nwrong)
{
	uint64_t size = section->size < SECTION_MAX ? section->size :
						      SECTION_MAX;
	uint64_t words[PIECE / WORD];

	for (uint64_t at = 0; at + WORD <= size; at += PIECE) {
		uint64_t n = (size - at < PIECE ? size - at : PIECE) / WORD;

		if (!wp_elf_image_copy(image, section->off + at, n * WORD,
				       words))
			return true;
		for (uint64_t i = 0; i < n; i++)
			if (is_header(le64toh(words[i])) &&
			    (take(image, section, at + i * WORD) ||
			     ++*nwrong == WRONG_MAX))
				return true;
	}
	return false;
}

void wp_go_table_search(struct wp_elf_image *image)
{
	unsigned int nwrong = 0;

	if (image->go_table.size || !image->go_buildinfo.size)
		return;
	/* .data.rel.ro, where most linkers put it, is the last. */
	for (size_t i = WP_ELF_GO_DATA; i-- > 0;)
		if (search(image, &image->go_data[i], &nwrong))
			return;
}
