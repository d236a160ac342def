/* SPDX-License-Identifier: Apache-2.0 */
/* glibc_chunks.c - the walk over a heap of glibc's malloc: see glibc_heap_priv.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "glibc_heap_priv.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* Each heap but an arena's newest ends with two such. */
	FENCEPOST = 16,
	HEADER = 16,
	MMAPPED = 2,
	/* So many chunks follow each other where chunks begin again. */
	CHAIN = 8,
	/* Steps between two looks at the clock. */
	STEPS = 1024,
};

/* N bytes at AVMA, borrowed until the next call; NULL: they cannot be read. */
static const uint8_t *bytes_at(struct wp_chunk_walk *w, uint64_t avma, size_t n)
{
	/* The header of what is behind the last chunk is wanted, too. */
	uint64_t rest = w->end_avma - avma + HEADER;

	if (avma < w->avma || avma - w->avma > w->len ||
	    w->len - (avma - w->avma) < n) {
		w->avma = avma;
		w->len = w->memory->read(w->memory->ctx, avma, w->window,
					 rest < WP_WINDOW ? rest : WP_WINDOW);
	}
	return n <= w->len - (avma - w->avma) ? w->window + (avma - w->avma) :
						NULL;
}

static uint64_t word_at(struct wp_chunk_walk *w, uint64_t avma)
{
	const uint8_t *bytes = bytes_at(w, avma, sizeof(uint64_t));
	uint64_t word = 0;

	if (bytes)
		memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The size of the chunk at AVMA; 0: none begins there. */
static uint64_t size_at(struct wp_chunk_walk *w, uint64_t avma)
{
	uint64_t raw = word_at(w, avma + 8);
	uint64_t size = raw & ~(uint64_t)WP_CHUNK_FLAGS;

	return raw & MMAPPED || size & 15 || size < WP_CHUNK_MIN ||
			       size > w->end_avma - avma ?
		       0 :
		       size;
}

/* Do chunks follow each other from AVMA on?  Those that are in the window are looked at:
 * to read others for each step of a search would take too long. */
static bool is_chain(struct wp_chunk_walk *w, uint64_t avma)
{
	for (unsigned int i = 0; i < CHAIN && avma < w->end_avma; i++) {
		uint64_t size = size_at(w, avma);

		if (!size)
			return false;
		avma += size;
		if (avma - w->avma + HEADER > w->len)
			return i > 0;
	}
	return true;
}

static bool is_late(struct wp_chunk_walk *w, unsigned int *steps)
{
	if (!(++*steps % STEPS) && wp_clock_ns() >= w->memory->until_ns)
		w->is_cut = true;
	return w->is_cut;
}

/* Nothing that is a chunk is at AVMA: where they go on. */
static uint64_t find_chain(struct wp_chunk_walk *w, uint64_t avma,
			   unsigned int *steps)
{
	uint64_t from = avma;

	do
		/* No page can be read in part. */
		avma = bytes_at(w, avma, HEADER) ?
			       avma + 16 :
			       (avma | (w->memory->page - 1)) + 1;
	while (avma < w->end_avma && !is_late(w, steps) && !is_chain(w, avma));
	if (avma > w->end_avma)
		avma = w->end_avma;
	w->torn_bytes += avma - from;
	return avma;
}

/* If the chunk at AVMA is in use, does a thread keep it for itself? */
static bool is_kept(struct wp_chunk_walk *w, uint64_t avma)
{
	const struct wp_arenas *arenas = w->arenas;
	const uint8_t *bytes = bytes_at(w, avma + HEADER, 16);
	uint64_t link, key;
	size_t i;

	if (!bytes)
		return false;
	memcpy(&link, bytes, sizeof(link));
	memcpy(&key, bytes + 8, sizeof(key));
	i = WP_LOWER_BOUND(arenas->nkeys, k, arenas->keys[k] < key);
	return i < arenas->nkeys && arenas->keys[i] == key &&
	       (link == (avma + HEADER) >> 12 ||
		wp_chunk_next(w->memory, avma, link, 0));
}

static int note_table(struct wp_chunk_walk *w, uint64_t avma)
{
	if (w->ntables == WP_TABLES_MAX)
		return 0;
	if (WP_VEC_ROOM(w->tables, w->ntables, w->cap_tables, 1))
		return -ENOMEM;
	w->tables[w->ntables++] = avma;
	return 0;
}

/* Count the chunk of SIZE bytes at AVMA, which is in use or kept. */
static int count(struct wp_chunk_walk *w, uint64_t avma, uint64_t size,
		 bool is_cached)
{
	struct wp_census_count *to = &w->heap[wp_census_class(size)];

	if (is_cached)
		to = &w->cached;
	to->chunks++;
	to->bytes += size;
	return size == WP_TCACHE_CHUNK ? note_table(w, avma) : 0;
}

/* Do fenceposts end the memory at AVMA? */
static bool is_fence(struct wp_chunk_walk *w, uint64_t avma)
{
	return !w->ends_at_top && w->end_avma - avma == 2 * FENCEPOST &&
	       (word_at(w, avma + 8) & ~(uint64_t)WP_CHUNK_FLAGS) == FENCEPOST;
}

int wp_chunk_walk(struct wp_chunk_walk *w)
{
	uint64_t avma = w->start_avma;
	unsigned int steps = 0;
	int rc = 0;

	while (!rc && avma < w->end_avma && !is_late(w, &steps)) {
		uint64_t size = size_at(w, avma);
		bool is_cached;

		if (!size && is_fence(w, avma))
			break;
		if (!size) {
			avma = find_chain(w, avma, &steps);
			continue;
		}
		/* The window moves on: what is of this chunk comes first. */
		is_cached = is_kept(w, avma);
		if (word_at(w, avma + size + 8) & WP_PREV_INUSE)
			rc = count(w, avma, size, is_cached);
		avma += size;
	}
	return rc;
}
