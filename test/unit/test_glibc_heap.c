/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: heap.  A process's memory with a heap of glibc's malloc that the test makes, as
 * malloc/malloc.c and malloc/arena.c lay it out: what is counted is what was put there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "wallprof/glibc_heap.h"

#define DATA UINT64_C(0x7f1200100000)
#define BRK UINT64_C(0x555500001000)
/* Heaps of another arena begin at multiples of 64 MiB. */
#define OLD UINT64_C(0x7f1210000000)
#define NEW UINT64_C(0x7f1218000000)
#define MAPPED UINT64_C(0x7f1220000000)
#define KEY UINT64_C(0x9e3779b97f4a7c15)

enum {
	PAGE = 4096,
	DATA_SIZE = 3 * PAGE,
	BRK_SIZE = 8 * PAGE,
	HEAP_SIZE = 4 * PAGE,
	MAPPED_SIZE = 200 * PAGE,
	NSEGMENTS = 5,
	/* Of the data. */
	ARENA = 0x400,
	ACCOUNT = 0x200,
	/* struct heap_info since 2.35. */
	INFO = 48,
	PREV_INUSE = 1,
};

/* Memory in buffers of its exact size. */
struct segment {
	uint64_t avma;
	size_t len;
	uint8_t *bytes;
};

static struct made {
	struct segment s[NSEGMENTS];
	struct wp_census_area data, anon[NSEGMENTS - 1];
	struct wp_census_memory memory;
	/* Without fastbins, as since 2.43. */
	bool is_new;
	uint32_t nreads;
} made;

static struct wp_census census;

static size_t read_made(void *ctx, uint64_t avma, void *buf, size_t len)
{
	struct made *m = ctx;

	m->nreads++;
	for (size_t i = 0; i < NSEGMENTS; i++) {
		const struct segment *s = &m->s[i];

		if (avma < s->avma || avma - s->avma >= s->len)
			continue;
		if (len > s->len - (avma - s->avma))
			len = s->len - (avma - s->avma);
		memcpy(buf, s->bytes + (avma - s->avma), len);
		return len;
	}
	return 0;
}

static void put(uint64_t avma, uint64_t word)
{
	for (size_t i = 0; i < NSEGMENTS; i++) {
		struct segment *s = &made.s[i];

		if (avma >= s->avma && avma - s->avma + 8 <= s->len) {
			memcpy(s->bytes + (avma - s->avma), &word, 8);
			return;
		}
	}
	fail();
}

static uint64_t head(void)
{
	return made.is_new ? 24 : 112;
}

/* The arena at AVMA, with TOP and SYSTEM_MEM, before NEXT. */
static void put_arena(uint64_t avma, uint64_t top, uint64_t system_mem,
		      uint64_t next)
{
	uint64_t bins = avma + head();

	for (uint64_t k = 0; k < 127; k++) {
		put(bins + 16 * k, bins + 16 * k - 16);
		put(bins + 16 * k + 8, bins + 16 * k - 16);
	}
	put(bins - 16, top);
	put(bins + 127 * 16 + 16, next);
	put(bins + 127 * 16 + 40, system_mem);
	put(bins + 127 * 16 + 48, system_mem + PAGE);
}

/* A chunk of SIZE bytes at *AT, which moves behind it; the next will say if it is in
 * use. */
static uint64_t put_chunk(uint64_t *at, uint64_t size, bool in_use,
			  bool was_in_use)
{
	uint64_t chunk = *at;

	put(chunk + 8, size | (was_in_use ? PREV_INUSE : 0));
	*at += size;
	put(*at + 8, in_use ? PREV_INUSE : 0);
	return chunk;
}

/* What the main heap is made of: chunks by number, where they were put. */
enum { A, FREED, B, KEPT_1, KEPT_2, FAST_1, FAST_2, BIG, TABLE, NCHUNKS };
static uint64_t at[NCHUNKS];
static const uint64_t sizes[NCHUNKS] = { 32, 96, 32,	   48, 48,
					 64, 64, 5000 + 8, 656 };

static void make(bool is_new)
{
	static const struct {
		uint64_t avma;
		size_t len;
	} where[NSEGMENTS] = { { BRK, BRK_SIZE },
			       { OLD, HEAP_SIZE },
			       { NEW, HEAP_SIZE },
			       { MAPPED, MAPPED_SIZE },
			       { DATA, DATA_SIZE } };
	uint64_t next = BRK;

	memset(&made, 0, sizeof(made));
	made.is_new = is_new;
	for (size_t i = 0; i < NSEGMENTS; i++) {
		made.s[i].avma = where[i].avma;
		made.s[i].len = where[i].len;
		made.s[i].bytes = calloc(1, where[i].len);
		assert_non_null(made.s[i].bytes);
		if (where[i].avma != DATA)
			made.anon[i] = (struct wp_census_area){
				where[i].avma, where[i].avma + where[i].len
			};
	}
	made.data = (struct wp_census_area){ DATA, DATA + DATA_SIZE };
	made.memory = (struct wp_census_memory){ .read = read_made,
						 .ctx = &made,
						 .page = PAGE,
						 .data = &made.data,
						 .ndata = 1,
						 .anon = made.anon,
						 .nanon = NSEGMENTS - 1,
						 .brk = made.anon[0],
						 .until_ns = UINT64_MAX };
	for (size_t i = 0; i < NCHUNKS; i++)
		at[i] = put_chunk(&next, sizes[i], i != FREED, i != FREED + 1);
	put(next + 8, (BRK + BRK_SIZE - next) | PREV_INUSE);
	put_arena(DATA + ARENA, next, BRK_SIZE, DATA + ARENA);
}

/* A second arena, in two heaps: of 48 and 80 bytes in use, and of 112. */
static void add_arena(void)
{
	uint64_t arena = OLD + INFO, start = arena + head() + 127 * 16 + 56;
	uint64_t next = (start + 15) & ~UINT64_C(15), rest;
	uint64_t top;

	put_chunk(&next, 48, true, true);
	put_chunk(&next, 80, true, true);
	rest = OLD + HEAP_SIZE - 32 - next;
	put_chunk(&next, rest, false, true);
	put(next + 8, 16);
	put(next + 24, PREV_INUSE);
	put(OLD, arena);
	put(OLD + 16, HEAP_SIZE);
	put(NEW, arena);
	put(NEW + 8, OLD);
	put(NEW + 16, HEAP_SIZE);
	top = NEW + INFO;
	put_chunk(&top, 112, true, true);
	put(top + 8, (NEW + HEAP_SIZE - top) | PREV_INUSE);
	put_arena(arena, top, 2 * HEAP_SIZE, DATA + ARENA);
	put(DATA + ARENA + head() + 127 * 16 + 16, arena);
}

/* Chunks KEPT_1 and KEPT_2 are of a thread, by the number that marks them. */
static void keep_by_number(void)
{
	put(DATA + 0x100, KEY);
	put(at[KEPT_1] + 16, (at[KEPT_2] + 16) ^ (at[KEPT_1] + 16) >> 12);
	put(at[KEPT_1] + 24, KEY);
	put(at[KEPT_2] + 16, (at[KEPT_2] + 16) >> 12);
	put(at[KEPT_2] + 24, KEY);
}

/* Objects A and B are nodes of a list, with a number that the data has as well, as that of
 * a static program may: 1.0. */
static void link_objects(void)
{
	put(DATA + 0x110, UINT64_C(0x3ff0000000000000));
	put(at[A] + 16, at[B] + 16);
	put(at[A] + 24, UINT64_C(0x3ff0000000000000));
	put(at[B] + 16, at[A] + 16);
	put(at[B] + 24, UINT64_C(0x3ff0000000000000));
}

/* The same by the thread's table, as before 2.34. */
static void keep_by_table(bool is_safe)
{
	uint64_t mask = is_safe ? (at[KEPT_1] + 16) >> 12 : 0;

	put(at[TABLE] + 16, UINT64_C(2) << 16);
	put(at[TABLE] + 16 + 128 + 8, at[KEPT_1] + 16);
	put(at[KEPT_1] + 16, (at[KEPT_2] + 16) ^ mask);
	put(at[KEPT_2] + 16, is_safe ? (at[KEPT_2] + 16) >> 12 : 0);
}

static void put_fastbins(bool is_safe)
{
	uint64_t mask = is_safe ? (at[FAST_1] + 16) >> 12 : 0;

	put(DATA + ARENA + 16 + 8 * 2, at[FAST_1]);
	put(at[FAST_1] + 16, at[FAST_2] ^ mask);
	put(at[FAST_2] + 16, is_safe ? (at[FAST_2] + 16) >> 12 : 0);
}

/* Two chunks with a mapping each, of which one has its header in its size, behind
 * something else. */
static void put_mapped(void)
{
	put(MAPPED + 2 * PAGE + 8, 100 * PAGE | 2);
	put(MAPPED + 102 * PAGE + 8, (50 * PAGE - 16) | 2);
	/* struct malloc_par of 2.35 and later. */
	put(DATA + ACCOUNT - 32, (uint64_t)2 << 32 | 65536);
	put(DATA + ACCOUNT - 16, 150 * PAGE);
	put(DATA + ACCOUNT - 8, 160 * PAGE);
	put(DATA + ACCOUNT, BRK);
}

static int take(void)
{
	return wp_census_take(&census, &made.memory);
}

static void clear(void)
{
	for (size_t i = 0; i < NSEGMENTS; i++)
		free(made.s[i].bytes);
	memset(&made, 0, sizeof(made));
}

static int teardown(void **state)
{
	(void)state;
	clear();
	return 0;
}

static uint64_t chunks_of(uint64_t size)
{
	return census.heap[wp_census_class(size)].chunks;
}

static void every_size_has_a_class(void **state)
{
	uint64_t before = 0;

	(void)state;
	for (size_t i = 0; i < WP_CENSUS_CLASSES; i++) {
		uint64_t max = wp_census_class_max(i);

		assert_true(!i || max > before);
		assert_int_equal(wp_census_class(max), i);
		if (i + 1 < WP_CENSUS_CLASSES)
			assert_int_equal(wp_census_class(max + 16), i + 1);
		before = max;
	}
	assert_int_equal(before, UINT64_C(1) << 48);
	assert_int_equal(wp_census_class(UINT64_MAX & ~UINT64_C(15)),
			 WP_CENSUS_CLASSES - 1);
}

static void what_is_in_use_is_counted(void **state)
{
	(void)state;
	for (int is_new = 0; is_new < 2; is_new++) {
		make(is_new);
		keep_by_number();
		if (!is_new)
			put_fastbins(true);
		add_arena();
		put_mapped();
		assert_int_equal(take(), 0);
		assert_int_equal(chunks_of(32), 2);
		assert_int_equal(chunks_of(48), 1);
		assert_int_equal(chunks_of(64), is_new ? 2 : 0);
		assert_int_equal(chunks_of(80), 1);
		assert_int_equal(chunks_of(96), 0);
		assert_int_equal(chunks_of(112), 1);
		assert_int_equal(chunks_of(5008), 1);
		assert_int_equal(census.in_use.chunks, is_new ? 9 : 7);
		assert_int_equal(census.in_use.bytes,
				 64 + 48 + 80 + 112 + 5008 + 656 +
					 (is_new ? 128 : 0));
		assert_int_equal(census.cached.bytes, is_new ? 96 : 224);
		assert_int_equal(census.narenas, 2);
		assert_int_equal(census.system_bytes, BRK_SIZE + 2 * HEAP_SIZE);
		assert_int_equal(census.walked_bytes, census.system_bytes);
		assert_int_equal(census.torn_bytes, 0);
		assert_false(census.is_cut);
		assert_true(census.knows_mapped);
		assert_int_equal(census.mapped_bytes, 150 * PAGE);
		assert_int_equal(census.in_mapped.chunks, 2);
		assert_int_equal(census.in_mapped.bytes, 150 * PAGE);
		assert_int_equal(
			census.mapped[wp_census_class(50 * PAGE)].chunks, 1);
		clear();
	}
}

static void objects_with_words_of_the_data_are_in_use(void **state)
{
	/* By the number there is, by a table, and by neither. */
	static const uint64_t kept[] = { 2, 2, 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		make(true);
		link_objects();
		if (i == 0)
			keep_by_number();
		if (i == 1)
			keep_by_table(true);
		assert_int_equal(take(), 0);
		assert_int_equal(chunks_of(32), 2);
		assert_int_equal(census.cached.chunks, kept[i]);
		assert_int_equal(chunks_of(48), 2 - kept[i]);
		clear();
	}
}

/* Where addresses are low, as in a static program, some objects' links lead to memory when
 * mixed, too: here at one of two. */
static void links_of_objects_that_are_mixed_by_chance_are_told(void **state)
{
	(void)state;
	make(true);
	link_objects();
	put(at[A] + 16, (at[B] + 16) ^ (at[A] + 16) >> 12);
	assert_int_equal(take(), 0);
	assert_int_equal(chunks_of(32), 2);
	assert_int_equal(census.cached.chunks, 0);
}

/* A word that the data has twice is no number. */
static void a_word_that_is_there_twice_is_no_number(void **state)
{
	(void)state;
	make(true);
	keep_by_number();
	put(DATA + 0x120, KEY);
	assert_int_equal(take(), 0);
	assert_int_equal(census.cached.chunks, 0);
}

static void the_number_is_found_among_many_words(void **state)
{
	(void)state;
	make(true);
	keep_by_number();
	for (uint64_t i = 0; i < 1000; i++)
		put(DATA + 4096 + 8 * i, (i + 1) << 52 | i);
	assert_int_equal(take(), 0);
	assert_int_equal(census.cached.chunks, 2);
}

static void lists_of_older_ones_are_followed(void **state)
{
	(void)state;
	for (int is_safe = 0; is_safe < 2; is_safe++) {
		make(false);
		keep_by_table(is_safe);
		put_fastbins(is_safe);
		assert_int_equal(take(), 0);
		assert_int_equal(chunks_of(48), 0);
		assert_int_equal(chunks_of(64), 0);
		assert_int_equal(chunks_of(656), 1);
		assert_int_equal(census.cached.chunks, 4);
		clear();
	}
}

static void an_objects_own_words_make_no_table_of_it(void **state)
{
	(void)state;
	make(false);
	keep_by_table(false);
	/* It has a word where no list has a chunk. */
	put(at[TABLE] + 16 + 128 + 40, 7);
	assert_int_equal(take(), 0);
	assert_int_equal(chunks_of(48), 2);
}

static void what_is_no_chunk_is_passed_over(void **state)
{
	(void)state;
	make(true);
	/* Written over by the program, after its header was read, or another's. */
	put(at[BIG] + 8, UINT64_C(0x4141414141414141));
	assert_int_equal(take(), 0);
	assert_int_equal(census.torn_bytes, 5008);
	assert_int_equal(chunks_of(656), 1);
	assert_int_equal(chunks_of(5008), 0);
	assert_int_equal(census.walked_bytes, census.system_bytes);
}

static void a_program_without_it_is_told(void **state)
{
	(void)state;
	make(true);
	memset(made.s[NSEGMENTS - 1].bytes, 0, DATA_SIZE);
	assert_int_equal(take(), -ENOENT);
	/* It is there, and another malloc is used. */
	put_arena(DATA + ARENA, DATA + ARENA + head() - 16, 0, DATA + ARENA);
	assert_int_equal(take(), -ENOENT);
}

static void a_list_that_does_not_come_back_is_refused(void **state)
{
	(void)state;
	make(true);
	add_arena();
	put(OLD + INFO + head() + 127 * 16 + 16, OLD + INFO);
	assert_int_equal(take(), -EBADMSG);
	put(OLD + INFO + head() + 127 * 16 + 16, 0);
	assert_int_equal(take(), -EBADMSG);
}

static void lists_that_loop_end(void **state)
{
	(void)state;
	make(false);
	put_fastbins(false);
	put(at[FAST_2] + 16, at[FAST_1]);
	add_arena();
	put(OLD + 8, NEW);
	assert_int_equal(take(), 0);
	assert_int_equal(chunks_of(64), 0);
	assert_int_equal(chunks_of(112), 1);
	assert_int_equal(census.walked_bytes, census.system_bytes);
}

static void heaps_of_another_arena_are_not_read(void **state)
{
	(void)state;
	make(true);
	add_arena();
	put(OLD, DATA + ARENA);
	assert_int_equal(take(), 0);
	assert_int_equal(chunks_of(112), 1);
	assert_int_equal(chunks_of(80), 0);
	assert_int_equal(census.walked_bytes, BRK_SIZE + HEAP_SIZE);
}

static void no_more_is_read_than_there_is_time_for(void **state)
{
	(void)state;
	make(true);
	made.memory.until_ns = 0;
	assert_int_equal(take(), 0);
	assert_true(census.is_cut);
	assert_int_equal(census.walked_bytes, 0);
}

/* One that each of many files leads to. */
static void
a_list_that_does_not_come_back_is_not_followed_for_ever(void **state)
{
	/* Of 65,536 arenas the head and a word of the top each. */
	enum { NFILES = 100, MOST = 2 * 65536 + 2 * NFILES };
	static struct wp_census_area files[NFILES];

	(void)state;
	make(true);
	add_arena();
	/* The second leads to itself. */
	put(OLD + INFO + head() + 127 * 16 + 16, OLD + INFO);
	for (size_t i = 0; i < NFILES; i++)
		files[i] = made.data;
	made.memory.data = files;
	made.memory.ndata = NFILES;
	assert_int_equal(take(), -EBADMSG);
	assert_true(made.nreads < MOST);
}

/* Nothing is counted twice: what the arenas say they have is the most. */
static void assert_sane(int rc)
{
	uint64_t bytes = 0;

	assert_true(!rc || rc == -ENOENT || rc == -EBADMSG);
	if (rc)
		return;
	for (size_t i = 0; i < WP_CENSUS_CLASSES; i++)
		bytes += census.heap[i].bytes;
	assert_int_equal(bytes, census.in_use.bytes);
	assert_true(census.in_mapped.bytes <=
		    BRK_SIZE + 2 * HEAP_SIZE + MAPPED_SIZE);
}

/* Make one with all there is, by a number. */
static void make_all(unsigned int n)
{
	make(n & 1);
	keep_by_number();
	if (!made.is_new)
		put_fastbins(n & 2);
	add_arena();
	put_mapped();
}

static void cut(struct segment *s, size_t len)
{
	uint8_t *rest = malloc(len ? len : 1);

	assert_non_null(rest);
	memcpy(rest, s->bytes, len);
	free(s->bytes);
	s->bytes = rest;
	s->len = len;
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSEGMENTS; i++)
		for (size_t len = 0; len < 3 * PAGE; len += 8) {
			make_all((unsigned int)(len / 8));
			cut(&made.s[i], len);
			assert_sane(take());
			clear();
		}
}

static void lies_do_no_harm(void **state)
{
	static const uint64_t words[] = {
		0,	    1,	 UINT64_MAX, BRK,
		BRK + 0x40, OLD, OLD + 8,    DATA + 0x10,
		MAPPED,	    33,	 KEY,	     (uint64_t)1 << 40
	};
	uint64_t random = 1;

	(void)state;
	for (int n = 0; n < 3000; n++) {
		make_all((unsigned int)n);
		for (int i = 0; i < 4; i++) {
			const struct segment *s;

			random = random * UINT64_C(6364136223846793005) + 1;
			s = &made.s[(random >> 60) % NSEGMENTS];
			/* Most of what has a meaning is at the beginning. */
			put(s->avma + ((random >> 33) % PAGE & ~UINT64_C(7)),
			    words[(random >> 50) %
				  (sizeof(words) / sizeof(*words))]);
		}
		assert_sane(take());
		clear();
	}
}

int main(void)
{
#define TEST(test) cmocka_unit_test_teardown(test, teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_size_has_a_class),
		TEST(what_is_in_use_is_counted),
		TEST(objects_with_words_of_the_data_are_in_use),
		TEST(links_of_objects_that_are_mixed_by_chance_are_told),
		TEST(a_word_that_is_there_twice_is_no_number),
		TEST(the_number_is_found_among_many_words),
		TEST(lists_of_older_ones_are_followed),
		TEST(an_objects_own_words_make_no_table_of_it),
		TEST(what_is_no_chunk_is_passed_over),
		TEST(a_program_without_it_is_told),
		TEST(a_list_that_does_not_come_back_is_refused),
		TEST(lists_that_loop_end),
		TEST(heaps_of_another_arena_are_not_read),
		TEST(a_list_that_does_not_come_back_is_not_followed_for_ever),
		TEST(no_more_is_read_than_there_is_time_for),
		TEST(every_prefix_is_safe),
		TEST(lies_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
