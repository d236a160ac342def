/* SPDX-License-Identifier: Apache-2.0 */
/* glibc_heap.c - see wallprof/glibc_heap.h. */
#include "wallprof/glibc_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "glibc_heap_priv.h"
#include "wallprof/clock.h"
#include "wallprof/vec.h"

enum {
	/* Sizes up to EXACT are classes of their own. */
	EXACT = 1024,
	EXACT_LOG2 = 10,
	STEP = 16,
	EIGHTHS_LOG2 = 3,
	/* HEAP_MAX_SIZE of arena.c: heaps but brk's begin at multiples of it. */
	HEAP_SIZE = 64 << 20,
	/* struct heap_info: arena, the heap before, size. */
	INFO_WORDS = 3,
	INFO_MIN = 32,
	INFO_MAX = 64,
	HEAPS_MAX = 1 << 16,
	/* What changes while it is read is read again. */
	PASSES = 3,
	/* ... as long as this part of the time that is left has not been used. */
	AGAIN = 8,
	/* Chunks of one list that are followed. */
	LIST_MAX = 1 << 20,
	/* Pages that are searched for mapped chunks, which begin with one. */
	PAGES_MAX = 1 << 18,
	MMAPPED = 2,
	HEADER = 16,
	HUGE = 1,
};

size_t wp_census_class(uint64_t size)
{
	unsigned int log2;
	size_t class;

	if (size <= EXACT)
		return size / STEP;
	log2 = 63 - (unsigned int)__builtin_clzll(--size);
	class = EXACT / STEP + 1 +
		((size_t)(log2 - EXACT_LOG2) << EIGHTHS_LOG2) +
		(size >> (log2 - EIGHTHS_LOG2) & 7);
	return class < WP_CENSUS_CLASSES ? class : WP_CENSUS_CLASSES - 1;
}

uint64_t wp_census_class_max(size_t class)
{
	size_t above;

	if (class <= EXACT / STEP)
		return class * STEP;
	above = class - EXACT / STEP - 1;
	return (uint64_t)(8 + (above & 7) + 1)
	       << ((above >> EIGHTHS_LOG2) + EXACT_LOG2 - EIGHTHS_LOG2);
}

struct census {
	struct wp_census *ret;
	const struct wp_census_memory *memory;
	struct wp_arenas arenas;
	uint8_t *window;
	struct wp_kepts kept;
	/* Chunks that may be tables of threads; owned. */
	uint64_t *tables;
	size_t ntables, cap_tables;
};

static void add(struct wp_census_count *to, const struct wp_census_count *from)
{
	to->chunks += from->chunks;
	to->bytes += from->bytes;
}

static bool is_late(struct census *c)
{
	if (wp_clock_ns() >= c->memory->until_ns)
		c->ret->is_cut = true;
	return c->ret->is_cut;
}

/* A chunk of SIZE bytes, which was counted as in use, is free.  False: there is none. */
static bool take_out(struct census *c, uint64_t size)
{
	struct wp_census_count *from = &c->ret->heap[wp_census_class(size)];

	if (!from->chunks || from->bytes < size)
		return false;
	from->chunks--;
	from->bytes -= size;
	c->ret->cached.chunks++;
	c->ret->cached.bytes += size;
	return true;
}

/* Take out what threads keep by the number of the process, which is the key that most
 * chunks have as those have it that are kept: an object may have its words by chance. */
static void take_numbered_out(struct census *c)
{
	const struct wp_key *keys = c->arenas.keys;
	size_t best = c->arenas.nkeys;

	for (size_t i = 0; i < c->arenas.nkeys; i++)
		if (keys[i].nmixed > keys[i].nplain &&
		    (best == c->arenas.nkeys ||
		     keys[i].nmixed > keys[best].nmixed))
			best = i;
	for (size_t i = 0; i < c->kept.len; i++)
		for (uint64_t k = 0;
		     c->kept.v[i].key == best && k < c->kept.v[i].chunks; k++)
			(void)take_out(c, c->kept.v[i].size);
}

static uint64_t size_at(const struct census *c, uint64_t chunk)
{
	uint64_t raw;

	return wp_census_word(c->memory, chunk + 8, &raw) ?
		       raw & ~(uint64_t)WP_CHUNK_FLAGS :
		       0;
}

/* Take out the list of free chunks of SIZE bytes, of which CHUNK is the first and links
 * lead AT bytes behind where a chunk begins. */
static void take_list_out(struct census *c, uint64_t chunk, uint64_t size,
			  uint64_t at, uint64_t max)
{
	uint64_t link;

	for (uint64_t n = 0; chunk && n < max && !is_late(c); n++) {
		if (size_at(c, chunk) != size || !take_out(c, size) ||
		    !wp_census_word(c->memory, chunk + 16, &link))
			return;
		chunk = wp_chunk_next(c->memory, chunk, link, at);
	}
}

/* Are COUNTS and first objects HEADS those of the lists of a thread's table? */
static bool is_table(const struct census *c, const uint16_t *counts,
		     const uint64_t *heads)
{
	for (size_t i = 0; i < WP_TCACHE_BINS; i++)
		if (!counts[i] != !heads[i] ||
		    (heads[i] &&
		     (heads[i] & 15 || heads[i] < 16 ||
		      size_at(c, heads[i] - 16) != WP_CHUNK_MIN + 16 * i)))
			return false;
	return true;
}

static void take_tables_out(struct census *c)
{
	struct {
		uint16_t counts[WP_TCACHE_BINS];
		uint64_t heads[WP_TCACHE_BINS];
	} t;

	for (size_t i = 0; i < c->ntables && !is_late(c); i++) {
		if (c->memory->read(c->memory->ctx, c->tables[i] + 16, &t,
				    sizeof(t)) != sizeof(t) ||
		    !is_table(c, t.counts, t.heads))
			continue;
		for (size_t k = 0; k < WP_TCACHE_BINS; k++)
			if (t.heads[k])
				take_list_out(c, t.heads[k] - 16,
					      WP_CHUNK_MIN + 16 * k, 16,
					      t.counts[k]);
	}
}

/* Add what the walk W found, in memory of BYTES bytes.  0 or -ENOMEM. */
static int add_walk(struct census *c, const struct wp_chunk_walk *w,
		    uint64_t bytes)
{
	struct wp_census *ret = c->ret;

	for (size_t i = 0; i < WP_CENSUS_CLASSES; i++)
		add(&ret->heap[i], &w->heap[i]);
	ret->torn_bytes += w->torn_bytes;
	ret->is_cut |= w->is_cut;
	if (!w->is_cut)
		ret->walked_bytes += bytes;
	for (size_t i = 0; i < w->kept.len; i++)
		if (wp_kepts_add(&c->kept, &w->kept.v[i]))
			return -ENOMEM;
	if (WP_VEC_ROOM(c->tables, c->ntables, c->cap_tables, w->ntables))
		return -ENOMEM;
	for (size_t i = 0; i < w->ntables && c->ntables < WP_TABLES_MAX; i++)
		c->tables[c->ntables++] = w->tables[i];
	return 0;
}

static void clear_walk(struct wp_chunk_walk *w)
{
	free(w->tables);
	free(w->kept.v);
}

/* Walk from START to END, of memory of BYTES bytes.  0 or -ENOMEM. */
static int walk(struct census *c, uint64_t start, uint64_t end,
		bool ends_at_top, uint64_t bytes)
{
	const uint64_t begin_ns = wp_clock_ns();
	const uint64_t left_ns = c->memory->until_ns > begin_ns ?
					 c->memory->until_ns - begin_ns :
					 0;
	struct wp_chunk_walk best = { 0 };
	int rc = 0;

	for (unsigned int i = 0; !rc && i < PASSES; i++) {
		struct wp_chunk_walk w = { .memory = c->memory,
					   .arenas = &c->arenas,
					   .start_avma = start,
					   .end_avma = end,
					   .ends_at_top = ends_at_top,
					   .window = c->window };

		rc = wp_chunk_walk(&w);
		if (!i || (!w.is_cut && w.torn_bytes < best.torn_bytes)) {
			clear_walk(&best);
			best = w;
		} else {
			clear_walk(&w);
		}
		/* Other arenas and what is kept free want the time too. */
		if (!best.torn_bytes || best.is_cut ||
		    wp_clock_ns() - begin_ns > left_ns / AGAIN)
			break;
	}
	if (!rc)
		rc = add_walk(c, &best, bytes);
	clear_walk(&best);
	return rc;
}

/* Walk brk's memory, which the main arena has.  What of it is another's is torn. */
static int walk_main(struct census *c, const struct wp_arena *arena)
{
	uint64_t start = c->memory->brk.start_avma;

	if (arena->top < start || arena->top >= c->memory->brk.end_avma)
		return 0;
	return walk(c, start, arena->top, true,
		    arena->top - start + arena->top_size);
}

/* Walk the heaps of ARENA, the newest first.  It is in the oldest, behind its head; so
 * heads are as long as that tells. */
static int walk_heaps(struct census *c, const struct wp_arena *arena)
{
	const uint64_t mask = ~((uint64_t)HEAP_SIZE - 1);
	uint64_t head = arena->avma & ~mask, heap = arena->top & mask;
	uint64_t left = arena->system_mem;
	bool is_newest = true;
	int rc = 0;

	if (head < INFO_MIN || head > INFO_MAX)
		return 0;
	for (size_t n = 0; !rc && heap && n < HEAPS_MAX && !is_late(c); n++) {
		uint64_t info[INFO_WORDS], start = heap + head, end;

		if (c->memory->read(c->memory->ctx, heap, info, sizeof(info)) !=
			    sizeof(info) ||
		    info[0] != arena->avma || info[2] > HEAP_SIZE || !info[2] ||
		    info[2] > left)
			break;
		if (heap == (arena->avma & mask))
			start = (arena->end_avma + 15) & ~(uint64_t)15;
		end = is_newest ? arena->top : heap + info[2];
		if (start > end || end > heap + info[2])
			break;
		left -= info[2];
		rc = walk(c, start, end, is_newest, info[2]);
		is_newest = false;
		heap = info[1];
	}
	return rc;
}

static void take_fastbins_out(struct census *c, const struct wp_arena *arena)
{
	for (size_t i = 0; i < WP_NFASTBINS; i++)
		take_list_out(c, arena->fastbins[i], WP_CHUNK_MIN + 16 * i, 0,
			      LIST_MAX);
}

/* Is a mapped chunk at AVMA, in memory that ends at END?  The size of its mapping, or 0. */
static uint64_t mapped_at(const struct census *c, uint64_t avma, uint64_t end)
{
	const uint64_t in_page = c->memory->page - 1;
	uint64_t head[2], size;

	if (c->memory->read(c->memory->ctx, avma, head, sizeof(head)) !=
	    sizeof(head))
		return 0;
	/* Since 2.43 the header is not in its size, and the word before that may say
	 * that it is of huge pages. */
	size = head[1] ^ MMAPPED;
	if ((size & in_page) == c->memory->page - HEADER)
		size += HEADER;
	return head[0] & ~(uint64_t)HUGE || size & in_page ||
			       size > end - avma ?
		       0 :
		       size;
}

/* Search the memory of no file for mapped chunks, as long as malloc says that there are
 * more. */
static void count_mapped(struct census *c)
{
	const struct wp_census_memory *m = c->memory;
	struct wp_census *ret = c->ret;
	size_t npages = 0;

	for (size_t i = 0; i < m->nanon; i++) {
		uint64_t avma = m->anon[i].start_avma;
		uint64_t end = m->anon[i].end_avma;

		if (avma >= m->brk.start_avma && avma < m->brk.end_avma)
			continue;
		while (avma < end && !is_late(c) &&
		       (!ret->knows_mapped ||
			ret->in_mapped.bytes < ret->mapped_bytes)) {
			uint64_t size = mapped_at(c, avma, end);
			struct wp_census_count one = { size != 0, size };

			if (npages++ == PAGES_MAX) {
				ret->is_search_cut = true;
				return;
			}
			add(&ret->mapped[wp_census_class(size)], &one);
			add(&ret->in_mapped, &one);
			avma += size ? size : m->page;
		}
	}
}

static int count_all(struct census *c)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < c->arenas.len; i++) {
		const struct wp_arena *arena = &c->arenas.v[i];

		c->ret->narenas++;
		c->ret->system_bytes += arena->system_mem;
		if (!arena->system_mem || is_late(c))
			continue;
		rc = i ? walk_heaps(c, arena) : walk_main(c, arena);
	}
	/* Threads keep chunks of any arena.  Each has the process's number, where
	 * there is one. */
	if (!rc)
		take_numbered_out(c);
	if (!rc && !c->ret->cached.chunks)
		take_tables_out(c);
	for (size_t i = 0; !rc && i < c->arenas.len; i++)
		take_fastbins_out(c, &c->arenas.v[i]);
	for (size_t i = 0; i < WP_CENSUS_CLASSES; i++)
		add(&c->ret->in_use, &c->ret->heap[i]);
	if (!rc)
		count_mapped(c);
	return rc;
}

int wp_census_take(struct wp_census *ret, const struct wp_census_memory *memory)
{
	struct census c = { .ret = ret, .memory = memory };
	int rc;

	*ret = (struct wp_census){ 0 };
	c.window = malloc(WP_WINDOW);
	rc = c.window ? wp_arenas_find(&c.arenas, memory) : -ENOMEM;
	ret->knows_mapped = c.arenas.knows_mapped;
	ret->mapped_bytes = c.arenas.mapped_bytes;
	if (!rc)
		rc = count_all(&c);
	/* Another's malloc is used. */
	if (!rc && !ret->system_bytes)
		rc = -ENOENT;
	wp_arenas_clear(&c.arenas);
	free(c.tables);
	free(c.kept.v);
	free(c.window);
	return rc;
}
