/* SPDX-License-Identifier: Apache-2.0 */
/* symtab.h - the functions and variables of ELF symbol tables, sorted by address.
 *
 * Layer: symbols.
 *
 * One table holds the functions of a file's .symtab and .dynsym and of those of
 * its separate debug file.  Names stay in the files' string tables.
 */
#ifndef WP_SYMTAB_H
#define WP_SYMTAB_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"
#include "wallprof/err.h"

enum {
	WP_SYMTAB_SOURCES_MAX = 8,
	/* Longer names are cut. */
	WP_SYMBOL_NAME_MAX = 16384,
};

/* One function or variable: SVMA <= address < SVMA + SIZE. */
struct wp_symtab_entry {
	uint64_t svma;
	uint32_t size;
	/* Offset of the name in sources[source]. */
	uint32_t name;
	uint8_t source;
	/* Of several names of one address the one of highest rank is kept. */
	uint8_t rank;
};

/* A table of strings: text[0..len), borrowed from an image. */
struct wp_symtab_source {
	const char *text;
	size_t len;
};

struct wp_symtab {
	/* v[0..nsorted) is sorted and has one entry per address;
	 * v[nsorted..len) was added since; owned. */
	struct wp_symtab_entry *v;
	uint32_t nsorted;
	uint32_t len;
	uint32_t cap;
	struct wp_symtab_source sources[WP_SYMTAB_SOURCES_MAX];
	uint32_t nsources;
	/* Names that are in no file, such as "puts@plt": made[0..made_len),
	 * owned. */
	char *made;
	uint32_t made_len;
	uint32_t made_cap;
};

#define WP_SYMTAB_INIT                                                         \
	{                                                                      \
		0                                                              \
	}

/* Add the functions, and the variables that the program may write, in FILE's tables
 * of TYPE, SHT_SYMTAB or SHT_DYNSYM, with BIAS added to their addresses.  FILE is
 * open; its image must live as long as the table.  What is malformed is left out.
 * Returns 0, or -ENOMEM. */
WP_MUST_CHECK
int wp_symtab_add(struct wp_symtab *tab, const struct wp_elf_file *file,
		  uint32_t type, uint64_t bias);

/* Add a name for each slot of ELF's procedure linkage table: "puts@plt".  A
 * slot for a function of the file itself is named by TAB's entry for that
 * function, so finish the table before, and again after. */
WP_MUST_CHECK
int wp_symtab_add_plt(struct wp_symtab *tab, Elf *elf);

/* Add the functions in IMAGE's .gopclntab, as wp_symtab_add: Go programs keep
 * their names there when they are stripped. */
WP_MUST_CHECK
int wp_symtab_add_go(struct wp_symtab *tab, struct wp_elf_image *image);

/* Add TEXT[0..len), which must live as long as the table, to the sources of
 * names.  Returns its index for wp_symtab_add_named, or -1 if there are
 * WP_SYMTAB_SOURCES_MAX. */
int wp_symtab_add_text(struct wp_symtab *tab, const char *text, size_t len);

/* Add one function whose name is at offset NAME of source SOURCE. */
WP_MUST_CHECK
int wp_symtab_add_named(struct wp_symtab *tab, int source, uint64_t svma,
			uint32_t size, uint32_t name);

/* Add one function whose NAME is copied. */
WP_MUST_CHECK
int wp_symtab_add_made(struct wp_symtab *tab, uint64_t svma, uint32_t size,
		       const char *name);

/* Sort the table and choose among the names of an address: functions before
 * plain labels, sized before unsized, global or weak before local, then the
 * fewest leading underscores.  A symbol of size 0 reaches to the next one.
 * Entries are found only after this; may be called again when more were added.
 */
void wp_symtab_finish(struct wp_symtab *tab);

/* The innermost function, or the variable, that holds SVMA, or NULL. */
const struct wp_symtab_entry *wp_symtab_find(const struct wp_symtab *tab,
					     uint64_t svma);
/* The file tells ENTRY's size; else it reaches to the next symbol. */
bool wp_symtab_is_sized(const struct wp_symtab_entry *entry);
/* ENTRY is a variable, no function. */
bool wp_symtab_is_variable(const struct wp_symtab_entry *entry);
/* The function that starts at SVMA, or NULL. */
const struct wp_symtab_entry *wp_symtab_at(const struct wp_symtab *tab,
					   uint64_t svma);

/* Put ENTRY's name, without a version ("@@GLIBC_2.2.5"), into BUF[0..size);
 * returns its length. */
size_t wp_symtab_name(const struct wp_symtab *tab,
		      const struct wp_symtab_entry *entry, char *buf,
		      size_t size);

void wp_symtab_clear(struct wp_symtab *tab);

#endif
