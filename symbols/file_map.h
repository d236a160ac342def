/* SPDX-License-Identifier: Apache-2.0 */
/* file_map.h - the bytes of a file that somebody else may truncate.
 *
 * Layer: symbols.
 *
 * Symbol tables and DWARF are looked at here and there in files of hundreds of
 * megabytes, so files are mapped, not read.  While at least one is mapped,
 * SIGBUS has a handler: a page that the file no longer has reads as zeros.
 */
#ifndef WP_FILE_MAP_H
#define WP_FILE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "wallprof/err.h"

struct wp_file_map {
	/* data[0..size): private, so that writes stay here; owned. */
	uint8_t *data;
	size_t size;
	/* From mmap, not malloc. */
	bool mapped;
	/* In the list that the handler looks at. */
	struct wp_file_map *next;
};

#define WP_FILE_MAP_INIT                                                       \
	{                                                                      \
		0                                                              \
	}

/* fstat(2), which glibc makes by newfstatat(2) since 2.33: that takes a path,
 * and where the resolver runs no call that does is allowed. */
int wp_file_stat(int fd, struct stat *ret);

/* Map what FD, which is left open, names.  RET must not move afterwards.
 * Returns 0; -ENOTSUP for anything but a regular file with bytes in it;
 * -EOVERFLOW when over 8 GiB; or -errno.
 */
WP_MUST_CHECK
int wp_file_map_open(struct wp_file_map *ret, int fd);

/* The same for DATA from malloc, which passes to the map. */
void wp_file_map_adopt(struct wp_file_map *ret, void *data, size_t size);

/* Give back the memory of all pages: they are read from the file again when
 * needed, so what was written to them is gone.  KEEP_LEN bytes from KEEP on are
 * left alone. */
void wp_file_map_drop(struct wp_file_map *map, uint64_t keep,
		      uint64_t keep_len);

void wp_file_map_clear(struct wp_file_map *map);

#endif
