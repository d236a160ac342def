/* SPDX-License-Identifier: Apache-2.0 */
/* go_names.c - names of Go's functions by .gopclntab: see symtab.h. */
#include <string.h>

#include "symtab.h"
#include "wallprof/go_table.h"

/* The section's bytes [0, len). */
struct bytes {
	const uint8_t *data;
	uint64_t len;
};

static const uint8_t *at(void *src, uint64_t off, uint64_t len)
{
	const struct bytes *bytes = src;

	return off <= bytes->len && len <= bytes->len - off ?
		       bytes->data + off :
		       NULL;
}

static bool open_table(struct wp_go_table *ret, struct bytes *bytes,
		       const struct wp_elf_file *file)
{
	GElf_Shdr sh, text;

	if ((!wp_elf_file_section(file, ".gopclntab", &sh) &&
	     !wp_elf_file_section(file, ".data.rel.ro.gopclntab", &sh)) ||
	    sh.sh_type == SHT_NOBITS || sh.sh_offset > file->map.size ||
	    sh.sh_size > file->map.size - sh.sh_offset)
		return false;
	if (!wp_elf_file_section(file, ".text", &text))
		text.sh_addr = text.sh_size = 0;
	*bytes = (struct bytes){ file->map.data + sh.sh_offset, sh.sh_size };
	return !wp_go_table_open(ret, at, bytes, sh.sh_size, text.sh_addr,
				 text.sh_addr + text.sh_size);
}

int wp_symtab_add_go(struct wp_symtab *tab, const struct wp_elf_file *file)
{
	struct wp_go_table table;
	struct bytes bytes;
	int source, rc = 0;

	if (!open_table(&table, &bytes, file))
		return 0;
	source = wp_symtab_add_text(tab,
				    (const char *)bytes.data + table.names_off,
				    (size_t)(bytes.len - table.names_off));
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
