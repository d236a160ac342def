/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  CPU samples of a target with a fake /proc, clock and tracer and
 * with perf records that the test writes: what they add to the profile is
 * compared with their periods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "fake_perf.h"
#include "one_target.h"
#include "threads.h"

enum { PERIOD = 10 * WP_NS_PER_MS };

static int setup(void **state)
{
	(void)state;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_target_add_thread(&fake, 7, "worker");
	options = fake_target_options();
	options.wall = false;
	options.cpu = true;
	return 0;
}

/* A sample of thread TID with the coroutine's registers and LEN bytes of its
 * stack. */
static struct wp_perf_record sample(pid_t tid, size_t len)
{
	struct wp_perf_record record = {
		.type = WP_PERF_SAMPLE_CPU,
		.time_ns = fake_now_ns,
		.tid = tid,
		.period = PERIOD,
		.regs = fake_stack_regs(&stack),
		.stack_len = len,
	};

	record.stack = (const uint8_t *)(uintptr_t)record.regs.v[WP_REG_SP];
	return record;
}

static size_t whole_stack(void)
{
	struct wp_regs regs = fake_stack_regs(&stack);

	return (size_t)((uintptr_t)stack.room + sizeof(stack.room) -
			regs.v[WP_REG_SP]);
}

static void put(const struct wp_perf_record *record)
{
	fake_perf_put(fake_perf_last(), record);
}

/* CPU time in those samples of thread TID whose stack has at least DEPTH frames (0:
 * none at all). */
static uint64_t cpu_ns(pid_t tid, uint32_t depth)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;

		if (fake.profile.threads[key->thread].tid == tid &&
		    (depth ? fake.profile.stacks[key->stack].depth >= depth :
			     !fake.profile.stacks[key->stack].depth))
			ns += set->samples[i].cpu_ns;
	}
	return ns;
}

static const char *source(void)
{
	return wp_profile_str(&fake.profile, fake.profile.meta.cpu_source);
}

static void a_sample_counts_its_period_with_its_stack(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	assert_true(fake_perf_last()->enabled);
	assert_int_equal(fake_perf_last()->options.period_ns, TICK);
	record = sample(7, whole_stack());
	for (int i = 0; i < 3; i++)
		put(&record);
	record.type = WP_PERF_SWITCH_OUT;
	put(&record);
	tick();
	/* The leaf, its caller, what glibc begins a context with; and ASan's
	 * own. */
	assert_int_equal(cpu_ns(7, 3), 3 * PERIOD);
	wp_profile_add_up(&fake.profile);
	assert_int_equal(fake.profile.sums[WP_PROFILE_WALL].cpu_count, 3);
	assert_int_equal(fake.profile.counters.sampled, 3);
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_non_null(strstr(source(), "perf events of each thread"));
}

static void a_thread_that_came_and_went_between_ticks_is_counted(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	record = sample(4711, whole_stack());
	put(&record);
	tick();
	assert_int_equal(cpu_ns(4711, 3), PERIOD);
	tick();
	assert_null(wp_threads_find(fake.target, 4711));
	assert_int_equal(fake.profile.counters.threads_lost, 0);
	/* What the scheduler counted of it is not to be read any more. */
	for (uint32_t i = 0; i < fake.profile.nthreads; i++)
		if (fake.profile.threads[i].tid == 4711)
			assert_int_equal(fake.profile.threads[i].cpu_ns,
					 PERIOD);
}

/* The profile's only entry of thread TID. */
static const struct wp_profile_thread *entry(pid_t tid)
{
	const struct wp_profile_thread *found = NULL;

	for (uint32_t i = 0; i < fake.profile.nthreads; i++) {
		if (fake.profile.threads[i].tid != tid)
			continue;
		assert_null(found);
		found = &fake.profile.threads[i];
	}
	assert_non_null(found);
	return found;
}

static void the_last_samples_of_a_thread_that_ends_are_its_own(void **state)
{
	struct wp_perf_record record;

	(void)state;
	fake_target_add_thread(&fake, 8, "other");
	start_target();
	fake_target_schedstat(&fake, 7, PERIOD, 0, 2);
	tick();
	record = sample(7, whole_stack());
	record.time_ns++;
	put(&record);
	fake_target_end_thread(&fake, 7);
	tick();
	assert_null(wp_threads_find(fake.target, 7));
	assert_int_equal(cpu_ns(7, 3), PERIOD);
	assert_int_equal(entry(7)->cpu_ns, PERIOD);
	assert_string_equal(wp_profile_str(&fake.profile, entry(7)->name),
			    "worker");
}

/* A sample of before the last look is read after it. */
static void
what_the_scheduler_has_told_is_not_told_by_samples_again(void **state)
{
	struct wp_perf_record record;

	(void)state;
	fake_target_add_thread(&fake, 8, "other");
	start_target();
	tick();
	record = sample(7, whole_stack());
	put(&record);
	fake_target_schedstat(&fake, 7, 1000 + PERIOD, 0, 2);
	tick();
	assert_int_equal(entry(7)->cpu_ns, PERIOD);
	fake_target_end_thread(&fake, 7);
	tick();
	assert_int_equal(entry(7)->cpu_ns, PERIOD);
}

static void threads_that_are_not_watched_are_left_out(void **state)
{
	struct wp_perf_record record;

	(void)state;
	options.thread_globs[0] = "other*";
	start_target();
	record = sample(7, whole_stack());
	put(&record);
	tick();
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].nsamples, 0);
}

static void a_sample_without_registers_has_no_stack(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	record = sample(7, whole_stack());
	record.regs.known = 0;
	put(&record);
	tick();
	assert_int_equal(cpu_ns(7, 0), PERIOD);
	assert_int_equal(fake_target_ends(&fake, WP_END_EMPTY), 1);
}

static void a_stack_that_was_cut_is_supplied_by_a_stop(void **state)
{
	struct wp_perf_record record;

	(void)state;
	fake_stop.regs = fake_stack_regs(&stack);
	start_target();
	tick();
	record = sample(7, 8);
	record.stack_full = true;
	put(&record);
	fake_target_schedstat(&fake, 7, PERIOD, 0, 2);
	tick();
	/* It was met before the sample was taken. */
	assert_int_equal(fake_stop.ninterrupts, 0);
	fake_target_schedstat(&fake, 7, 2 * PERIOD, 0, 3);
	tick();
	assert_int_equal(fake_stop.ninterrupts, 1);
	assert_int_equal(cpu_ns(7, 3), PERIOD);
	/* Longer copies from now on, by events that record already. */
	assert_int_equal(fake_perf.nopened, 2);
	assert_true(fake_perf_last()->enabled);
	assert_int_equal(fake_perf_last()->options.stack_bytes, 32768);
	assert_false(fake_perf.opened[0]->enabled);
}

/* The CPU time of a sample that was cut is that of stops that read as much of a
 * stack, not of whole samples. */
static void a_whole_sample_is_not_paid_for_one_that_was_cut(void **state)
{
	struct wp_perf_record record;

	(void)state;
	fake_stop.regs = fake_stack_regs(&stack);
	start_target();
	tick();
	record = sample(7, 8);
	put(&record);
	record = sample(7, whole_stack());
	put(&record);
	fake_target_schedstat(&fake, 7, PERIOD, 0, 2);
	tick();
	assert_int_equal(cpu_ns(7, 3), PERIOD);
	assert_int_equal(cpu_ns(7, 1), PERIOD);
	fake_target_schedstat(&fake, 7, 2 * PERIOD, 0, 3);
	tick();
	assert_int_equal(fake_stop.ninterrupts, 1);
	assert_int_equal(cpu_ns(7, 3), 2 * PERIOD);
}

/* Four stops find other stacks: then what is known of the sample's has its
 * time. */
static void stops_of_another_kind_are_not_paid(void **state)
{
	struct wp_perf_record record;

	(void)state;
	fake_stop.regs = fake_stack_regs(&stack);
	start_target();
	tick();
	record = sample(7, 8);
	put(&record);
	fake_target_schedstat(&fake, 7, PERIOD, 0, 2);
	tick();
	wp_threads_find_or_add(fake.target, 7)->aside.len = sizeof(stack.room);
	for (uint64_t i = 2; i < 9; i++) {
		fake_target_schedstat(&fake, 7, i * PERIOD, 0, i + 1);
		tick();
	}
	assert_int_equal(fake_stop.ninterrupts, 4);
	assert_int_equal(cpu_ns(7, 0) + cpu_ns(7, 1), 0);
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_int_equal(fake_target_ends(&fake, WP_END_BEYOND_COPY), 1);
	assert_int_equal(cpu_ns(7, 3), 0);
	assert_true(cpu_ns(7, 1) >= 8 * PERIOD);
}

static void without_stops_a_stack_that_was_cut_stays_cut(void **state)
{
	struct wp_perf_record record;

	(void)state;
	options.stop = WP_STOP_NEVER;
	start_target();
	record = sample(7, 8);
	put(&record);
	tick();
	assert_int_equal(fake_target_ends(&fake, WP_END_BEYOND_COPY), 1);
	assert_int_equal(fake_stop.ninterrupts, 0);
	/* The kernel copied less than it might have: more would not help. */
	assert_int_equal(fake_perf.nopened, 1);
}

static void frames_of_the_kernel_go_before_those_of_the_thread(void **state)
{
	static const uint64_t chain[] = { 0xffffffff81000000,
					  0xffffffff82000001 };
	struct wp_perf_record record;

	(void)state;
	options.kernel = true;
	start_target();
	assert_true(fake_perf_last()->options.kernel_chain);
	record = sample(7, whole_stack());
	record.kernel_chain = chain;
	record.kernel_len = 2;
	put(&record);
	tick();
	assert_int_equal(cpu_ns(7, 5), PERIOD);
}

static void lost_records_are_counted(void **state)
{
	(void)state;
	start_target();
	put(&(struct wp_perf_record){
		.type = WP_PERF_LOST, .time_ns = fake_now_ns, .lost = 12 });
	tick();
	assert_int_equal(fake.profile.counters.cpu_lost, 12);
}

static void without_events_the_profile_says_why(void **state)
{
	(void)state;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	start_target();
	tick();
	assert_non_null(strstr(source(), "refused by the test"));
	assert_true(fake.target->wants_running);
}

/* Begin to sample a process of so many THREADS; where events of CPUs are opened, that
 * gives RC. */
static void start_with_threads(long threads, int rc)
{
	char path[128];

	fake_perf.open_rc[WP_PERF_CPU] = rc;
	/* By number only: they are not looked at. */
	for (long i = 1; i < threads; i++) {
		snprintf(path, sizeof(path), "%s/task/more%ld", fake.dir, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	start_target();
}

static void no_more_than_2000_events_of_threads_are_opened(void **state)
{
	const long most = 2000 / sysconf(_SC_NPROCESSORS_ONLN);

	if (!most)
		skip();
	start_with_threads(most, 0);
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_AUTO);
	teardown(state);
	setup(state);
	start_with_threads(most + 1, 0);
	assert_int_equal(fake_perf.nopened, 1);
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_CPU);
	teardown(state);
	setup(state);
	/* Those that are permitted are better than none. */
	start_with_threads(most + 1, -EPERM);
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_AUTO);
	teardown(state);
	setup(state);
	start_with_threads(most + 1, -EMFILE);
	assert_int_equal(fake_perf.nopened, 0);
	assert_non_null(strstr(source(), "refused by the test"));
}

static void events_of_all_processes_are_the_samplers(void **state)
{
	struct wp_perf_record record;

	(void)state;
	options.many = true;
	start_target();
	tick();
	record = sample(7, whole_stack());
	record.pid = getpid();
	put(&record);
	fake_target_schedstat(&fake, 7, 1000 + PERIOD, 0, 2);
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_int_equal(cpu_ns(7, 3), PERIOD);
}

/* 10 ms pass with RATE switches a second to the thread, then there is a tick. */
static void switch_once(uint64_t rate, uint64_t *slices)
{
	*slices += rate * TICK / WP_NS_PER_S;
	fake_target_schedstat(&fake, 7, *slices, 0, *slices);
	tick();
}

static void switch_at(uint64_t rate, uint64_t *slices)
{
	for (int i = 0; i < 20; i++)
		switch_once(rate, slices);
}

static void switches_are_judged_by_a_tenth_of_a_second(void **state)
{
	uint64_t slices = 1;

	(void)state;
	start_target();
	while (fake.target->tick < 19) {
		switch_once(5000, &slices);
		assert_int_equal(fake_perf.nopened, 1);
	}
	switch_once(5000, &slices);
	assert_int_equal(fake_perf.nopened, 2);
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_CPU);
}

static void many_switches_lead_to_events_of_cpus(void **state)
{
	uint64_t slices = 1;

	(void)state;
	start_target();
	tick();
	switch_at(4000, &slices);
	assert_int_equal(fake_perf.nopened, 1);
	switch_at(6000, &slices);
	assert_int_equal(fake_perf.nopened, 2);
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_CPU);
	assert_non_null(strstr(source(), "perf events of each CPU"));
}

static void
where_those_are_refused_only_very_many_switches_end_the_events(void **state)
{
	struct wp_perf_record record;
	uint64_t slices = 1;

	(void)state;
	start_target();
	fake_perf.open_rc[WP_PERF_CPU] = -EPERM;
	tick();
	record = sample(7, whole_stack());
	put(&record);
	switch_at(15000, &slices);
	assert_false(fake_perf_last()->closed);
	assert_int_equal(cpu_ns(7, 3), PERIOD);
	/* One whose stack is to come. */
	wp_threads_find(fake.target, 7)->time.aside[0].cpu_count = 1;
	wp_threads_find(fake.target, 7)->time.aside[0].cpu_ns = PERIOD;
	switch_at(25000, &slices);
	assert_true(fake_perf_last()->closed);
	assert_int_equal(wp_threads_find(fake.target, 7)->time.aside[0].cpu_ns,
			 0);
	/* All time is divided over running samples, that of before too. */
	assert_int_equal(cpu_ns(7, 3), 0);
	/* And what it has run since. */
	assert_in_range(fake_target_wall_ns(&fake, 7, WP_STATE_RUNNING), PERIOD,
			PERIOD + WP_NS_PER_MS);
	assert_non_null(strstr(source(), "switches are too many"));
}

static void the_last_samples_are_taken_at_the_end(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	tick();
	record = sample(7, whole_stack());
	put(&record);
	fake_target_schedstat(&fake, 7, 1000 + 2 * PERIOD, 0, 2);
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_false(fake_perf_last()->enabled);
	/* The samples are scaled to what the scheduler counted. */
	assert_int_equal(cpu_ns(7, 3), 2 * PERIOD);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sample_counts_its_period_with_its_stack),
		TEST(a_thread_that_came_and_went_between_ticks_is_counted),
		TEST(the_last_samples_of_a_thread_that_ends_are_its_own),
		TEST(what_the_scheduler_has_told_is_not_told_by_samples_again),
		TEST(threads_that_are_not_watched_are_left_out),
		TEST(a_sample_without_registers_has_no_stack),
		TEST(a_stack_that_was_cut_is_supplied_by_a_stop),
		TEST(a_whole_sample_is_not_paid_for_one_that_was_cut),
		TEST(stops_of_another_kind_are_not_paid),
		TEST(without_stops_a_stack_that_was_cut_stays_cut),
		TEST(frames_of_the_kernel_go_before_those_of_the_thread),
		TEST(lost_records_are_counted),
		TEST(without_events_the_profile_says_why),
		TEST(no_more_than_2000_events_of_threads_are_opened),
		TEST(events_of_all_processes_are_the_samplers),
		TEST(switches_are_judged_by_a_tenth_of_a_second),
		TEST(many_switches_lead_to_events_of_cpus),
		TEST(where_those_are_refused_only_very_many_switches_end_the_events),
		TEST(the_last_samples_are_taken_at_the_end),
	};

	return cmocka_run_group_tests_name("cpu_samples", tests, NULL, NULL);
}
