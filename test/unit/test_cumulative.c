/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  Waits that only grow, however stacks share them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "../../src/profile/budget_bytes.h"
#include "wallprof/block_weight.h"
#include "wallprof/budget.h"
#include "wallprof/cumulative.h"
#include "wallprof/profile_processes.h"
#include "profile_maker.h"

enum { S = 1000000000, CLASS = 40 };

static struct wp_profile profile;
static struct wp_history history;
static struct wp_cumulative waits;
static uint32_t thread, stacks[2];

static void begin(uint64_t keep_s)
{
	static const struct wp_cumulative none;
	static const uint64_t a[] = { 1, 0 }, b[] = { 2, 0 };

	waits = none;
	assert_int_equal(wp_profile_init(&profile), 0);
	thread = mk_thread(&profile, 1, "main");
	stacks[0] = mk_stack(&profile, a, WP_END_ROOT, 0);
	stacks[1] = mk_stack(&profile, b, WP_END_ROOT, 0);
	wp_history_init(&history, keep_s * S, 1 << 20, 0);
}

static void end(void)
{
	wp_cumulative_clear(&waits);
	wp_history_clear(&history);
	wp_profile_clear(&profile);
}

static void add(uint32_t stack, uint64_t count)
{
	const struct wp_sample_key key = {
		.stack = stack,
		.thread = thread,
		.state = WP_STATE_WAITING,
		.object = wp_block_weight_object(
			stack == WP_BLOCK_ALL ? 0 : mk_str(&profile, "waker"),
			CLASS),
	};

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_BLOCK, &key,
					       count, count * 1000),
			 0);
}

/* A second with so many waits, of which so many were sampled with each stack. */
static void second(uint64_t at_s, uint64_t all, uint64_t first, uint64_t other)
{
	add(WP_BLOCK_ALL, all);
	if (first)
		add(stacks[0], first);
	if (other)
		add(stacks[1], other);
	assert_non_null(wp_history_add(&history, &profile, at_s * S));
	assert_int_equal(wp_cumulative_add(&waits, &history, &profile), 0);
}

static uint64_t count_of(uint32_t stack)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < waits.set.nsamples; i++) {
		const struct wp_profile_sample *s = &waits.set.samples[i];

		if (s->key.stack == stack) {
			assert_int_equal(s->key.object, 0);
			sum += s->count;
		}
	}
	return sum;
}

static void no_stack_loses_what_it_had(void **state)
{
	(void)state;
	begin(100);
	/* All of them are the first stack's, as far as is known. */
	second(1, 100, 1, 0);
	assert_int_equal(count_of(stacks[0]), 100);
	/* Of all time it would be 50 now. */
	second(2, 100, 0, 3);
	assert_int_equal(count_of(stacks[0]), 100);
	assert_int_equal(count_of(stacks[1]), 100);
	second(3, 40, 1, 1);
	assert_int_equal(count_of(stacks[0]), 120);
	assert_int_equal(count_of(stacks[1]), 120);
	/* Nothing is counted twice. */
	assert_int_equal(wp_cumulative_add(&waits, &history, &profile), 0);
	assert_int_equal(count_of(stacks[0]), 120);
	/* The profile's own are as they were. */
	assert_int_equal(profile.sets[WP_PROFILE_BLOCK].nsamples, 3);
	assert_int_equal(profile.sets[WP_PROFILE_BLOCK].samples[0].count, 240);
	end();
}

static void forget(void)
{
	uint64_t since_ns = wp_history_begin_ns(&history);
	struct wp_renumber r;

	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	for (int pass = 0; pass < 2; pass++) {
		wp_history_renumber(&history, &profile, &r);
		assert_int_equal(wp_cumulative_renumber(&waits, since_ns, &r),
				 0);
		if (!pass)
			assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	}
	wp_renumber_clear(&r);
}

static void what_grows_no_more_goes_after_a_time(void **state)
{
	static const uint64_t a[] = { 1, 0 }, b[] = { 2, 0 };

	(void)state;
	begin(10);
	second(1, 10, 1, 0);
	for (uint64_t at_s = 2; at_s < 30; at_s++)
		second(at_s, 10, 0, 1);
	forget();
	stacks[0] = mk_stack(&profile, a, WP_END_ROOT, 0);
	stacks[1] = mk_stack(&profile, b, WP_END_ROOT, 0);
	assert_int_equal(count_of(stacks[0]), 0);
	assert_int_equal(count_of(stacks[1]), 280);
	/* It goes on where it was. */
	second(30, 10, 1, 1);
	assert_int_equal(count_of(stacks[0]), 5);
	assert_int_equal(count_of(stacks[1]), 285);
	end();
}

/* More threads than are looked at together. */
static void each_of_many_threads_has_its_waits(void **state)
{
	enum { MANY = 3000 };
	uint32_t first = 0;

	(void)state;
	begin(100);
	for (uint32_t i = 0; i < MANY; i++) {
		thread = mk_thread(&profile, (int32_t)i + 2, "pool");
		first = i ? first : thread;
		add(WP_BLOCK_ALL, 3);
		add(stacks[i % 2], 1);
	}
	assert_non_null(wp_history_add(&history, &profile, S));
	assert_int_equal(wp_cumulative_add(&waits, &history, &profile), 0);
	assert_int_equal(waits.set.nsamples, MANY);
	assert_int_equal(count_of(stacks[0]), 3 * MANY / 2);
	assert_int_equal(count_of(stacks[1]), 3 * MANY / 2);
	assert_int_equal(waits.set.samples[MANY - 1].key.thread,
			 first + MANY - 1);
	end();
}

static void a_process_that_is_forgotten_has_no_waits(void **state)
{
	uint32_t process;

	(void)state;
	begin(100);
	assert_int_equal(wp_profile_share_process(&profile, 1, "main", 0), 0);
	process = wp_profile_share_process(&profile, 7, "other", 0);
	second(1, 10, 4, 4);
	thread = mk_thread(&profile, 2, "other");
	profile.threads[thread].process = process;
	second(2, 20, 8, 0);
	assert_int_equal(count_of(stacks[0]), 5 + 20);
	wp_profile_forget_process(&profile, process);
	wp_cumulative_forget(&waits, &profile);
	assert_int_equal(count_of(stacks[0]), 5);
	assert_int_equal(count_of(stacks[1]), 5);
	end();
}

static void the_budget_has_all_back(void **state)
{
	enum { BYTES = 1 << 20 };
	uint64_t share;

	(void)state;
	wp_budget_set(BYTES);
	share = wp_budget_share(WP_BUDGET_SAMPLES);
	begin(10);
	for (uint64_t at_s = 1; at_s < 500; at_s++)
		second(at_s, 10, 1, 1);
	end();
	/* The profile's three samples are never given back. */
	assert_true(
		wp_budget_take(WP_BUDGET_SAMPLES, share - 3 * WP_SAMPLE_BYTES));
	wp_budget_set(WP_BUDGET_DEFAULT);
}

/* A long wait, which ticks tell; WAKER NULL: it goes on. */
static void long_wait(const char *waker, uint64_t count, uint64_t ns)
{
	const struct wp_sample_key key = {
		.stack = stacks[0],
		.thread = thread,
		.state = WP_STATE_WAITING,
		.object = waker ? wp_block_weight_object(
					  mk_str(&profile, waker), 0) :
				  0,
	};

	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_BLOCK, &key,
					       count, ns),
			 0);
}

/* Waits of 20 s, each of which ends 5 s into a part of 15 s; the thread's waiting is
 * known a little shorter than ticks tell. */
static void a_wait_that_ends_in_a_later_part_is_whole(void **state)
{
	const struct wp_sample_key wall = { .stack = stacks[0],
					    .thread = thread,
					    .state = WP_STATE_WAITING };
	uint64_t ns = 0;

	(void)state;
	begin(1000);
	for (uint64_t part = 1; part <= 4; part++) {
		long_wait(NULL, 1, 15 * (uint64_t)S);
		if (part > 1) {
			long_wait(NULL, -UINT64_C(1), -20 * (uint64_t)S);
			long_wait("waker", 1, 20 * (uint64_t)S);
		}
		assert_int_equal(
			wp_profile_add_sample(&profile, WP_PROFILE_WALL, &wall,
					      1, 15 * (uint64_t)S - 1000),
			0);
		assert_non_null(wp_history_add(&history, &profile,
					       part * 15 * (uint64_t)S));
		assert_int_equal(wp_cumulative_add(&waits, &history, &profile),
				 0);
	}
	for (uint32_t i = 0; i < waits.set.nsamples; i++)
		ns += waits.set.samples[i].wall_ns;
	assert_in_range(ns, 59 * (uint64_t)S, 60 * (uint64_t)S);
	assert_int_equal(count_of(stacks[0]), 4);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_stack_loses_what_it_had),
		cmocka_unit_test(a_wait_that_ends_in_a_later_part_is_whole),
		cmocka_unit_test(what_grows_no_more_goes_after_a_time),
		cmocka_unit_test(each_of_many_threads_has_its_waits),
		cmocka_unit_test(a_process_that_is_forgotten_has_no_waits),
		cmocka_unit_test(the_budget_has_all_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
