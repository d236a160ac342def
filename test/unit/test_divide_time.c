/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  wp_profile_divide_wall: sums of a thread and a state stay, shares
 * become those of the looks and CPU samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wallprof/profile.h"

static struct wp_profile profile;

static int setup(void **state)
{
	(void)state;
	if (wp_profile_init(&profile))
		return -1;
	for (int i = 0; i < 2; i++)
		wp_profile_add_thread(&profile,
				      &(struct wp_profile_thread){ .tid = i });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&profile);
	return 0;
}

static struct wp_sample_key key_of(uint32_t stack, enum wp_state state)
{
	return (struct wp_sample_key){ .stack = stack,
				       .state = (uint8_t)state };
}

/* Add a sample of thread 0; its index is the number of samples before. */
static struct wp_profile_sample *add(uint32_t stack, enum wp_state state,
				     uint64_t wall_ns, uint64_t weight_ns)
{
	const struct wp_sample_key key = key_of(stack, state);
	struct wp_sample_set *set = &profile.sets[WP_PROFILE_WALL];

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_WALL, &key,
					       1, wall_ns),
			 0);
	set->samples[set->nsamples - 1].weight_ns = weight_ns;
	return &set->samples[set->nsamples - 1];
}

static uint64_t wall(uint32_t i)
{
	return profile.sets[WP_PROFILE_WALL].samples[i].wall_ns;
}

static void waits_get_what_is_exact_and_a_share_by_looks(void **state)
{
	(void)state;
	add(1, WP_STATE_WAITING, 900, 30)->exact_ns = 400;
	add(2, WP_STATE_WAITING, 100, 60);
	add(3, WP_STATE_EXITING, 11, 0);
	add(1, WP_STATE_RUNNING, 55, 10);
	wp_profile_divide_wall(&profile, false);
	/* 611 of 1,011 are divided. */
	assert_int_equal(wall(0), 400 + 611 / 3);
	assert_int_equal(wall(1), 611 - 611 / 3);
	assert_int_equal(wall(2), 0);
	assert_int_equal(wall(3), 55);
}

static void running_time_goes_by_cpu_samples_or_by_looks(void **state)
{
	(void)state;
	add(1, WP_STATE_RUNNING, 600, 10)->cpu_ns = 1;
	add(2, WP_STATE_RUNNING, 0, 30)->cpu_ns = 2;
	add(1, WP_STATE_RUNNABLE, 70, 10);
	wp_profile_divide_wall(&profile, false);
	assert_int_equal(wall(0), 200);
	assert_int_equal(wall(1), 400);
	assert_int_equal(wall(2), 70);
	wp_profile_divide_wall(&profile, true);
	assert_int_equal(wall(0), 150);
	assert_int_equal(wall(1), 450);
}

static void a_thread_without_looks_stays_as_it_is(void **state)
{
	(void)state;
	add(1, WP_STATE_RUNNING, 600, 0);
	add(2, WP_STATE_WAITING, 300, 0);
	wp_profile_divide_wall(&profile, false);
	assert_int_equal(wall(0), 600);
	assert_int_equal(wall(1), 300);
}

static uint64_t in_timeline(uint32_t sample)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < profile.timeline.n; i++)
		if (profile.timeline.v[i].sample == sample)
			ns += profile.timeline.v[i].ns;
	return ns;
}

static void the_timeline_agrees_afterwards(void **state)
{
	const struct wp_sample_key first = key_of(1, WP_STATE_WAITING);

	(void)state;
	wp_timeline_start(&profile.timeline, 1 << 16);
	add(1, WP_STATE_WAITING, 700, 30);
	add(2, WP_STATE_WAITING, 300, 60);
	/* It has no place in the log. */
	add(3, WP_STATE_WAITING, 0, 60);
	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_WALL,
					       &first, 1, 100),
			 0);
	wp_profile_divide_wall(&profile, false);
	assert_int_equal(wall(0) + wall(1), 1100);
	assert_int_equal(wall(0), 366);
	assert_int_equal(wall(2), 0);
	assert_int_equal(profile.timeline.n, 3);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(in_timeline(i), wall(i));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(waits_get_what_is_exact_and_a_share_by_looks),
		TEST(running_time_goes_by_cpu_samples_or_by_looks),
		TEST(a_thread_without_looks_stays_as_it_is),
		TEST(the_timeline_agrees_afterwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
