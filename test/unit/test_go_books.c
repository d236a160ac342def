/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  go_books.h: what a Go program has noted becomes samples, scaled as
 * runtime/pprof does, and the profile says what they are of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "one_target.h"
#include "few_allocations.h"

#include "go_target_maker.h"
#include "wallprof/go_books.h"
#include "wallprof/go_buckets.h"

enum {
	/* As in test_go_buckets.c. */
	HEADS = 0x80,
	BUCKETS = 0x12000,
	STEP = 0x200,
	PCS = 48,
	RECORD = PCS + 8 * 2,
	MAIN = 0,
	WAIT = MADE_FUNC,
};

/* What the code of the program tells of its rate. */
static int rate_rc;
static int64_t rate;

int wp_go_heap_rate(struct wp_go_program *program, int64_t *ret)
{
	(void)program;
	if (!rate_rc)
		*ret = rate;
	return rate_rc;
}

/* Two ticks are a nanosecond. */
double wp_go_ticks_per_second(void)
{
	return 2e9;
}

static uint8_t *bucket(size_t i)
{
	return made.memory + BUCKETS + i * STEP;
}

/* Bucket I of BOOK: of 64 bytes, by main.main, which function FUNC called. */
static void put_bucket(size_t i, enum wp_go_book book, size_t func, bool last)
{
	made_put(bucket(i), 8, last ? 0 : made_avma(BUCKETS + (i + 1) * STEP),
		 8);
	made_put(bucket(i), 16, book, 8);
	made_put(bucket(i), 32, 64, 8);
	made_put(bucket(i), 40, 2, 8);
	made_put(bucket(i), PCS, MADE_TEXT + MADE_BIAS + MAIN + 0x10, 8);
	made_put(bucket(i), PCS + 8, MADE_TEXT + MADE_BIAS + func + 0x10, 8);
}

/* It has allocated and freed OBJECTS of BYTES in all. */
static void put_heap(size_t i, uint64_t objects, uint64_t bytes, uint64_t freed,
		     uint64_t freed_bytes)
{
	made_put(bucket(i), RECORD, objects, 8);
	made_put(bucket(i), RECORD + 8, freed, 8);
	made_put(bucket(i), RECORD + 16, bytes, 8);
	made_put(bucket(i), RECORD + 24, freed_bytes, 8);
}

static void put_waits(size_t i, double waits, int64_t ticks)
{
	memcpy(bucket(i) + RECORD, &waits, 8);
	made_put(bucket(i), RECORD + 8, (uint64_t)ticks, 8);
}

/* Two buckets of the heap, two of waits. */
static int setup(void **state)
{
	(void)state;
	rate_rc = -ENOENT;
	rate = 0;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 7, "worker");
	options = fake_target_options();
	start_target();
	made_go_init(&made);
	for (size_t i = 0; i < 4; i++)
		put_bucket(i, i < 2 ? WP_GO_BOOK_HEAP : WP_GO_BOOK_BLOCK,
			   i % 2 ? WAIT : MAIN, i % 2);
	put_heap(0, 10, 640, 4, 256);
	put_heap(1, 1, 64, 0, 0);
	put_waits(2, 2.5, 2000);
	put_waits(3, 1, 3);
	made_put(made.memory, HEADS, made_avma(BUCKETS), 8);
	made_put(made.memory, HEADS + 16, made_avma(BUCKETS + 2 * STEP), 8);
	made_target_show();
	return 0;
}

static const struct wp_sample_set *set_of(enum wp_profile_kind kind)
{
	return &fake.profile.sets[kind];
}

static const struct wp_profile_sample *read_book(enum wp_profile_kind kind)
{
	made_target_update();
	assert_int_equal(wp_go_books_read(fake.target, kind, NULL), 0);
	return set_of(kind)->samples;
}

static const char *source(enum wp_profile_kind kind)
{
	return wp_profile_str(&fake.profile, fake.profile.meta.source[kind]);
}

/* Frame I of SAMPLE's stack is a return address in FUNC. */
static void assert_frame(const struct wp_profile_sample *sample, uint32_t i,
			 size_t func)
{
	const struct wp_profile_stack *s =
		&fake.profile.stacks[sample->key.stack];
	const struct wp_frame *frame = wp_profile_frame(&fake.profile, s, i);

	assert_int_equal(s->depth, 2);
	assert_int_equal(s->end, WP_END_ROOT);
	assert_int_equal(s->end_mapping, made_target_module.mapping);
	assert_int_equal(frame->pc_avma, MADE_TEXT + MADE_BIAS + func + 0x10);
	assert_int_equal(frame->mapping, made_target_module.mapping);
	assert_int_equal(frame->flags, WP_FRAME_RETURN);
}

static void samples_stand_for_what_was_not_sampled(void **state)
{
	const struct wp_profile_sample *v = read_book(WP_PROFILE_HEAP);
	const struct wp_profile_thread *t;

	(void)state;
	assert_int_equal(set_of(WP_PROFILE_HEAP)->nsamples, 2);
	/* 64 bytes of 524,288: each stands for 1 / (1 - e^-(1/8192)) = 8192.5. */
	assert_int_equal(v[0].count, 81925);
	assert_int_equal(v[0].wall_ns, 5243200);
	assert_int_equal(v[0].cpu_count, 49155);
	assert_int_equal(v[0].cpu_ns, 3145920);
	assert_int_equal(v[1].count, 8192);
	assert_int_equal(v[1].cpu_count, 8192);
	assert_frame(&v[0], 1, MAIN);
	assert_frame(&v[1], 0, MAIN);
	assert_frame(&v[1], 1, WAIT);
	assert_string_equal(wp_profile_str(&fake.profile, v[0].key.object),
			    "64");
	t = &fake.profile.threads[v[0].key.thread];
	assert_string_equal(wp_profile_str(&fake.profile, t->name),
			    "goroutines");
	assert_int_equal(t->part, WP_GOROUTINE_OWN);
	assert_string_equal(
		source(WP_PROFILE_HEAP),
		"Go's own, 2 stacks, as of the last garbage collection, one "
		"sample per 524288 bytes (assumed: the rate is not found)");
	assert_int_equal(fake.profile.meta.heap_period, 524288);
}

static void the_rate_is_the_programs(void **state)
{
	const struct wp_profile_sample *v;

	(void)state;
	rate_rc = 0;
	rate = 64;
	v = read_book(WP_PROFILE_HEAP);
	/* 1 / (1 - 1/e) = 1.582. */
	assert_int_equal(v[0].count, 15);
	assert_int_equal(v[0].wall_ns, 1012);
	assert_string_equal(source(WP_PROFILE_HEAP),
			    "Go's own, 2 stacks, as of the last garbage "
			    "collection, one sample per 64 bytes");
	assert_int_equal(fake.profile.meta.heap_period, 64);
}

static void where_each_object_is_sampled_none_is_scaled(void **state)
{
	const struct wp_profile_sample *v;

	(void)state;
	rate_rc = 0;
	rate = 1;
	put_heap(0, 10, 10, 4, 4);
	v = read_book(WP_PROFILE_HEAP);
	assert_int_equal(v[0].count, 10);
	assert_int_equal(v[0].wall_ns, 10);
	assert_int_equal(v[0].cpu_count, 6);
	assert_int_equal(v[0].cpu_ns, 6);
}

static void where_every_second_byte_is_they_are(void **state)
{
	(void)state;
	rate_rc = 0;
	rate = 2;
	put_heap(0, 10, 10, 4, 4);
	/* 1 / (1 - e^-(1/2)) = 2.54. */
	assert_int_equal(read_book(WP_PROFILE_HEAP)->count, 25);
}

/* As runtime/pprof does. */
static void
functions_of_the_runtime_are_left_out_of_the_heap_alone(void **state)
{
	const struct wp_profile_sample *sample;

	(void)state;
	memcpy(made.file + MADE_NAMES, "runtime.m", 10);
	sample = &read_book(WP_PROFILE_HEAP)[1];
	assert_int_equal(fake.profile.stacks[sample->key.stack].depth, 1);
	sample = &read_book(WP_PROFILE_BLOCK)[1];
	assert_frame(sample, 0, MAIN);
}

/* A rate that ends sampling does not tell by what objects of before were sampled:
 * runtime/pprof (scaleHeapSample) writes what was noted. */
static void where_the_rate_ends_sampling_none_is_scaled(void **state)
{
	static const int64_t rates[] = { 0, -1, INT64_MIN };

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		const struct wp_profile_sample *v;

		made_target_end(state);
		setup(state);
		rate_rc = 0;
		rate = rates[i];
		v = read_book(WP_PROFILE_HEAP);
		assert_int_equal(v[0].count, 10);
		assert_int_equal(v[0].wall_ns, 640);
		assert_int_equal(v[0].cpu_count, 6);
		assert_int_equal(v[0].cpu_ns, 384);
		assert_string_equal(
			source(WP_PROFILE_HEAP),
			"Go's own, 2 stacks, as of the last garbage "
			"collection, of sampled objects alone: "
			"runtime.MemProfileRate is 0 or less, which ends "
			"sampling and does not tell what they stand for");
		assert_int_equal(fake.profile.meta.heap_period, 1);
	}
}

/* 1 - e^-(64 / 2^63) is 0. */
static void a_rate_that_lies_scales_to_what_pprof_can_tell(void **state)
{
	(void)state;
	rate_rc = 0;
	rate = INT64_MAX;
	assert_true(read_book(WP_PROFILE_HEAP)->count == INT64_MAX);
	assert_true(set_of(WP_PROFILE_HEAP)->samples[0].cpu_ns == INT64_MAX);
}

static void counts_that_lie_are_nothing(void **state)
{
	(void)state;
	/* More freed than there was; bytes of no object. */
	put_heap(0, 4, 256, 10, 640);
	put_heap(1, 0, 4096, 0, 0);
	assert_int_equal(read_book(WP_PROFILE_HEAP)->cpu_count, 0);
	assert_int_equal(set_of(WP_PROFILE_HEAP)->samples[0].cpu_ns, 0);
	assert_int_equal(set_of(WP_PROFILE_HEAP)->samples[0].count, 32770);
	assert_int_equal(set_of(WP_PROFILE_HEAP)->nsamples, 1);
}

static void objects_of_no_byte_are_nothing(void **state)
{
	(void)state;
	put_heap(1, 5, 0, 0, 0);
	assert_int_equal(read_book(WP_PROFILE_HEAP)->count, 81925);
	assert_int_equal(set_of(WP_PROFILE_HEAP)->nsamples, 1);
}

static void waits_have_their_number_and_time(void **state)
{
	const struct wp_profile_sample *v = read_book(WP_PROFILE_BLOCK);

	(void)state;
	assert_int_equal(set_of(WP_PROFILE_BLOCK)->nsamples, 2);
	assert_int_equal(v[0].count, 2);
	assert_int_equal(v[0].wall_ns, 1000);
	assert_int_equal(v[1].count, 1);
	assert_int_equal(v[1].wall_ns, 1);
	assert_int_equal(v[0].cpu_count + v[0].cpu_ns, 0);
	assert_int_equal(v[0].key.object, 0);
	assert_frame(&v[1], 1, WAIT);
	assert_string_equal(source(WP_PROFILE_BLOCK), "Go's own, 2 stacks");
	assert_int_equal(fake.profile.meta.heap_period, 0);
}

static void waits_that_lie_are_nothing(void **state)
{
	static const double lies[] = { NAN, INFINITY, -INFINITY, -1, 1e300 };

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		put_waits(2, lies[i], -5);
		put_waits(3, lies[i], INT64_MIN);
		assert_null(read_book(WP_PROFILE_BLOCK));
	}
	put_waits(2, NAN, INT64_MAX);
	assert_int_equal(read_book(WP_PROFILE_BLOCK)->count, 0);
	assert_in_range(set_of(WP_PROFILE_BLOCK)->samples[0].wall_ns,
			(uint64_t)INT64_MAX / 2 - 1000,
			(uint64_t)INT64_MAX / 2 + 1000);
}

static void the_rest_of_a_list_that_lies_is_said_to_be_missing(void **state)
{
	(void)state;
	/* The second is no bucket of the heap. */
	made_put(bucket(1), 16, 7, 8);
	assert_int_equal(read_book(WP_PROFILE_HEAP)->count, 81925);
	assert_string_equal(
		source(WP_PROFILE_HEAP),
		"Go's own, 1 stacks, as of the last garbage collection, one "
		"sample per 524288 bytes (assumed: the rate is not found); the "
		"rest of the list was not read");
}

/* Why there is no profile of KIND, whose books are empty. */
static void assert_off(enum wp_profile_kind kind, const char *why)
{
	struct wp_err err = WP_ERR_INIT;

	assert_int_equal(wp_go_books_read(fake.target, kind, &err), -ENODATA);
	assert_memory_equal(err.msg, why, strlen(why));
	assert_int_equal(set_of(kind)->nsamples, 0);
	assert_int_equal(fake.profile.meta.source[kind], 0);
}

static void it_is_said_why_there_are_no_books(void **state)
{
	(void)state;
	memset(made.memory + HEADS, 0, 24);
	made_target_update();
	assert_off(WP_PROFILE_BLOCK,
		   "no block profile: the program has not called "
		   "runtime.SetBlockProfileRate,");
	assert_off(WP_PROFILE_MUTEX,
		   "no mutex profile: the program has not called "
		   "runtime.SetMutexProfileFraction,");
	assert_off(WP_PROFILE_HEAP,
		   "no heap profile: no sampled object is found");
	rate_rc = 0;
	assert_off(WP_PROFILE_HEAP,
		   "no heap profile: this program was linked without one,");
	rate = -1;
	assert_off(WP_PROFILE_HEAP,
		   "no heap profile: this program was linked without one,");
	rate = 4096;
	assert_off(WP_PROFILE_HEAP,
		   "no heap profile: no sampled object is found");
}

static void another_program_has_none(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	assert_true(wp_go_books_can_read(fake.target));
	made.image.go_table.size = 0;
	/* It is looked for once in a while only, and after an exec. */
	assert_true(wp_go_books_can_read(fake.target));
	fake.target->space.nexecs++;
	assert_false(wp_go_books_can_read(fake.target));
	made.image.go_table.size = 1;
	assert_false(wp_go_books_can_read(fake.target));
	made.image.go_table.size = 0;
	assert_int_equal(wp_go_books_read(fake.target, WP_PROFILE_HEAP, &err),
			 -ENOTSUP);
	assert_string_equal(err.msg, "not a Go program");
}

/* What says that it is Go's is there, and no function in it. */
static void tables_that_are_malformed_are_said_to_be(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	made_put(made.file, 8, 0, 8);
	assert_int_equal(wp_go_books_read(fake.target, WP_PROFILE_HEAP, &err),
			 -ENOTSUP);
	assert_int_equal(err.code, -ENOTSUP);
	assert_string_equal(err.msg, "malformed tables of Go's linker");
	assert_int_equal(wp_go_books_read(fake.target, WP_PROFILE_HEAP, NULL),
			 -ENOTSUP);
}

/* Its version is not known here: that is said, not that it is none. */
static void a_version_that_is_not_known_has_none_either(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	made_module(&made, "go1.15.3");
	assert_false(wp_go_books_can_read(fake.target));
	assert_int_equal(wp_go_books_read(fake.target, WP_PROFILE_HEAP, &err),
			 -ENOTSUP);
	assert_non_null(strstr(err.msg, "a Go that is not known"));
}

#ifdef CAN_FAIL
static void without_memory_there_are_no_books(void **state)
{
	static const enum wp_profile_kind kinds[] = { WP_PROFILE_HEAP,
						      WP_PROFILE_BLOCK };
	enum { MANY = 1 << 20 };

	for (size_t i = 0; i < 2; i++) {
		long need;

		allocations_left = MANY;
		read_book(kinds[i]);
		need = MANY - allocations_left;
		allocations_left = -1;
		assert_true(need > 5);
		for (long n = 0; n < need; n++) {
			int rc;

			made_target_end(state);
			setup(state);
			made_target_update();
			allocations_left = n;
			rc = wp_go_books_read(fake.target, kinds[i], NULL);
			allocations_left = -1;
			assert_int_equal(rc, -ENOMEM);
		}
		made_target_end(state);
		setup(state);
	}
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, made_target_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_stand_for_what_was_not_sampled),
		TEST(the_rate_is_the_programs),
		TEST(where_each_object_is_sampled_none_is_scaled),
		TEST(where_every_second_byte_is_they_are),
		TEST(functions_of_the_runtime_are_left_out_of_the_heap_alone),
		TEST(where_the_rate_ends_sampling_none_is_scaled),
		TEST(a_rate_that_lies_scales_to_what_pprof_can_tell),
		TEST(counts_that_lie_are_nothing),
		TEST(objects_of_no_byte_are_nothing),
		TEST(waits_have_their_number_and_time),
		TEST(waits_that_lie_are_nothing),
		TEST(the_rest_of_a_list_that_lies_is_said_to_be_missing),
		TEST(it_is_said_why_there_are_no_books),
		TEST(another_program_has_none),
		TEST(tables_that_are_malformed_are_said_to_be),
		TEST(a_version_that_is_not_known_has_none_either),
#ifdef CAN_FAIL
		TEST(without_memory_there_are_no_books),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
