/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  unsampled.h: whom the run time goes to that CPU samples do not
 * cover. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/record.h"
#include "../../src/sample/stack_walk.h"
#include "../../src/sample/threads.h"
#include "../../src/sample/unsampled.h"
#include "fake_perf.h"
#include "one_target.h"

enum { TID = 7 };

#define MS WP_NS_PER_MS

static struct wp_thread *t;
static struct wp_schedstat now;

static int setup(void **state)
{
	(void)state;
	fake_perf_reset();
	fake_perf.facts.user_only = true;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	options.cpu = true;
	now = (struct wp_schedstat){ 0 };
	return 0;
}

static void start(void)
{
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
}

/* It runs for NS, of which CPU samples tell SAMPLED_NS: they are read first. */
static void run_unpaid(uint64_t ns, uint64_t sampled_ns)
{
	uint64_t slices;

	if (sampled_ns) {
		wp_time_ledger_add_run(&t->time, sampled_ns);
		wp_time_ledger_owe_cpu(&t->time, sampled_ns);
	}
	now.run_ns += ns;
	wp_time_ledger_count_run(&t->time, &now, true, &slices);
}

static void run(uint64_t ns, uint64_t sampled_ns)
{
	run_unpaid(ns, sampled_ns);
	wp_time_ledger_pay_cpu(&t->time);
}

/* What a stop brings as a CPU sample. */
static uint64_t stopped(bool at_call)
{
	wp_unsampled_stop(t, at_call);
	return wp_time_ledger_pay_cpu(&t->time).ns;
}

static void samples_that_cover_it_want_no_stop(void **state)
{
	(void)state;
	start();
	for (int i = 0; i < 100; i++) {
		run(TICK, TICK - MS / 2);
		assert_false(wp_unsampled_wants_stop(t));
		assert_int_equal(stopped(true), 0);
	}
}

/* Nine of ten intervals are in the kernel, in a call. */
static void time_in_the_kernel_goes_to_calls(void **state)
{
	uint64_t ns = 0;

	(void)state;
	start();
	for (int i = 0; i < 1000; i++) {
		bool at_call = i % 10 != 0;

		run(TICK, at_call ? 0 : TICK);
		if (i > 40)
			assert_true(wp_unsampled_wants_stop(t) || !at_call);
		if (at_call)
			ns += stopped(true);
		else
			assert_int_equal(stopped(false), 0);
	}
	assert_in_range(ns, 890ULL * TICK, 900ULL * TICK);
}

enum { CALL, USER, NSTACKS };

/* What STACK has of the wall-clock time by now. */
static uint64_t wall_of(uint32_t which)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < set->nsamples; i++)
		ns += set->samples[i].key.stack == which ?
			      set->samples[i].wall_ns :
			      0;
	return ns;
}

/* Each third interval is in a call.  Only each tenth is stopped, as where stops are
 * dear: a third of the stops are at calls. */
static void rare_stops_stand_for_all_that_was_before_them(void **state)
{
	uint32_t stacks[NSTACKS];
	uint64_t ns = 0;

	(void)state;
	start();
	stacks[CALL] = wp_stack_walk_intern_none(fake.target, WP_END_EMPTY);
	stacks[USER] = wp_stack_walk_intern_none(fake.target, WP_END_NOT_SEEN);
	for (int i = 0; i < 3000; i++) {
		bool at_call = i % 3 == 0;

		run_unpaid(TICK, at_call ? 0 : TICK);
		t->time.running_ns += TICK;
		if (!at_call)
			assert_int_equal(wp_record_cpu(t, stacks[USER]), 0);
		if (i % 10)
			continue;
		wp_unsampled_stop(t, at_call);
		ns += at_call ? t->time.cpu_ns : 0;
		assert_int_equal(
			wp_record_running(t, stacks[at_call ? CALL : USER],
					  WP_STATE_RUNNING, TICK),
			0);
	}
	assert_in_range(ns, 960ULL * TICK, 1000ULL * TICK);
	assert_in_range(wall_of(stacks[CALL]), 930ULL * TICK, 1000ULL * TICK);
	assert_in_range(wall_of(stacks[USER]), 2000ULL * TICK, 2070ULL * TICK);
}

/* Half of the time; a tenth of the stops find a call. */
static void time_of_page_faults_goes_to_other_stops(void **state)
{
	uint64_t at_calls = 0, elsewhere = 0;

	(void)state;
	start();
	for (int i = 0; i < 1000; i++) {
		run(TICK, i % 2 ? 0 : TICK);
		if (i % 10)
			elsewhere += stopped(false);
		else
			at_calls += stopped(true);
	}
	assert_in_range(at_calls, 90ULL * TICK, 170ULL * TICK);
	assert_in_range(elsewhere, 340ULL * TICK, 400ULL * TICK);
}

static void without_an_event_any_stop_tells(void **state)
{
	uint64_t ns = 0;

	(void)state;
	fake_perf.facts.user_only = false;
	start();
	run(TICK, TICK);
	for (int i = 0; i < 200; i++) {
		run(TICK, 0);
		ns += stopped(false);
	}
	assert_in_range(ns, 180ULL * TICK, 200ULL * TICK);
}

static void samples_of_the_kernel_may_be_few_by_chance(void **state)
{
	(void)state;
	fake_perf.facts.user_only = false;
	start();
	for (int i = 0; i < 200; i++) {
		run(TICK, i % 10 ? 0 : TICK);
		assert_false(wp_unsampled_wants_stop(t));
	}
}

static void events_of_cpus_cover_no_thread_alike(void **state)
{
	(void)state;
	fake_perf.facts.main_scope = WP_PERF_CPU;
	start();
	run(100 * TICK, 0);
	assert_false(wp_unsampled_wants_stop(t));
	assert_int_equal(stopped(true), 0);
}

static void what_no_stop_tells_has_no_stack(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	(void)state;
	options.stop = WP_STOP_NEVER;
	start();
	run(100 * TICK, 10 * TICK);
	assert_false(wp_unsampled_wants_stop(t));
	assert_int_equal(wp_unsampled_record(t, false), 0);
	assert_int_equal(wp_unsampled_record(t, false), 0);
	assert_int_equal(set->nsamples, 1);
	assert_int_equal(set->samples[0].cpu_ns, 90 * TICK);
	assert_int_equal(fake.profile.stacks[set->samples[0].key.stack].end,
			 WP_END_NOT_SAMPLED);
}

/* The first tenth may be by chance; what comes after it is as sure as that. */
static void once_it_is_not_by_chance_all_of_it_is_told(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	(void)state;
	options.stop = WP_STOP_NEVER;
	start();
	for (int i = 0; i < 300; i++) {
		run(TICK, i % 3 ? TICK : 0);
		assert_int_equal(wp_unsampled_record(t, false), 0);
	}
	assert_int_equal(set->nsamples, 1);
	assert_int_equal(set->samples[0].cpu_ns, 100 * TICK);
}

static void what_stops_have_left_at_the_end_has_no_stack(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];
	uint64_t ns;

	(void)state;
	start();
	run(100 * TICK, 10 * TICK);
	ns = stopped(true);
	assert_in_range(ns, 1, 50 * TICK);
	assert_int_equal(wp_unsampled_record(t, true), 0);
	assert_int_equal(set->nsamples, 1);
	assert_int_equal(set->samples[0].cpu_ns, 90 * TICK - ns);
}

static void where_stops_tell_none_is_without_a_stack(void **state)
{
	(void)state;
	start();
	run(100 * TICK, 10 * TICK);
	assert_true(wp_unsampled_wants_stop(t));
	assert_int_equal(wp_unsampled_record(t, false), 0);
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].nsamples, 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(samples_that_cover_it_want_no_stop),
		TEST(time_in_the_kernel_goes_to_calls),
		TEST(rare_stops_stand_for_all_that_was_before_them),
		TEST(time_of_page_faults_goes_to_other_stops),
		TEST(without_an_event_any_stop_tells),
		TEST(samples_of_the_kernel_may_be_few_by_chance),
		TEST(events_of_cpus_cover_no_thread_alike),
		TEST(what_no_stop_tells_has_no_stack),
		TEST(once_it_is_not_by_chance_all_of_it_is_told),
		TEST(what_stops_have_left_at_the_end_has_no_stack),
		TEST(where_stops_tell_none_is_without_a_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
