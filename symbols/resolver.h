/* SPDX-License-Identifier: Apache-2.0 */
/* resolver.h - the resolver, shared by resolver.c and naming.c.
 *
 * Layer: symbols.
 */
#ifndef WP_RESOLVER_H
#define WP_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "dwarf_lines.h"
#include "object.h"
#include "perf_map.h"
#include "strpool.h"
#include "wallprof/index.h"
#include "wallprof/symbols.h"

struct wp_module {
	uint32_t id;
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	/* As in struct wp_symbol_module. */
	uint64_t bias;
	/* Memory with code that the program made. */
	bool is_made;
	/* It is of a file, which may be one that cannot be had. */
	bool is_file;
	/* Base name of its path, or "[anon]"; in wp_symbols.strings. */
	const char *name;
	/* NULL without a file. */
	struct wp_object *object;
	struct wp_symbol_has has;
};

/* A resolved address; its lines are lines[first..first + n). */
struct wp_cached {
	struct wp_object *object;
	uint64_t svma;
	uint32_t first;
	uint32_t n;
	/* What was found for it. */
	struct wp_symbol_has has;
};

struct wp_symbols {
	struct wp_debug_search search;
	bool names_only;
	struct wp_strpool strings;
	struct wp_perf_map perf_map;

	/* modules[0..nmodules), sorted by id; owned. */
	struct wp_module *modules;
	uint32_t nmodules;
	uint32_t modules_cap;
	/* objects[0..nobjects), each owned: they do not move. */
	struct wp_object **objects;
	uint32_t nobjects;
	uint32_t objects_cap;

	/* The lines of all cached addresses, end to end; owned. */
	struct wp_symbol_line *lines;
	uint32_t nlines;
	uint32_t lines_cap;
	struct wp_cached *cached;
	uint32_t ncached;
	uint32_t cached_cap;
	/* cached[] by object and address. */
	struct wp_index by_address;

	/* The DWARF of one object at a time, as addresses come grouped by
	 * module. */
	struct wp_dwarf dwarf;
	struct wp_object *dwarf_of;
	/* Scratch for one address. */
	struct wp_dwarf_lines found;
	/* Its names are Go's own. */
	bool found_by_go;
	char symbol[WP_SYMBOL_NAME_MAX];
	char demangled[WP_SYMBOL_NAME_MAX];
};

/* Functions of naming.c, which append to S->lines. */

/* Append the lines of ADDRESS->svma in ADDRESS->object, which is loaded, and
 * set ADDRESS->has.  MODULE is the file's base name.  Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_naming_add_lines(struct wp_symbols *s, const char *module,
			struct wp_cached *address);
/* Append one level named SYSTEM_NAME, demangled if it is the linker's name; NULL without
 * memory. */
struct wp_symbol_line *wp_naming_add_line(struct wp_symbols *s,
					  const char *system_name,
					  bool is_linkers);
/* Append one level without a symbol: "MODULE+0xADDR", or "0xADDR" if MODULE is
 * NULL.  Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_naming_add_place(struct wp_symbols *s, const char *module,
			uint64_t addr);

#endif
