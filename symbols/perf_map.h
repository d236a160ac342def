/* SPDX-License-Identifier: Apache-2.0 */
/* perf_map.h - the names of generated code in /tmp/perf-PID.map.
 *
 * Layer: symbols.  Format: tools/perf/Documentation/jit-interface.txt.
 */
#ifndef WP_PERF_MAP_H
#define WP_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/io.h"

/* A range of code: START <= avma < END. */
struct wp_perf_map_entry {
	uint64_t start;
	uint64_t end;
	/* Offset of the name in the text. */
	uint32_t name;
	/* The number of its line.  Memory of discarded code is used again: of
	 * overlapping ranges the later line wins. */
	uint32_t order;
};

struct wp_perf_map {
	/* The file, line ends turned to NULs; owned. */
	struct wp_text text;
	/* v[0..len), sorted, not overlapping; owned. */
	struct wp_perf_map_entry *v;
	uint32_t len;
	uint32_t cap;
	/* Number of malformed lines. */
	uint32_t nbad;
};

#define WP_PERF_MAP_INIT                                                       \
	{                                                                      \
		.text = WP_TEXT_INIT                                           \
	}

/* Read and parse the file FD, which stays open; of one over 64 MiB the last 64 MiB, as
 * later lines win.
 *
 * Returns 0; -ENOTSUP when it is not a regular file; -ENOMEM; or the -errno of a read.
 * On error MAP is empty.
 */
WP_MUST_CHECK
int wp_perf_map_read(struct wp_perf_map *map, int fd);

/* Parse TEXT, which passes to MAP.  Returns 0, or -ENOMEM and MAP is empty. */
WP_MUST_CHECK
int wp_perf_map_parse(struct wp_perf_map *map, struct wp_text text);

/* The name of the code at AVMA, or NULL.  Valid until MAP is cleared. */
const char *wp_perf_map_find(const struct wp_perf_map *map, uint64_t avma);

void wp_perf_map_clear(struct wp_perf_map *map);

#endif
