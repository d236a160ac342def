/* SPDX-License-Identifier: Apache-2.0 */
/* naming.c - the levels of one address of a file.
 *
 * Which name: an address that a symbol table knows has one, whether debug info
 * is installed or not, and the profile should not change with that.  So the
 * function proper is named by the symbol where it starts (of a cold part, where
 * its hot part starts), as perf and eu-stack do, and by DWARF where there is
 * none.  Inlined functions have no symbol: DWARF names them.  What is Go's is
 * named by the table that Go's own tracebacks use.
 */
#include "resolver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "extent.h"
#include "demangle.h"
#include "wallprof/vec.h"

struct wp_symbol_line *wp_naming_add_line(struct wp_symbols *s,
					  const char *system_name,
					  bool is_linkers)
{
	const char *name = system_name;
	struct wp_symbol_line *line;

	if (WP_VEC_ROOM(s->lines, s->nlines, s->lines_cap, 1))
		return NULL;
	line = &s->lines[s->nlines];
	if (is_linkers) {
		wp_demangle(system_name, s->demangled, sizeof(s->demangled));
		name = s->demangled;
	}
	*line = (struct wp_symbol_line){
		.function = wp_strpool_add_str(&s->strings, name),
		.system_name = wp_strpool_add_str(&s->strings, system_name),
		.file = wp_strpool_add_str(&s->strings, ""),
	};
	if (!line->function || !line->system_name || !line->file)
		return NULL;
	s->nlines++;
	return line;
}

int wp_naming_add_place(struct wp_symbols *s, const char *module, uint64_t addr)
{
	if (module)
		snprintf(s->symbol, sizeof(s->symbol), "%s+0x%" PRIx64, module,
			 addr);
	else
		snprintf(s->symbol, sizeof(s->symbol), "0x%" PRIx64, addr);
	return wp_naming_add_line(s, s->symbol, false) ? 0 : -ENOMEM;
}

/* Append one level for SVMA of OBJECT, which has no symbol: where its function
 * begins, as far as unwind info tells, so that it is one function. */
static int add_function_place(struct wp_symbols *s, const char *module,
			      const struct wp_object *object, uint64_t svma)
{
	(void)wp_extent_start(object->main.image, svma, &svma);
	return wp_naming_add_place(s, module, svma);
}

static int set_place(struct wp_symbols *s, struct wp_symbol_line *line,
		     const struct wp_dwarf_level *level)
{
	const char *file = level->file ? level->file : "";

	if (*file && *file != '/' && level->dir && *level->dir &&
	    strcmp(level->dir, ".")) {
		int n = snprintf(s->symbol, sizeof(s->symbol), "%s/%s",
				 level->dir, file);

		if (n > 0 && (size_t)n < sizeof(s->symbol))
			file = s->symbol;
	}
	line->file = wp_strpool_add_str(&s->strings, file);
	line->line = level->line;
	line->start_line = level->start_line;
	return line->file ? 0 : -ENOMEM;
}

/* The symbol that holds SVMA, or NULL. */
static const struct wp_symtab_entry *find_symbol(const struct wp_object *object,
						 uint64_t svma)
{
	const struct wp_symtab_entry *entry = wp_symtab_find(&object->symtab,
							     svma);

	if (entry && !object->has_symtab && !wp_symtab_is_sized(entry) &&
	    !wp_extent_reaches(object->main.image, entry->svma, svma))
		return NULL;
	return entry;
}

/* The symbol of the function proper, or NULL. */
static const struct wp_symtab_entry *own_symbol(const struct wp_symbols *s,
						const struct wp_object *object,
						uint64_t svma)
{
	const struct wp_dwarf_lines *found = &s->found;

	for (uint32_t i = 0; found->has_function && i < found->nstarts; i++) {
		const struct wp_symtab_entry *entry = wp_symtab_at(
			&object->symtab, found->starts[i] - object->debug_bias);

		if (entry)
			return entry;
	}
	return found->has_function && found->nstarts ?
		       NULL :
		       find_symbol(object, svma);
}

/* The mangled name of level I, "" if it has none. */
static const char *level_name(struct wp_symbols *s,
			      const struct wp_object *object, uint32_t i,
			      uint64_t svma)
{
	const struct wp_dwarf_level *level = &s->found.levels[i];
	const struct wp_symtab_entry *entry = NULL;

	if (s->found_by_go)
		return level->name;
	if (i + 1 == s->found.n)
		entry = own_symbol(s, object, svma);
	/* A symbol that holds the address is better than nothing. */
	if (!entry && i + 1 == s->found.n && !level->linkage && !level->name)
		entry = find_symbol(object, svma);
	if (entry) {
		wp_symtab_name(&object->symtab, entry, s->symbol,
			       sizeof(s->symbol));
		return s->symbol;
	}
	if (level->linkage && *level->linkage)
		return level->linkage;
	return level->name ? level->name : "";
}

/* Look SVMA of OBJECT up in Go's table or its DWARF; the result is s->found, with 0
 * levels if there is none. */
static int look_up(struct wp_symbols *s, struct wp_object *object,
		   uint64_t svma)
{
	int rc;

	s->found_by_go = wp_go_lines_find(&object->go, svma, &s->found);
	if (s->found_by_go)
		return 0;
	s->found.n = 0;
	s->found.has_function = false;
	if (!object->dwarf_file)
		return 0;
	if (s->dwarf_of != object) {
		wp_dwarf_close(&s->dwarf);
		wp_dwarf_open(&s->dwarf, object->dwarf_file,
			      object->alt.image->size ? &object->alt : NULL);
		s->dwarf_of = object;
	}
	rc = wp_dwarf_lookup(&s->dwarf, svma + object->debug_bias, &s->found);
	if (rc)
		s->found.n = 0;
	return rc == -ENOMEM ? rc : 0;
}

/* The one level of ADDRESS, which ENTRY, a variable, holds. */
static int add_variable(struct wp_symbols *s, struct wp_cached *address,
			const struct wp_symtab_entry *entry)
{
	struct wp_symbol_line *line;

	wp_symtab_name(&address->object->symtab, entry, s->symbol,
		       sizeof(s->symbol));
	line = wp_naming_add_line(s, s->symbol, true);
	if (!line)
		return -ENOMEM;
	line->line = (uint32_t)(address->svma - entry->svma);
	address->has.functions = true;
	return 0;
}

int wp_naming_add_lines(struct wp_symbols *s, const char *module,
			struct wp_cached *address)
{
	struct wp_object *object = address->object;
	uint64_t svma = address->svma;
	const struct wp_symtab_entry *entry = wp_symtab_find(&object->symtab,
							     svma);
	uint32_t n;
	int rc;

	address->has.debug_file = (object->debug.image->size ||
				   object->alt.image->size) &&
				  !object->lacks_alt;
	if (entry && wp_symtab_is_variable(entry))
		return add_variable(s, address, entry);
	rc = look_up(s, object, svma);
	if (rc)
		return rc;
	address->has.dwarf_loss = object->lacks_alt ? WP_DWARF_LACKS_SHARED :
				  s->dwarf_of == object ? s->dwarf.loss :
							  WP_DWARF_WHOLE;
	n = s->found.n;
	if (!n) {
		s->found.levels[0] = (struct wp_dwarf_level){ 0 };
		s->found.n = n = 1;
	}
	for (uint32_t i = 0; !rc && i < n; i++) {
		const char *name = level_name(s, object, i, svma);
		struct wp_symbol_line *line;

		address->has.functions |= *name != '\0';
		if (*name)
			rc = wp_naming_add_line(s, name, !s->found_by_go) ?
				     0 :
				     -ENOMEM;
		else
			rc = add_function_place(s, module, object, svma);
		if (rc)
			break;
		line = &s->lines[s->nlines - 1];
		rc = set_place(s, line, &s->found.levels[i]);
		address->has.filenames |= !rc && *line->file;
		address->has.line_numbers |= line->line != 0;
	}
	address->has.inline_frames = s->found.has_function;
	return rc;
}
