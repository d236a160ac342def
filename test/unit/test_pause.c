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
	assert_true(wp_pauses_allow(&p, 2000000000));
	wp_pauses_add(&p, 1);
	assert_false(wp_pauses_allow(&p, 2000000000));
	assert_true(wp_pauses_allow(&p, 2001000000));
	wp_pauses_init(&p, 0, 0);
	wp_pauses_add(&p, UINT64_C(1) << 50);
	assert_true(wp_pauses_allow(&p, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_right_within_a_sixteenth),
		cmocka_unit_test(extremes_have_a_bucket),
		cmocka_unit_test(one_value_is_its_own_quantile),
		cmocka_unit_test(the_budget_is_a_share_of_time),
	};

	return cmocka_run_group_tests_name("pause", tests, NULL, NULL);
}
