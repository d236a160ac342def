/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  timeline.h: the log of changes agrees with the sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "profile_maker.h"

#define MS UINT64_C(1000000)

static struct wp_profile p;
static struct wp_timeline *tl;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(wp_profile_init(&p), 0);
	tl = &p.timeline;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&p);
	return 0;
}

static void start(uint32_t nthreads, uint32_t max)
{
	for (uint32_t i = 0; i < nthreads; i++)
		mk_thread(&p, (int32_t)i + 1, "t");
	wp_timeline_start(tl, max * sizeof(*tl->v));
}

static void add(uint32_t thread, uint32_t stack, uint64_t ns)
{
	struct wp_sample_key key = { .thread = thread, .stack = stack };

	assert_int_equal(
		wp_profile_add_sample(&p, WP_PROFILE_WALL, &key, 1, ns), 0);
}

/* The sums of the log, by sample, are those of the samples; threads that dropped
 * their oldest intervals lack just that. */
static void assert_sane(void)
{
	const struct wp_sample_set *set = &p.sets[WP_PROFILE_WALL];
	uint64_t *sums = calloc(set->nsamples + 1, sizeof(*sums)),
		 *lack = calloc(p.nthreads + 1, sizeof(*lack));

	assert_true(tl->n <= tl->max);
	assert_true(tl->nmerged <= tl->n);
	for (uint32_t i = 0; i < tl->n; i++) {
		const struct wp_timeline_interval *one = &tl->v[i];

		assert_true(one->ns > 0);
		if (one->sample == WP_TIMELINE_UNWATCHED)
			continue;
		assert_true(one->sample < set->nsamples);
		assert_int_equal(set->samples[one->sample].key.thread,
				 one->thread);
		sums[one->sample] += one->ns;
	}
	for (uint32_t i = 0; i < set->nsamples; i++) {
		assert_true(sums[i] <= set->samples[i].wall_ns);
		lack[set->samples[i].key.thread] += set->samples[i].wall_ns -
						    sums[i];
	}
	for (uint32_t i = 0; i < p.nthreads; i++)
		assert_int_equal(lack[i], wp_timeline_dropped_ns(tl, i));
	for (uint32_t i = 0; i < tl->nthreads; i++)
		if (tl->threads[i].last)
			assert_int_equal(tl->v[tl->threads[i].last - 1].thread,
					 i);
	free(sums);
	free(lack);
}

static void assert_interval(uint32_t i, uint32_t thread, uint32_t stack,
			    uint64_t ns)
{
	const struct wp_sample_key *key;

	assert_true(i < tl->n);
	key = &p.sets[WP_PROFILE_WALL].samples[tl->v[i].sample].key;
	assert_int_equal(key->thread, thread);
	assert_int_equal(key->stack, stack);
	assert_int_equal(tl->v[i].ns, ns);
}

static void thread_that_does_not_move_adds_nothing(void **state)
{
	(void)state;
	start(2, 100);
	for (int i = 0; i < 1000; i++) {
		add(0, 1, 10 * MS);
		add(1, 2, 10 * MS);
	}
	add(0, 3, 5 * MS);
	assert_int_equal(tl->n, 3);
	assert_interval(0, 0, 1, 10000 * MS);
	assert_interval(1, 1, 2, 10000 * MS);
	assert_interval(2, 0, 3, 5 * MS);
	assert_sane();
}

static void without_a_start_there_is_no_log(void **state)
{
	(void)state;
	mk_thread(&p, 1, "t");
	add(0, 1, MS);
	assert_int_equal(tl->n, 0);
	assert_null(tl->v);
}

static void another_wait_at_the_same_site_is_told_from_the_first(void **state)
{
	(void)state;
	start(1, 100);
	add(0, 1, MS);
	wp_timeline_end_interval(tl, 0);
	add(0, 1, 2 * MS);
	add(0, 1, 2 * MS);
	assert_int_equal(tl->n, 2);
	assert_interval(1, 0, 1, 4 * MS);
	/* Of a thread that is not known yet. */
	wp_timeline_end_interval(tl, 77);
	assert_sane();
}

static void time_unwatched_is_a_gap(void **state)
{
	(void)state;
	start(1, 100);
	add(0, 1, MS);
	assert_int_equal(wp_profile_add_unwatched(&p, 0, 0), 0);
	add(0, 1, MS);
	assert_int_equal(tl->n, 1);
	assert_int_equal(wp_profile_add_unwatched(&p, 0, 7), 0);
	add(0, 1, MS);
	assert_int_equal(tl->n, 3);
	assert_int_equal(tl->v[1].sample, WP_TIMELINE_UNWATCHED);
	assert_int_equal(tl->v[1].ns, 7);
	assert_sane();
}

static void threads_that_share_an_entry_have_no_log(void **state)
{
	const struct wp_profile_thread many = { .tid = 9 };

	(void)state;
	start(1, 100);
	assert_int_equal(wp_profile_share_thread(&p, &many, "pool"), 1);
	add(1, 1, MS);
	assert_int_equal(wp_profile_add_unwatched(&p, 1, MS), 0);
	assert_int_equal(tl->n, 0);
	add(0, 1, MS);
	assert_int_equal(tl->n, 1);
}

static void other_kinds_do_not_count(void **state)
{
	struct wp_sample_key key = { 0 };

	(void)state;
	start(1, 100);
	assert_int_equal(
		wp_profile_add_sample(&p, WP_PROFILE_BLOCK, &key, 1, MS), 0);
	assert_int_equal(wp_profile_add_cpu(&p, &key, 1, MS), 0);
	assert_int_equal(tl->n, 0);
}

static void holder_is_of_the_interval_that_waits_for_it(void **state)
{
	(void)state;
	start(2, 100);
	wp_timeline_set_holder(tl, 1, 0);
	add(1, 1, MS);
	wp_timeline_set_holder(tl, 1, 0);
	add(1, 1, MS);
	wp_timeline_set_holder(tl, 1, 0);
	assert_int_equal(tl->n, 1);
	assert_int_equal(tl->v[0].holder, 1);
	/* The lock has changed hands. */
	wp_timeline_set_holder(tl, 1, 1);
	add(1, 1, MS);
	wp_timeline_set_holder(tl, 1, 1);
	assert_int_equal(tl->n, 2);
	assert_int_equal(tl->v[0].holder, 1);
	assert_int_equal(tl->v[1].holder, 2);
	assert_sane();
}

static void full_log_merges_its_oldest_and_keeps_its_sums(void **state)
{
	(void)state;
	start(3, 4096);
	for (uint32_t i = 0; i < 100000; i++) {
		add(i % 3, i / 3 % 2, MS + i);
		assert_true(tl->n <= tl->max);
	}
	assert_sane();
	assert_true(tl->nlost > 90000);
	assert_int_equal(wp_timeline_dropped_ns(tl, 0), 0);
	assert_true(tl->window_ns > 0);
	/* The newest intervals are as they were added. */
	assert_interval(tl->n - 1, 0, 1, MS + 99999);
	assert_interval(tl->n - 2, 2, 0, MS + 99998);
}

static void merging_never_moves_time_out_of_its_window(void **state)
{
	uint64_t before[2] = { 0 }, late[2] = { 0 }, half = 20000 * MS;

	(void)state;
	/* Stack 1 in the first half, stack 2 in the second. */
	start(2, 1024);
	for (uint32_t i = 0; i < 40000; i++) {
		add(0, i < 20000 ? 1 : 2, MS);
		wp_timeline_end_interval(tl, 0);
	}
	assert_sane();
	for (uint32_t i = 0; i < tl->n; i++) {
		uint32_t s = tl->v[i].sample;

		late[0] += s == 0 && before[0] + before[1] > half;
		before[s] += tl->v[i].ns;
	}
	assert_int_equal(late[0], 0);
	assert_int_equal(before[0], half);
	assert_int_equal(before[1], half);
}

static void interval_that_goes_on_is_not_merged(void **state)
{
	(void)state;
	start(2, 512);
	add(0, 9, MS);
	for (uint32_t i = 0; i < 10000; i++) {
		add(0, 9, MS);
		add(1, i % 5, MS);
	}
	assert_interval(0, 0, 9, 10001 * MS);
	assert_sane();
	add(0, 9, MS);
	assert_interval(0, 0, 9, 10002 * MS);
}

static void what_cannot_be_merged_is_dropped_and_counted(void **state)
{
	(void)state;
	start(2, 256);
	for (uint32_t i = 0; i < 5000; i++)
		add(i % 2, i, MS);
	assert_sane();
	assert_true(tl->n <= 256);
	assert_true(tl->n >= 128);
	assert_int_equal(wp_timeline_dropped_ns(tl, 0) +
				 wp_timeline_dropped_ns(tl, 1) + tl->n * MS,
			 5000 * MS);
	assert_int_equal(tl->nlost + tl->n, 5000);
}

/* NS of what THREAD spent with STACK are taken back. */
static void take_back(uint32_t thread, uint32_t stack, uint64_t ns)
{
	struct wp_sample_set *set = &p.sets[WP_PROFILE_WALL];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];

		if (s->key.thread != thread || s->key.stack != stack)
			continue;
		s->exact_ns = s->wall_ns;
		wp_profile_take_back(&p, WP_PROFILE_WALL, i, ns);
	}
}

/* N intervals of other threads than 0. */
static void add_others(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		add(1, i % 2 + 10, MS);
}

static void time_is_taken_back_behind_any_number_of_others(void **state)
{
	(void)state;
	start(2, 20000);
	add(0, 1, 10 * MS);
	add_others(5000);
	take_back(0, 1, 3 * MS);
	assert_interval(0, 0, 1, 7 * MS);
	/* It has ended. */
	wp_timeline_end_interval(tl, 0);
	take_back(0, 1, MS);
	assert_interval(0, 0, 1, 6 * MS);
	add(0, 2, MS);
	assert_interval(5001, 0, 2, MS);
	assert_sane();
}

static void time_is_taken_back_from_all_holders_of_a_lock(void **state)
{
	(void)state;
	start(2, 20000);
	add(0, 1, 10 * MS);
	wp_timeline_set_holder(tl, 0, 0);
	wp_timeline_set_holder(tl, 0, 1);
	add_others(1000);
	add(0, 1, 4 * MS);
	add_others(4000);
	take_back(0, 1, 6 * MS);
	assert_interval(0, 0, 1, 8 * MS);
	assert_interval(1001, 0, 1, 0);
}

static void time_is_taken_back_from_what_was_merged_or_dropped(void **state)
{
	(void)state;
	start(2, 256);
	add(0, 1, MS);
	add(0, 2, MS);
	add(0, 1, 4 * MS);
	wp_timeline_end_interval(tl, 0);
	add_others(256);
	assert_interval(0, 0, 1, 5 * MS);
	take_back(0, 1, 2 * MS);
	assert_interval(0, 0, 1, 3 * MS);
	assert_sane();
	for (uint32_t i = 0; !wp_timeline_dropped_ns(tl, 0); i++)
		add(1, i, MS);
	assert_int_equal(wp_timeline_dropped_ns(tl, 0), 4 * MS);
	take_back(0, 1, MS);
	assert_int_equal(wp_timeline_dropped_ns(tl, 0), 3 * MS);
	assert_sane();
}

/* A lane that is too long says of all that follows that it was later than it was. */
static void what_is_not_found_is_taken_from_what_follows(void **state)
{
	uint64_t ns = 0;

	(void)state;
	start(2, 20000);
	add(0, 1, 2 * MS);
	wp_timeline_end_interval(tl, 0);
	add_others(5000);
	add(0, 1, 2 * MS);
	take_back(0, 1, 4 * MS);
	add(0, 2, MS);
	add(0, 3, 5 * MS);
	for (uint32_t i = 0; i < tl->n; i++)
		ns += tl->v[i].thread == 0 ? tl->v[i].ns : 0;
	assert_int_equal(ns, 6 * MS);
	assert_interval(tl->n - 1, 0, 3, 4 * MS);
}

/* Half of THREAD's last interval, if that is there still. */
static void take_back_half(uint32_t thread)
{
	uint32_t last = tl->threads[thread].last;
	const struct wp_timeline_interval *one;

	if (!last)
		return;
	one = &tl->v[last - 1];
	take_back(thread,
		  p.sets[WP_PROFILE_WALL].samples[one->sample].key.stack,
		  one->ns / 2);
}

static void any_size_holds_any_sequence(void **state)
{
	uint32_t seed = 1;

	(void)state;
	start(7, 1);
	for (uint32_t max = 1; max < 40; max++) {
		tl->max = max;
		for (uint32_t i = 0; i < 3000; i++) {
			uint32_t thread, r;

			seed = seed * 1664525 + 1013904223;
			r = seed >> 8;
			thread = r % 7;
			add(thread, r / 7 % (max + 1), r % 977 * MS);
			if (r % 5 == 0)
				wp_timeline_end_interval(tl, thread);
			if (r % 11 == 0)
				wp_timeline_set_holder(tl, thread, r % 3);
			if (r % 13 == 0 && tl->nthreads > thread)
				take_back_half(thread);
		}
		assert_sane();
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(thread_that_does_not_move_adds_nothing),
		T(without_a_start_there_is_no_log),
		T(another_wait_at_the_same_site_is_told_from_the_first),
		T(time_unwatched_is_a_gap),
		T(threads_that_share_an_entry_have_no_log),
		T(other_kinds_do_not_count),
		T(holder_is_of_the_interval_that_waits_for_it),
		T(full_log_merges_its_oldest_and_keeps_its_sums),
		T(merging_never_moves_time_out_of_its_window),
		T(interval_that_goes_on_is_not_merged),
		T(what_cannot_be_merged_is_dropped_and_counted),
		T(time_is_taken_back_behind_any_number_of_others),
		T(time_is_taken_back_from_all_holders_of_a_lock),
		T(time_is_taken_back_from_what_was_merged_or_dropped),
		T(what_is_not_found_is_taken_from_what_follows),
		T(any_size_holds_any_sequence),
	};

	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
