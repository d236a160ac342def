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

int wp_kepts_add(struct wp_kepts *to, const struct wp_kept *kept)
{
	size_t i = WP_LOWER_BOUND(to->len, k,
				  to->v[k].key < kept->key ||
					  (to->v[k].key == kept->key &&
					   to->v[k].size < kept->size));

	if (i < to->len && to->v[i].key == kept->key &&
	    to->v[i].size == kept->size) {
		to->v[i].chunks += kept->chunks;
		return 0;
	}
	if (to->len == WP_KEPT_MAX)
		return 0;
	if (WP_VEC_ROOM(to->v, to->len, to->cap, 1))
		return -ENOMEM;
	memmove(&to->v[i + 1], &to->v[i], (to->len++ - i) * sizeof(*to->v));
	to->v[i] = *kept;
	return 0;
}

/* If the chunk at AVMA is in use and a thread keeps it for itself, which key tells so?
 * Their number, if none does. */
static size_t key_of(struct wp_chunk_walk *w, uint64_t avma)
{
	const struct wp_arenas *arenas = w->arenas;
	const uint8_t *bytes = bytes_at(w, avma + HEADER, 16);
	uint64_t link, word;
	size_t i;

	if (!bytes)
		return arenas->nkeys;
	memcpy(&link, bytes, sizeof(link));
	memcpy(&word, bytes + 8, sizeof(word));
	i = WP_LOWER_BOUND(arenas->nkeys, k, arenas->keys[k].word < word);
	if (i == arenas->nkeys || arenas->keys[i].word != word)
		return arenas->nkeys;
	/* Links are mixed since 2.32, the number is new in 2.34. */
	link ^= (avma + HEADER) >> 12;
	if (link & 15 || (link && !wp_census_holds(w->memory, link))) {
		arenas->keys[i].nplain++;
		return arenas->nkeys;
	}
	arenas->keys[i].nmixed++;
	return i;
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

/* Count the chunk of SIZE bytes at AVMA, which is in use, or is kept if KEY is true. */
static int count(struct wp_chunk_walk *w, uint64_t avma, uint64_t size,
		 size_t key)
{
	struct wp_census_count *to = &w->heap[wp_census_class(size)];
	const struct wp_kept kept = { key, size, 1 };

	to->chunks++;
	to->bytes += size;
	if (key < w->arenas->nkeys && wp_kepts_add(&w->kept, &kept))
		return -ENOMEM;
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
		size_t key;

		if (!size && is_fence(w, avma))
			break;
		if (!size) {
			avma = find_chain(w, avma, &steps);
			continue;
		}
		/* The window moves on: what is of this chunk comes first. */
		key = key_of(w, avma);
		if (word_at(w, avma + size + 8) & WP_PREV_INUSE)
			rc = count(w, avma, size, key);
		avma += size;
	}
	return rc;
}
