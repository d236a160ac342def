/* SPDX-License-Identifier: Apache-2.0 */
/* name_cache.h - names of addresses that were had before, a file for each ELF file.
 *
 * Layer: symbolize.
 *
 * A file of the cache is found by the build-id and the inode of its ELF file, and counts
 * only as long as neither that file nor its debug file has changed.  Names are kept of
 * files that nobody but root or oneself can write: what a child says that has read
 * others' (namer.h) may be lies about any file.  The directory is one's own alone.
 */
#ifndef WP_NAME_CACHE_H
#define WP_NAME_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "namer.h"
#include "namer_protocol.h"

enum {
	/* Bytes of a file of the cache, and number of such files. */
	WP_NAME_CACHE_BYTES = 1 << 20,
	WP_NAME_CACHE_FILES = 256,
	/* Names without debug information are looked for anew after so long. */
	WP_NAME_CACHE_PLAIN_S = 3600,
};

struct wp_name_key {
	/* Device, inode, size, and times of the last change of data and of inode: of
	 * the ELF file, and of the first debug file that its build-id names; zeros:
	 * there is none. */
	uint64_t file[5];
	uint64_t debug[5];
	uint8_t build_id[WP_BUILD_ID_MAX];
	uint32_t build_id_len;
	/* Part of the name of an address without a symbol. */
	char base_name[256];
};

struct wp_cached_name {
	/* The address, as an offset in the ELF file. */
	uint64_t off;
	/* Its message (WP_PROTOCOL_ANSWER) is text.data[at..at + len). */
	uint32_t at, len;
};

struct wp_cached_names {
	struct wp_symbol_has has;
	struct wp_protocol_buf text;
	/* v[0..nloaded) by OFF, then those that were added; owned. */
	struct wp_cached_name *v;
	uint32_t n, cap, nloaded;
};

/* Open the directory of the cache, which is made if it is not there: $WALLPROF_CACHE,
 * for root /var/cache/wallprof, for others $XDG_CACHE_HOME/wallprof or
 * ~/.cache/wallprof.  A descriptor that the caller owns; -ENOENT: $WALLPROF_CACHE is
 * empty, or there is no home; -EPERM: it is another's, or not its owner's alone; the
 * -errno of mkdir and open. */
int wp_name_cache_open(void);

/* Fill KEY for M, a module of NAMER.  0; -ENOENT: names of M are not kept. */
WP_MUST_CHECK
int wp_name_key_init(struct wp_name_key *key, const struct wp_namer *namer,
		     const struct wp_namer_module *m);

/* May what a child says that has read the debug file FD be kept for KEY?  Only if nobody
 * but root and oneself can write it, and it is the one that KEY names, or a server's
 * (PATH is ""), or what our own root has at PATH, too. */
WP_MUST_CHECK
bool wp_name_key_allows(const struct wp_name_key *key, int fd,
			const char *path);

/* Read what directory DIR_FD has of KEY; without debug information it counts if
 * TAKE_PLAIN, and not for ever.  NAMES is empty if there is nothing, or nothing of use;
 * the caller clears it. */
void wp_cached_names_load(struct wp_cached_names *names, int dir_fd,
			  const struct wp_name_key *key, bool take_plain);
void wp_cached_names_clear(struct wp_cached_names *names);

/* The message of the address at OFF, one that was loaded; its strings are borrowed from
 * NAMES.  False: it has none. */
bool wp_cached_names_find(const struct wp_cached_names *names, uint64_t off,
			  struct wp_protocol_message *ret);

/* Add the names of the address at OFF.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_cached_names_add(struct wp_cached_names *names, uint64_t off,
			const struct wp_symbol_line *lines, uint32_t n);

/* Note what was found with the names that were added.  Those that were loaded will not be
 * written if they were had without debug information and now there is a file of it. */
void wp_cached_names_note(struct wp_cached_names *names,
			  const struct wp_symbol_has *has);

/* Write NAMES, which are put in another order, for KEY into DIR_FD; those for which there
 * is no room are left out, of those that were loaded first.  What cannot be written is
 * not there the next time. */
void wp_cached_names_save(struct wp_cached_names *names, int dir_fd,
			  const struct wp_name_key *key);

#endif
