/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wallprof/wake_weight.h"

/* The last of the threads is woken. */
enum { NO_STACK = 9, WOKEN = 3 };

static struct wp_profile profile;

static int setup(void **state)
{
	const struct wp_profile_thread thread = { .tid = 4711 };

	(void)state;
	if (wp_profile_init(&profile))
		return -1;
	for (uint32_t i = 0; i <= WOKEN; i++)
		if (wp_profile_add_thread(&profile, &thread) != i)
			return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&profile);
	return 0;
}

/* COUNT wakes by THREAD that ended NS of waiting for WAIT. */
static void add(uint32_t stack, uint32_t thread, enum wp_wait wait,
		uint64_t count, uint64_t ns)
{
	const struct wp_sample_key key = { .stack = stack,
					   .thread = thread,
					   .state = WP_STATE_WAITING,
					   .wait = (uint8_t)wait,
					   .object = WOKEN };

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_WAKE, &key,
					       count, ns),
			 0);
}

static void assert_sample(uint32_t stack, uint32_t thread, enum wp_wait wait,
			  uint64_t count, uint64_t ns)
{
	const struct wp_sample_set *set = &profile.sets[WP_PROFILE_WAKE];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		if (s->key.stack != stack || s->key.thread != thread ||
		    s->key.wait != wait)
			continue;
		assert_int_equal(s->count, count);
		assert_int_equal(s->wall_ns, ns);
		return;
	}
	fail_msg("no sample of stack %u, thread %u, wait %d", stack, thread,
		 wait);
}

static void finish(uint32_t nsamples)
{
	assert_int_equal(wp_wake_weight_finish(&profile, NO_STACK), 0);
	assert_int_equal(profile.sets[WP_PROFILE_WAKE].nsamples, nsamples);
}

/* Thread 0: a third of what is known of 1,000 wakes has stack 1.  Of thread 1 there is
 * no stack, and of thread 2 no sum. */
static void stacks_add_up_to_all_wakes(void **state)
{
	(void)state;
	add(1, 0, WP_WAIT_NONE, 10, 1000);
	add(2, 0, WP_WAIT_NONE, 20, 4000);
	add(WP_WAKE_ALL, 0, WP_WAIT_NONE, 1000, 50000);
	add(WP_WAKE_ALL, 1, WP_WAIT_NONE, 7, 350);
	add(3, 2, WP_WAIT_NONE, 3, 30);
	finish(4);
	assert_sample(1, 0, WP_WAIT_NONE, 333, 10000);
	assert_sample(2, 0, WP_WAIT_NONE, 667, 40000);
	assert_sample(NO_STACK, 1, WP_WAIT_NONE, 7, 350);
	assert_sample(3, 2, WP_WAIT_NONE, 3, 30);
}

/* The reasons of a quarter of the wakes by stack 1 are known; of stack 2 none is. */
static void known_reasons_share_out_the_others(void **state)
{
	(void)state;
	add(1, 0, WP_WAIT_NONE, 75, 7500);
	add(1, 0, WP_WAIT_FUTEX, 20, 1000);
	add(1, 0, WP_WAIT_PIPE, 5, 1500);
	add(2, 0, WP_WAIT_NONE, 8, 80);
	finish(3);
	assert_sample(1, 0, WP_WAIT_FUTEX, 80, 4000);
	assert_sample(1, 0, WP_WAIT_PIPE, 20, 6000);
	assert_sample(2, 0, WP_WAIT_NONE, 8, 80);
}

static void delays_of_nothing_divide_nothing(void **state)
{
	(void)state;
	add(1, 0, WP_WAIT_FUTEX, 5, 0);
	add(1, 0, WP_WAIT_NONE, 5, 100);
	add(WP_WAKE_ALL, 0, WP_WAIT_NONE, 40, 400);
	finish(2);
	assert_sample(1, 0, WP_WAIT_FUTEX, 20, 0);
	assert_sample(1, 0, WP_WAIT_NONE, 20, 400);
}

static void sums_without_delay_keep_their_counts(void **state)
{
	(void)state;
	add(1, 0, WP_WAIT_NONE, 5, 0);
	add(WP_WAKE_ALL, 0, WP_WAIT_NONE, 40, 400);
	finish(2);
	assert_sample(1, 0, WP_WAIT_NONE, 40, 0);
	assert_sample(NO_STACK, 0, WP_WAIT_NONE, 0, 400);
}

/* What the sample with STACK calls the thread that was woken. */
static const char *woken_of(uint32_t stack)
{
	const struct wp_sample_set *set = &profile.sets[WP_PROFILE_WAKE];

	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].key.stack == stack)
			return wp_profile_str(&profile,
					      set->samples[i].key.object);
	return NULL;
}

/* The first thread waited for 600 ns by the clock, and is told to have been woken from
 * 1,200; of the second less is told than it waited. */
static void waits_are_no_longer_than_the_clock_says(void **state)
{
	static const uint64_t waited[] = { 600, 5000 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct wp_sample_key key = { .thread = i,
					     .state = WP_STATE_WAITING };

		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WALL, &key, 1,
						       waited[i]),
				 0);
		key.state = WP_STATE_RUNNING;
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WALL, &key, 1,
						       90000),
				 0);
		key.state = WP_STATE_WAITING;
		key.stack = 1 + i;
		key.object = i;
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WAKE, &key, 8,
						       1200),
				 0);
	}
	finish(2);
	assert_sample(1, 0, WP_WAIT_NONE, 4, 600);
	assert_sample(2, 1, WP_WAIT_NONE, 8, 1200);
}

static void who_was_woken_has_name_and_tid(void **state)
{
	struct wp_profile_thread *own = &profile.threads[0],
				 *shared = &profile.threads[1];

	(void)state;
	own->name = wp_intern_add_str(&profile.strings, "a (b");
	shared->name = wp_intern_add_str(&profile.strings, "pool");
	shared->is_shared = true;
	for (uint32_t i = 0; i < 2; i++) {
		const struct wp_sample_key key = { .stack = 1 + i,
						   .thread = WOKEN,
						   .object = i };

		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WAKE, &key, 1,
						       10),
				 0);
	}
	finish(2);
	assert_string_equal(woken_of(1), "a (b (4711)");
	assert_string_equal(woken_of(2), "pool");
}

static void nothing_stays_nothing(void **state)
{
	(void)state;
	finish(0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stacks_add_up_to_all_wakes),
		TEST(known_reasons_share_out_the_others),
		TEST(delays_of_nothing_divide_nothing),
		TEST(sums_without_delay_keep_their_counts),
		TEST(waits_are_no_longer_than_the_clock_says),
		TEST(who_was_woken_has_name_and_tid),
		TEST(nothing_stays_nothing),
	};

	return cmocka_run_group_tests_name("wake_weight", tests, NULL, NULL);
}
