/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - one mapped file and all that is known to name its addresses.
 *
 * Layer: symbols.
 */
#ifndef WP_OBJECT_H
#define WP_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "debugfile.h"
#include "dwarf_lines.h"
#include "elf_file.h"
#include "symtab.h"

struct wp_object {
	/* Of the file; 0 and 0 for an image of memory. */
	dev_t dev;
	ino_t ino;
	/* As the target knows it, without " (deleted)"; owned. */
	char *path;
	/* The id of the module that it was first seen as. */
	uint32_t module;

	/* The rest is read by wp_object_load, owned. */
	bool loaded;
	/* The headers were read: avma can be turned into svma. */
	bool is_elf;
	struct wp_elf_file main;
	/* The separate debug file and what it shares with others. */
	struct wp_elf_file debug;
	struct wp_elf_file alt;
	/* Unpacked .gnu_debugdata. */
	struct wp_elf_file mini;
	struct wp_symtab symtab;
	/* Which of them has the DWARF; NULL for none. */
	struct wp_elf_file *dwarf_file;
	/* To be added to a svma of main for one of the debug file. */
	uint64_t debug_bias;
};

/* Read OBJECT's headers and symbols, once; what is malformed is left out.
 * DWARF is only looked for, unless NAMES_ONLY.  Returns 0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_object_load(struct wp_object *object,
		   const struct wp_debug_search *where, bool names_only);

void wp_object_free(struct wp_object *object);

#endif
