/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_symtab.c - symbol tables and PLTs of an ELF file, by libelf.
 *
 * Layer: symbols.
 */
#include "../../symbols/symtab.h"
#include "fuzz_elf.h"

static void check_entry(const struct wp_symtab *tab, uint32_t i)
{
	const struct wp_symtab_entry *e = &tab->v[i];
	char name[256];
	size_t n = wp_symtab_name(tab, e, name, sizeof(name));

	FUZZ_CHECK(!i || tab->v[i - 1].svma < e->svma);
	FUZZ_CHECK(n < sizeof(name) && !name[n]);
	FUZZ_CHECK(strlen(name) == n);
	FUZZ_CHECK(wp_symtab_at(tab, e->svma) == e);
	if (e->size)
		FUZZ_CHECK(wp_symtab_find(tab, e->svma) == e);
	(void)wp_symtab_find(tab, e->svma + e->size);
}

static void read_symbols(struct fuzz_elf *e)
{
	struct wp_symtab tab = WP_SYMTAB_INIT;
	struct wp_elf_file *file = &e->file;

	if (!wp_symtab_add(&tab, file, SHT_SYMTAB, 0) &&
	    !wp_symtab_add(&tab, file, SHT_DYNSYM, 0x1000)) {
		wp_symtab_finish(&tab);
		(void)!wp_symtab_add_plt(&tab, file->elf);
		wp_symtab_finish(&tab);
	}
	for (uint32_t i = 0; i < tab.nsorted; i++)
		check_entry(&tab, i);
	(void)wp_symtab_find(&tab, 0);
	(void)wp_symtab_find(&tab, UINT64_MAX);
	wp_symtab_clear(&tab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_elf e;

	if (!fuzz_elf_open(&e, data, size))
		return 0;
	(void)wp_elf_file_has_symtab(&e.file);
	(void)wp_elf_file_has_dwarf(&e.file);
	read_symbols(&e);
	wp_elf_file_trim(&e.file);
	fuzz_elf_close(&e);
	return 0;
}
