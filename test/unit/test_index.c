/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "few_allocations.h"
#include "wallprof/hash.h"
#include "wallprof/index.h"

enum { MANY = 10000 };

static void an_empty_index_has_nothing(void **state)
{
	struct wp_index index = WP_INDEX_INIT;

	(void)state;
	assert_int_equal(WP_INDEX_FIND(&index, 0, i, i || true), WP_INDEX_NONE);
	wp_index_clear(&index);
}

static void all_that_was_entered_is_found_while_it_grows(void **state)
{
	static uint64_t keys[MANY];
	struct wp_index index = WP_INDEX_INIT;

	(void)state;
	for (uint32_t n = 0; n < MANY; n++) {
		keys[n] = (uint64_t)n * n;
		assert_int_equal(WP_INDEX_FIND(&index, wp_hash_u64(keys[n]), i,
					       keys[i] == keys[n]),
				 WP_INDEX_NONE);
		assert_int_equal(wp_index_add(&index, wp_hash_u64(keys[n]), n),
				 0);
	}
	for (uint32_t n = 0; n < MANY; n++)
		assert_int_equal(WP_INDEX_FIND(&index, wp_hash_u64(keys[n]), i,
					       keys[i] == keys[n]),
				 n);
	assert_true(index.len == MANY && index.cap >= 2 * MANY &&
		    index.cap < 5 * MANY);
	wp_index_clear(&index);
	assert_true(!index.v && !index.len && !index.cap);
}

static void elements_of_one_hash_are_told_apart(void **state)
{
	struct wp_index index = WP_INDEX_INIT;

	(void)state;
	/* The last slot of any table: the search goes on at the first. */
	for (uint32_t n = 0; n < 100; n++)
		assert_int_equal(wp_index_add(&index, UINT64_MAX, n), 0);
	for (uint32_t n = 0; n < 100; n++)
		assert_int_equal(WP_INDEX_FIND(&index, UINT64_MAX, i, i == n),
				 n);
	assert_int_equal(WP_INDEX_FIND(&index, UINT64_MAX, i, i == 100),
			 WP_INDEX_NONE);
	wp_index_clear(&index);
}

static void another_hash_is_not_compared(void **state)
{
	struct wp_index index = WP_INDEX_INIT;
	unsigned int compared = 0;

	(void)state;
	/* Both belong into slot 1. */
	assert_int_equal(wp_index_add(&index, 0x10001, 0), 0);
	assert_int_equal(WP_INDEX_FIND(&index, 0x20001, i, ++compared || i),
			 WP_INDEX_NONE);
	assert_int_equal(compared, 0);
	wp_index_clear(&index);
}

#ifdef CAN_FAIL
static void without_memory_it_stays_as_it_was(void **state)
{
	struct wp_index index = WP_INDEX_INIT;
	uint32_t n = 0;
	int rc;

	(void)state;
	assert_int_equal(wp_index_add(&index, 0, 0), 0);
	allocations_left = 0;
	do
		rc = wp_index_add(&index, n + 1, n + 1);
	while (!rc && n++ < MANY);
	allocations_left = -1;
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(index.len, n + 1);
	for (uint32_t k = 0; k <= n; k++)
		assert_int_equal(WP_INDEX_FIND(&index, k, i, i == k), k);
	wp_index_clear(&index);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_index_has_nothing),
		cmocka_unit_test(all_that_was_entered_is_found_while_it_grows),
		cmocka_unit_test(elements_of_one_hash_are_told_apart),
		cmocka_unit_test(another_hash_is_not_compared),
#ifdef CAN_FAIL
		cmocka_unit_test(without_memory_it_stays_as_it_was),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
