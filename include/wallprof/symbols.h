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

#include "wallprof/err.h"

/* One mapped file (or JIT area) of the target. */
struct wp_symbol_module {
	/* Executable mapping: START <= avma < END shows file offset OFF on. */
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	/* As /proc/PID/maps has it, without " (deleted)"; "[vdso]"; "" for
	 * anonymous memory.  Borrowed for the call. */
	const char *path;
	/* The file, open for reading, or -1.  Borrowed for the call: the
	 * resolver makes its own duplicate. */
	int fd;
	/* For a module with bytes and no file (vDSO): a whole ELF image, or
	 * NULL.  Borrowed for the call. */
	const void *elf;
	size_t elf_len;
};

struct wp_symbol_options {
	/* Directories that stand for "/" when a debug file is looked for, in
	 * order, such as "/proc/self/fd/9" and "".  v[0..nroots), borrowed for
	 * the resolver's life. */
	const char *const *roots;
	size_t nroots;
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

/* Make MODULE known under ID (any number but 0, chosen by the caller).
 * Two modules of the same file share what was read.  Nothing is read yet.
 * Returns 0 or -ENOMEM.
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

#endif
