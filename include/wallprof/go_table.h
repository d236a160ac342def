/* SPDX-License-Identifier: Apache-2.0 */
/* go_table.h - functions and frames of Go programs, by .gopclntab.
 *
 * Layer: base.
 *
 * The table that Go's runtime unwinds by.  It is in every program, stripped or
 * not.  Its form is that of Go 1.18 to 1.26 (runtime/symtab.go, pcHeader and
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
	/* What functions' addresses count from. */
	uint64_t text_svma;
	uint32_t nfuncs;
	/* Of one instruction, which the table counts in. */
	uint32_t quantum;
	/* Go 1.20 and later: functions have a line each. */
	bool has_lines;
	/* Where in the section they begin: names; tables by pc; functions. */
	uint64_t names_off;
	uint64_t pctab_off;
	uint64_t funcs_off;
};

struct wp_go_func {
	/* START <= pc < END, which is where the next one starts. */
	uint64_t start_svma;
	uint64_t end_svma;
	/* Where in the section its name is, NUL-terminated. */
	uint64_t name_off;
	/* Where in the section its frame's sizes are; 0: it has none. */
	uint64_t frames_off;
	/* It sets sp to something else, so sizes count from where that was; it
	 * is the first on its stack (TOPFRAME: so are signal handlers). */
	bool sets_sp;
	bool is_first;
};

/* Read the header of IMAGE's .gopclntab.  Go 1.26 does not say what addresses
 * count from any more: .text, if the last function ends where .text does, as in
 * what Go's own linker makes.
 *
 * Returns 0; -ENOENT if IMAGE has none; -ENOTSUP if it is of another version,
 * or one that does not tell where its code is; -EBADMSG if it is malformed.
 */
WP_MUST_CHECK
int wp_go_table_open(struct wp_go_table *ret, struct wp_elf_image *image);

/* Function I of table->nfuncs, by address.  Returns 0 or -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_func(const struct wp_go_table *table, uint32_t i,
		     struct wp_go_func *ret);

/* The function that holds SVMA.  Returns 0, -ENOENT or -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_find(const struct wp_go_table *table, uint64_t svma,
		     struct wp_go_func *ret);

/* How many bytes FUNC has on the stack at SVMA, below its return address.
 * Returns 0; -ENOENT if the table does not say; -EBADMSG. */
WP_MUST_CHECK
int wp_go_table_frame(const struct wp_go_table *table,
		      const struct wp_go_func *func, uint64_t svma,
		      uint32_t *ret_size);

#endif
