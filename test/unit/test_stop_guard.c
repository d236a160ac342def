/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stop_guard.h: a thread with a seccomp filter is stopped only
 * while it computes, and none twice in one sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>
#include <time.h>

#include "../../src/sample/stop_window.h"
#include "one_target.h"

enum { TID = 7 };

static struct wp_thread *t;
static unsigned int nrests;

int nanosleep(const struct timespec *want, struct timespec *left)
{
	(void)left;
	assert_int_equal(want->tv_nsec, WP_NS_PER_MS);
	/* An earlier thread would stand still. */
	assert_int_equal(fake.tracer.len, 0);
	nrests++;
	return 0;
}

static void sleeps(unsigned int n)
{
	char text[64];

	snprintf(text, sizeof(text),
		 "Seccomp:\t2\nvoluntary_ctxt_switches:\t%u\n", n);
	fake_target_write(&fake, TID, "status", text);
}

static int setup(void **state)
{
	(void)state;
	nrests = 0;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	fake_stack_init(&stack, fake_stack_root);
	fake_stop.regs = fake_stack_regs(&stack);
	options = fake_target_options();
	sleeps(5);
	return 0;
}

static void has_run(uint64_t run_ns)
{
	fake_target_schedstat(&fake, TID, run_ns, 0, 1);
}

/* TID runs, and a stop of it is requested; it runs on for a millisecond. */
static void request(void)
{
	const struct wp_schedstat now = { TICK, 0, 1 };

	start_target();
	fake.target->tick = 1;
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake_now_ns;
	wp_time_ledger_look(&t->time, &t->time.base, t->time.accounted_ns,
			    t->time.accounted_ns, true);
	wp_time_ledger_look(&t->time, &now, fake_now_ns, fake_now_ns, true);
	wp_stop_guard_see_running(t, &now);
	has_run(TICK + WP_NS_PER_MS);
	wp_stop_request_stack(t, 1, TICK);
}

static unsigned int make_stops(void)
{
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_int_equal(fake.tracer.len, 0);
	return fake_stop.ninterrupts;
}

/* How many stops were made of it. */
static unsigned int make(void)
{
	unsigned int n = make_stops();

	assert_false(wp_stop_request_exists(t));
	return n;
}

static void assert_left_out(void)
{
	assert_int_equal(make(), 0);
	assert_int_equal(fake.profile.counters.stops_left_out, 1);
	assert_int_equal(t->time.count, 1);
}

static void a_thread_with_a_filter_that_has_not_slept_is_stopped(void **state)
{
	(void)state;
	fake_stop.has_filter = true;
	request();
	assert_int_equal(make(), 1);
	assert_int_equal(fake.profile.counters.stops_left_out, 0);
}

/* It may have lost its CPU on its way into a call. */
static void a_thread_with_a_filter_that_waits_for_a_cpu_is_left(void **state)
{
	(void)state;
	fake_stop.has_filter = true;
	request();
	has_run(TICK + WP_NS_PER_MS - 1);
	fake_now_ns += WP_NS_PER_S;
	assert_left_out();
}

static void what_it_has_run_since_its_last_sleep_counts(void **state)
{
	const struct wp_schedstat later = { 2 * TICK, 0, 1 };

	(void)state;
	fake_stop.has_filter = true;
	request();
	wp_stop_guard_see_running(t, &later);
	assert_int_equal(make(), 1);
}

static void a_thread_with_a_filter_that_has_slept_is_left(void **state)
{
	(void)state;
	fake_stop.has_filter = true;
	request();
	sleeps(6);
	assert_left_out();
}

static void a_thread_with_a_filter_that_is_in_a_call_is_left(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);

	(void)state;
	fake_stop.has_filter = true;
	request();
	fake_target_waits(&fake, TID, SYS_getppid, 0, &regs);
	assert_left_out();
}

static void a_thread_whose_sleeps_are_not_told_is_left(void **state)
{
	(void)state;
	fake_stop.has_filter = true;
	fake_target_write(&fake, TID, "status", "");
	request();
	assert_left_out();
}

static void a_thread_without_a_filter_may_sleep(void **state)
{
	(void)state;
	request();
	sleeps(6);
	assert_int_equal(make(), 1);
}

/* Its stack was cut, which is mended by a stop more; not here. */
static void stop_with_a_cut_stack(unsigned int want)
{
	request();
	t->copy_len_running = 140;
	assert_int_equal(make(), want);
	assert_true(t->copy_len_running > 140);
}

static void a_thread_that_fell_asleep_is_not_stopped_again(void **state)
{
	(void)state;
	fake_stop.facts = (struct wp_stop_facts){ .syscall_nr = SYS_semtimedop,
						  .args[3] = 4096,
						  .asleep = true };
	stop_with_a_cut_stack(1);
}

static void a_thread_that_keeps_its_time_is_stopped_again(void **state)
{
	(void)state;
	fake_stop.facts = (struct wp_stop_facts){ .syscall_nr = SYS_nanosleep,
						  .asleep = true };
	stop_with_a_cut_stack(2);
}

static void a_thread_with_a_filter_is_not_stopped_again(void **state)
{
	(void)state;
	fake_stop.has_filter = true;
	stop_with_a_cut_stack(1);
}

/* None of five gets a CPU meanwhile. */
static void rest(enum wp_stop_mode mode, unsigned int want)
{
	fake_stop.has_filter = true;
	options.stop = mode;
	start_target();
	fake.target->tick = 1;
	fake_now_ns += TICK;
	for (pid_t tid = TID; tid < TID + 5; tid++) {
		const struct wp_schedstat now = { TICK, 0, 1 };
		struct wp_thread *one;

		if (tid != TID)
			fake_target_add_thread(&fake, tid, "worker");
		fake_target_write(&fake, tid, "status",
				  "Seccomp:\t2\nvoluntary_ctxt_switches:\t5\n");
		fake_target_schedstat(&fake, tid, TICK, 0, 1);
		one = wp_threads_find_or_add(fake.target, tid);
		assert_non_null(one);
		wp_time_ledger_look(&one->time, &now, fake_now_ns, fake_now_ns,
				    true);
		wp_stop_guard_see_running(one, &now);
		wp_stop_request_stack(one, 1, TICK);
	}
	assert_int_equal(make_stops(), 0);
	assert_int_equal(nrests, want);
	assert_int_equal(fake.profile.counters.stops_left_out, 5);
}

static void threads_that_are_held_together_rest_together(void **state)
{
	(void)state;
	rest(WP_STOP_ALL, 1);
}

static void threads_that_are_stopped_one_by_one_rest_alone(void **state)
{
	(void)state;
	rest(WP_STOP_AUTO, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The wait of the request that it carries out would end with it. */
static void a_worker_of_the_kernel_is_never_stopped(void **state)
{
	(void)state;
	request();
	fake_target_is_worker(&fake, TID, 'R');
	assert_left_out();
	/* Nor is a stop of it asked for. */
	fake_target_schedstat(&fake, TID, 9 * TICK, 0, 2);
	tick();
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_true(fake_target_ends(&fake, WP_END_WORKER) > 0);
	assert_int_equal(fake.profile.counters.stops_left_out, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_with_a_filter_that_has_not_slept_is_stopped),
		TEST(a_thread_with_a_filter_that_waits_for_a_cpu_is_left),
		TEST(what_it_has_run_since_its_last_sleep_counts),
		TEST(a_thread_with_a_filter_that_has_slept_is_left),
		TEST(a_thread_with_a_filter_that_is_in_a_call_is_left),
		TEST(a_thread_whose_sleeps_are_not_told_is_left),
		TEST(a_thread_without_a_filter_may_sleep),
		TEST(a_thread_that_fell_asleep_is_not_stopped_again),
		TEST(a_thread_that_keeps_its_time_is_stopped_again),
		TEST(a_thread_with_a_filter_is_not_stopped_again),
		TEST(threads_that_are_held_together_rest_together),
		TEST(threads_that_are_stopped_one_by_one_rest_alone),
		TEST(a_worker_of_the_kernel_is_never_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
