/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wallprof/lower_bound.h"

static void every_bound_of_every_length_is_found(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 70; n++)
		for (uint32_t bound = 0; bound <= n; bound++)
			assert_int_equal(WP_LOWER_BOUND(n, i, i < bound),
					 bound);
}

static void elements_are_looked_at_at_most_once_a_bit(void **state)
{
	unsigned int looks = 0;

	(void)state;
	assert_int_equal(WP_LOWER_BOUND(UINT64_MAX, i, ++looks && i < 12345),
			 12345);
	assert_in_range(looks, 1, 64);
}

static void of_equal_elements_the_first_is_found(void **state)
{
	static const int v[] = { 1, 3, 3, 3, 5 };

	(void)state;
	assert_int_equal(WP_LOWER_BOUND(5, i, v[i] < 3), 1);
	assert_int_equal(WP_LOWER_BOUND(5, i, v[i] <= 3), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bound_of_every_length_is_found),
		cmocka_unit_test(elements_are_looked_at_at_most_once_a_bit),
		cmocka_unit_test(of_equal_elements_the_first_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
