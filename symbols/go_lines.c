/* SPDX-License-Identifier: Apache-2.0 */
/* go_lines.c - see go_lines.h. */
#include "go_lines.h"

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
	struct wp_go_inlined inlined;

	if (!go->has_trees || !wp_go_module_inlined(&go->module, &go->table,
						    func, *svma, &inlined))
		return false;
	*svma = inlined.call_svma;
	level->start_line = inlined.start_line;
	level->name = inlined.name;
	return true;
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
