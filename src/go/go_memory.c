/* SPDX-License-Identifier: Apache-2.0 */
/* go_memory.c - see go_memory.h. */
#include "go_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A merged range takes no more once it is so long. */
enum { MERGED_MAX = 1 << 16 };

static int compare_ranges(const void *a, const void *b, void *ranges)
{
	const struct wp_process_range *v = ranges;
	uint64_t x = v[*(const uint32_t *)a].avma;
	uint64_t y = v[*(const uint32_t *)b].avma;

	return (x > y) - (x < y);
}

static int make_room(struct wp_go_memory *memory, size_t n)
{
	if (n <= memory->n_room)
		return 0;
	free(memory->order);
	free(memory->merged);
	free(memory->place);
	memory->n_room = 0;
	memory->order = calloc(n, sizeof(*memory->order));
	memory->merged = calloc(n, sizeof(*memory->merged));
	memory->place = calloc(n, sizeof(*memory->place));
	if (!memory->order || !memory->merged || !memory->place)
		return -ENOMEM;
	memory->n_room = n;
	return 0;
}

/* Can R join M, which begins at or before it? */
static bool is_near(const struct wp_process_range *m,
		    const struct wp_process_range *r, uint64_t gap)
{
	return m->len < MERGED_MAX && r->avma - m->avma <= m->len + gap &&
	       r->len <= UINT64_MAX - r->avma;
}

/* Set memory->merged[]; returns their number. */
static size_t merge(struct wp_go_memory *memory,
		    const struct wp_process_range *v, size_t n, uint64_t gap)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		memory->order[i] = (uint32_t)i;
	qsort_r(memory->order, n, sizeof(*memory->order), compare_ranges,
		(void *)v);
	for (size_t i = 0; i < n; i++) {
		const struct wp_process_range *r = &v[memory->order[i]];
		struct wp_process_range *m = len ? &memory->merged[len - 1] :
						   NULL;

		if (m && is_near(m, r, gap)) {
			uint64_t end = r->avma - m->avma + r->len;

			if (end > m->len)
				m->len = end;
		} else {
			memory->merged[len] = (struct wp_process_range){
				.avma = r->avma, .len = r->len
			};
			len++;
		}
		memory->place[memory->order[i]] = (uint32_t)(len - 1);
	}
	return len;
}

/* Give each merged range its part of memory->bytes.  0 or -ENOMEM. */
static int place_bytes(struct wp_go_memory *memory, size_t nmerged)
{
	size_t total = 0;

	for (size_t i = 0; i < nmerged; i++)
		total += memory->merged[i].len;
	if (total > memory->bytes_cap) {
		free(memory->bytes);
		memory->bytes_cap = 0;
		memory->bytes = malloc(total);
		if (!memory->bytes)
			return -ENOMEM;
		memory->bytes_cap = total;
	}
	total = 0;
	for (size_t i = 0; i < nmerged; i++) {
		memory->merged[i].buf = memory->bytes + total;
		memory->merged[i].is_read = false;
		total += memory->merged[i].len;
	}
	return 0;
}

static int read_plain(struct wp_go_memory *memory, struct wp_process_range *v,
		      size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i].is_read = false;
	return memory->reader.read(memory->reader.ctx, v, n);
}

int wp_go_memory_read(struct wp_go_memory *memory, struct wp_process_range *v,
		      size_t n, uint64_t gap)
{
	size_t nmerged;
	int rc;

	if (n < 3)
		return read_plain(memory, v, n);
	rc = make_room(memory, n);
	if (rc)
		return rc;
	nmerged = merge(memory, v, n, gap);
	rc = place_bytes(memory, nmerged);
	if (!rc)
		rc = memory->reader.read(memory->reader.ctx, memory->merged,
					 nmerged);
	for (size_t i = 0; i < n && !rc; i++) {
		const struct wp_process_range *m =
			&memory->merged[memory->place[i]];

		v[i].is_read = m->is_read;
		/* The gap, or a neighbour, may be what cannot be read. */
		if (!m->is_read)
			rc = read_plain(memory, &v[i], 1);
		else if (v[i].len)
			memcpy(v[i].buf,
			       (uint8_t *)m->buf + (v[i].avma - m->avma),
			       v[i].len);
	}
	return rc;
}

bool wp_go_memory_read_at(struct wp_go_memory *memory, uint64_t avma, void *buf,
			  size_t len)
{
	struct wp_process_range range = { .avma = avma,
					  .buf = buf,
					  .len = len };

	return !len || (!read_plain(memory, &range, 1) && range.is_read);
}

void wp_go_memory_clear(struct wp_go_memory *memory)
{
	free(memory->order);
	free(memory->merged);
	free(memory->place);
	free(memory->bytes);
	*memory = (struct wp_go_memory){ .reader = memory->reader };
}
