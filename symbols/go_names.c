/* SPDX-License-Identifier: Apache-2.0 */
/* go_names.c - names of Go's functions by .gopclntab: see symtab.h. */
#include "symtab.h"
#include "wallprof/go_table.h"

int wp_symtab_add_go(struct wp_symtab *tab, struct wp_elf_image *image)
{
	const struct wp_elf_range *range = &image->go_table;
	struct wp_go_table table;
	const uint8_t *names;
	size_t len;
	int source, rc = 0;

	if (wp_go_table_open(&table, image))
		return 0;
	len = (size_t)(range->size - table.names_off);
	names = wp_elf_image_at(image, range->off + table.names_off, len);
	source = names ? wp_symtab_add_text(tab, (const char *)names, len) : -1;
	if (source < 0)
		return 0;
	for (uint32_t i = 0; !rc && i < table.nfuncs; i++) {
		struct wp_go_func func;

		if (!wp_go_table_func(&table, i, &func) &&
		    func.end_svma - func.start_svma <= UINT32_MAX)
			rc = wp_symtab_add_named(
				tab, source, func.start_svma,
				(uint32_t)(func.end_svma - func.start_svma),
				(uint32_t)(func.name_off - table.names_off));
	}
	return rc;
}
