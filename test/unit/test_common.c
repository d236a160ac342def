/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  common.h: what a profile says of its whole recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "one_target.h"

static struct wp_common *common;
static const struct wp_profile_meta *meta;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 7, "worker");
	options = fake_target_options();
	meta = &fake.profile.meta;
	return 0;
}

static void start(void)
{
	start_target();
	common = fake.target->common;
}

static void a_profile_has_one(void **state)
{
	struct wp_profile other;
	struct wp_common *second;

	(void)state;
	start();
	assert_ptr_equal(wp_common_find_or_add(fake.sampler, &fake.profile),
			 common);
	assert_int_equal(wp_profile_init(&other), 0);
	second = wp_common_find_or_add(fake.sampler, &other);
	assert_non_null(second);
	assert_ptr_not_equal(second, common);
	assert_ptr_equal(second->profile, &other);
	assert_ptr_equal(wp_common_find_or_add(fake.sampler, &other), second);
	assert_int_equal(fake.sampler->ncommons, 2);
	fake.sampler->ncommons--;
	wp_common_free(second);
	wp_profile_clear(&other);
	wp_common_free(NULL);
}

/* A sample's key has 16 bits for the name of its call. */
static void names_of_calls_are_the_first_strings(void **state)
{
	(void)state;
	start();
	for (long nr = 0; nr < WP_SYSCALLS_MAX; nr++) {
		const struct wp_syscall_info *info = wp_syscall_find(nr);
		uint32_t id = info ? wp_intern_add_str(&fake.profile.strings,
						       info->name) :
				     0;

		assert_true(id < common->ncalls);
	}
	assert_true(common->ncalls > 300);
}

static void the_first_target_begins_the_recording(void **state)
{
	int64_t utc_ns;

	(void)state;
	options.cpu = true;
	start();
	/* That has begun when it was added. */
	assert_int_equal(common->start_ns, fake_now_ns);
	utc_ns = meta->time_ns;
	assert_int_equal(utc_ns, fake_now_ns);
	assert_true(meta->has_wall);
	assert_true(meta->has_cpu);
	assert_int_equal(meta->period_ns, TICK);
	fake_now_ns += TICK;
	wp_common_begin(common, fake.sampler, fake_now_ns);
	assert_int_equal(common->start_ns, fake_now_ns - TICK);
	assert_int_equal(meta->time_ns, utc_ns);
}

static void without_schedstat_the_profile_says_so(void **state)
{
	(void)state;
	start();
	common->start_ns = 0;
	fake.profile.meta.source[WP_PROFILE_WALL] = 0;
	wp_common_begin(common, fake.sampler, fake_now_ns);
	assert_int_equal(meta->source[WP_PROFILE_WALL], 0);
	common->start_ns = 0;
	fake.sampler->schedstat_works = false;
	wp_common_begin(common, fake.sampler, fake_now_ns);
	assert_string_equal(
		wp_profile_str(&fake.profile, meta->source[WP_PROFILE_WALL]),
		"running, runnable and waiting time is estimated from samples: "
		"/proc/TID/schedstat tells nothing");
}

/* A thread ran for 20 ms: by CPU samples for three parts of four at stack 0, by looks
 * at stack 1. */
static const struct wp_profile_sample *run(void)
{
	struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];
	uint32_t thread = fake.profile.nthreads;

	assert_int_equal(
		wp_profile_add_thread(
			&fake.profile,
			&(struct wp_profile_thread){ .tid = 9, .cpu_ns = 80 }),
		thread);
	for (uint32_t i = 0; i < 2; i++) {
		const struct wp_sample_key key = { .stack = i,
						   .thread = thread,
						   .state = WP_STATE_RUNNING };

		assert_int_equal(wp_profile_add_sample(&fake.profile,
						       WP_PROFILE_WALL, &key, 1,
						       TICK),
				 0);
		set->samples[i].cpu_ns = i ? 10 : 30;
		set->samples[i].weight_ns = i ? 30 : 10;
	}
	return set->samples;
}

static void running_time_goes_by_cpu_samples(void **state)
{
	const struct wp_profile_sample *v;

	(void)state;
	start();
	v = run();
	common->wants_running = true;
	wp_common_finish(common, fake.sampler);
	assert_int_equal(v[0].wall_ns, TICK * 3 / 2);
	assert_int_equal(v[1].wall_ns, TICK / 2);
	/* CPU time was not asked for. */
	assert_int_equal(v[0].cpu_ns, 30);
}

/* --stop=all: every look has the stack that the thread ran with. */
static void where_all_are_stopped_it_goes_by_looks(void **state)
{
	const struct wp_profile_sample *v;

	(void)state;
	options.stop = WP_STOP_ALL;
	start();
	v = run();
	common->wants_running = true;
	wp_common_finish(common, fake.sampler);
	assert_int_equal(v[0].wall_ns, TICK / 2);
	assert_int_equal(v[1].wall_ns, TICK * 3 / 2);
}

static void where_no_target_has_running_time_none_is_divided(void **state)
{
	const struct wp_profile_sample *v;

	(void)state;
	options.cpu = true;
	start();
	v = run();
	common->wants_running = false;
	wp_common_finish(common, fake.sampler);
	assert_int_equal(v[0].wall_ns, TICK);
	assert_int_equal(v[1].wall_ns, TICK);
	/* The scheduler's 80 ns. */
	assert_int_equal(v[0].cpu_ns, 60);
	assert_int_equal(v[1].cpu_ns, 20);
}

/* TICKS in NS make so many a second; the first and the last are none. */
static void assert_hz(uint64_t ticks, uint64_t ns, double hz)
{
	fake.profile.counters.ticks = ticks;
	common->last_tick_ns = common->start_ns + ns;
	wp_common_fill_counters(common, fake.sampler);
	assert_int_equal(meta->duration_ns, ns);
	assert_true(meta->achieved_hz > hz - 1e-9 &&
		    meta->achieved_hz < hz + 1e-9);
}

static void the_rate_is_that_of_ticks_between(void **state)
{
	(void)state;
	start();
	assert_hz(0, 0, 0);
	assert_hz(1, WP_NS_PER_S, 0);
	assert_hz(2, WP_NS_PER_S, 0);
	assert_hz(3, WP_NS_PER_S, 1);
	assert_hz(202, 2 * WP_NS_PER_S, 100);
	/* Nor is any number divided by no time. */
	assert_hz(5, 0, 0);
}

static void figures_are_of_the_profile(void **state)
{
	(void)state;
	start();
	wp_pauses_add(&common->pauses, 3000);
	fake_now_ns += 500;
	wp_common_fill_counters(common, fake.sampler);
	assert_int_equal(fake.profile.counters.pause_max_ns, 3000);
	assert_int_equal(fake.profile.counters.pause_total_ns, 3000);
	assert_int_equal(fake.profile.counters.pause_p50_ns, 3000);
	assert_int_equal(fake.profile.counters.pause_p99_ns, 3000);
	/* The CPU clock of the test is its wall clock. */
	assert_int_equal(meta->own_cpu_ns, 500);
	assert_int_equal(meta->no_scan, 0);
}

static void why_there_is_no_scan_is_said(void **state)
{
	(void)state;
	start();
	(void)wp_err_set(&fake.sampler->scan.why, -EPERM, "no BPF here");
	wp_common_fill_counters(common, fake.sampler);
	assert_string_equal(wp_profile_str(&fake.profile, meta->no_scan),
			    "no BPF here");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_profile_has_one),
		TEST(names_of_calls_are_the_first_strings),
		TEST(the_first_target_begins_the_recording),
		TEST(without_schedstat_the_profile_says_so),
		TEST(running_time_goes_by_cpu_samples),
		TEST(where_all_are_stopped_it_goes_by_looks),
		TEST(where_no_target_has_running_time_none_is_divided),
		TEST(the_rate_is_that_of_ticks_between),
		TEST(figures_are_of_the_profile),
		TEST(why_there_is_no_scan_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
