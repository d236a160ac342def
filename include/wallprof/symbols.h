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
	/* START <= avma < END shows file offset OFF on. */
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	/* avma - svma, where there is an IMAGE. */
	uint64_t bias;
	/* As /proc/PID/maps has it, without " (deleted)"; "[vdso]"; "" for
	 * anonymous memory.  Borrowed for the call. */
	const char *path;
	/* The ELF file, NULL for none.  Borrowed for the resolver's life, which
	 * maps it whole (wp_elf_image_whole). */
	struct wp_elf_image *image;
	/* Of variables, with those behind the file's data that begin as 0; else
	 * executable. */
	bool is_data;
};

/* How a file names its separate debug file. */
enum wp_debug_kind {
	/* A build-id. */
	WP_DEBUG_BY_ID,
	/* The file name in a .gnu_debuglink. */
	WP_DEBUG_BY_LINK,
	/* The path in a .gnu_debugaltlink. */
	WP_DEBUG_BY_ALT_NAME,
	WP_NDEBUG_KINDS
};

/* A request for a separate debug file. */
struct wp_debug_query {
	enum wp_debug_kind kind;
	/* The id of a module of the file that names it. */
	uint32_t module;
	/* It is named by that file's own debug file, which was opened last. */
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
	/* Opens a debug file as wp_debug_open does; NULL: look below ROOTS. */
	int (*open_debug)(void *ctx, const struct wp_debug_query *query,
			  uint32_t *nth);
	void *ctx;
	/* The target's /tmp/perf-PID.map, open; -1: none.  Owned by the caller,
	 * read by wp_symbols_new. */
	int perf_map_fd;
	/* Names only: no DWARF is read for files, lines and inlined frames. */
	bool names_only;
};

/* A level of an address: an inlined function or the function proper. */
struct wp_symbol_line {
	/* Demangled and as in the file; never NULL or empty for a level that
	 * is returned.  Valid for the resolver's life; equal strings are the
	 * same pointer. */
	const char *function;
	const char *system_name;
	/* "" and 0: not known.  Of a variable LINE is how many bytes into it the
	 * address is. */
	const char *file;
	uint32_t line;
	uint32_t start_line;
};

/* Number of bytes of a perf map that are read, the last ones. */
#define WP_PERF_MAP_BYTES_MAX (UINT64_C(64) << 20)

/* Bound on the unpacked size of all compressed sections of a file that are read. */
#define WP_DWARF_BYTES_MAX (UINT64_C(512) << 20)

/* Why DWARF was not read, or not all of it; of two the greater is told. */
enum wp_dwarf_loss {
	WP_DWARF_WHOLE,
	/* Inlined functions are in .dwo files (-gsplit-dwarf), which are not read. */
	WP_DWARF_SPLIT,
	/* Some of it is over a limit on work for an address. */
	WP_DWARF_CUT,
	/* The file of .gnu_debugaltlink was not found. */
	WP_DWARF_LACKS_SHARED,
	/* Libdw cannot read it. */
	WP_DWARF_UNREADABLE,
	/* It unpacks to over WP_DWARF_BYTES_MAX. */
	WP_DWARF_TOO_LARGE,
};

/* The kinds of symbols that were found for a module (has_* of pprof's Mapping), and
 * what was not read. */
struct wp_symbol_has {
	bool functions;
	bool filenames;
	bool line_numbers;
	bool inline_frames;
	/* A separate debug file was found and used, and all that it shares. */
	bool debug_file;
	enum wp_dwarf_loss dwarf_loss;
};

/* Add to ALL what one of its addresses has. */
void wp_symbols_add_has(struct wp_symbol_has *all,
			const struct wp_symbol_has *has);

struct wp_symbols;

/* Make a resolver.  A perf map that cannot be used (not a regular file, malformed
 * lines) is left out, which is no error, as is what is before its last 64 MiB.  Returns
 * 0 and *RET, which the caller frees, or -ENOMEM.
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
 * address the caller has subtracted one.  A module of data has the names of
 * variables.
 *
 * Sets *RET to lines[0..n), innermost inlined function first, the function
 * proper last, and returns n >= 1.  Where no name is known the one level is
 * "module+0xOFF" with the svma in hex ("libfoo.so+0x1234"), or the bare
 * address "0x7f..." outside any module.  *RET is valid until the next call.
 * Returns -ENOMEM only when there is no memory for that.
 */
WP_MUST_CHECK
int wp_symbols_resolve(struct wp_symbols *symbols, uint32_t id, uint64_t avma,
		       const struct wp_symbol_line **ret);

/* What was found for module ID so far. */
struct wp_symbol_has wp_symbols_has(const struct wp_symbols *symbols,
				    uint32_t id);

/* Open a candidate for QUERY, which may be hostile: the first that exists from
 * number *NTH on (0 to begin) of the places to look at, below ROOTS[0..nroots).
 * PATH is the target's path of the file that names it.  The caller checks that
 * it is the right file.
 *
 * Only regular files that begin as ELF files do are opened, named by a
 * build-id, or beside PATH, or below /usr/lib/debug; symbolic links do not lead
 * out of their root.
 *
 * Returns a descriptor that the caller owns, with *NTH moved past it and the
 * name in RET_PATH[0..4096); or -ENOENT when there are no more.
 */
int wp_debug_open(const struct wp_debug_query *query, const char *path,
		  const char *const *roots, size_t nroots, uint32_t *nth,
		  char *ret_path);

#endif
