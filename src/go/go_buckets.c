/* SPDX-License-Identifier: Apache-2.0 */
/* go_buckets.c - the lists of buckets of Go's profiles (runtime/mprof.go).
 *
 * A bucket is never freed or moved, and new ones come in front of the list, so
 * its head is the variable from which the longest list goes on.  What a bucket
 * of the heap has counted changes when a garbage collection ends, in all of
 * them: they are read until two readings agree.
 */
#include "wallprof/go_buckets.h"

#include <errno.h>
#include <stdlib.h>

#include "go_program_priv.h"
#include "wallprof/budget.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

enum {
	WORD = 8,
	/* A bucket: the list, its type, the objects' size, pcs. */
	ALLNEXT = 8,
	TYPE = 16,
	SIZE = 32,
	NPCS = 40,
	PCS = 48,
	/* Go 1.23: GODEBUG=profstackdepth=1024, and a mark before it. */
	PCS_MAX = 1025,
	CHECKED_PCS = 8,
	/* What a bucket of the heap has counted: as of the last collection that
	 * has ended, and of the three after it; up to Go 1.26 the bytes as well
	 * as the objects. */
	CYCLES = 4,
	RECORD_MAX = CYCLES * 4 * WORD,
	BYTES_MINOR_MAX = 26,
	/* Buckets of a list, and of all lists that are walked to find it. */
	BUCKETS_MAX = 1 << 20,
	WALKED_MAX = 1 << 22,
	PROBES_MAX = 1 << 16,
	/* Buckets whose counts are read together, as one within this distance. */
	PIECE = 512,
	GAP = 512,
	TRIES = 5,
};

/* Before the pcs of which each stands for one function, inlined or not. */
#define LOGICAL_MARK UINT64_MAX

struct search {
	struct wp_go_probe probe;
	/* Buckets that may still be walked. */
	uint64_t walked_left;
	/* Of the longest list so far of each book. */
	uint64_t longest[WP_NGO_BOOKS];
};

static bool is_bucket(const uint8_t *b, uint64_t type)
{
	uint64_t n = wp_go_u64(b, NPCS);

	return wp_go_u64(b, TYPE) == type && n && n <= PCS_MAX;
}

/* Is AVMA in Go's code, or in that of a plugin? */
static bool is_any_code(const struct wp_go_program *p, uint64_t avma)
{
	const struct wp_go_reader *reader = &p->memory.reader;

	return wp_go_is_code(p, avma) ||
	       (reader->is_code && reader->is_code(reader->ctx, avma));
}

static bool are_pcs(struct wp_go_program *p, uint64_t avma, uint64_t n)
{
	uint64_t pcs[CHECKED_PCS];

	if (n > CHECKED_PCS)
		n = CHECKED_PCS;
	if (!wp_go_memory_read_at(&p->memory, avma, pcs, n * WORD))
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (!is_any_code(p, pcs[i] - 1) &&
		    (i || pcs[i] != LOGICAL_MARK))
			return false;
	return true;
}

/* How many buckets follow the one at AVMA? */
static uint64_t walk(struct search *s, uint64_t avma, uint64_t type)
{
	uint8_t b[PCS];
	uint64_t n = 0;

	while (wp_go_is_pointer(avma) && n < BUCKETS_MAX && s->walked_left &&
	       wp_go_memory_read_at(&s->probe.program->memory, avma, b, PCS) &&
	       is_bucket(b, type)) {
		s->walked_left--;
		n++;
		avma = wp_go_u64(b, ALLNEXT);
	}
	return n;
}

/* Note the word at AVMA if a longer list than any before goes on from it. */
static bool note_list(struct wp_go_probe *probe, const uint64_t *v,
		      uint64_t avma)
{
	struct search *s = (struct search *)probe;
	struct wp_go_program *p = probe->program;
	uint8_t b[PCS];
	uint64_t type, n;

	if (!wp_go_is_pointer(*v))
		return false;
	probe->left--;
	if (!wp_go_memory_read_at(&p->memory, *v, b, PCS))
		return false;
	type = wp_go_u64(b, TYPE);
	if (!type || type >= WP_NGO_BOOKS || !is_bucket(b, type) ||
	    !are_pcs(p, *v + PCS, wp_go_u64(b, NPCS)))
		return false;
	n = walk(s, *v, type);
	if (n > s->longest[type]) {
		s->longest[type] = n;
		p->books_avma[type] = avma;
	}
	return false;
}

static int find_books(struct wp_go_program *p)
{
	struct search s = { .probe = { .program = p, .left = PROBES_MAX },
			    .walked_left = WALKED_MAX };
	int rc;

	if (p->has_books)
		return 0;
	rc = wp_go_scan(&s.probe, &p->module.bss, 1, note_list);
	if (rc >= 0)
		rc = wp_go_scan(&s.probe, &p->module.noptrbss, 1, note_list);
	p->has_books = rc >= 0;
	return rc < 0 ? rc : 0;
}

static size_t record_len(const struct wp_go_program *p, enum wp_go_book book)
{
	if (book != WP_GO_BOOK_HEAP)
		return 2 * WORD;
	return p->module.minor <= BYTES_MINOR_MAX ? RECORD_MAX : RECORD_MAX / 2;
}

struct reading {
	struct wp_go_program *program;
	struct wp_go_buckets *all;
	enum wp_go_book book;
	size_t record_len;
	/* Per bucket: where its counts are, and their bytes; owned. */
	uint64_t *avmas;
	uint32_t cap_avmas;
	uint8_t *records;
	uint64_t cap_records;
};

/* Read LEN bytes.  1: read; 0: they cannot be read; -errno: nothing can. */
static int get(struct reading *r, uint64_t avma, void *buf, size_t len)
{
	struct wp_process_range range = { .avma = avma,
					  .buf = buf,
					  .len = len };
	int rc = wp_go_memory_read(&r->program->memory, &range, 1, 0);

	return rc ? rc : range.is_read;
}

/* What one more bucket of NPCS takes.  1: there is room; 0: there is none
 * within
 * --max-memory; -ENOMEM. */
static int make_room(struct reading *r, uint64_t npcs)
{
	struct wp_go_buckets *all = r->all;
	uint64_t bytes = sizeof(*all->v) + WORD + r->record_len + npcs * WORD;

	if (!wp_budget_take(WP_BUDGET_GO, bytes))
		return 0;
	all->taken += bytes;
	if (WP_VEC_ROOM(all->v, all->len, all->cap, 1) ||
	    WP_VEC_ROOM(r->avmas, all->len, r->cap_avmas, 1) ||
	    WP_VEC_ROOM(r->records, all->len * r->record_len, r->cap_records,
			r->record_len) ||
	    WP_VEC_ROOM(all->pcs, all->npcs, all->cap_pcs, npcs))
		return -ENOMEM;
	return 1;
}

/* Read the bucket at AVMA and set *RET_NEXT.  1; 0: it is none, or there is no
 * room; -errno. */
static int read_bucket(struct reading *r, uint64_t avma, uint64_t *ret_next)
{
	struct wp_go_buckets *all = r->all;
	struct wp_go_bucket bucket = { .first_pc = all->npcs };
	uint8_t b[PCS];
	uint64_t *pcs;
	int rc = wp_go_is_pointer(avma) ? get(r, avma, b, PCS) : 0;

	if (rc <= 0 || !is_bucket(b, r->book))
		return rc < 0 ? rc : 0;
	bucket.size = wp_go_u64(b, SIZE);
	bucket.npcs = (uint32_t)wp_go_u64(b, NPCS);
	rc = make_room(r, bucket.npcs);
	if (rc <= 0)
		return rc;
	pcs = all->pcs + all->npcs;
	avma += PCS;
	rc = get(r, avma, pcs, bucket.npcs * WORD);
	if (rc <= 0)
		return rc;
	if (*pcs == LOGICAL_MARK) {
		bucket.first_pc++;
		bucket.npcs--;
	}
	all->npcs += wp_go_u64(b, NPCS);
	r->avmas[all->len] = avma + wp_go_u64(b, NPCS) * WORD;
	all->v[all->len++] = bucket;
	*ret_next = wp_go_u64(b, ALLNEXT);
	return 1;
}

static int read_list(struct reading *r)
{
	uint64_t avma = 0;
	int rc = get(r, r->program->books_avma[r->book], &avma, WORD);

	while (rc == 1 && avma && r->all->len < BUCKETS_MAX)
		rc = read_bucket(r, avma, &avma);
	/* How many come after one that is not read is not known. */
	r->all->nunread += rc == 0 || (rc == 1 && avma);
	return rc < 0 ? rc : 0;
}

/* Read what all buckets have counted; what cannot be read is 0. */
static int read_records(struct reading *r)
{
	struct wp_process_range ranges[PIECE];
	int rc = 0;

	for (uint32_t at = 0; !rc && at < r->all->len; at += PIECE) {
		uint32_t left = r->all->len - at,
			 n = left < PIECE ? left : PIECE;

		for (uint32_t i = 0; i < n; i++)
			ranges[i] = (struct wp_process_range){
				.avma = r->avmas[at + i],
				.buf = r->records + (at + i) * r->record_len,
				.len = r->record_len,
			};
		rc = wp_go_memory_read(&r->program->memory, ranges, n, GAP);
		for (uint32_t i = 0; !rc && i < n; i++)
			if (!ranges[i].is_read)
				memset(ranges[i].buf, 0, r->record_len);
	}
	return rc;
}

/* Read them until two readings agree. */
static int read_still(struct reading *r)
{
	size_t len = r->all->len * r->record_len;
	uint64_t before, after;
	int rc = read_records(r);

	after = wp_hash_bytes(0, r->records, len);
	r->all->is_mixed = r->book == WP_GO_BOOK_HEAP;
	for (int i = 1; !rc && i < TRIES && r->all->is_mixed; i++) {
		before = after;
		rc = read_records(r);
		after = wp_hash_bytes(0, r->records, len);
		r->all->is_mixed = before != after;
	}
	return rc;
}

/* Add CYCLE of RECORD to BUCKET. */
static void add_cycle(const struct reading *r, const uint8_t *record, int cycle,
		      struct wp_go_bucket *bucket)
{
	bool has_bytes = r->record_len == RECORD_MAX;
	const uint8_t *at = record + (size_t)cycle * r->record_len / CYCLES;
	uint64_t allocs = wp_go_u64(at, 0), frees = wp_go_u64(at, WORD);

	bucket->alloc_objects += allocs;
	bucket->free_objects += frees;
	bucket->alloc_bytes += has_bytes ? wp_go_u64(at, 2 * WORD) :
					   allocs * bucket->size;
	bucket->free_bytes += has_bytes ? wp_go_u64(at, 3 * WORD) :
					  frees * bucket->size;
}

/* As runtime.MemProfile: before the first collection has ended nothing is
 * counted but what comes after it. */
static void set_heap(struct reading *r)
{
	bool is_new = true;

	for (uint32_t i = 0; i < r->all->len; i++)
		add_cycle(r, r->records + i * r->record_len, 0, &r->all->v[i]);
	for (uint32_t i = 0; is_new && i < r->all->len; i++)
		is_new = !r->all->v[i].alloc_objects &&
			 !r->all->v[i].free_objects;
	for (uint32_t i = 0; is_new && i < r->all->len; i++)
		for (int k = 1; k < CYCLES; k++)
			add_cycle(r, r->records + i * r->record_len, k,
				  &r->all->v[i]);
}

static void set_waits(struct reading *r)
{
	for (uint32_t i = 0; i < r->all->len; i++) {
		const uint8_t *record = r->records + i * r->record_len;

		memcpy(&r->all->v[i].waits, record, WORD);
		r->all->v[i].ticks = (int64_t)wp_go_u64(record, WORD);
	}
}

int wp_go_buckets_read(struct wp_go_program *program, enum wp_go_book book,
		       struct wp_go_buckets *ret)
{
	struct reading r = { .program = program,
			     .all = ret,
			     .book = book,
			     .record_len = record_len(program, book) };
	int rc = find_books(program);

	if (!rc && !program->books_avma[book])
		rc = -ENODATA;
	if (!rc)
		rc = read_list(&r);
	if (!rc)
		rc = read_still(&r);
	if (!rc && book == WP_GO_BOOK_HEAP)
		set_heap(&r);
	else if (!rc)
		set_waits(&r);
	free(r.avmas);
	free(r.records);
	return rc;
}

void wp_go_buckets_clear(struct wp_go_buckets *buckets)
{
	free(buckets->v);
	free(buckets->pcs);
	wp_budget_give(WP_BUDGET_GO, buckets->taken);
	*buckets = (struct wp_go_buckets)WP_GO_BUCKETS_INIT;
}
