/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  errors.h: the standard error of what looks divide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/output/errors.h"

/* Add to PROFILE a wait of STACK in THREAD. */
static void add(struct wp_profile *profile, uint32_t thread, uint32_t stack,
		uint64_t wall_ns, uint64_t exact_ns, uint64_t looks)
{
	const struct wp_sample_key key = { .stack = stack,
					   .thread = thread,
					   .state = WP_STATE_WAITING };
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];

	assert_int_equal(wp_profile_add_sample(profile, WP_PROFILE_WALL, &key,
					       looks, wall_ns),
			 0);
	set->samples[set->nsamples - 1].exact_ns = exact_ns;
	set->samples[set->nsamples - 1].looks = looks;
}

/* Rows by stack: 0 has 400 of 1,000 ns by 100 looks in one thread and all that another
 * has, 1 the rest, 2 is known exactly. */
static void a_share_is_as_wrong_as_tosses_of_a_coin(void **state)
{
	const struct wp_profile_thread thread = { .tid = 1 };
	struct wp_pairs rows = WP_PAIRS_INIT;
	struct wp_profile profile;
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_WALL];
	struct wp_errors errors;

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	for (int i = 0; i < 2; i++)
		wp_profile_add_thread(&profile, &thread);
	add(&profile, 0, 0, 900, 500, 40);
	add(&profile, 0, 1, 600, 0, 60);
	add(&profile, 0, 2, 700, 700, 0);
	add(&profile, 1, 0, 300, 0, 1);
	assert_int_equal(wp_errors_init(&errors, &profile, set), 0);
	assert_true(errors.known);
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		uint32_t row = wp_pairs_add(&rows, s->key.stack, 0);

		assert_int_equal(wp_errors_add(&errors, row, s), 0);
	}
	wp_errors_finish(&errors, &rows);
	/* 1,000 ns times the root of 0.4 * 0.6 / 100. */
	assert_in_range(rows.v[0].total, 48, 49);
	assert_in_range(rows.v[1].total, 48, 49);
	assert_int_equal(rows.v[2].total, 0);
	wp_errors_clear(&errors);
	wp_pairs_clear(&rows);
	wp_profile_clear(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_is_as_wrong_as_tosses_of_a_coin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
