/* SPDX-License-Identifier: Apache-2.0 */
/* maps.h - the memory map of one process, as a sorted array of regions.
 *
 * Layer: proc.  Parses text that callers hand it (proc(5), /proc/PID/maps).
 */
#ifndef WP_MAPS_H
#define WP_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

struct wp_map {
	/* Range is START <= addr < END, in the target's address space. */
	uint64_t start_avma;
	uint64_t end_avma;
	/* Offset in the file. */
	uint64_t off;
	/* Of the file's device, makedev(3) form, and inode; 0 for none. */
	uint64_t dev;
	uint64_t ino;
	/* Index in the maps' paths of a NUL-terminated path, unescaped, without
	 * " (deleted)"; "" for anonymous memory; "[stack]" and the like. */
	uint32_t path;
	bool read;
	bool write;
	bool exec;
	bool deleted;
};

struct wp_maps {
	/* Array of LEN, sorted by start, not overlapping; owned. */
	struct wp_map *v;
	size_t len;
	size_t cap;
	/* paths[0..paths_len), owned. */
	char *paths;
	size_t paths_len;
	size_t paths_cap;
};

#define WP_MAPS_INIT                                                           \
	{                                                                      \
		0                                                              \
	}

/* Parse TEXT (LEN bytes, need not end in NUL) into MAPS, replacing what it
 * held; memory is used again.
 *
 * Returns 0; -ENOMEM; or -EBADMSG when a line does not parse or regions are
 * not in order.  On error MAPS is empty.
 */
WP_MUST_CHECK
int wp_maps_parse(struct wp_maps *maps, const char *text, size_t len);

/* The region holding ADDR, or NULL.  Valid until MAPS next changes. */
const struct wp_map *wp_maps_find(const struct wp_maps *maps, uint64_t addr);

/* The region holding ADDR, or one that grows down to it ("[stack]" just above
 * with nothing between); NULL if neither. */
const struct wp_map *wp_maps_find_stack(const struct wp_maps *maps,
					uint64_t addr);

const char *wp_maps_path(const struct wp_maps *maps, const struct wp_map *map);

/* Free what MAPS holds and make it empty again.  Safe on WP_MAPS_INIT. */
void wp_maps_clear(struct wp_maps *maps);

#endif
