/* SPDX-License-Identifier: Apache-2.0 */
/* perf_map.c - see perf_map.h. */
#include "perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wallprof/io.h"
#include "wallprof/lower_bound.h"
#include "wallprof/symbols.h"
#include "wallprof/vec.h"

/* A hexadecimal number at *S, moved past it; false if there is none or it is
 * too big. */
static bool read_hex(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t val = 0;
	unsigned int n = 0;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (;; p++, n++) {
		unsigned int c = (unsigned char)*p;
		unsigned int digit = c - '0';

		if (digit > 9) {
			c |= 0x20;
			if (c < 'a' || c > 'f')
				break;
			digit = c - 'a' + 10;
		}
		if (val >> 60)
			return false;
		val = val << 4 | digit;
	}
	*s = p;
	*ret = val;
	return n > 0;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

static bool parse_line(const char *line, struct wp_perf_map_entry *ret,
		       const char **ret_name)
{
	const char *s = skip_blanks(line);
	uint64_t start, size;

	if (!read_hex(&s, &start) || (*s != ' ' && *s != '\t'))
		return false;
	s = skip_blanks(s);
	if (!read_hex(&s, &size) || (*s != ' ' && *s != '\t'))
		return false;
	s = skip_blanks(s);
	if (!*s || !size || size > UINT64_MAX - start)
		return false;
	ret->start = start;
	ret->end = start + size;
	*ret_name = s;
	return true;
}

static int parse_lines(struct wp_perf_map *map)
{
	char *text = map->text.data, *end = text + map->text.len;

	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		struct wp_perf_map_entry entry = { .order = map->len };
		const char *name;

		if (!newline)
			newline = end;
		*newline = '\0';
		if (newline > text && newline[-1] == '\r')
			newline[-1] = '\0';
		if (!parse_line(text, &entry, &name)) {
			/* A line that is being written has no name yet. */
			map->nbad += newline > text;
		} else {
			entry.name = (uint32_t)(name - map->text.data);
			if (WP_VEC_ROOM(map->v, map->len, map->cap, 1))
				return -ENOMEM;
			map->v[map->len++] = entry;
		}
		text = newline + 1;
	}
	return 0;
}

static int compare_start(const void *a, const void *b)
{
	const struct wp_perf_map_entry *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Entries that hold the address that the sweep is at; the latest on top. */
struct heap {
	struct wp_perf_map_entry *v;
	uint32_t len;
};

static void heap_push(struct heap *heap, const struct wp_perf_map_entry *entry)
{
	uint32_t i = heap->len++;

	for (; i && heap->v[(i - 1) / 2].order < entry->order; i = (i - 1) / 2)
		heap->v[i] = heap->v[(i - 1) / 2];
	heap->v[i] = *entry;
}

static void heap_pop(struct heap *heap)
{
	struct wp_perf_map_entry last = heap->v[--heap->len];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < heap->len &&
		    heap->v[child + 1].order > heap->v[child].order)
			child++;
		if (child >= heap->len || heap->v[child].order < last.order)
			break;
		heap->v[i] = heap->v[child];
		i = child;
	}
	heap->v[i] = last;
}

/* Cut IN[0..n), sorted by start, into pieces that do not overlap. */
static int sweep(struct wp_perf_map *map, const struct wp_perf_map_entry *in,
		 uint32_t n, struct heap *heap)
{
	uint64_t pos = 0;

	for (uint32_t i = 0; i < n || heap->len;) {
		struct wp_perf_map_entry piece;

		if (!heap->len)
			pos = in[i].start;
		while (i < n && in[i].start <= pos)
			heap_push(heap, &in[i++]);
		while (heap->len && heap->v[0].end <= pos)
			heap_pop(heap);
		if (!heap->len)
			continue;
		piece = heap->v[0];
		piece.start = pos;
		if (i < n && in[i].start < piece.end)
			piece.end = in[i].start;
		pos = piece.end;
		if (WP_VEC_ROOM(map->v, map->len, map->cap, 1))
			return -ENOMEM;
		map->v[map->len++] = piece;
	}
	return 0;
}

static int remove_overlaps(struct wp_perf_map *map)
{
	struct wp_perf_map_entry *in = map->v;
	struct heap heap = { 0 };
	uint32_t n = map->len;
	bool overlap = false;
	int rc;

	qsort(in, n, sizeof(*in), compare_start);
	for (uint32_t i = 1; i < n; i++)
		overlap |= in[i - 1].end > in[i].start;
	if (!overlap)
		return 0;
	heap.v = reallocarray(NULL, n, sizeof(*heap.v));
	if (!heap.v)
		return -ENOMEM;
	map->v = NULL;
	map->len = map->cap = 0;
	rc = sweep(map, in, n, &heap);
	free(heap.v);
	free(in);
	return rc;
}

int wp_perf_map_parse(struct wp_perf_map *map, struct wp_text text)
{
	int rc;

	*map = (struct wp_perf_map){ .text = text };
	rc = parse_lines(map);
	if (!rc && map->len)
		rc = remove_overlaps(map);
	if (rc)
		wp_perf_map_clear(map);
	return rc;
}

/* Read the end of the file FD of SIZE bytes, from a whole line on. */
static int read_end(struct wp_text *text, int fd, uint64_t size)
{
	/* The byte before tells whether the first line is whole. */
	uint64_t off = size > WP_PERF_MAP_BYTES_MAX ?
			       size - WP_PERF_MAP_BYTES_MAX - 1 :
			       0;
	size_t want = (size_t)(size - off), skip = 0;
	ssize_t n = 1;
	char *newline;

	text->data = malloc(want + 1);
	if (!text->data)
		return -ENOMEM;
	text->cap = want + 1;
	while (text->len < want && n > 0) {
		n = wp_io_pread_at(fd, text->data + text->len, want - text->len,
				   off + text->len);
		if (n < 0)
			return (int)n;
		text->len += (size_t)n;
	}
	if (off) {
		newline = memchr(text->data, '\n', text->len);
		skip = newline ? (size_t)(newline + 1 - text->data) : text->len;
	}
	text->len -= skip;
	memmove(text->data, text->data + skip, text->len);
	text->data[text->len] = '\0';
	return 0;
}

int wp_perf_map_read(struct wp_perf_map *map, int fd)
{
	struct wp_text text = WP_TEXT_INIT;
	struct stat st;
	int rc = wp_io_fstat(fd, &st);

	*map = (struct wp_perf_map)WP_PERF_MAP_INIT;
	if (!rc && !S_ISREG(st.st_mode))
		rc = -ENOTSUP;
	if (!rc)
		rc = read_end(&text, fd, (uint64_t)st.st_size);
	if (!rc)
		return wp_perf_map_parse(map, text);
	wp_text_clear(&text);
	return rc;
}

const char *wp_perf_map_find(const struct wp_perf_map *map, uint64_t avma)
{
	uint32_t at = WP_LOWER_BOUND(map->len, i, map->v[i].end <= avma);

	return at < map->len && avma >= map->v[at].start ?
		       map->text.data + map->v[at].name :
		       NULL;
}

void wp_perf_map_clear(struct wp_perf_map *map)
{
	wp_text_clear(&map->text);
	free(map->v);
	*map = (struct wp_perf_map)WP_PERF_MAP_INIT;
}
