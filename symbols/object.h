/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - a mapped file with its symbols and debug files.
 *
 * Layer: symbols.
 */
#ifndef WP_OBJECT_H
#define WP_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "debugfile.h"
#include "dwarf_lines.h"
#include "elf_file.h"
#include "go_lines.h"
#include "symtab.h"

struct wp_object {
	/* Its path in the target, without " (deleted)"; owned. */
	char *path;
	/* The id of its first module. */
	uint32_t module;

	/* The rest is read by wp_object_load, owned. */
	bool loaded;
	/* MAIN could be opened. */
	bool is_elf;
	/* MAIN's image is the module's; those of the others are below. */
	struct wp_elf_file main;
	/* The separate debug file, and the file of .gnu_debugaltlink. */
	struct wp_elf_file debug;
	struct wp_elf_file alt;
	/* Unpacked .gnu_debugdata, and its bytes. */
	struct wp_elf_file mini;
	uint8_t *mini_bytes;
	struct wp_elf_image debug_image;
	struct wp_elf_image alt_image;
	struct wp_elf_image mini_image;
	struct wp_symtab symtab;
	/* Of a Go program. */
	struct wp_go_lines go;
	/* A .symtab names all functions, static ones too. */
	bool has_symtab;
	/* The one with DWARF, MAIN or DEBUG; NULL: none. */
	struct wp_elf_file *dwarf_file;
	/* That one shares its DWARF with a file that was not found. */
	bool lacks_alt;
	/* The svma of a byte in DEBUG minus its svma in MAIN. */
	uint64_t debug_bias;
};

/* A new object for IMAGE, which is borrowed for its life; NULL without memory.
 */
struct wp_object *wp_object_new(struct wp_elf_image *image, const char *path,
				uint32_t module);

/* Read OBJECT's symbols, once, and find its debug files; what is malformed is
 * left out.  NAMES_ONLY: DWARF is not needed.  Returns 0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_object_load(struct wp_object *object,
		   const struct wp_debug_search *where, bool names_only);

void wp_object_free(struct wp_object *object);

#endif
