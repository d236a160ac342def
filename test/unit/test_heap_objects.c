/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the sampled objects are kept.  Layer: sample.  The BPF program is a list of
 * those that live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../../src/sample/heap_objects.h"
#include "few_allocations.h"
#include "wallprof/clock.h"

/* So many are kept before those are sought that are freed. */
enum { FIRST = 1 << 16 };

static struct wp_heap_objects objects;
/* Objects from 1 to LIVE live; the program is asked NASKED times, and fails. */
static uint64_t live_most;
static unsigned int nasked;
static int asked_rc;

int wp_heap_probe_each_live(struct wp_heap_probe *probe,
			    void (*each)(void *ctx, uint64_t id), void *ctx)
{
	(void)probe;
	nasked++;
	for (uint64_t id = 1; id <= live_most && !asked_rc; id++)
		each(ctx, id);
	return asked_rc;
}

static int teardown(void **state)
{
	(void)state;
	wp_heap_objects_clear(&objects);
	live_most = nasked = 0;
	asked_rc = 0;
	return 0;
}

static void add(uint64_t id, uint64_t time_ns)
{
	const struct wp_heap_object object = {
		.id = id, .time_ns = time_ns, .count = 1, .bytes = 10
	};

	assert_int_equal(wp_heap_objects_add(&objects, NULL, &object), 0);
}

/* Objects 1 to FIRST, all of time 5. */
static void fill(void)
{
	for (uint64_t id = 1; id <= FIRST; id++)
		add(id, 5);
	assert_int_equal(objects.n, FIRST);
	assert_int_equal(nasked, 0);
}

static void those_that_are_freed_are_forgotten(void **state)
{
	(void)state;
	live_most = 10;
	fill();
	add(FIRST + 1, 5 + WP_NS_PER_S + 1);
	assert_int_equal(nasked, 1);
	assert_int_equal(objects.n, 10 + 1);
	/* And not sought again before there are many. */
	for (uint64_t id = FIRST + 2; objects.n < FIRST; id++)
		add(id, 5);
	assert_int_equal(nasked, 1);
}

/* A call that has not returned yet has an object that does not live yet. */
static void what_may_be_under_way_is_kept(void **state)
{
	(void)state;
	fill();
	add(FIRST + 1, 5 + WP_NS_PER_S);
	assert_int_equal(nasked, 1);
	assert_int_equal(objects.n, FIRST + 1);
	/* Twice as many are awaited then. */
	for (uint64_t id = FIRST + 2; objects.n < 2 * FIRST; id++)
		add(id, 5);
	assert_int_equal(nasked, 1);
	add(3 * FIRST, 5);
	assert_int_equal(nasked, 2);
}

static void who_lives_may_not_be_known(void **state)
{
	(void)state;
	asked_rc = -EIO;
	fill();
	add(FIRST + 1, 10 * WP_NS_PER_S);
	assert_int_equal(nasked, 1);
	assert_int_equal(objects.n, FIRST + 1);
}

static void what_is_in_use_was_allocated_before(void **state)
{
	struct wp_profile_sample v[2] = { 0 };
	struct wp_sample_set set = { .samples = v, .nsamples = 1 };

	(void)state;
	live_most = 10;
	for (uint64_t id = 9; id <= 12; id++)
		add(id, id);
	assert_int_equal(wp_heap_objects_count(&objects, NULL, &set, 10), 0);
	/* The ninth; the tenth is of that time, the others do not live. */
	assert_int_equal(v[0].cpu_count, 1);
	assert_int_equal(wp_heap_objects_count(&objects, NULL, &set, 11), 0);
	assert_int_equal(v[0].cpu_count, 1 + 2);
	assert_int_equal(v[0].cpu_ns, 30);
}

static void an_object_of_no_sample_is_nothing(void **state)
{
	const struct wp_heap_object object = {
		.id = 1, .at = 1, .count = 1, .bytes = 10
	};
	struct wp_profile_sample v[2] = { { .count = 5 }, { .count = 7 } };
	struct wp_sample_set set = { .samples = v, .nsamples = 1 };

	(void)state;
	live_most = 1;
	assert_int_equal(wp_heap_objects_add(&objects, NULL, &object), 0);
	assert_int_equal(
		wp_heap_objects_count(&objects, NULL, &set, UINT64_MAX), 0);
	assert_int_equal(wp_heap_objects_take_back(&objects, &set, 1), 0);
	assert_int_equal(v[0].count + v[1].count, 12);
	assert_int_equal(v[0].cpu_count + v[1].cpu_count, 0);
}

#ifdef CAN_FAIL
static void without_memory_there_is_an_error(void **state)
{
	const struct wp_heap_object object = { .id = 1 };
	int rc = 0;

	(void)state;
	/* Of the objects, and of their index. */
	for (long n = 0; n < 2; n++) {
		allocations_left = n;
		rc = wp_heap_objects_add(&objects, NULL, &object);
		allocations_left = -1;
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(objects.n, 0);
	}
}
#endif

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(those_that_are_freed_are_forgotten),
		TEST(what_may_be_under_way_is_kept),
		TEST(who_lives_may_not_be_known),
		TEST(what_is_in_use_was_allocated_before),
		TEST(an_object_of_no_sample_is_nothing),
#ifdef CAN_FAIL
		TEST(without_memory_there_is_an_error),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
