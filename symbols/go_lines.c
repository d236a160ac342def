/* SPDX-License-Identifier: Apache-2.0 */
/* go_lines.c - see go_lines.h. */
#include "go_lines.h"

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

void wp_go_lines_open(struct wp_go_lines *go, struct wp_elf_image *image)
{
	*go = (struct wp_go_lines){ .is_open = false };
	go->is_open = !wp_go_table_open(&go->table, image);
	go->has_trees = go->is_open &&
			!wp_go_module_read(&go->module, &go->table);
}

/* Set LEVEL's file and line to those of SVMA. */
static void set_place(const struct wp_go_lines *go,
		      const struct wp_go_func *func, uint64_t svma,
		      struct wp_dwarf_level *level)
{
	int32_t file, line;

	if (wp_go_table_value(&go->table, func, func->files_off, svma, &file) ||
	    wp_go_table_value(&go->table, func, func->lines_off, svma, &line) ||
	    file < 0 || line < 0)
		return;
	level->file = wp_go_table_file(&go->table, func, (uint32_t)file);
	level->line = (uint32_t)line;
}

/* If the code at *SVMA is of an inlined function: set LEVEL's name to its name,
 * and *SVMA to an instruction of the call. */
static bool step_out(const struct wp_go_lines *go,
		     const struct wp_go_func *func, uint64_t *svma,
		     struct wp_dwarf_level *level)
{
	const bool is_119 = !go->table.has_lines;
	struct wp_elf_image *image = go->table.image;
	uint64_t node_svma, off;
	struct wp_reader r;
	uint32_t name;
	int32_t index;

	if (!go->has_trees || func->tree_off == WP_GO_NO_TREE ||
	    wp_go_table_value(&go->table, func, func->inlined_off, *svma,
			      &index) ||
	    index < 0)
		return false;
	node_svma = go->module.gofunc_svma + func->tree_off +
		    (uint64_t)index * (is_119 ? NODE_119 : NODE);
	if (!wp_elf_image_offset(image, node_svma, &off))
		return false;
	r = wp_reader_of(wp_elf_image_at(image, off, is_119 ? NODE_119 : NODE),
			 is_119 ? NODE_119 : NODE);
	wp_read_skip(&r, is_119 ? NODE_119_NAME : NODE_NAME);
	name = wp_read_u32(&r);
	*svma = func->start_svma + wp_read_u32(&r);
	level->start_line = is_119 ? 0 : wp_read_u32(&r);
	level->name = wp_go_table_text(&go->table, go->table.names_off + name);
	return !r.failed && level->name && *level->name &&
	       *svma < func->end_svma;
}

bool wp_go_lines_find(const struct wp_go_lines *go, uint64_t svma,
		      struct wp_dwarf_lines *ret)
{
	struct wp_dwarf_level *level = ret->levels;
	struct wp_go_func func;

	if (!go->is_open || wp_go_table_find(&go->table, svma, &func))
		return false;
	for (;;) {
		*level = (struct wp_dwarf_level){ .file = NULL };
		set_place(go, &func, svma, level);
		if (level == &ret->levels[WP_DWARF_LEVELS_MAX - 1] ||
		    !step_out(go, &func, &svma, level))
			break;
		level++;
	}
	level->name = wp_go_table_text(&go->table, func.name_off);
	level->start_line = func.start_line;
	ret->n = (uint32_t)(level - ret->levels) + 1;
	ret->has_function = true;
	ret->nstarts = 0;
	return level->name && *level->name;
}
