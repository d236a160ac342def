/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  Goroutines as samples of a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/dump/goroutine_samples.h"

/* Two that wait, at one stack; five more were not read. */
static void a_profile_has_the_goroutines_and_counts_those_it_lacks(void **state)
{
	struct wp_goroutine two[2] = {
		{ .id = 1, .state = WP_GOROUTINE_WAITING },
		{ .id = 2, .state = WP_GOROUTINE_WAITING }
	};
	struct wp_goroutine_stacks stacks = { 0, 0 };
	const struct wp_goroutine_list list = {
		.all = { .v = two, .len = 2, .nunread = 5 },
		.stacks = &stacks,
		.nstacks = 1
	};
	struct wp_snapshot_process process = { .process = WP_PROCESS_INIT };
	const struct wp_stack stack = { .end = WP_END_ROOT };
	struct wp_profile profile;

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	assert_int_equal(wp_profile_add_stack(&profile, &stack, 0), 0);
	assert_int_equal(wp_goroutine_samples_add(&profile, &process, &list,
						  "those of x"),
			 0);
	assert_string_equal(
		wp_profile_str(&profile,
			       profile.meta.source[WP_PROFILE_GOROUTINE]),
		"all but those of x");
	assert_int_equal(profile.sets[WP_PROFILE_GOROUTINE].nsamples, 1);
	assert_int_equal(profile.sets[WP_PROFILE_GOROUTINE].samples[0].count,
			 2);
	assert_int_equal(profile.counters.goroutines_lost, 5);
	wp_profile_clear(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_profile_has_the_goroutines_and_counts_those_it_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
