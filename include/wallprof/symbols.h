/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.h - addresses to functions, files, lines and inlined frames.
 *
 * Layer: symbols.  Knows no pid: callers hand it open files and the roots
 * under which a target's files lie.  Never used in the sampling path.
 */
#ifndef WP_SYMBOLS_H
#define WP_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/elf_image.h"
#include "wallprof/err.h"

/* A mapping of the target: of a file, or of memory with generated code. */
struct wp_symbol_module {
	/* Executable mapping: START <= avma < END shows file offset OFF on. */
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	/* As /proc/PID/maps has it, without " (deleted)"; "[vdso]"; "" for
	 * anonymous memory.  Borrowed for the call. */
	const char *path;
	/* The ELF file, NULL for none.  Borrowed for the resolver's life, which
	 * maps it whole (wp_elf_image_whole). */
	struct wp_elf_image *image;
};

/* How a separate debug file is named by the file that wants it. */
enum wp_debug_kind {
	/* A build-id. */
	WP_DEBUG_BY_ID,
	/* The file name in a .gnu_debuglink. */
	WP_DEBUG_BY_LINK,
	/* The path in a .gnu_debugaltlink. */
	WP_DEBUG_BY_ALT_NAME,
	WP_NDEBUG_KINDS
};

/* A separate debug file that is wanted. */
struct wp_debug_query {
	enum wp_debug_kind kind;
	/* The id of a module of the file that wants it. */
	uint32_t module;
	/* It is wanted by that file's debug file, opened last. */
	bool of_debug;
	/* id[0..id_len) for BY_ID; NAME for the others.  Borrowed. */
	const uint8_t *id;
	uint32_t id_len;
	const char *name;
};

struct wp_symbol_options {
	/* Directories that stand for "/" when a debug file is looked for, in
	 * order, such as "/proc/self/fd/9" and "".  v[0..nroots), borrowed for
	 * the resolver's life. */
	const char *const *roots;
	size_t nroots;
	/* If not NULL, asked instead of looking below ROOTS: open as
	 * wp_debug_open does. */
	int (*open_debug)(void *ctx, const struct wp_debug_query *query,
			  uint32_t *nth);
	void *ctx;
	/* Where /tmp/perf-PID.map of the target is, opened; -1 for none.
	 * Owned by the caller, read during wp_symbols_new. */
	int perf_map_fd;
	/* Do not read DWARF: names only, no files, lines and inlines. */
	bool names_only;
};

/* What is known of one level of an address. */
struct wp_symbol_line {
	/* Demangled and as in the file; never NULL or empty for a level that
	 * is returned.  Valid for the resolver's life; equal strings are the
	 * same pointer. */
	const char *function;
	const char *system_name;
	/* "" and 0 where not known. */
	const char *file;
	uint32_t line;
	uint32_t start_line;
};

/* What a module turned out to have (pprof Mapping flags). */
struct wp_symbol_has {
	bool functions;
	bool filenames;
	bool line_numbers;
	bool inline_frames;
	/* A separate debug file was found and used. */
	bool debug_file;
};

struct wp_symbols;

/* Returns 0 and a resolver to be freed, or -ENOMEM.  A perf map that cannot be
 * used (not a regular file, over 64 MiB, malformed lines) is left out and
 * counted, not an error.
 */
WP_MUST_CHECK
int wp_symbols_new(struct wp_symbols **ret,
		   const struct wp_symbol_options *options);
void wp_symbols_free(struct wp_symbols *symbols);

/* Make MODULE known under ID, which the caller chooses, other than 0.  Modules
 * of one image share what is read of it.  Nothing is read yet.  Returns 0 or
 * -ENOMEM.
 */
WP_MUST_CHECK
int wp_symbols_add(struct wp_symbols *symbols, uint32_t id,
		   const struct wp_symbol_module *module);

/* Resolve AVMA in module ID (0: in no module; perf map only).  For a return
 * address the caller has subtracted one.
 *
 * Sets *RET to lines[0..n), innermost inlined function first, the function
 * proper last, and returns n >= 1.  Where no name is known the one level is
 * "module+0xOFF" with the svma in hex ("libfoo.so+0x1234"), or the bare
 * address "0x7f..." outside any module.  *RET is valid until the next call.
 * Returns -ENOMEM only when it cannot even say that.
 */
WP_MUST_CHECK
int wp_symbols_resolve(struct wp_symbols *symbols, uint32_t id, uint64_t avma,
		       const struct wp_symbol_line **ret);

/* What module ID has, as far as it was resolved. */
struct wp_symbol_has wp_symbols_has(const struct wp_symbols *symbols,
				    uint32_t id);

/* Open what QUERY, which may come from a liar, may mean: the first file from
 * number *NTH on (0 to begin) of those that it can be, below ROOTS[0..nroots).
 * PATH is the name of the file that wants it, as the target knows it.  Whether
 * it is the right file is for the caller to see.
 *
 * What is opened is a regular file that begins as ELF files do, named by a
 * build-id, or beside PATH, or below /usr/lib/debug; symbolic links do not lead
 * out of its root.
 *
 * Returns a descriptor that the caller owns, with *NTH moved past it and the
 * name in RET_PATH[0..4096); or -ENOENT when there are no more.
 */
int wp_debug_open(const struct wp_debug_query *query, const char *path,
		  const char *const *roots, size_t nroots, uint32_t *nth,
		  char *ret_path);

#endif
