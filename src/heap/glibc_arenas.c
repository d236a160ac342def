/* SPDX-License-Identifier: Apache-2.0 */
/* glibc_arenas.c - where glibc's malloc has its arenas: see wallprof/glibc_heap.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "glibc_heap_priv.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* NBINS - 1: heads of lists, of which bin I is at BINS + 16 * I and is a chunk
	 * whose first two words are left out. */
	BINS = 127,
	BIN_BYTES = 16,
	/* So many are empty where the array of them is, at the least: heads of other
	 * lists point to themselves, not to two words before. */
	EMPTY_MIN = 4,
	/* Lists of others are no array of such: tcmalloc's have a third as many. */
	EMPTY_SURE = 64,
	/* From the bins on. */
	NEXT = BINS * BIN_BYTES + 16,
	SYSTEM_MEM = NEXT + 24,
	MAX_SYSTEM_MEM = NEXT + 32,
	END = NEXT + 40,
	/* Before the bins: top, and the rest with fastbins and without. */
	TOP = 16,
	HEAD = 24,
	HEAD_FAST = 112,
	FASTBINS = 96,
	ARENAS_MAX = 1 << 14,
	/* Arenas that are read in the search for the list: of hostile data each word
	 * may lead into another that does not come back. */
	READ_MAX = 4 * ARENAS_MAX,
	/* Of one file. */
	DATA_MAX = 4 << 20,
	/* struct malloc_par, before sbrk_base. */
	MAPPED = 16,
	MOST_MAPPED = 8,
	MMAP_MAX = 65536,
};

bool wp_census_holds(const struct wp_census_memory *memory, uint64_t avma)
{
	size_t i = WP_LOWER_BOUND(memory->nanon, k,
				  memory->anon[k].end_avma <= avma);

	return i < memory->nanon && memory->anon[i].start_avma <= avma;
}

bool wp_census_word(const struct wp_census_memory *memory, uint64_t avma,
		    uint64_t *ret)
{
	return memory->read(memory->ctx, avma, ret, sizeof(*ret)) ==
	       sizeof(*ret);
}

uint64_t wp_chunk_next(const struct wp_census_memory *memory, uint64_t chunk,
		       uint64_t link, uint64_t at)
{
	uint64_t mask = (chunk + 16) >> 12;
	uint64_t to[] = { link ^ mask, link };

	for (size_t i = 0; link && link != mask && i < 2; i++)
		if (!(to[i] & 15) && to[i] >= at &&
		    wp_census_holds(memory, to[i] - at))
			return to[i] - at;
	return 0;
}

/* Writable data of a file: words[0..n) at AVMA. */
struct data {
	uint64_t avma;
	uint64_t *words;
	size_t n;
};

static int read_data(struct data *data, const struct wp_census_memory *memory,
		     const struct wp_census_area *area)
{
	uint64_t len = area->end_avma - area->start_avma;

	if (len > DATA_MAX)
		len = DATA_MAX;
	data->avma = area->start_avma;
	data->words = malloc(len ? len : 1);
	if (!data->words)
		return -ENOMEM;
	data->n = memory->read(memory->ctx, area->start_avma, data->words,
			       len) /
		  sizeof(*data->words);
	return 0;
}

/* How many bins are empty if they begin at word I? */
static unsigned int count_empty(const struct data *data, size_t i)
{
	unsigned int n = 0;

	for (unsigned int k = 0; k < BINS; k++, i += 2) {
		uint64_t self = data->avma + 8 * i - BIN_BYTES;

		n += data->words[i] == self && data->words[i + 1] == self;
	}
	return n;
}

/* Read the arena at AVMA, whose bins are HEAD bytes behind.  False: it is none. */
static bool read_arena(const struct wp_census_memory *memory, uint64_t avma,
		       uint64_t head, struct wp_arena *ret, uint64_t *ret_next)
{
	uint8_t bytes[HEAD_FAST + END];
	uint64_t most, top, size = 0;

	if (memory->read(memory->ctx, avma, bytes, head + END) != head + END)
		return false;
	*ret = (struct wp_arena){ .avma = avma, .end_avma = avma + head + END };
	memcpy(&top, bytes + head - TOP, 8);
	memcpy(&ret->system_mem, bytes + head + SYSTEM_MEM, 8);
	memcpy(&most, bytes + head + MAX_SYSTEM_MEM, 8);
	memcpy(ret_next, bytes + head + NEXT, 8);
	if (head == HEAD_FAST)
		memcpy(ret->fastbins, bytes + head - FASTBINS,
		       sizeof(ret->fastbins));
	/* No memory so far: top is the first bin. */
	if (!ret->system_mem)
		return top == avma + head - BIN_BYTES;
	ret->top = top;
	if (top & 15 || !wp_census_holds(memory, top) ||
	    !wp_census_word(memory, top + 8, &size))
		return false;
	ret->top_size = size & ~(uint64_t)WP_CHUNK_FLAGS;
	return ret->system_mem <= most && size & WP_PREV_INUSE &&
	       ret->top_size >= WP_CHUNK_MIN &&
	       ret->top_size <= ret->system_mem;
}

/* Follow the list of arenas from AVMA, which begin HEAD bytes before their bins, as long
 * as any are LEFT to read.  0; -EBADMSG: it does not come back. */
static int follow(struct wp_arenas *arenas,
		  const struct wp_census_memory *memory, uint64_t avma,
		  uint64_t head, uint32_t *left)
{
	uint64_t next = avma;

	arenas->len = 0;
	do {
		if (arenas->len == ARENAS_MAX || !*left)
			return -EBADMSG;
		--*left;
		if (WP_VEC_ROOM(arenas->v, arenas->len, arenas->cap, 1))
			return -ENOMEM;
		if (!read_arena(memory, next, head, &arenas->v[arenas->len],
				&next))
			return -EBADMSG;
		arenas->len++;
	} while (next != avma);
	return 0;
}

/* The main arena in DATA, and all others.  -ENOENT: it is not there. */
static int find_in(struct wp_arenas *arenas,
		   const struct wp_census_memory *memory,
		   const struct data *data, uint32_t *left)
{
	static const uint64_t heads[] = { HEAD_FAST, HEAD };
	bool is_bad = false;

	for (size_t i = 0; i + 2 * (size_t)BINS <= data->n; i++) {
		unsigned int empty = count_empty(data, i);

		for (size_t k = 0; empty >= EMPTY_MIN && k < 2; k++) {
			int rc = follow(arenas, memory,
					data->avma + 8 * i - heads[k], heads[k],
					left);

			if (rc != -EBADMSG)
				return rc;
			is_bad |= empty >= EMPTY_SURE;
		}
	}
	return is_bad ? -EBADMSG : -ENOENT;
}

static int compare_keys(const void *a, const void *b)
{
	const struct wp_key *x = a, *y = b;

	return (x->word > y->word) - (x->word < y->word);
}

/* Note the words of DATA that are neither small nor addresses, and are there once: one may
 * be malloc's number in chunks that threads keep.  0 or -ENOMEM. */
static int note_keys(struct wp_arenas *arenas, const struct data *data)
{
	struct wp_key *keys = malloc((data->n ? data->n : 1) * sizeof(*keys));
	size_t n = 0, next;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < data->n; i++)
		/* Addresses have less than 2^47 on x86-64, 2^52 on aarch64. */
		if (data->words[i] >> 52)
			keys[n++] = (struct wp_key){ .word = data->words[i] };
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < n; i = next) {
		for (next = i + 1; next < n && keys[next].word == keys[i].word;
		     next++)
			continue;
		if (next == i + 1)
			keys[arenas->nkeys++] = keys[i];
	}
	arenas->keys = keys;
	return 0;
}

/* Find malloc's own account of what it maps: before the word that says where brk's memory
 * begins, and behind the most mappings that it makes. */
static void note_mapped(struct wp_arenas *arenas,
			const struct wp_census_memory *memory,
			const struct data *data)
{
	for (size_t i = 4; i < data->n; i++) {
		const uint64_t *w = &data->words[i];
		uint64_t mapped = *(w - MAPPED / 8);

		/* With an int before it since 2.35, and without. */
		if (w[0] < memory->brk.start_avma ||
		    w[0] >= memory->brk.end_avma ||
		    (w[-4] >> 32 != MMAP_MAX && w[-4] << 32 >> 32 != MMAP_MAX))
			continue;
		if (mapped & (memory->page - 1) ||
		    mapped > *(w - MOST_MAPPED / 8))
			continue;
		arenas->knows_mapped = true;
		arenas->mapped_bytes = mapped;
		return;
	}
}

int wp_arenas_find(struct wp_arenas *arenas,
		   const struct wp_census_memory *memory)
{
	uint32_t left = READ_MAX;
	bool is_bad = false;
	int rc = -ENOENT;

	for (size_t i = 0; rc == -ENOENT && i < memory->ndata &&
			   (!i || wp_clock_ns() < memory->until_ns);
	     i++) {
		struct data data = { 0 };

		rc = read_data(&data, memory, &memory->data[i]);
		if (!rc)
			rc = find_in(arenas, memory, &data, &left);
		if (!rc) {
			rc = note_keys(arenas, &data);
			note_mapped(arenas, memory, &data);
		}
		if (rc == -EBADMSG) {
			is_bad = true;
			rc = -ENOENT;
		}
		free(data.words);
	}
	return rc == -ENOENT && is_bad ? -EBADMSG : rc;
}

void wp_arenas_clear(struct wp_arenas *arenas)
{
	free(arenas->v);
	free(arenas->keys);
	*arenas = (struct wp_arenas){ 0 };
}
