/* SPDX-License-Identifier: Apache-2.0 */
/* symtab.h - the functions that ELF symbol tables name, sorted by address.
 *
 * Layer: symbols.
 *
 * A file's functions may be spread over its own .symtab and .dynsym and those
 * of a separate debug file.  All go into one table.  Names stay where they are,
 * in the files' string tables.
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

/* One function: SVMA <= address < SVMA + SIZE. */
struct wp_symtab_entry {
	uint64_t svma;
	uint32_t size;
	/* Offset of the name in its source. */
	uint32_t name;
	uint8_t source;
	/* What speaks for it among names of one address, more is better. */
	uint8_t rank;
};

/* A table of strings: text[0..len), borrowed from an image. */
struct wp_symtab_source {
	const char *text;
	size_t len;
};

struct wp_symtab {
	/* v[0..nsorted) is sorted, one per address; what was added since
	 * follows, to LEN; owned. */
	struct wp_symtab_entry *v;
	uint32_t nsorted;
	uint32_t len;
	uint32_t cap;
	struct wp_symtab_source sources[WP_SYMTAB_SOURCES_MAX];
	uint32_t nsources;
	/* Names that are in no file, such as "puts@plt"; owned. */
	char *made;
	uint32_t made_len;
	uint32_t made_cap;
};

#define WP_SYMTAB_INIT                                                         \
	{                                                                      \
		0                                                              \
	}

/* Add the functions in FILE's tables of TYPE, SHT_SYMTAB or SHT_DYNSYM, with
 * BIAS added to their addresses.  FILE is open; its image must live as long as
 * the table.  What is malformed is left out.  Returns 0, or -ENOMEM.
 */
WP_MUST_CHECK
int wp_symtab_add(struct wp_symtab *tab, const struct wp_elf_file *file,
		  uint32_t type, uint64_t bias);

/* Add a name for each slot of ELF's procedure linkage table: "puts@plt".  What
 * calls a function of the file itself gets the name that was found for that so
 * far, so finish the table before (and after). */
WP_MUST_CHECK
int wp_symtab_add_plt(struct wp_symtab *tab, Elf *elf);

/* Add the functions in IMAGE's .gopclntab, as wp_symtab_add: Go programs keep
 * their names there when they are stripped. */
WP_MUST_CHECK
int wp_symtab_add_go(struct wp_symtab *tab, struct wp_elf_image *image);

/* Names may be in TEXT[0..len) too, which must live as long as the table: a
 * number for wp_symtab_add_named(), or -1 if there are too many such. */
int wp_symtab_add_text(struct wp_symtab *tab, const char *text, size_t len);

/* Add one function whose name begins NAME bytes into the text numbered SOURCE.
 */
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
 * Nothing is found before; may be called again when more was added.
 */
void wp_symtab_finish(struct wp_symtab *tab);

/* The innermost function that holds SVMA, or NULL. */
const struct wp_symtab_entry *wp_symtab_find(const struct wp_symtab *tab,
					     uint64_t svma);
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
