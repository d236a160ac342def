/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  A ring of what came to a profile, and the profile of a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "wallprof/block_weight.h"
#include "wallprof/history.h"
#include "wallprof/profile_processes.h"

enum { S = 1000000000 };

static struct wp_profile profile;
static struct wp_history history;
static struct wp_sample_key keys[2];

static void begin(uint64_t keep_ns, size_t bytes, size_t timeline)
{
	assert_int_equal(wp_profile_init(&profile), 0);
	if (timeline)
		wp_timeline_start(&profile.timeline, timeline);
	for (unsigned int i = 0; i < 2; i++) {
		const struct wp_profile_thread thread = { .tid = (int)i + 1,
							  .last_ns = 0 };
		const struct wp_stack none = { .end = i ? WP_END_EMPTY :
							  WP_END_ROOT };

		keys[i].thread = wp_profile_add_thread(&profile, &thread);
		keys[i].stack = wp_profile_add_stack(&profile, &none, 0);
		keys[i].state = WP_STATE_WAITING;
	}
	wp_history_init(&history, keep_ns, bytes, 0);
}

static void end(void)
{
	wp_history_clear(&history);
	wp_profile_clear(&profile);
}

/* Thread I gets a second; then there is a mark at AT_S. */
static void second(unsigned int i, uint64_t at_s)
{
	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_WALL,
					       &keys[i], 1, S),
			 0);
	profile.threads[i].cpu_ns += 7;
	profile.threads[i].last_ns = at_s * S;
	profile.counters.ticks++;
	assert_non_null(wp_history_add(&history, &profile, at_s * S));
}

static uint64_t wall_s(unsigned int i)
{
	const struct wp_sample_set *set = &profile.sets[WP_PROFILE_WALL];

	for (uint32_t k = 0; k < set->nsamples; k++)
		if (set->samples[k].key.thread == i)
			return set->samples[k].wall_ns / S;
	return 0;
}

static void a_view_is_what_came_in_its_time(void **state)
{
	uint64_t from = 2 * (uint64_t)S, to = 4 * (uint64_t)S;

	(void)state;
	begin(100 * (uint64_t)S, 1 << 20, 0);
	second(0, 1);
	second(0, 2);
	second(1, 3);
	second(0, 4);
	second(1, 5);
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	assert_int_equal(from, 2 * (uint64_t)S);
	assert_int_equal(to, 4 * (uint64_t)S);
	assert_int_equal(wall_s(0), 1);
	assert_int_equal(wall_s(1), 1);
	assert_int_equal(profile.threads[0].cpu_ns, 7);
	assert_int_equal(profile.counters.ticks, 2);
	assert_true(profile.threads[0].first_ns == from);
	end();
}

static void nothing_is_said_of_a_time_without_marks(void **state)
{
	uint64_t from = 9 * (uint64_t)S, to = 12 * (uint64_t)S;

	(void)state;
	begin(100 * (uint64_t)S, 1 << 20, 0);
	second(0, 1);
	assert_int_equal(wp_history_view(&history, &profile, &from, &to),
			 -ENOENT);
	end();
}

static void old_marks_go(void **state)
{
	(void)state;
	begin(3 * (uint64_t)S, 1 << 20, 0);
	for (uint64_t i = 1; i <= 10; i++)
		second(0, i);
	assert_int_equal(wp_history_begin_ns(&history), 6 * (uint64_t)S);
	assert_int_equal(history.ndropped, 0);
	end();
	begin(100 * (uint64_t)S, 1000, 0);
	for (uint64_t i = 1; i <= 100; i++)
		second(0, i);
	assert_true(history.bytes <= 1000);
	assert_true(history.ndropped > 80);
	end();
}

static void what_is_taken_back_is_not_below_nothing(void **state)
{
	uint64_t from = (uint64_t)S, to = 2 * (uint64_t)S;

	(void)state;
	begin(100 * (uint64_t)S, 1 << 20, 0);
	second(0, 1);
	profile.sets[WP_PROFILE_WALL].samples[0].exact_ns = S;
	wp_profile_take_back(&profile, WP_PROFILE_WALL, 0, S / 2);
	second(1, 2);
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	assert_int_equal(wall_s(0), 0);
	assert_int_equal(wall_s(1), 1);
	end();
}

static void a_timeline_is_cut_to_its_time(void **state)
{
	uint64_t from = 2 * (uint64_t)S, to = 4 * (uint64_t)S, sum = 0;

	(void)state;
	begin(100 * (uint64_t)S, 1 << 20, 1 << 20);
	for (uint64_t i = 1; i <= 6; i++) {
		assert_int_equal(wp_profile_add_sample(&profile,
						       WP_PROFILE_WALL,
						       &keys[0], 1, S),
				 0);
		second(1, i);
	}
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	for (uint32_t i = 0; i < profile.timeline.n; i++)
		sum += profile.timeline.v[i].ns;
	assert_int_equal(sum, 4 * (uint64_t)S);
	assert_int_equal(wall_s(0), 2);
	assert_int_equal(wall_s(1), 2);
	end();
}

/* A mark that came late is longer than what is asked for. */
static void a_time_within_a_mark_is_told_by_it(void **state)
{
	uint64_t from = 6 * (uint64_t)S, to = 7 * (uint64_t)S;

	(void)state;
	begin(100 * (uint64_t)S, 1 << 20, 0);
	second(0, 1);
	second(1, 9);
	second(0, 10);
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	assert_int_equal(from, (uint64_t)S);
	assert_int_equal(to, 9 * (uint64_t)S);
	assert_int_equal(wall_s(0), 0);
	assert_int_equal(wall_s(1), 1);
	end();
}

/* Thread 0 is of process 0, thread 1 of process 1. */
static void begin_two(void)
{
	const struct wp_profile_process processes[] = { { .pid = 1 },
							{ .pid = 2 } };

	begin(100 * (uint64_t)S, 1 << 20, 1 << 20);
	for (uint32_t i = 0; i < 2; i++)
		profile.threads[i].process = wp_profile_add_process(
			&profile, &processes[i]);
}

static void what_may_not_be_kept_is_in_no_mark(void **state)
{
	uint64_t from = 0, to = 10 * (uint64_t)S;

	(void)state;
	begin_two();
	second(0, 1);
	second(1, 2);
	second(1, 3);
	wp_profile_forget_process(&profile, 1);
	wp_history_forget(&history, &profile);
	second(0, 4);
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	assert_int_equal(wall_s(0), 2);
	assert_int_equal(wall_s(1), 0);
	assert_int_equal(profile.threads[1].cpu_ns, 0);
	end();
}

static void what_is_chosen_of_processes_is_left(void **state)
{
	const bool stays[] = { false, true };
	uint64_t ns = 0;

	(void)state;
	begin_two();
	second(0, 1);
	second(1, 2);
	wp_profile_keep_processes(&profile, stays);
	assert_int_equal(wall_s(0), 0);
	assert_int_equal(wall_s(1), 1);
	for (uint32_t i = 0; i < profile.timeline.n; i++)
		ns += profile.timeline.v[i].ns;
	assert_int_equal(ns, S);
	end();
}

/* Of thread 0: a long wait, which ticks tell, by WAKER (0: it goes on). */
static void wait_of(uint32_t stack, uint32_t waker, uint64_t count, uint64_t ns)
{
	struct wp_sample_key key = keys[0];

	key.stack = keys[stack].stack;
	key.object = waker ? wp_block_weight_object(waker, 0) : 0;
	assert_int_equal(wp_profile_add_sample(&profile, WP_PROFILE_BLOCK, &key,
					       count, ns),
			 0);
}

static uint64_t delay_s(uint32_t stack, uint32_t waker, uint64_t *ret_count)
{
	const struct wp_sample_set *set = &profile.sets[WP_PROFILE_BLOCK];

	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].key.stack == keys[stack].stack &&
		    set->samples[i].key.object >> 8 == waker) {
			*ret_count = set->samples[i].count;
			return set->samples[i].wall_ns / S;
		}
	return 0;
}

/* It moved to who ended it at its end: with what of it came in that time. */
static void a_wait_that_began_before_is_cut(void **state)
{
	uint64_t from = 60 * (uint64_t)S, to = 70 * (uint64_t)S, n = 9;

	(void)state;
	begin(1000 * (uint64_t)S, 1 << 20, 0);
	wait_of(0, 0, 1, 55 * (uint64_t)S);
	assert_non_null(wp_history_add(&history, &profile, 60 * (uint64_t)S));
	wait_of(0, 0, 0, 5 * (uint64_t)S);
	wait_of(0, 0, -UINT64_C(1), -60 * (uint64_t)S);
	wait_of(0, 7, 1, 60 * (uint64_t)S);
	wait_of(1, 0, 1, 5 * (uint64_t)S);
	assert_non_null(wp_history_add(&history, &profile, 70 * (uint64_t)S));
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	assert_int_equal(delay_s(0, 7, &n), 5);
	/* It was counted when it began. */
	assert_int_equal(n, 0);
	assert_int_equal(delay_s(0, 0, &n), 0);
	assert_int_equal(delay_s(1, 0, &n), 5);
	assert_int_equal(n, 1);
	end();
}

static void counters_of_a_view_are_of_its_time(void **state)
{
	uint64_t from = 1 * (uint64_t)S, to = 2 * (uint64_t)S;
	struct wp_counters *c = &profile.counters;

	(void)state;
	begin(100 * (uint64_t)S, 1 << 20, 0);
	c->stops = 100;
	c->unchanged = 1000;
	c->files_unopened = 3;
	second(0, 1);
	c->stops += 2;
	c->processes_denied++;
	second(0, 2);
	c->stops += 50;
	second(0, 3);
	assert_int_equal(wp_history_view(&history, &profile, &from, &to), 0);
	assert_int_equal(c->ticks, 1);
	assert_int_equal(c->stops, 2);
	assert_int_equal(c->unchanged, 0);
	assert_int_equal(c->processes_denied, 1);
	/* It has no names now either. */
	assert_int_equal(c->files_unopened, 3);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_is_what_came_in_its_time),
		cmocka_unit_test(a_wait_that_began_before_is_cut),
		cmocka_unit_test(counters_of_a_view_are_of_its_time),
		cmocka_unit_test(nothing_is_said_of_a_time_without_marks),
		cmocka_unit_test(old_marks_go),
		cmocka_unit_test(what_is_taken_back_is_not_below_nothing),
		cmocka_unit_test(a_timeline_is_cut_to_its_time),
		cmocka_unit_test(a_time_within_a_mark_is_told_by_it),
		cmocka_unit_test(what_may_not_be_kept_is_in_no_mark),
		cmocka_unit_test(what_is_chosen_of_processes_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
