/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - see object.h. */
#include "object.h"

#include <stdlib.h>
#include <string.h>

/* The first segment with code, or NULL. */
static const struct wp_elf_load *code_of(const struct wp_elf_file *file)
{
	for (uint32_t i = 0; i < file->image->nloads; i++)
		if (file->image->loads[i].flags & PF_X)
			return &file->image->loads[i];
	return NULL;
}

/* The svma of a byte in MAIN minus its svma in FILE: prelink(8) moves a library
 * and not its debug file.  patchelf(1) puts a segment before the others, and may cut
 * the one with code; nothing has moved then. */
static uint64_t bias_of(const struct wp_elf_file *main,
			const struct wp_elf_file *file)
{
	const struct wp_elf_load *a = code_of(main), *b = code_of(file);

	return a && b && a->memsz == b->memsz ? a->svma - b->svma : 0;
}

static int add_symbols(struct wp_object *object, struct wp_elf_file *file,
		       uint32_t type)
{
	return wp_symtab_add(&object->symtab, file, type,
			     bias_of(&object->main, file));
}

/* Find OBJECT's debug file and the file of .gnu_debugaltlink. */
static void find_debug(struct wp_object *object,
		       const struct wp_debug_search *where, bool names_only)
{
	struct wp_debug_search search = *where;
	char path[PATH_MAX];
	bool own = wp_elf_file_has_dwarf(&object->main);

	search.file = &object->main;
	search.path = object->path;
	search.module = object->module;
	/* A file with DWARF of its own and symbols needs no other. */
	if ((!own && !names_only) || !wp_elf_file_has_symtab(&object->main))
		(void)!wp_debugfile_find(&object->debug, path, &search);
	if (names_only)
		return;
	if (own) {
		object->dwarf_file = &object->main;
	} else if (object->debug.elf && wp_elf_file_has_dwarf(&object->debug)) {
		object->dwarf_file = &object->debug;
		object->debug_bias = bias_of(&object->debug, &object->main);
		search.path = path;
		search.of_debug = true;
	}
	if (!object->dwarf_file || !wp_debugfile_wants_alt(object->dwarf_file))
		return;
	search.file = object->dwarf_file;
	/* Half of the names would be missing; and libdw would look for the
	 * other file itself, by a name that the target chose. */
	object->lacks_alt = wp_debugfile_find_alt(&object->alt, &search);
	if (object->lacks_alt)
		object->dwarf_file = NULL;
}

static bool open_mini(struct wp_object *object)
{
	size_t len;

	return !wp_debugfile_unpack(&object->mini_bytes, &len, &object->main) &&
	       !wp_elf_image_open_bytes(&object->mini_image, object->mini_bytes,
					len, NULL) &&
	       !wp_elf_file_open(&object->mini);
}

/* A .symtab has all that .dynsym and .gopclntab have; .gnu_debugdata has only
 * the rest. */
static int add_best_symbols(struct wp_object *object)
{
	int rc;

	object->has_symtab = true;
	if (wp_elf_file_has_symtab(&object->main))
		return add_symbols(object, &object->main, SHT_SYMTAB);
	if (object->debug.elf && wp_elf_file_has_symtab(&object->debug))
		return add_symbols(object, &object->debug, SHT_SYMTAB);
	object->has_symtab = false;
	rc = add_symbols(object, &object->main, SHT_DYNSYM);
	if (!rc && open_mini(object))
		rc = add_symbols(object, &object->mini, SHT_SYMTAB);
	if (!rc)
		rc = wp_symtab_add_go(&object->symtab, object->main.image);
	return rc;
}

static int load_symbols(struct wp_object *object)
{
	int rc = add_best_symbols(object);

	if (rc)
		return rc;
	wp_symtab_finish(&object->symtab);
	rc = wp_symtab_add_plt(&object->symtab, object->main.elf);
	wp_symtab_finish(&object->symtab);
	return rc;
}

struct wp_object *wp_object_new(struct wp_elf_image *image, const char *path,
				uint32_t module)
{
	struct wp_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->main.image = image;
	object->debug.image = &object->debug_image;
	object->alt.image = &object->alt_image;
	object->mini.image = &object->mini_image;
	object->debug_image.fd = object->alt_image.fd = object->mini_image.fd =
		-1;
	object->module = module;
	object->path = strdup(path);
	if (object->path)
		return object;
	free(object);
	return NULL;
}

int wp_object_load(struct wp_object *object,
		   const struct wp_debug_search *where, bool names_only)
{
	int rc;

	if (object->loaded)
		return 0;
	object->loaded = true;
	if (wp_elf_file_open(&object->main))
		return 0;
	object->is_elf = true;
	find_debug(object, where, names_only);
	wp_go_lines_open(&object->go, object->main.image);
	rc = load_symbols(object);
	wp_elf_file_close(&object->main);
	wp_elf_file_close(&object->debug);
	wp_elf_file_close(&object->alt);
	wp_elf_file_close(&object->mini);
	return rc;
}

void wp_object_free(struct wp_object *object)
{
	wp_symtab_clear(&object->symtab);
	wp_elf_file_close(&object->main);
	wp_elf_file_close(&object->debug);
	wp_elf_file_close(&object->alt);
	wp_elf_file_close(&object->mini);
	wp_elf_image_clear(&object->debug_image);
	wp_elf_image_clear(&object->alt_image);
	wp_elf_image_clear(&object->mini_image);
	free(object->mini_bytes);
	free(object->path);
	free(object);
}
