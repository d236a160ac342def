/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_lines.h - DWARF: files, lines and inlined functions of an address.
 *
 * Layer: symbols.
 */
#ifndef WP_DWARF_LINES_H
#define WP_DWARF_LINES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"
#include "unpacked.h"
#include "wallprof/err.h"
#include "wallprof/symbols.h"

enum {
	/* Number of DIEs to visit for one address; as many again where functions inside
	 * functions are too many. */
	WP_DWARF_DIES_MAX = 1 << 22,
	/* Levels of one address: inlined functions and the function proper. */
	WP_DWARF_LEVELS_MAX = 64,
	/* Ranges of one function whose starts are kept. */
	WP_DWARF_STARTS_MAX = 4,
};

/* A level.  Strings are borrowed until the next lookup. */
struct wp_dwarf_level {
	/* NULL where DWARF has none.  LINKAGE is the mangled name. */
	const char *linkage;
	const char *name;
	/* DIR goes before FILE unless FILE is absolute. */
	const char *dir;
	const char *file;
	uint32_t line;
	uint32_t start_line;
};

struct wp_dwarf_lines {
	/* Innermost first: levels[0..n). */
	struct wp_dwarf_level levels[WP_DWARF_LEVELS_MAX];
	uint32_t n;
	/* False: DWARF knows file and line but no function; the one level has
	 * no name. */
	bool has_function;
	/* Start svmas of the ranges of the function proper, the hot one first.
	 */
	uint64_t starts[WP_DWARF_STARTS_MAX];
	uint32_t nstarts;
};

/* Code of one compilation unit or function: START <= svma < END. */
struct wp_dwarf_range {
	uint64_t start;
	uint64_t end;
	Dwarf_Off die;
};

struct wp_dwarf_ranges {
	/* v[0..len), sorted by start; owned. */
	struct wp_dwarf_range *v;
	uint32_t len;
	uint32_t cap;
};

struct wp_dwarf {
	/* NULL when not open; borrowed. */
	struct wp_elf_file *file;
	struct wp_elf_file *alt;
	/* libdw's handles, owned; NULL: not open. */
	Dwarf *dw;
	Dwarf *alt_dw;
	/* Their sections, if they were compressed; kept until close. */
	struct wp_unpacked unpacked, alt_unpacked;
	/* .debug_line, unpacked. */
	Elf_Data *line_data;
	/* The ranges of all units; read (HAVE_UNITS) when .debug_aranges does
	 * not have an address. */
	struct wp_dwarf_ranges units;
	bool have_units;
	/* The functions of the unit at FUNCTIONS_UNIT; DEEP: nested ones
	 * included. */
	struct wp_dwarf_ranges functions;
	Dwarf_Off functions_unit;
	bool functions_deep;
	/* seen[0..nseen): offsets of the units whose line tables libdw keeps;
	 * owned.  NLINES: the number of their lines. */
	Dwarf_Off *seen;
	uint32_t nseen;
	uint32_t seen_cap;
	uint64_t nlines;
	/* Number of DIEs that may still be visited for this address. */
	uint32_t budget;
	/* Of what was looked up so far. */
	enum wp_dwarf_loss loss;
};

#define WP_DWARF_INIT                                                          \
	{                                                                      \
		0                                                              \
	}

/* Use the DWARF of FILE and of ALT, the file of its .gnu_debugaltlink or NULL;
 * both must live until close.  Nothing is read yet. */
void wp_dwarf_open(struct wp_dwarf *dwarf, struct wp_elf_file *file,
		   struct wp_elf_file *alt);
void wp_dwarf_close(struct wp_dwarf *dwarf);

/* Look SVMA up in the DWARF.  Returns 0; -ENOENT if nothing; -ENOMEM. */
WP_MUST_CHECK
int wp_dwarf_lookup(struct wp_dwarf *dwarf, uint64_t svma,
		    struct wp_dwarf_lines *ret);

/* Note LOSS, of what is looked up in this file. */
static inline void wp_dwarf_lose(struct wp_dwarf *dwarf,
				 enum wp_dwarf_loss loss)
{
	if (loss > dwarf->loss)
		dwarf->loss = loss;
}

/* Functions of dwarf_units.c. */

/* The DIE of the unit that holds SVMA: 0, -ENOENT or -ENOMEM. */
WP_MUST_CHECK
int wp_dwarf_find_unit(struct wp_dwarf *dwarf, uint64_t svma, Dwarf_Die *ret);
/* The DIE of the function in UNIT that holds SVMA, likewise. */
WP_MUST_CHECK
int wp_dwarf_find_function(struct wp_dwarf *dwarf, Dwarf_Die *unit,
			   uint64_t svma, Dwarf_Die *ret);
void wp_dwarf_ranges_clear(struct wp_dwarf_ranges *ranges);

#endif
