/* SPDX-License-Identifier: Apache-2.0 */
/* go_inlined.c - trees of inlined functions: see wallprof/go_module.h. */
#include "wallprof/go_module.h"

#include "wallprof/reader.h"

enum {
	/* Entries of a tree of inlined functions (runtime/symtabinl.go,
	 * inlinedCall): their size, and where the offset of the name is, which
	 * an instruction of the call in the parent follows; up to Go 1.19, and
	 * later with the line that it begins in. */
	NODE_119 = 20,
	NODE_119_NAME = 12,
	NODE = 16,
	NODE_NAME = 4,
};

bool wp_go_module_inlined(const struct wp_go_module *module,
			  const struct wp_go_table *table,
			  const struct wp_go_func *func, uint64_t svma,
			  struct wp_go_inlined *ret)
{
	const bool is_119 = !table->has_lines;
	uint64_t node_svma, off;
	struct wp_reader r;
	uint32_t name;
	int32_t index;

	if (func->tree_off == WP_GO_NO_TREE ||
	    wp_go_table_value(table, func, func->inlined_off, svma, &index) ||
	    index < 0)
		return false;
	node_svma = module->gofunc_svma + func->tree_off +
		    (uint64_t)index * (is_119 ? NODE_119 : NODE);
	if (!wp_elf_image_offset(table->image, node_svma, &off))
		return false;
	r = wp_reader_of(
		wp_elf_image_at(table->image, off, is_119 ? NODE_119 : NODE),
		is_119 ? NODE_119 : NODE);
	wp_read_skip(&r, is_119 ? NODE_119_NAME : NODE_NAME);
	name = wp_read_u32(&r);
	ret->call_svma = func->start_svma + wp_read_u32(&r);
	ret->start_line = is_119 ? 0 : wp_read_u32(&r);
	ret->name = wp_go_table_text(table, table->names_off + name);
	return !r.failed && ret->name && *ret->name &&
	       ret->call_svma < func->end_svma;
}
