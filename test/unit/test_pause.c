/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  src/sample/pause.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/pause.h"

static void quantiles_are_right_within_a_sixteenth(void **state)
{
	struct wp_pauses p;

	(void)state;
	wp_pauses_init(&p, 0, 0);
	assert_int_equal(wp_pauses_quantile(&p, 0.5), 0);
	for (uint64_t us = 1; us <= 1000; us++)
		wp_pauses_add(&p, us * 1000);
	assert_in_range(wp_pauses_quantile(&p, 0.5), 500000, 535000);
	assert_in_range(wp_pauses_quantile(&p, 0.99), 990000, 1000000);
	assert_int_equal(wp_pauses_quantile(&p, 1.0), 1000000);
	assert_int_equal(p.max_ns, 1000000);
	assert_int_equal(p.total_ns, UINT64_C(500500) * 1000);
}

static void extremes_have_a_bucket(void **state)
{
	struct wp_pauses p;

	(void)state;
	wp_pauses_init(&p, 0, 0);
	for (uint64_t ns = 0; ns < 40; ns++)
		wp_pauses_add(&p, ns);
	wp_pauses_add(&p, UINT64_MAX / 2);
	assert_int_equal(wp_pauses_quantile(&p, 0), 0);
	assert_true(wp_pauses_quantile(&p, 1) == UINT64_MAX / 2);
}

/* The one above so many, and no shorter than any that are taken together with it. */
static void a_quantile_has_its_part_below_it(void **state)
{
	struct wp_pauses p;

	(void)state;
	wp_pauses_init(&p, 0, 0);
	for (uint64_t ns = 1; ns <= 4; ns++)
		wp_pauses_add(&p, ns);
	assert_int_equal(wp_pauses_quantile(&p, 0.5), 3);
	assert_int_equal(wp_pauses_quantile(&p, 0.75), 4);
	/* 32 and 33 are one of the first that are two. */
	wp_pauses_init(&p, 0, 0);
	wp_pauses_add(&p, 32);
	wp_pauses_add(&p, 1000);
	assert_int_equal(wp_pauses_quantile(&p, 0), 33);
}

static void one_value_is_its_own_quantile(void **state)
{
	(void)state;
	for (uint64_t ns = 1; ns < UINT64_C(1) << 40; ns = ns * 3 + 1) {
		struct wp_pauses p;

		wp_pauses_init(&p, 0, 0);
		wp_pauses_add(&p, ns);
		assert_true(wp_pauses_quantile(&p, 0.5) == ns);
	}
}

static void the_budget_is_a_share_of_time(void **state)
{
	struct wp_pauses p;

	(void)state;
	wp_pauses_init(&p, 1000000000, 0.01);
	/* One second on, 1 % is 10 ms, and 2 ms are credit. */
	wp_pauses_add(&p, 11999999);
	assert_int_equal(wp_pauses_credit(&p, 2000000000), 1);
	assert_true(wp_pauses_allow(&p, 0, 2000000000));
	wp_pauses_add(&p, 1);
	assert_int_equal(wp_pauses_credit(&p, 2000000000), 0);
	assert_false(wp_pauses_allow(&p, 0, 2000000000));
	assert_true(wp_pauses_allow(&p, 0, 2001000000));
	wp_pauses_init(&p, 0, 0);
	wp_pauses_add(&p, UINT64_C(1) << 50);
	assert_true(wp_pauses_allow(&p, 1000, 1));
}

static void a_quiet_day_leaves_what_ten_seconds_give(void **state)
{
	const uint64_t s = 1000000000, day = 86400 * s;
	struct wp_pauses p;

	(void)state;
	wp_pauses_init(&p, s, 0.01);
	/* Within ten seconds nothing expires. */
	assert_int_equal(wp_pauses_credit(&p, 11 * s), 102000000);
	assert_int_equal(wp_pauses_credit(&p, day), 102000000);
	wp_pauses_add(&p, 102000000);
	assert_int_equal(wp_pauses_credit(&p, day), 0);
	assert_false(wp_pauses_allow(&p, 0, day));
	assert_int_equal(wp_pauses_credit(&p, day + s), 10000000);
	/* Once more. */
	assert_int_equal(wp_pauses_credit(&p, 2 * day), 102000000);
	wp_pauses_add(&p, 101000000);
	assert_int_equal(wp_pauses_credit(&p, 2 * day + s), 11000000);
}

static void stops_to_come_count_as_long_as_those_before(void **state)
{
	struct wp_pauses p;

	(void)state;
	wp_pauses_init(&p, 1000000000, 0.01);
	/* A millisecond each as long as nothing is known. */
	assert_true(wp_pauses_allow(&p, 1, 1000000000));
	assert_false(wp_pauses_allow(&p, 2, 1000000000));
	wp_pauses_add(&p, 100000);
	assert_true(wp_pauses_allow(&p, 18, 1000000000));
	assert_false(wp_pauses_allow(&p, 19, 1000000000));
}

static void all_that_are_held_pay(void **state)
{
	struct wp_pause_bill bill;

	(void)state;
	wp_pause_bill_init(&bill, 1000, 50);
	assert_int_equal(wp_pause_bill_end(&bill), 1050);
	assert_true(wp_pause_bill_pay(&bill, 100));
	assert_int_equal(bill.left_ns, 1000);
	bill.nheld = 4;
	assert_int_equal(wp_pause_bill_end(&bill), 350);
	assert_true(wp_pause_bill_pay(&bill, 300));
	assert_int_equal(bill.left_ns, 200);
	bill.nheld = 5;
	assert_int_equal(wp_pause_bill_end(&bill), 340);
	assert_false(wp_pause_bill_pay(&bill, 1000));
	assert_int_equal(wp_pause_bill_end(&bill), 1000);
	/* Without a limit there is no end. */
	wp_pause_bill_init(&bill, UINT64_MAX, 50);
	bill.nheld = 5;
	assert_true(wp_pause_bill_pay(&bill, UINT64_MAX / 2));
	assert_int_equal(bill.left_ns, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_right_within_a_sixteenth),
		cmocka_unit_test(extremes_have_a_bucket),
		cmocka_unit_test(a_quantile_has_its_part_below_it),
		cmocka_unit_test(one_value_is_its_own_quantile),
		cmocka_unit_test(the_budget_is_a_share_of_time),
		cmocka_unit_test(a_quiet_day_leaves_what_ten_seconds_give),
		cmocka_unit_test(stops_to_come_count_as_long_as_those_before),
		cmocka_unit_test(all_that_are_held_pay),
	};

	return cmocka_run_group_tests_name("pause", tests, NULL, NULL);
}
