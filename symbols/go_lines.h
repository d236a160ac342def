/* SPDX-License-Identifier: Apache-2.0 */
/* go_lines.h - files, lines and inlined functions of Go programs, by .gopclntab.
 *
 * Layer: symbols.  Private to symbols/.
 *
 * Go's runtime prints its own stacks by this table, which stripped programs have
 * too.  So a frame reads the same with and without DWARF, and as in a traceback.
 */
#ifndef WP_GO_LINES_H
#define WP_GO_LINES_H

#include "dwarf_lines.h"
#include "wallprof/go_module.h"

struct wp_go_lines {
	/* The image has tables that can be read. */
	bool is_open;
	/* Inlined functions can be told. */
	bool has_trees;
	struct wp_go_table table;
	struct wp_go_module module;
};

/* Read the headers of IMAGE's tables, which GO borrows; is_open is false where it
 * has none. */
void wp_go_lines_open(struct wp_go_lines *go, struct wp_elf_image *image);

/* Look SVMA up.  False if it is in no function of Go's, or that is malformed. */
bool wp_go_lines_find(const struct wp_go_lines *go, uint64_t svma,
		      struct wp_dwarf_lines *ret);

#endif
