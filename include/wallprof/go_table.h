/* SPDX-License-Identifier: Apache-2.0 */
/* go_table.h - functions and frames of Go programs, by .gopclntab.
 *
 * Layer: base.
 *
 * Go's runtime unwinds by this table, which every program has, stripped or not.
 * Its form is that of Go 1.18 to 1.26 (runtime/symtab.go, pcHeader and
 * moduledata; runtime/runtime2.go, _func; cmd/link/internal/ld/pcln.go).  The
 * bytes are hostile: every read is checked, every loop is bounded by bytes.
 */
#ifndef WP_GO_TABLE_H
#define WP_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/elf_image.h"
#include "wallprof/err.h"

struct wp_go_table {
	/* The image whose .gopclntab it is; borrowed. */
	struct wp_elf_image *image;
	/* Functions' addresses are offsets from here. */
	uint64_t text_svma;
	uint32_t nfuncs;
	/* The unit of lengths of code, in bytes. */
	uint32_t quantum;
	/* Functions have a line each (Go 1.20 and later). */
	bool has_lines;
	/* Offsets in the section of the names, the tables by pc and the list of
	 * functions. */
	uint64_t names_off;
	uint64_t pctab_off;
	uint64_t funcs_off;
	/* Of the files of compilation units, and of the files' names. */
	uint64_t units_off;
	uint64_t files_off;
};

#define WP_GO_NO_TREE UINT32_MAX

struct wp_go_func {
	/* Its code: start_svma <= pc < end_svma, which is the next one's start. */
	uint64_t start_svma;
	uint64_t end_svma;
	/* Offset in the section of its name, which ends with a NUL. */
	uint64_t name_off;
	/* Offset in the section of the table of its frame's sizes; 0: none. */
	uint64_t frames_off;
	/* Likewise of its numbers of files, of its lines, and of which inlined
	 * function code is of. */
	uint64_t files_off;
	uint64_t lines_off;
	uint64_t inlined_off;
	/* Index of its compilation unit's first file. */
	uint32_t first_file;
	/* Line that it begins in; 0: not known (Go 1.19 and earlier). */
	uint32_t start_line;
	/* Offset of its tree of inlined functions from moduledata's gofunc;
	 * WP_GO_NO_TREE: none was inlined. */
	uint32_t tree_off;
	/* SPWRITE: it sets sp to another stack's; sizes count from sp as it was
	 * before. */
	bool sets_sp;
	/* TOPFRAME: it is the first on its stack, or a signal handler. */
	bool is_first;
};

/* If IMAGE is of a program that Go has built (.go.buildinfo) and has no .gopclntab, find
 * the table among its data, and set go_table to what follows of that section. */
void wp_go_table_search(struct wp_elf_image *image);

/* Read the header of IMAGE's .gopclntab.  From Go 1.26 on it does not have
 * text_svma, which is read from moduledata then, in a section of its own since
 * that version; the addresses there that the table has too must agree.
 *
 * Returns 0; -ENOENT if IMAGE has none; -ENOTSUP if it is of another version or
 * its text_svma cannot be told; -EBADMSG if it is malformed.
 */
WP_MUST_CHECK
int wp_go_table_open(struct wp_go_table *ret, struct wp_elf_image *image);

/* Read function I of [0..nfuncs), which are in the order of their addresses.
 * Returns 0 or -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_func(const struct wp_go_table *table, uint32_t i,
		     struct wp_go_func *ret);

/* Find the function whose code holds SVMA.  Returns 0; -ENOENT; -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_find(const struct wp_go_table *table, uint64_t svma,
		     struct wp_go_func *ret);

/* Find the size of FUNC's frame at SVMA: bytes below its return address.
 * Returns 0; -ENOENT if the table does not have it; -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_frame(const struct wp_go_table *table,
		      const struct wp_go_func *func, uint64_t svma,
		      uint32_t *ret_size);

/* Find the value at SVMA in FUNC's table by pc at offset OFF of the section.
 * Returns 0; -ENOENT if OFF is 0 or the table has none; -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_value(const struct wp_go_table *table,
		      const struct wp_go_func *func, uint64_t off,
		      uint64_t svma, int32_t *ret);

/* The text at offset OFF of the section, NULL if it is malformed; borrowed from
 * the image. */
const char *wp_go_table_text(const struct wp_go_table *table, uint64_t off);

/* The name of file NUMBER of FUNC's compilation unit, likewise. */
const char *wp_go_table_file(const struct wp_go_table *table,
			     const struct wp_go_func *func, uint32_t number);

#endif
