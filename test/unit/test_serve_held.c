/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: serve.  What answers that were not taken may take together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/serve/serve_held.h"

enum { N = 128 };
#define HALF (WP_SERVE_HELD_BYTES / 2)

static void all_together_are_bounded(void **state)
{
	struct wp_serve_held held[N] = { { 0 } };

	(void)state;
	assert_true(wp_serve_held_add(held, N, 5, 1, HALF));
	assert_true(wp_serve_held_add(held, N, 7, 2, HALF));
	assert_false(wp_serve_held_add(held, N, 2, 3, 1));
	assert_int_equal(held[2].bytes, 0);
	/* One has taken its answer. */
	held[5].bytes = 0;
	assert_true(wp_serve_held_add(held, N, 2, 3, HALF));
	assert_false(wp_serve_held_add(held, N, 5, 4, HALF));
}

static void clients_of_one_answer_hold_it_once(void **state)
{
	struct wp_serve_held held[N] = { { 0 } };

	(void)state;
	for (size_t i = 0; i < N; i++)
		assert_true(
			wp_serve_held_add(held, N, i, 9, WP_SERVE_HELD_BYTES));
	assert_false(wp_serve_held_add(held, N, 3, 1, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_together_are_bounded),
		cmocka_unit_test(clients_of_one_answer_hold_it_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
