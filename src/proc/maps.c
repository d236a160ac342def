/* SPDX-License-Identifier: Apache-2.0 */
/* maps.c - see wallprof/maps.h. */
#include "wallprof/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "text_scan.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

static char read_char(struct wp_text_scan *c)
{
	if (c->p == c->end) {
		c->bad = true;
		return '\0';
	}
	return *c->p++;
}

/* The kernel writes a newline in a path as \012 and nothing else specially
 * (fs/proc/task_mmu.c, seq_file_path with "\n").
 */
static size_t unescape(char *out, const char *in, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(in + i, "\\012", 4)) {
			out[n++] = '\n';
			i += 3;
		} else {
			out[n++] = in[i];
		}
	}
	return n;
}

size_t wp_maps_path_len(const char *path, size_t len)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;

	return len > tail && !memcmp(path + len - tail, deleted, tail) ?
		       len - tail :
		       len;
}

static int add_path(struct wp_maps *maps, struct wp_map *map, const char *path,
		    size_t len)
{
	size_t whole = len;

	if (map->ino)
		len = wp_maps_path_len(path, len);
	map->deleted = len < whole;
	/* Regions of one file come together: share the text. */
	if (maps->len) {
		map->path = maps->v[maps->len - 1].path;
		if (strlen(maps->paths + map->path) == len &&
		    !memcmp(maps->paths + map->path, path, len))
			return 0;
	}
	if (WP_VEC_ROOM(maps->paths, maps->paths_len, maps->paths_cap, len + 1))
		return -ENOMEM;
	map->path = (uint32_t)maps->paths_len;
	maps->paths_len += unescape(maps->paths + maps->paths_len, path, len);
	maps->paths[maps->paths_len++] = '\0';
	return 0;
}

/* A list is read in pieces, between which regions grow and become one: what was
 * read first holds.  Is there something left of MAP? */
static bool follows_last(const struct wp_maps *maps, struct wp_map *map)
{
	uint64_t last_avma = maps->len ? maps->v[maps->len - 1].end_avma : 0;

	if (map->end_avma <= last_avma)
		return false;
	if (map->start_avma < last_avma) {
		map->off += last_avma - map->start_avma;
		map->start_avma = last_avma;
	}
	return true;
}

/* start-end rwxp off major:minor inode          path */
static int parse_line(struct wp_maps *maps, const char *line, const char *eol)
{
	struct wp_text_scan c = { line, eol, false };
	struct wp_map map = { 0 };
	uint64_t major_nr, minor_nr;
	int rc;

	map.start_avma = wp_text_scan_number(&c, 16);
	wp_text_scan_expect(&c, '-');
	map.end_avma = wp_text_scan_number(&c, 16);
	wp_text_scan_expect(&c, ' ');
	map.read = read_char(&c) == 'r';
	map.write = read_char(&c) == 'w';
	map.exec = read_char(&c) == 'x';
	map.shared = read_char(&c) == 's';
	wp_text_scan_expect(&c, ' ');
	map.off = wp_text_scan_number(&c, 16);
	wp_text_scan_expect(&c, ' ');
	major_nr = wp_text_scan_number(&c, 16);
	wp_text_scan_expect(&c, ':');
	minor_nr = wp_text_scan_number(&c, 16);
	wp_text_scan_expect(&c, ' ');
	map.dev = makedev((unsigned int)major_nr, (unsigned int)minor_nr);
	map.ino = wp_text_scan_number(&c, 10);
	if (c.bad || map.start_avma >= map.end_avma)
		return -EBADMSG;
	if (!follows_last(maps, &map))
		return 0;
	while (c.p < c.end && *c.p == ' ')
		c.p++;
	rc = add_path(maps, &map, c.p, (size_t)(c.end - c.p));
	if (!rc)
		rc = WP_VEC_ROOM(maps->v, maps->len, maps->cap, 1);
	if (!rc)
		maps->v[maps->len++] = map;
	return rc;
}

int wp_maps_parse(struct wp_maps *maps, const char *text, size_t len)
{
	const char *p = text, *end = text + len;

	maps->len = 0;
	maps->paths_len = 0;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *eol = nl ? nl : end;
		int rc = parse_line(maps, p, eol);

		if (rc) {
			maps->len = 0;
			return rc;
		}
		p = nl ? nl + 1 : end;
	}
	return 0;
}

/* Index of the first region that ends above ADDR; LEN if none. */
static size_t first_above(const struct wp_maps *maps, uint64_t addr)
{
	return WP_LOWER_BOUND(maps->len, i, maps->v[i].end_avma <= addr);
}

const struct wp_map *wp_maps_find(const struct wp_maps *maps, uint64_t addr)
{
	size_t i = first_above(maps, addr);

	return i < maps->len && addr >= maps->v[i].start_avma ? &maps->v[i] :
								NULL;
}

const struct wp_map *wp_maps_find_stack(const struct wp_maps *maps,
					uint64_t addr)
{
	size_t i = first_above(maps, addr);

	if (i == maps->len)
		return NULL;
	if (addr >= maps->v[i].start_avma ||
	    !strcmp(wp_maps_path(maps, &maps->v[i]), "[stack]"))
		return &maps->v[i];
	return NULL;
}

const char *wp_maps_path(const struct wp_maps *maps, const struct wp_map *map)
{
	return maps->paths + map->path;
}

void wp_maps_clear(struct wp_maps *maps)
{
	free(maps->v);
	free(maps->paths);
	*maps = (struct wp_maps)WP_MAPS_INIT;
}
