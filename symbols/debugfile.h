/* SPDX-License-Identifier: Apache-2.0 */
/* debugfile.h - separate debug files of an ELF file.
 *
 * Layer: symbols.
 */
#ifndef WP_DEBUGFILE_H
#define WP_DEBUGFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"
#include "wallprof/err.h"
#include "wallprof/symbols.h"

/* A search for a debug file. */
struct wp_debug_search {
	/* Directories that stand for "/", in order; roots[0..nroots),
	 * borrowed. */
	const char *const *roots;
	size_t nroots;
	/* The file that names it, open, and that file's path below its root. */
	const struct wp_elf_file *file;
	const char *path;
	/* As in struct wp_symbol_options; NULL: look below ROOTS. */
	int (*open)(void *ctx, const struct wp_debug_query *query,
		    uint32_t *nth);
	void *ctx;
	/* For OPEN: as in struct wp_debug_query. */
	uint32_t module;
	bool of_debug;
};

/* Find the debug file of SEARCH: by build-id, then by .gnu_debuglink.  A file
 * counts if its build-id is the same, or, where one of the two has none, if it
 * has the checksum that the link names.  RET_PATH becomes its path below its
 * root, "" if OPEN was used.  Returns 0 with RET open and RET->image, which
 * is an empty image of the caller's, holding the file; or -ENOENT.
 */
WP_MUST_CHECK
int wp_debugfile_find(struct wp_elf_file *ret, char ret_path[PATH_MAX],
		      const struct wp_debug_search *search);

/* Whether FILE shares its DWARF with another file (.gnu_debugaltlink). */
bool wp_debugfile_wants_alt(const struct wp_elf_file *file);

/* Find that other file.  Returns as wp_debugfile_find. */
WP_MUST_CHECK
int wp_debugfile_find_alt(struct wp_elf_file *ret,
			  const struct wp_debug_search *search);

/* Unpack FILE's .gnu_debugdata, an xz-compressed ELF file with more symbols.
 * Returns 0 and *RET[0..*RET_LEN), which the caller frees; -ENOENT if there is
 * none; -EBADMSG; -EOVERFLOW if it is over 64 MiB; -ENOMEM. */
WP_MUST_CHECK
int wp_debugfile_unpack(uint8_t **ret, size_t *ret_len,
			const struct wp_elf_file *file);

/* The checksum of .gnu_debuglink over DATA[0..len), continued from CRC (0 to
 * begin). */
uint32_t wp_debug_crc32(uint32_t crc, const uint8_t *data, size_t len);

#endif
