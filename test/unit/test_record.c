/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  record.h: which sample of the profile a thread's time goes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/syscall.h>

#include "../../src/sample/record.h"
#include "fake_perf.h"
#include "fake_target.h"

enum { TID = 7 };

#define MS WP_NS_PER_MS

static struct fake_target fake;
static struct wp_sampler_options options;
static struct wp_thread *t;
/* Two stacks of the profile. */
static uint32_t stack, other;

static int setup(void **state)
{
	struct wp_stack empty = { .end = WP_END_ROOT };

	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	assert_int_equal(fake_target_start(&fake, &options), 0);
	t = wp_threads_find_or_add(fake.target, TID);
	stack = wp_profile_add_stack(&fake.profile, &empty, 0);
	empty.end = WP_END_NO_INFO;
	other = wp_profile_add_stack(&fake.profile, &empty, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_target_close(&fake);
	return 0;
}

/* Count and wall time of the sample with STACK_ID in STATE. */
static struct wp_payment in(uint32_t stack_id, enum wp_state state)
{
	const struct wp_sample_set *set = &fake.profile.sets[options.wall_kind];

	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].key.stack == stack_id &&
		    set->samples[i].key.state == state)
			return (struct wp_payment){ set->samples[i].count,
						    set->samples[i].wall_ns };
	return (struct wp_payment){ 0 };
}

/* What looks stand for that found the thread running with STACK_ID. */
static uint64_t weight(uint32_t stack_id)
{
	const struct wp_sample_set *set = &fake.profile.sets[options.wall_kind];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].key.stack == stack_id &&
		    set->samples[i].key.state == WP_STATE_RUNNING)
			ns += set->samples[i].weight_ns;
	return ns;
}

static uint64_t cpu_samples(void)
{
	wp_profile_add_up(&fake.profile);
	return fake.profile.sums[WP_PROFILE_WALL].cpu_count;
}

static void assert_in(uint32_t stack_id, enum wp_state state, uint64_t count,
		      uint64_t ns)
{
	struct wp_payment got = in(stack_id, state);

	assert_int_equal(got.count, count);
	assert_int_equal(got.ns, ns);
}

/* 8 ms, of which it ran 6. */
static void owe_both(void)
{
	const struct wp_schedstat before = { 0 };
	const struct wp_schedstat now = { 6 * MS, 2 * MS, 3 };
	uint64_t ns = t->time.accounted_ns;

	wp_time_ledger_look(&t->time, &before, ns, ns, true);
	wp_time_ledger_look(&t->time, &now, ns + 8 * MS, ns + 8 * MS, true);
}

static void both_states_go_to_the_stack_that_comes(void **state)
{
	(void)state;
	owe_both();
	assert_int_equal(wp_record_running(t, stack, WP_STATE_RUNNING, 0), 0);
	assert_in(stack, WP_STATE_RUNNING, 1, 6 * MS);
	assert_in(stack, WP_STATE_RUNNABLE, 0, 2 * MS);
	assert_int_equal(wp_record_running(t, other, WP_STATE_RUNNABLE, 0), 0);
	assert_in(other, WP_STATE_RUNNABLE, 1, 0);
	assert_int_equal(t->last_running_stack, other);
	assert_int_equal(fake_target_ends(&fake, WP_END_ROOT), 2);
	assert_int_equal(fake_target_ends(&fake, WP_END_NO_INFO), 1);
	assert_int_equal(fake.profile.threads[t->index].last_ns,
			 t->time.accounted_ns);
}

static void what_looks_without_a_stack_stand_for_goes_with_them(void **state)
{
	(void)state;
	owe_both();
	wp_time_ledger_owe_look(&t->time, 8 * MS);
	assert_int_equal(wp_record_running(t, stack, WP_STATE_RUNNING, 5 * MS),
			 0);
	assert_in(stack, WP_STATE_RUNNING, 2, 6 * MS);
	assert_int_equal(weight(stack), 13 * MS);
	owe_both();
	wp_time_ledger_owe_look(&t->time, 3 * MS);
	assert_int_equal(wp_record_running(t, other, WP_STATE_RUNNABLE, 5 * MS),
			 0);
	assert_in(other, WP_STATE_RUNNABLE, 2, 2 * MS);
	assert_int_equal(weight(other), 8 * MS);
	owe_both();
	wp_time_ledger_owe_look(&t->time, 4 * MS);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(weight(other), 12 * MS);
}

static void without_a_stack_all_looks_go_to_none(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	(void)state;
	owe_both();
	wp_time_ledger_owe_look(&t->time, 8 * MS);
	assert_int_equal(wp_record_without_stack(t, WP_END_NO_CPU, 5 * MS), 0);
	assert_int_equal(set->samples[0].count, 2);
	assert_int_equal(set->samples[0].weight_ns, 13 * MS);
}

static void a_cpu_sample_takes_all_that_is_owed(void **state)
{
	(void)state;
	owe_both();
	wp_time_ledger_owe_look(&t->time, 8 * MS);
	wp_time_ledger_owe_cpu(&t->time, 10 * MS);
	assert_int_equal(wp_record_cpu(t, stack), 0);
	assert_int_equal(weight(stack), 8 * MS);
	/* A nanosecond is kept for another that comes together with it. */
	assert_in(stack, WP_STATE_RUNNING, 1, 6 * MS - 1);
	assert_in(stack, WP_STATE_RUNNABLE, 0, 2 * MS);
	assert_int_equal(fake.profile.counters.sampled, 1);
	assert_int_equal(cpu_samples(), 1);
	/* With nothing owed it is a CPU sample only. */
	wp_time_ledger_owe_cpu(&t->time, 10 * MS);
	assert_int_equal(wp_record_cpu(t, stack), 0);
	assert_in(stack, WP_STATE_RUNNING, 1, 6 * MS);
	assert_int_equal(cpu_samples(), 2);
	assert_int_equal(fake.profile.counters.sampled, 1);
}

static void a_cpu_recording_counts_its_samples(void **state)
{
	(void)state;
	fake.target->wants_running = false;
	wp_time_ledger_owe_cpu(&t->time, 10 * MS);
	assert_int_equal(wp_record_cpu(t, stack), 0);
	assert_int_equal(fake.profile.counters.sampled, 1);
	assert_int_equal(fake_target_ends(&fake, WP_END_ROOT), 1);
}

static void without_a_stop_all_goes_to_no_stack(void **state)
{
	(void)state;
	owe_both();
	assert_int_equal(wp_record_without_stack(t, WP_END_NO_CPU, 0), 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNING),
			 6 * MS);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNABLE),
			 2 * MS);
	assert_int_equal(fake.profile.counters.no_stack, 1);
}

static void at_the_end_the_last_running_stack_takes_the_rest(void **state)
{
	(void)state;
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].nsamples, 0);
	t->last_running_stack = stack;
	owe_both();
	wp_time_ledger_owe_cpu(&t->time, 10 * MS);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_in(stack, WP_STATE_RUNNING, 0, 6 * MS);
	assert_in(stack, WP_STATE_RUNNABLE, 0, 2 * MS);
	assert_int_equal(cpu_samples(), 1);
}

static void a_thread_that_never_had_a_stack_ends_without(void **state)
{
	(void)state;
	owe_both();
	assert_int_equal(wp_record_end(t, false), 0);
	assert_in(stack, WP_STATE_RUNNING, 0, 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_NSTATES), 8 * MS);
}

/* 210 ms in 22 looks without a stack, then the end. */
static void run_without_stacks(void)
{
	t->last_running_stack = stack;
	for (uint64_t i = 1; i <= 22; i++) {
		const struct wp_schedstat now = { i * 10 * MS, 0, i };

		wp_time_ledger_look(&t->time, &now,
				    t->time.accounted_ns + 10 * MS,
				    t->time.accounted_ns + 10 * MS, true);
		wp_time_ledger_owe_look(&t->time, 10 * MS);
	}
	assert_int_equal(wp_record_end(t, false), 0);
}

static void a_thread_that_lost_its_event_is_nowhere_known(void **state)
{
	/* Any events; no record is read of them here. */
	static struct wp_perf events;

	(void)state;
	fake.target->cpu_events->perf = &events;
	run_without_stacks();
	fake.target->cpu_events->perf = NULL;
	assert_in(stack, WP_STATE_RUNNING, 0, 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNING),
			 210 * MS);
}

/* Its stops were left out. */
static void without_events_a_thread_runs_on_where_it_was(void **state)
{
	(void)state;
	run_without_stacks();
	assert_in(stack, WP_STATE_RUNNING, 22, 210 * MS);
}

/* The samples that it had before do not stand for the time after them. */
static void the_time_after_a_lost_event_is_not_divided(void **state)
{
	wp_time_ledger_owe_cpu(&t->time, 70 * MS);
	assert_int_equal(wp_record_cpu(t, stack), 0);
	a_thread_that_lost_its_event_is_nowhere_known(state);
	wp_profile_divide_wall(&fake.profile, false);
	assert_in(stack, WP_STATE_RUNNING, 0, 210 * MS * 70 / 280);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNING),
			 210 * MS);
}

/* No stop has found a stack of their kind. */
static void samples_set_aside_are_their_own_stacks_at_the_end(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	(void)state;
	t->aside.stacks[WP_ASIDE_FILE] = other;
	wp_time_ledger_owe_cpu(&t->time, 10 * MS);
	wp_time_ledger_set_aside(&t->time, WP_ASIDE_FILE);
	wp_time_ledger_owe_cpu(&t->time, 20 * MS);
	assert_int_equal(wp_record_cpu(t, stack), 0);
	assert_int_equal(wp_record_end(t, true), 0);
	assert_int_equal(set->nsamples, 2);
	assert_int_equal(set->samples[0].key.stack, stack);
	assert_int_equal(set->samples[0].cpu_ns, 20 * MS);
	assert_int_equal(set->samples[1].key.stack, other);
	assert_int_equal(set->samples[1].cpu_ns, 10 * MS);
}

/* Its status says that it has slept N times. */
static void slept(unsigned int n)
{
	char text[64];

	snprintf(text, sizeof(text), "voluntary_ctxt_switches:\t%u\n", n);
	fake_target_write(&fake, TID, "status", text);
}

/* 1,000 ms in which 100 looks found it ready, and of which the scheduler tells
 * 970. */
static void have_a_gap(void)
{
	for (uint64_t i = 0; i <= 100; i++) {
		const struct wp_schedstat now = { i * 97 * MS / 10, 0, i };
		uint64_t ns = t->time.accounted_ns + (i ? 10 * MS : 0);

		wp_time_ledger_look(&t->time, &now, ns, ns, true);
	}
	t->last_running_stack = stack;
}

static void time_in_no_books_is_a_wait_only_of_a_thread_that_slept(void **state)
{
	(void)state;
	have_a_gap();
	t->sleeps_before = 5;
	t->nstops = 2;
	slept(7);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_WAITING), 0);
	assert_true(in(stack, WP_STATE_RUNNABLE).ns > 29 * MS);
	have_a_gap();
	slept(8);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_true(fake_target_wall_ns(&fake, TID, WP_STATE_WAITING) >
		    29 * MS);
}

/* 90 of 100 looks are due to meet it. */
static void have_a_long_gap(uint64_t nslipped)
{
	for (uint64_t i = 0; i <= 100; i++) {
		const struct wp_schedstat now = { i * MS, 0, i };
		uint64_t ns = t->time.accounted_ns + (i ? 10 * MS : 0);

		wp_time_ledger_look(&t->time, &now, ns, ns, true);
	}
	t->last_running_stack = stack;
	t->sleeps_before = 5;
	slept(100);
	t->nslipped = nslipped;
	assert_int_equal(wp_record_end(t, false), 0);
}

static void time_in_no_books_is_a_wait_if_looks_met_one(void **state)
{
	(void)state;
	have_a_long_gap(30);
	assert_true(fake_target_wall_ns(&fake, TID, WP_STATE_WAITING) >
		    800 * MS);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNABLE), 0);
}

/* A thread of a virtual machine may sleep for a moment now and then. */
static void one_look_makes_no_long_wait(void **state)
{
	(void)state;
	have_a_long_gap(1);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_WAITING), 0);
	assert_true(in(stack, WP_STATE_RUNNABLE).ns > 800 * MS);
}

static void a_wait_goes_on_in_its_sample(void **state)
{
	const struct wp_thread_facts facts = { .state_char = 'D',
					       .syscall_nr = -1 };

	const struct wp_schedstat now = { 0 };
	const struct wp_profile_sample *s;
	uint64_t ns = t->time.accounted_ns;

	(void)state;
	/* Looks at 3 and 7 ms, for the times up to 5 and 10 ms. */
	wp_time_ledger_look(&t->time, &now, ns + 3 * MS, ns + 5 * MS, false);
	assert_int_equal(wp_wait_queue_add(t, &facts, stack, t->time.region_ns),
			 0);
	assert_int_equal(wp_record_wait(&fake.target->wait_queue.v[0]), 0);
	assert_in(stack, WP_STATE_WAITING, 1, 3 * MS);
	s = &fake.profile.sets[WP_PROFILE_WALL].samples[t->wait.sample];
	assert_int_equal(s->weight_ns, 5 * MS);
	/* A CPU sample from before the wait is read in between. */
	wp_time_ledger_owe_cpu(&t->time, 10 * MS);
	wp_time_ledger_owe_look(&t->time, 10 * MS);
	assert_int_equal(wp_record_cpu(t, other), 0);
	assert_in(other, WP_STATE_RUNNING, 1, 0);
	fake.sampler->tick_ns = ns + 7 * MS;
	fake.sampler->region_end_ns = ns + 10 * MS;
	assert_int_equal(wp_record_unchanged(t, 1, t->target->loop->tick_ns,
					     t->target->loop->region_end_ns),
			 0);
	assert_in(stack, WP_STATE_WAITING, 2, 7 * MS);
	s = &fake.profile.sets[WP_PROFILE_WALL].samples[t->wait.look_sample];
	/* What is between the looks is known. */
	assert_int_equal(s->exact_ns, 4 * MS);
	assert_int_equal(s->weight_ns, 3 * MS + 3 * MS);
	assert_int_equal(s->looks, 1);
}

static void
a_thread_never_seen_running_waited_for_a_cpu_where_it_woke(void **state)
{
	const struct wp_thread_facts facts = { .state_char = 'S',
					       .syscall_nr = SYS_nanosleep };
	const struct wp_schedstat before = { 0 };
	const struct wp_schedstat now = { 1 * MS, 4 * MS, 3 };
	uint64_t ns = t->time.accounted_ns;

	(void)state;
	wp_time_ledger_look(&t->time, &before, ns, ns, false);
	wp_time_ledger_look(&t->time, &now, ns + 10 * MS, ns + 10 * MS, false);
	assert_int_equal(wp_wait_queue_add(t, &facts, stack, t->time.region_ns),
			 0);
	assert_int_equal(wp_record_wait(&fake.target->wait_queue.v[0]), 0);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_in(stack, WP_STATE_WAITING, 1, 5 * MS);
	assert_in(stack, WP_STATE_RUNNABLE, 0, 4 * MS);
	assert_in(stack, WP_STATE_RUNNING, 0, 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNING),
			 1 * MS);
}

static void a_dump_is_a_set_of_its_own(void **state)
{
	(void)state;
	options.wall_kind = fake.sampler->options.wall_kind =
		WP_PROFILE_THREADS;
	owe_both();
	assert_int_equal(wp_record_running(t, stack, WP_STATE_RUNNING, 0), 0);
	/* One sample for each thread. */
	assert_in(stack, WP_STATE_RUNNING, 1, 8 * MS);
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].nsamples, 0);
}

static void no_room_for_a_stack_is_no_memory(void **state)
{
	(void)state;
	assert_int_equal(wp_record_running(t, UINT32_MAX, WP_STATE_RUNNING, 0),
			 -ENOMEM);
	assert_int_equal(wp_record_cpu(t, UINT32_MAX), -ENOMEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_states_go_to_the_stack_that_comes),
		TEST(what_looks_without_a_stack_stand_for_goes_with_them),
		TEST(without_a_stack_all_looks_go_to_none),
		TEST(a_cpu_sample_takes_all_that_is_owed),
		TEST(a_cpu_recording_counts_its_samples),
		TEST(samples_set_aside_are_their_own_stacks_at_the_end),
		TEST(without_a_stop_all_goes_to_no_stack),
		TEST(at_the_end_the_last_running_stack_takes_the_rest),
		TEST(a_thread_that_never_had_a_stack_ends_without),
		TEST(a_thread_that_lost_its_event_is_nowhere_known),
		TEST(without_events_a_thread_runs_on_where_it_was),
		TEST(the_time_after_a_lost_event_is_not_divided),
		TEST(time_in_no_books_is_a_wait_only_of_a_thread_that_slept),
		TEST(time_in_no_books_is_a_wait_if_looks_met_one),
		TEST(one_look_makes_no_long_wait),
		TEST(a_wait_goes_on_in_its_sample),
		TEST(a_thread_never_seen_running_waited_for_a_cpu_where_it_woke),
		TEST(a_dump_is_a_set_of_its_own),
		TEST(no_room_for_a_stack_is_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
