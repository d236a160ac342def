/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: go.  The buckets of a program made by hand, whose memory lies and changes
 * while it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "go_maker.h"
#include "wallprof/budget.h"
#include "wallprof/go_buckets.h"

enum {
	/* Where the heads of the lists are, and the buckets. */
	HEADS = 0x80,
	BUCKETS = 0x12000,
	STEP = 0x200,
	PCS = 48,
	NPCS = 2,
	RECORD = PCS + 8 * NPCS,
};

struct fixture {
	struct made_go made;
	struct wp_go_buckets all;
};

static uint8_t *bucket(struct fixture *f, size_t i)
{
	return f->made.memory + BUCKETS + i * STEP;
}

/* Bucket I of TYPE, before the one at NEXT_OFF; 0: none. */
static void put_bucket(struct fixture *f, size_t i, uint64_t type,
		       uint64_t next_off)
{
	uint8_t *b = bucket(f, i);

	made_put(b, 8, next_off ? made_avma(next_off) : 0, 8);
	made_put(b, 16, type, 8);
	made_put(b, 32, 64, 8);
	made_put(b, 40, NPCS, 8);
	made_put(b, PCS, MADE_TEXT + MADE_BIAS + 0x10, 8);
	made_put(b, PCS + 8, MADE_TEXT + MADE_BIAS + MADE_FUNC + 0x10, 8);
}

/* Three of the heap, of which the first two have objects; two of waits. */
static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	double waits = 2.5;

	made_go_init(&f->made);
	for (size_t i = 0; i < 3; i++)
		put_bucket(f, i, 1, i < 2 ? BUCKETS + (i + 1) * STEP : 0);
	for (size_t i = 3; i < 5; i++)
		put_bucket(f, i, 2, i < 4 ? BUCKETS + (i + 1) * STEP : 0);
	for (size_t i = 0; i < 2; i++) {
		made_put(bucket(f, i), RECORD, 10 + i, 8);
		made_put(bucket(f, i), RECORD + 8, 4, 8);
		made_put(bucket(f, i), RECORD + 16, 64 * (10 + i), 8);
		made_put(bucket(f, i), RECORD + 24, 64 * 4, 8);
		/* Of the collection at hand. */
		made_put(bucket(f, i), RECORD + 32, 1000, 8);
	}
	memcpy(bucket(f, 3) + RECORD, &waits, 8);
	made_put(bucket(f, 3), RECORD + 8, 12345, 8);
	made_put(f->made.memory, HEADS, made_avma(BUCKETS), 8);
	/* A word that points into the list is not its head. */
	made_put(f->made.memory, HEADS + 8, made_avma(BUCKETS + STEP), 8);
	made_put(f->made.memory, HEADS + 16, made_avma(BUCKETS + 3 * STEP), 8);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	wp_go_buckets_clear(&f->all);
	wp_budget_set(WP_BUDGET_DEFAULT);
	test_free(f);
	return 0;
}

static int read_book(struct fixture *f, enum wp_go_book book)
{
	struct wp_go_program *program;
	int rc;

	wp_go_buckets_clear(&f->all);
	assert_int_equal(made_open(&f->made, &program, NULL), 0);
	rc = wp_go_buckets_read(program, book, &f->all);
	wp_go_program_free(program);
	return rc;
}

static void each_book_is_read(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
	assert_int_equal(f->all.len, 3);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(f->all.v[i].alloc_objects, 10 + i);
		assert_int_equal(f->all.v[i].alloc_bytes, 64 * (10 + i));
		assert_int_equal(f->all.v[i].free_objects, 4);
		assert_int_equal(f->all.v[i].size, 64);
		assert_int_equal(f->all.v[i].npcs, NPCS);
	}
	assert_int_equal(f->all.v[2].alloc_objects, 0);
	assert_false(f->all.is_mixed);
	assert_int_equal(f->all.nunread, 0);
	assert_int_equal(read_book(f, WP_GO_BOOK_BLOCK), 0);
	assert_int_equal(f->all.len, 2);
	assert_true(f->all.v[0].waits > 2.4 && f->all.v[0].waits < 2.6);
	assert_int_equal(f->all.v[0].ticks, 12345);
	assert_int_equal(read_book(f, WP_GO_BOOK_MUTEX), -ENODATA);
}

static void before_the_first_collection_all_counts(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < 2; i++)
		memset(bucket(f, i) + RECORD, 0, 32);
	made_put(bucket(f, 1), RECORD + 96, 7, 8);
	assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
	assert_int_equal(f->all.v[0].alloc_objects, 1000);
	assert_int_equal(f->all.v[1].alloc_objects, 1007);
}

static void a_mark_is_no_pc(void **state)
{
	struct fixture *f = *state;

	made_put(bucket(f, 0), PCS, UINT64_MAX, 8);
	assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
	assert_int_equal(f->all.v[0].npcs, NPCS - 1);
	assert_int_equal(f->all.pcs[f->all.v[0].first_pc],
			 MADE_TEXT + MADE_BIAS + MADE_FUNC + 0x10);
}

enum { PLUGIN = 0x7f0000000000 };

static bool is_plugin(void *ctx, uint64_t avma)
{
	(void)ctx;
	return avma >= PLUGIN && avma < PLUGIN + 0x1000;
}

/* The list is known by the stack of its first bucket. */
static void the_first_stack_may_be_a_plugins(void **state)
{
	struct fixture *f = *state;
	const struct wp_go_reader reader = { made_read, &f->made, is_plugin };
	struct wp_go_program *program;

	made_put(bucket(f, 0), PCS, PLUGIN + 0x10, 8);
	assert_int_equal(wp_go_program_open(&program, &f->made.image, MADE_BIAS,
					    &reader, NULL),
			 0);
	assert_int_equal(wp_go_buckets_read(program, WP_GO_BOOK_HEAP, &f->all),
			 0);
	assert_int_equal(f->all.len, 3);
	assert_int_equal(f->all.pcs[0], PLUGIN + 0x10);
	wp_go_program_free(program);
	wp_go_buckets_clear(&f->all);
	/* What is nobody's code is no stack. */
	made_put(bucket(f, 0), PCS, PLUGIN + 0x2000, 8);
	assert_int_equal(wp_go_program_open(&program, &f->made.image, MADE_BIAS,
					    &reader, NULL),
			 0);
	assert_int_equal(wp_go_buckets_read(program, WP_GO_BOOK_HEAP, &f->all),
			 0);
	assert_int_equal(f->all.len, 2);
	wp_go_program_free(program);
}

static void count_up(struct made_go *made)
{
	++made->memory[BUCKETS + RECORD];
}

static void counts_that_change_each_time_are_told(void **state)
{
	struct fixture *f = *state;

	f->made.before = count_up;
	assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
	assert_true(f->all.is_mixed);
	assert_int_equal(f->all.len, 3);
}

static void a_list_that_is_a_ring_ends(void **state)
{
	struct fixture *f = *state;

	wp_budget_set(4 << 20);
	made_put(bucket(f, 2), 8, made_avma(BUCKETS), 8);
	assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
	assert_in_range(f->all.len, 100, 4 << 10);
	assert_int_equal(f->all.nunread, 1);
}

static void buckets_that_are_none_end_the_list(void **state)
{
	static const struct {
		size_t off;
		uint64_t val;
	} lies[] = {
		{ 8, 1 },	    { 8, UINT64_MAX }, { 16, 2 },
		{ 16, UINT64_MAX }, { 40, 0 },	       { 40, 1026 },
		{ 40, UINT64_MAX }, { 40, 1025 },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		uint64_t was;

		memcpy(&was, bucket(f, 1) + lies[i].off, 8);
		made_put(bucket(f, 1), lies[i].off, lies[i].val, 8);
		assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
		assert_in_range(f->all.len, 1, 3);
		made_put(bucket(f, 1), lies[i].off, was, 8);
	}
	assert_int_equal(read_book(f, WP_GO_BOOK_HEAP), 0);
	assert_int_equal(f->all.len, 3);
}

static int stop(void *ctx, struct wp_process_range *v, size_t n)
{
	struct made_go *made = ctx;

	return made->nreads > 40 ? -ESRCH : made_read(ctx, v, n);
}

static void it_ends_when_nothing_can_be_read(void **state)
{
	struct fixture *f = *state;
	const struct wp_go_reader reader = { .read = stop, .ctx = &f->made };
	struct wp_go_program *program;
	int rc;

	made_put(bucket(f, 2), 8, made_avma(BUCKETS), 8);
	rc = wp_go_program_open(&program, &f->made.image, MADE_BIAS, &reader,
				NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(wp_go_buckets_read(program, WP_GO_BOOK_HEAP, &f->all),
			 -ESRCH);
	wp_go_program_free(program);
}

static void a_stack_without_runtime_functions(void **state)
{
	struct fixture *f = *state;
	struct wp_go_program *program;
	uint64_t pcs[] = { MADE_TEXT + MADE_BIAS + 0x10,
			   MADE_TEXT + MADE_BIAS + MADE_FUNC + 0x10, 1 };

	memcpy(f->made.file + MADE_NAMES, "runtime.m", 10);
	assert_int_equal(made_open(&f->made, &program, NULL), 0);
	assert_string_equal(wp_go_program_function(program, pcs[0]),
			    "runtime.m");
	assert_null(wp_go_program_function(program, 1));
	assert_int_equal(wp_go_program_stack(program, pcs, 3, true), 2);
	assert_int_equal(pcs[0], MADE_TEXT + MADE_BIAS + MADE_FUNC + 0x10);
	pcs[0] = MADE_TEXT + MADE_BIAS + 0x10;
	/* Nothing else is in it. */
	assert_int_equal(wp_go_program_stack(program, pcs, 1, true), 1);
	assert_int_equal(wp_go_program_stack(program, pcs, 0, true), 0);
	wp_go_program_free(program);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_book_is_read),
		TEST(before_the_first_collection_all_counts),
		TEST(a_mark_is_no_pc),
		TEST(the_first_stack_may_be_a_plugins),
		TEST(counts_that_change_each_time_are_told),
		TEST(a_list_that_is_a_ring_ends),
		TEST(buckets_that_are_none_end_the_list),
		TEST(it_ends_when_nothing_can_be_read),
		TEST(a_stack_without_runtime_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
