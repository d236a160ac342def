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
	/* Device (makedev(3)) and inode of the file; 0: no file. */
	uint64_t dev;
	uint64_t ino;
	/* Offset in wp_maps.paths of the path, NUL-terminated, unescaped,
	 * without " (deleted)"; "" for anonymous memory; or "[stack]" and the
	 * like. */
	uint32_t path;
	bool read : 1;
	bool write : 1;
	bool exec : 1;
	/* Mapped with MAP_SHARED: others may have the same memory. */
	bool shared : 1;
	/* The file has been deleted since. */
	bool deleted : 1;
};

struct wp_maps {
	/* v[0..len), sorted by start, not overlapping; owned. */
	struct wp_map *v;
	size_t len;
	size_t cap;
	/* paths[0..paths_len), owned. */
	char *paths;
	size_t paths_len;
	size_t paths_cap;
	/* The text was longer than the budget lets (--max-memory): regions lack at
	 * the end. */
	bool is_cut;
};

#define WP_MAPS_INIT                                                           \
	{                                                                      \
		0                                                              \
	}

/* Replace MAPS by what TEXT[0..len) says.  Allocates only to grow.
 *
 * Returns 0; -ENOMEM; or -EBADMSG when a line does not parse or regions are
 * not in order.  On error MAPS is empty.
 */
WP_MUST_CHECK
int wp_maps_parse(struct wp_maps *maps, const char *text, size_t len);

/* The region that holds ADDR, or NULL.  Valid until MAPS next changes. */
const struct wp_map *wp_maps_find(const struct wp_maps *maps, uint64_t addr);

/* The region that holds ADDR; or else the next one above if it is "[stack]",
 * which grows downwards; or NULL. */
const struct wp_map *wp_maps_find_stack(const struct wp_maps *maps,
					uint64_t addr);

const char *wp_maps_path(const struct wp_maps *maps, const struct wp_map *map);

/* Free all and leave WP_MAPS_INIT. */
void wp_maps_clear(struct wp_maps *maps);

/* Length of PATH[0..len), a path or link of /proc, without the " (deleted)" of a file that
 * has no name any more (proc(5)). */
size_t wp_maps_path_len(const char *path, size_t len);

#endif
