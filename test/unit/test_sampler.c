/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  sampler.h: ticks, and many targets in one loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "fake_target.h"

#define MS WP_NS_PER_MS

/* Both in the sampler of the first. */
static struct fake_target first, second;
static struct fake_stack stack;
static struct wp_sampler_options options;

static int setup(void **state)
{
	const struct wp_regs *regs;
	static struct wp_regs stacked;

	(void)state;
	fake_stack_init(&stack, fake_stack_root);
	stacked = fake_stack_regs(&stack);
	regs = &stacked;
	fake_target_open(&second);
	fake_target_open(&first);
	fake_stop.regs = stacked;
	fake_target_add_thread(&first, 5, "waiter");
	fake_target_waits(&first, 5, SYS_nanosleep, 0, regs);
	fake_target_add_thread(&second, 6, "other");
	fake_target_waits(&second, 6, SYS_ppoll, 0, regs);
	options = fake_target_options();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_target_close(&first);
	fake_target_close(&second);
	return 0;
}

static void start(void)
{
	assert_int_equal(fake_target_start(&first, &options), 0);
}

static void add_second(void)
{
	struct wp_err err = WP_ERR_INIT;

	assert_int_equal(wp_sampler_add_target(first.sampler, &second.process,
					       &second.profile, &second.target,
					       &err),
			 0);
}

static void stop_modes_have_names(void **state)
{
	(void)state;
	assert_string_equal(wp_stop_mode_name(WP_STOP_AUTO), "auto");
	assert_string_equal(wp_stop_mode_name(WP_STOP_NEVER), "never");
	assert_string_equal(wp_stop_mode_name(WP_NSTOP_MODES), "unknown");
}

static void one_tick_serves_all_targets(void **state)
{
	(void)state;
	start();
	add_second();
	for (int i = 0; i < 5; i++)
		assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(fake_target_wall_ns(&first, 5, WP_STATE_WAITING),
			 50 * MS);
	assert_int_equal(fake_target_wall_ns(&second, 6, WP_STATE_WAITING),
			 50 * MS);
	/* Each profile has its own threads only. */
	assert_int_equal(first.profile.nthreads, 1);
	assert_int_equal(second.profile.nthreads, 1);
	/* Their module lists are told apart by the unwinder. */
	assert_true(first.target->space.view.generation !=
		    second.target->space.view.generation);
}

static void a_target_added_later_has_its_own_time(void **state)
{
	(void)state;
	start();
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	add_second();
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(wp_sampler_finish(first.sampler), 0);
	assert_int_equal(fake_target_wall_ns(&first, 5, WP_NSTATES), 20 * MS);
	assert_int_equal(fake_target_wall_ns(&second, 6, WP_NSTATES), 10 * MS);
	assert_int_equal(second.profile.meta.duration_ns, 10 * MS);
}

static void a_target_that_ends_does_not_end_the_others(void **state)
{
	(void)state;
	start();
	add_second();
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	fake_target_end_thread(&first, 5);
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_true(first.target->gone);
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(fake_target_wall_ns(&second, 6, WP_NSTATES), 30 * MS);
	fake_target_stat(&second, 0, 'Z');
	assert_int_equal(fake_target_tick(&first, 10 * MS), -ESRCH);
	assert_int_equal(wp_sampler_finish(first.sampler), 0);
}

static void ticks_that_are_over_are_missed(void **state)
{
	uint64_t start_ns = fake_now_ns, next;

	(void)state;
	start();
	add_second();
	/* The first opens the books. */
	next = wp_sampler_next_tick(first.sampler, start_ns);
	assert_int_equal(next, start_ns);
	next = wp_sampler_next_tick(first.sampler, start_ns);
	assert_in_range(next, start_ns, start_ns + 10 * MS - 1);
	next = wp_sampler_next_tick(first.sampler, start_ns + 1 * MS);
	assert_in_range(next, start_ns + 10 * MS, start_ns + 20 * MS - 1);
	assert_int_equal(first.profile.counters.missed_ticks, 0);
	next = wp_sampler_next_tick(first.sampler, start_ns + 58 * MS);
	assert_in_range(next, start_ns + 50 * MS, start_ns + 60 * MS - 1);
	assert_int_equal(first.profile.counters.missed_ticks, 3);
	assert_int_equal(second.profile.counters.missed_ticks, 3);
}

/* As when wallprof itself was stopped in its last interval. */
static void lateness_beyond_the_end_is_missed_ticks(void **state)
{
	uint64_t start_ns = fake_now_ns;

	(void)state;
	start();
	fake_now_ns = wp_sampler_next_tick(first.sampler, start_ns);
	assert_int_equal(wp_sampler_tick(first.sampler), 0);
	wp_sampler_next_tick(first.sampler, fake_now_ns);
	fake_now_ns = start_ns + 1000 * MS;
	assert_int_equal(wp_sampler_finish(first.sampler), 0);
	/* The first one opens the books, the next was due in the first interval. */
	assert_int_equal(first.profile.counters.missed_ticks, 99);
}

static void time_is_whole_however_late_a_tick_is(void **state)
{
	(void)state;
	start();
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(fake_target_tick(&first, 3700000 * MS), 0);
	assert_int_equal(fake_target_wall_ns(&first, 5, WP_NSTATES),
			 3700010 * MS);
}

static void sleep_takes_stops_that_arrive(void **state)
{
	struct wp_thread *t;

	(void)state;
	fake_target_runs(&first, 5);
	start();
	fake_stop.comes = false;
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	t = first.target->threads[0];
	assert_true(t->stop.pending);
	fake_stop.comes = true;
	assert_int_equal(wp_sampler_sleep(first.sampler, fake_now_ns + MS), 0);
	assert_false(t->stop.pending);
	assert_int_equal(first.profile.counters.stopped, 1);
}

static void one_sample_is_all_there_is(void **state)
{
	(void)state;
	options.wall_kind = WP_PROFILE_THREADS;
	options.stop = WP_STOP_ALL;
	fake_target_add_thread(&first, 9, "runner");
	start();
	fake_now_ns += MS;
	assert_int_equal(wp_sampler_sample_once(first.sampler), 0);
	assert_int_equal(first.profile.sets[WP_PROFILE_THREADS].nsamples, 2);
	assert_int_equal(first.profile.sets[WP_PROFILE_WALL].nsamples, 0);
	assert_int_equal(first.profile.counters.ticks, 1);
	assert_int_equal(first.tracer.len, 0);
}

/* How long the end of a sampling takes in which a thread in state STATE does not
 * stop, and why it has no stack. */
static uint64_t end_without_stop(char state, int (*end)(struct wp_sampler *),
				 enum wp_stack_end why)
{
	uint64_t before_ns;

	fake_target_runs(&first, 5);
	start();
	fake_target_stat(&first, 5, state);
	fake_stop.comes = false;
	before_ns = fake_now_ns;
	assert_int_equal(end(first.sampler), 0);
	assert_int_equal(first.profile.counters.stops_given_up, 1);
	assert_int_equal(fake_target_ends(&first, why), 1);
	return fake_now_ns - before_ns;
}

static void late_stops_are_given_up_at_the_end(void **state)
{
	(void)state;
	assert_in_range(end_without_stop('R', wp_sampler_finish, WP_END_NO_CPU),
			30 * MS, 32 * MS);
}

static void the_only_sample_waits_until_a_thread_gets_a_cpu(void **state)
{
	(void)state;
	assert_in_range(
		end_without_stop('R', wp_sampler_sample_once, WP_END_NO_CPU),
		5000 * MS, 5002 * MS);
}

static void the_only_sample_waits_less_for_a_thread_that_has_one(void **state)
{
	(void)state;
	assert_in_range(end_without_stop('D', wp_sampler_sample_once,
					 WP_END_NOT_STOPPED),
			1000 * MS, 1002 * MS);
}

static void an_interrupt_ends_the_wait_for_stops(void **state)
{
	const volatile sig_atomic_t interrupts = 1;

	(void)state;
	options.interrupts = &interrupts;
	assert_in_range(
		end_without_stop('R', wp_sampler_sample_once, WP_END_NO_CPU), 0,
		32 * MS);
}

struct views {
	struct wp_thread_view v[4];
	size_t n;
};

static void keep(void *ctx, const struct wp_thread_view *view)
{
	struct views *views = ctx;

	views->v[views->n++] = *view;
}

static void a_view_has_what_the_last_sample_found(void **state)
{
	struct views views = { .n = 0 };

	(void)state;
	fake_target_add_thread(&first, 9, "runner");
	start();
	fake_now_ns += MS;
	assert_int_equal(wp_sampler_sample_once(first.sampler), 0);
	wp_sampler_each_thread(first.target, keep, &views);
	assert_int_equal(views.n, 2);
	assert_int_equal(views.v[0].tid, 5);
	assert_int_equal(views.v[0].syscall_nr, SYS_nanosleep);
	assert_int_equal(views.v[0].times.slices, 1);
	assert_int_equal(views.v[1].tid, 9);
	assert_int_equal(views.v[1].syscall_nr, -1);
	assert_int_equal(wp_sampler_count_threads(first.sampler), 2);
}

static void figures_are_of_the_whole_recording(void **state)
{
	const struct wp_profile *p = &first.profile;

	(void)state;
	fake_target_runs(&first, 5);
	start();
	assert_int_equal(fake_target_tick(&first, 0), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(fake_target_tick(&first, 9900 * WP_NS_PER_US),
				 0);
	assert_int_equal(wp_sampler_finish(first.sampler), 0);
	assert_int_equal(p->counters.ticks, 102);
	assert_true(p->meta.achieved_hz > 90 && p->meta.achieved_hz < 105);
	assert_true(p->meta.duration_ns >= 990000 * (int64_t)WP_NS_PER_US);
	assert_true(p->counters.pause_p50_ns > 0);
	assert_true(p->counters.pause_max_ns >= p->counters.pause_p99_ns);
	assert_true(p->meta.has_wall);
	assert_false(p->meta.has_cpu);
	assert_int_equal(p->meta.period_ns, 10 * MS);
	/* All of it is in samples. */
	assert_int_equal(fake_target_wall_ns(&first, 5, WP_NSTATES),
			 p->meta.duration_ns);
}

static void a_process_that_has_gone_is_no_target(void **state)
{
	struct wp_process gone = WP_PROCESS_INIT;
	struct wp_target *target = NULL;
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	start();
	gone.pid = 4;
	assert_true(wp_sampler_add_target(first.sampler, &gone, &second.profile,
					  &target, &err) < 0);
	assert_null(target);
	assert_int_equal(first.sampler->ntargets, 1);
	assert_non_null(strstr(err.msg, "process 4"));
	wp_sampler_free(NULL);
	wp_target_free(NULL);
}

static void let_go(void *ctx, struct wp_process *process)
{
	assert_null(ctx);
	assert_ptr_equal(process, &second.process);
	second.target = NULL;
}

/* Of what may not be looked at any more nothing is kept, of the others all. */
static void a_process_is_forgotten_for_itself_alone(void **state)
{
	(void)state;
	wp_timeline_start(&second.profile.timeline, 4096);
	start();
	add_second();
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_true(fake_target_wall_ns(&second, 6, WP_NSTATES) > 0);
	wp_sampler_forget(first.sampler, &second.process);
	wp_sampler_forget(first.sampler, &second.process);
	assert_int_equal(second.profile.counters.processes_denied, 1);
	assert_int_equal(wp_sampler_retire(first.sampler, let_go, NULL), 0);
	assert_null(second.target);
	assert_int_equal(fake_target_wall_ns(&second, 6, WP_NSTATES), 0);
	assert_true(second.profile.timeline.n > 0);
	for (uint32_t i = 0; i < second.profile.timeline.n; i++)
		assert_int_equal(second.profile.timeline.v[i].ns, 0);
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(fake_target_wall_ns(&first, 5, WP_NSTATES), 30 * MS);
}

/* At the end it has been paid already. */
static void a_process_is_forgotten_at_the_end(void **state)
{
	(void)state;
	start();
	assert_int_equal(fake_target_tick(&first, 10 * MS), 0);
	assert_int_equal(wp_sampler_finish(first.sampler), 0);
	assert_true(fake_target_wall_ns(&first, 5, WP_NSTATES) > 0);
	wp_sampler_forget(first.sampler, &first.process);
	assert_int_equal(fake_target_wall_ns(&first, 5, WP_NSTATES), 0);
}

/* Of ticks in a row that were due while the one before was made, every other one is taken
 * for a chance find. */
static void every_other_of_late_ticks_is_overdue(void **state)
{
	uint64_t start_ns = fake_now_ns;
	bool was = false;
	int n = 0;

	(void)state;
	start();
	wp_sampler_next_tick(first.sampler, start_ns);
	for (uint64_t i = 1; i <= 40; i++) {
		uint64_t now = start_ns + i * 10 * MS + 10 * MS - 1;
		uint64_t due = wp_sampler_next_tick(first.sampler, now);

		was = !was && now > due + 10 * WP_NS_PER_US;
		assert_int_equal(first.sampler->is_overdue, was);
		n += was;
	}
	assert_in_range(n, 15, 20);
	/* One that is due later is in time. */
	wp_sampler_next_tick(first.sampler, start_ns + 415 * MS);
	wp_sampler_next_tick(first.sampler, start_ns + 415 * MS);
	assert_false(first.sampler->is_overdue);
}

/* Nothing has to be read meanwhile. */
static void a_sleep_is_as_long_as_is_asked_for(void **state)
{
	uint64_t from_ns;

	(void)state;
	start();
	from_ns = fake_now_ns;
	assert_int_equal(wp_sampler_sleep(first.sampler, from_ns + 100 * MS),
			 0);
	assert_int_equal(fake_now_ns - from_ns, 100 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stop_modes_have_names),
		TEST(one_tick_serves_all_targets),
		TEST(a_target_added_later_has_its_own_time),
		TEST(a_target_that_ends_does_not_end_the_others),
		TEST(ticks_that_are_over_are_missed),
		TEST(lateness_beyond_the_end_is_missed_ticks),
		TEST(time_is_whole_however_late_a_tick_is),
		TEST(sleep_takes_stops_that_arrive),
		TEST(one_sample_is_all_there_is),
		TEST(late_stops_are_given_up_at_the_end),
		TEST(the_only_sample_waits_until_a_thread_gets_a_cpu),
		TEST(the_only_sample_waits_less_for_a_thread_that_has_one),
		TEST(an_interrupt_ends_the_wait_for_stops),
		TEST(a_view_has_what_the_last_sample_found),
		TEST(figures_are_of_the_whole_recording),
		TEST(a_process_that_has_gone_is_no_target),
		TEST(a_process_is_forgotten_for_itself_alone),
		TEST(a_process_is_forgotten_at_the_end),
		TEST(every_other_of_late_ticks_is_overdue),
		TEST(a_sleep_is_as_long_as_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
