/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stop_request.h: who is to be stopped, once each, and how many stops are
 * to come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "one_target.h"

enum { THREADS = 3 };

static struct wp_thread *t[THREADS];
static struct wp_stop_requests *list;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	for (pid_t i = 0; i < THREADS; i++)
		fake_target_add_thread(&fake, 7 + i, "worker");
	options = fake_target_options();
	start_target();
	for (pid_t i = 0; i < THREADS; i++) {
		t[i] = wp_threads_find_or_add(fake.target, 7 + i);
		assert_non_null(t[i]);
	}
	list = &fake.target->stop_requests;
	fake.sampler->tick_ns = 1234;
	return 0;
}

static void a_request_says_what_the_sample_found(void **state)
{
	const struct wp_stop_request sample = {
		.weight_ns = TICK,
		.slices = 11,
		.sleeps = 7,
		.sp_avma = 4096,
		.partial_stack = 3,
		.facts = { .state_char = 'S',
			   .syscall_nr = SYS_futex,
			   .args = { 5 } },
	};

	(void)state;
	assert_false(wp_stop_request_exists(t[0]));
	wp_stop_request_registers(t[0], &sample);
	assert_true(wp_stop_request_exists(t[0]));
	assert_true(t[0]->stop.for_registers);
	assert_int_equal(t[0]->stop.slices, 11);
	assert_int_equal(t[0]->stop.sleeps, 7);
	assert_int_equal(t[0]->stop.sp_avma, 4096);
	assert_int_equal(t[0]->stop.partial_stack, 3);
	assert_int_equal(t[0]->stop.facts.args[0], 5);
	assert_int_equal(t[0]->stop.weight_ns, TICK);
	assert_int_equal(t[0]->stop.tick_ns, 1234);
}

static void nothing_of_an_earlier_request_is_left(void **state)
{
	const struct wp_stop_request sample = { .slices = 11, .sleeps = 7 };

	(void)state;
	wp_stop_request_registers(t[0], &sample);
	wp_stop_requests_take(list, 0);
	t[0]->stop.moved = true;
	fake.sampler->tick_ns = 2345;
	wp_stop_request_stack(t[0], 12, 0);
	assert_false(t[0]->stop.for_registers);
	assert_false(t[0]->stop.moved);
	assert_int_equal(t[0]->stop.slices, 12);
	assert_true(t[0]->stop.sleeps == UINT64_MAX);
	assert_int_equal(t[0]->stop.weight_ns, 0);
	assert_int_equal(t[0]->stop.tick_ns, 2345);
	assert_int_equal(list->n, 1);
}

static void each_is_taken_once(void **state)
{
	(void)state;
	for (int i = 0; i < THREADS; i++)
		wp_stop_request_stack(t[i], 1, TICK);
	assert_ptr_equal(wp_stop_requests_take(list, 0), t[0]);
	assert_false(wp_stop_request_exists(t[0]));
	assert_int_equal(list->n, 2);
	/* The last one is in its place. */
	assert_ptr_equal(wp_stop_requests_take(list, 0), t[2]);
	assert_true(wp_stop_request_exists(t[1]));
	assert_ptr_equal(wp_stop_requests_take(list, 0), t[1]);
	assert_int_equal(list->n, 0);
}

static void stops_that_are_to_come_are_counted(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		wp_stop_request_stack(t[i], 1, TICK);
		wp_stop_requests_take(list, 0);
		wp_stop_request_sent(t[i], 7);
	}
	assert_int_equal(list->npending, 2);
	assert_true(wp_stop_request_exists(t[0]));
	/* As of the interrupt, which is later than the sample. */
	assert_int_equal(t[0]->stop.slices, 7);
	wp_stop_request_done(t[0]);
	assert_int_equal(list->npending, 1);
	assert_false(wp_stop_request_exists(t[0]));
	/* It is done once, and one that was never sent is none. */
	wp_stop_request_done(t[0]);
	wp_stop_request_done(t[2]);
	assert_int_equal(list->npending, 1);
	wp_stop_request_done(t[1]);
	assert_int_equal(list->npending, 0);
}

static void what_is_reserved_is_there(void **state)
{
	struct wp_stop_requests own = { 0 };
	struct wp_thread **v;

	(void)state;
	assert_int_equal(wp_stop_requests_reserve(&own, 0), 0);
	assert_null(own.v);
	assert_int_equal(wp_stop_requests_reserve(&own, 100), 0);
	assert_true(own.cap >= 100);
	own.n = own.cap;
	v = own.v;
	assert_int_equal(wp_stop_requests_reserve(&own, own.n), 0);
	assert_ptr_equal(own.v, v);
	assert_int_equal(wp_stop_requests_reserve(&own, own.n + 1), 0);
	assert_true(own.cap > own.n);
	assert_int_equal(wp_stop_requests_reserve(&own, SIZE_MAX / 2), -ENOMEM);
	wp_stop_requests_clear(&own);
	assert_null(own.v);
	assert_int_equal(own.n + own.cap + own.npending, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_says_what_the_sample_found),
		TEST(nothing_of_an_earlier_request_is_left),
		TEST(each_is_taken_once),
		TEST(stops_that_are_to_come_are_counted),
		TEST(what_is_reserved_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
