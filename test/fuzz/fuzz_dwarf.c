/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dwarf.c - DWARF of an ELF file: units, functions, inlined functions and
 * lines, by libdw.  Asked for addresses all over its code.
 *
 * Layer: symbols.
 */
#include "../../symbols/dwarf_lines.h"
#include "fuzz_elf.h"

enum { LOOKUPS = 12 };

static size_t length(const char *s)
{
	return s ? strlen(s) : 0;
}

static void look_up(struct wp_dwarf *dwarf, uint64_t svma)
{
	struct wp_dwarf_lines lines;
	size_t sum = 0;

	if (wp_dwarf_lookup(dwarf, svma, &lines))
		return;
	FUZZ_CHECK(lines.n >= 1 && lines.n <= WP_DWARF_LEVELS_MAX);
	FUZZ_CHECK(lines.nstarts <= WP_DWARF_STARTS_MAX);
	/* Strings end in mapped memory. */
	for (uint32_t i = 0; i < lines.n; i++)
		sum += length(lines.levels[i].linkage) +
		       length(lines.levels[i].name) +
		       length(lines.levels[i].dir) +
		       length(lines.levels[i].file);
	FUZZ_CHECK(sum < SIZE_MAX / 2);
}

static void look_up_all(struct wp_dwarf *dwarf,
			const struct wp_elf_image *image)
{
	for (uint32_t i = 0; i < image->nloads && i < 4; i++) {
		const struct wp_elf_load *load = &image->loads[i];

		if (!(load->flags & PF_X))
			continue;
		for (unsigned int n = 0; n < LOOKUPS; n++)
			look_up(dwarf, load->svma + load->filesz / LOOKUPS * n);
	}
	/* Where the inputs in test/data/fuzz/dwarf have their code. */
	for (uint64_t svma = 0x280; svma < 0x3a0; svma += 0x10)
		look_up(dwarf, svma);
	look_up(dwarf, 0);
	look_up(dwarf, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_dwarf dwarf;
	struct fuzz_elf e;

	if (!fuzz_elf_open(&e, data, size))
		return 0;
	wp_dwarf_open(&dwarf, &e.file, NULL);
	look_up_all(&dwarf, &e.image);
	wp_dwarf_close(&dwarf);
	fuzz_elf_close(&e);
	return 0;
}
