/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  ready_share.h: what goroutines had of a thread is divided into running
 * and waiting for a CPU as the thread's own books say, sooner or later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/ready_share.h"
#include "wallprof/clock.h"

#define MS WP_NS_PER_MS

static struct wp_time_ledger ledger;
static struct wp_ready_share share;
/* What goroutines had, and what was told of it as a wait for a CPU. */
static uint64_t had_ns, waited_ns;

static int setup(void **state)
{
	(void)state;
	ledger = (struct wp_time_ledger){ 0 };
	share = (struct wp_ready_share){ 0 };
	had_ns = waited_ns = 0;
	return 0;
}

static void told(uint64_t running_ns, uint64_t runnable_ns)
{
	ledger.all_running_ns += running_ns;
	ledger.all_runnable_ns += runnable_ns;
}

static uint64_t have(uint64_t ns)
{
	uint64_t runnable_ns = wp_ready_share_take(&share, &ledger, ns);

	assert_true(runnable_ns <= ns);
	had_ns += ns;
	waited_ns += runnable_ns;
	return runnable_ns;
}

static void assert_near(uint64_t got, uint64_t want, uint64_t far)
{
	assert_in_range(got, want > far ? want - far : 0, want + far);
}

static void what_the_books_tell_is_told(void **state)
{
	(void)state;
	told(10 * MS, 0);
	assert_int_equal(have(10 * MS), 0);
	told(4 * MS, 6 * MS);
	assert_int_equal(have(10 * MS), 6 * MS);
	told(0, 10 * MS);
	assert_int_equal(have(10 * MS), 10 * MS);
}

/* The books tell of it at a later look. */
static void what_is_not_told_yet_runs(void **state)
{
	(void)state;
	assert_int_equal(have(10 * MS), 0);
	assert_int_equal(have(0), 0);
}

static void what_is_told_late_is_made_up_for(void **state)
{
	(void)state;
	for (int i = 0; i < 500; i++) {
		/* 30 ms of a wait are told when it ends, and then it runs. */
		if (i % 4 == 3)
			told(10 * MS, 30 * MS);
		have(10 * MS);
	}
	assert_near(waited_ns, had_ns / 4 * 3, 40 * MS);
}

/* Of a thread that runs as long for none, goroutines are found at each second look. */
static void a_share_is_of_what_goroutines_had(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		told(8 * MS, 2 * MS);
		if (i % 2)
			have(10 * MS);
	}
	assert_near(waited_ns, had_ns / 5, 10 * MS);
}

/* For an hour it had the CPU to itself, though it did little. */
static void what_was_long_ago_does_not_count(void **state)
{
	uint64_t before_ns;

	(void)state;
	for (int i = 0; i < 360000; i++) {
		told(MS, 0);
		if (i % 20 == 0)
			have(10 * MS);
	}
	assert_int_equal(waited_ns, 0);
	before_ns = had_ns;
	for (int i = 0; i < 1000; i++) {
		told(5 * MS, 5 * MS);
		have(10 * MS);
	}
	assert_near(waited_ns, (had_ns - before_ns) / 2, 500 * MS);
	/* And there is no wait left to tell once nobody else is there. */
	before_ns = waited_ns;
	for (int i = 0; i < 1000; i++) {
		told(10 * MS, 0);
		have(10 * MS);
	}
	assert_near(waited_ns, before_ns, 500 * MS);
}

/* The ledger takes back a first look that proves wrong. */
static void books_that_go_back_tell_nothing(void **state)
{
	(void)state;
	told(10 * MS, 10 * MS);
	assert_int_equal(have(20 * MS), 10 * MS);
	ledger.all_running_ns -= 5 * MS;
	assert_int_equal(have(0), 0);
	assert_int_equal(share.running_ns, 10 * MS);
	told(10 * MS, 0);
	assert_int_equal(have(10 * MS), 0);
}

static void no_sum_is_too_long(void **state)
{
	(void)state;
	told(UINT64_MAX / 4, UINT64_MAX / 4);
	have(UINT64_MAX / 8);
	assert_in_range(share.running_ns + share.runnable_ns, 1, WP_NS_PER_S);
	for (int i = 0; i < 100; i++) {
		told(5 * MS, 5 * MS);
		have(10 * MS);
	}
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_books_tell_is_told),
		TEST(what_is_not_told_yet_runs),
		TEST(what_is_told_late_is_made_up_for),
		TEST(a_share_is_of_what_goroutines_had),
		TEST(what_was_long_ago_does_not_count),
		TEST(books_that_go_back_tell_nothing),
		TEST(no_sum_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
