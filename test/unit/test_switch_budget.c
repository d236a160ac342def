/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/sample/switch_budget.h: gaps and sampling by the rates that
 * they are to leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/switch_budget.h"
#include "wallprof/clock.h"

enum { WINDOW = 100 * WP_NS_PER_MS };

/* The gap for RATE records per second, with the middle of all random numbers. */
static uint64_t gap(struct wp_switch_budget *budget, uint64_t rate,
		    size_t ncpus)
{
	return wp_switch_budget_gap(budget, WINDOW, rate / 10 - 1, ncpus, 500);
}

static void few_records_need_no_gap(void **state)
{
	struct wp_switch_budget budget = { 0 };

	(void)state;
	assert_int_equal(gap(&budget, 10, 1), 0);
	budget = (struct wp_switch_budget){ 0 };
	assert_int_equal(gap(&budget, 10000, 1), 0);
	/* On many CPUs more are few. */
	budget = (struct wp_switch_budget){ 0 };
	assert_int_equal(gap(&budget, 400000, 64), 0);
	assert_false(budget.closes);
}

static void a_gap_leaves_what_is_cheap(void **state)
{
	struct wp_switch_budget budget = { 0 };

	(void)state;
	/* 40,000 a second in a quarter of the time. */
	assert_in_range(gap(&budget, 40000, 1), 3 * WINDOW - 1000, 3 * WINDOW);
	assert_false(budget.closes);
}

static void a_gap_goes_by_the_windows_before(void **state)
{
	struct wp_switch_budget budget = { 0 };
	uint64_t first = gap(&budget, 40000, 1);

	(void)state;
	assert_int_equal(gap(&budget, 80000, 1), first);
	/* A quarter of the way to 80,000. */
	assert_in_range(gap(&budget, 40000, 1), 4 * WINDOW - 1000, 4 * WINDOW);
}

static void random_varies_a_gap_from_a_half_to_one_and_a_half(void **state)
{
	struct wp_switch_budget low = { 0 }, high = { 0 };
	uint64_t least = wp_switch_budget_gap(&low, WINDOW, 3999, 1, 1000);
	uint64_t most = wp_switch_budget_gap(&high, WINDOW, 3999, 1, 1999);

	(void)state;
	assert_in_range(least, 3 * WINDOW / 2 - 1000, 3 * WINDOW / 2);
	assert_in_range(most, 9 * (uint64_t)WINDOW / 2 - 1000000,
			9 * (uint64_t)WINDOW / 2);
}

static void very_many_records_close_the_events_for_seconds(void **state)
{
	struct wp_switch_budget budget = { 0 };

	(void)state;
	assert_in_range(gap(&budget, 200000, 1),
			WP_SWITCH_BUDGET_CLOSED_S * WP_NS_PER_S - 1000,
			WP_SWITCH_BUDGET_CLOSED_S * WP_NS_PER_S);
	assert_true(budget.closes);
}

static void a_window_with_enough_records_may_be_shorter(void **state)
{
	(void)state;
	assert_int_equal(wp_switch_budget_window_ns(9999, 100), 1000);
	assert_int_equal(wp_switch_budget_window_ns(10000, 100), 500);
}

static void is_prime(uint32_t n)
{
	assert_true(n > 1);
	for (uint32_t d = 2; d * d <= n; d++)
		assert_true(n % d != 0);
}

static void switches_are_sampled_one_in_a_prime_that_is_cheap(void **state)
{
	(void)state;
	/* 2,000 a second are cheap: all of them. */
	assert_int_equal(wp_switch_budget_every(20, 100, 0), 1);
	assert_int_equal(wp_switch_budget_every(2000, 1, 1), 1);
	for (uint64_t random = 0; random < 2; random++) {
		uint32_t every = wp_switch_budget_every(1000, 101, random);

		/* 101,000 switches a second. */
		assert_in_range(every, 51, 101);
		is_prime(every);
		every = wp_switch_budget_every(1e9, 101, random);
		assert_in_range(every, 5000, 9000);
		is_prime(every);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_records_need_no_gap),
		cmocka_unit_test(a_gap_leaves_what_is_cheap),
		cmocka_unit_test(a_gap_goes_by_the_windows_before),
		cmocka_unit_test(
			random_varies_a_gap_from_a_half_to_one_and_a_half),
		cmocka_unit_test(
			very_many_records_close_the_events_for_seconds),
		cmocka_unit_test(a_window_with_enough_records_may_be_shorter),
		cmocka_unit_test(
			switches_are_sampled_one_in_a_prime_that_is_cheap),
	};

	return cmocka_run_group_tests_name("switch_budget", tests, NULL, NULL);
}
