/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  unstopped.h: why a thread was not stopped is told right, and none of
 * its time is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/record.h"
#include "../../src/sample/unstopped.h"
#include "one_target.h"

enum { TID = 7 };

static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake_now_ns;
	return 0;
}

/* TID has run for a tick and was interrupted. */
static void runs(void)
{
	fake.target->tick = 2;
	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ 1000, 0, 1 },
			    fake_now_ns - TICK, fake_now_ns - TICK, true);
	wp_time_ledger_look(&t->time,
			    &(struct wp_schedstat){ 1000 + TICK, 0, 1 },
			    fake_now_ns, fake_now_ns, true);
	wp_stop_request_stack(t, 1, TICK);
	wp_stop_requests_take(&fake.target->stop_requests, 0);
	wp_stop_request_sent(t, 1);
}

/* TID waits, and was interrupted for its registers. */
static void waits(void)
{
	const struct wp_stack partial = { .end = WP_END_UNKNOWN_REG };

	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ 1000, 0, 1 },
			    fake_now_ns, fake_now_ns, false);
	wp_stop_request_registers(
		t, &(struct wp_stop_request){
			   .weight_ns = TICK,
			   .slices = 1,
			   .sp_avma = 4096,
			   .partial_stack = wp_profile_add_stack(&fake.profile,
								 &partial, 0),
			   .facts = { .state_char = 'S',
				      .syscall_nr = SYS_nanosleep },
		   });
	wp_stop_requests_take(&fake.target->stop_requests, 0);
	wp_stop_request_sent(t, 1);
}

/* No stop of TID is to come, and nothing else says so. */
static void assert_settled(void)
{
	assert_false(wp_stop_request_exists(t));
	assert_int_equal(fake.target->stop_requests.npending, 0);
}

static const struct wp_sample_set *wall(void)
{
	return &fake.profile.sets[WP_PROFILE_WALL];
}

/* All of the tick is in one sample without frames, which ends as END. */
static void assert_no_stack(enum wp_stack_end end)
{
	assert_settled();
	assert_int_equal(wall()->nsamples, 1);
	assert_int_equal(wall()->samples[0].wall_ns, TICK);
	assert_int_equal(wall()->samples[0].weight_ns, TICK);
	assert_int_equal(wall()->samples[0].key.state, WP_STATE_RUNNING);
	assert_int_equal(fake.profile.stacks[0].depth, 0);
	assert_int_equal(fake.profile.stacks[0].end, end);
	assert_int_equal(fake.profile.counters.no_stack, 1);
	assert_false(wp_time_ledger_owes(&t->time));
}

static void a_running_thread_without_a_stop_has_no_stack(void **state)
{
	(void)state;
	runs();
	assert_int_equal(wp_unstopped_record(t, WP_END_NO_CPU), 0);
	assert_no_stack(WP_END_NO_CPU);
	assert_int_equal(fake.profile.counters.partial, 0);
	assert_int_equal(fake.profile.counters.no_stop, 0);
}

static void a_waiting_one_has_the_part_that_needs_no_registers(void **state)
{
	const struct wp_queued_wait *wait = fake.target->wait_queue.v;

	(void)state;
	waits();
	assert_int_equal(wp_unstopped_record(t, WP_END_REFUSED), 0);
	assert_settled();
	assert_int_equal(fake.target->wait_queue.n, 1);
	assert_int_equal(wait->key.stack, t->stop.partial_stack);
	assert_int_equal(wait->wall_ns, TICK);
	assert_int_equal(wait->weight_ns, TICK);
	assert_int_equal(wait->facts.syscall_nr, SYS_nanosleep);
	assert_int_equal(fake.profile.counters.partial, 1);
	assert_int_equal(fake.profile.counters.no_stop, 1);
	assert_int_equal(fake.profile.counters.no_stack, 0);
	assert_true(t->wait.waiting);
}

static void time_that_is_owed_goes_to_the_next_stack(void **state)
{
	(void)state;
	runs();
	assert_int_equal(wp_unstopped_owe(t), 0);
	assert_settled();
	assert_int_equal(wall()->nsamples, 0);
	assert_int_equal(t->time.running_ns, TICK);
	assert_int_equal(t->time.count, 1);
	assert_int_equal(wp_record_running(t,
					   wp_profile_add_stack(
						   &fake.profile,
						   &(struct wp_stack){ 0 }, 0),
					   WP_STATE_RUNNING, 5),
			 0);
	assert_int_equal(wall()->samples[0].wall_ns, TICK);
	/* The look without a stack, and the one with. */
	assert_int_equal(wall()->samples[0].count, 2);
	assert_int_equal(wall()->samples[0].looks, 1);
	assert_int_equal(wall()->samples[0].weight_ns, TICK + 5);
}

/* A wait is over by the next look: it is recorded as far as it is known. */
static void a_wait_is_not_owed(void **state)
{
	(void)state;
	waits();
	assert_int_equal(wp_unstopped_owe(t), 0);
	assert_settled();
	assert_int_equal(fake.target->wait_queue.n, 1);
	assert_int_equal(t->time.count, 0);
	/* No room is left for it: that is said. */
	waits();
	fake.target->wait_queue.n = fake.target->wait_queue.cap;
	assert_int_equal(wp_unstopped_owe(t), -ENOMEM);
	assert_settled();
	fake.target->wait_queue.n = 0;
}

static void a_stop_that_is_put_off_is_counted(void **state)
{
	(void)state;
	runs();
	assert_int_equal(wp_unstopped_put_off(t), 0);
	assert_settled();
	assert_int_equal(fake.profile.counters.stops_over_budget, 1);
	assert_int_equal(t->time.running_ns, TICK);
	assert_int_equal(t->time.count, 1);
	assert_int_equal(t->time.weight_ns, TICK);
}

static void a_thread_that_ended_is_owed_its_time(void **state)
{
	(void)state;
	runs();
	wp_unstopped_end(t);
	assert_settled();
	assert_int_equal(t->time.count, 1);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNING),
			 TICK);
	assert_int_equal(wall()->samples[0].weight_ns, TICK);
}

/* Of running time it tells nothing. */
static void a_wait_whose_thread_ended_stands_for_no_running_time(void **state)
{
	(void)state;
	waits();
	wp_unstopped_end(t);
	assert_settled();
	assert_int_equal(t->time.weight_ns, 0);
}

/* Two functions, each for 40 looks that find it running: of the second, one in four is
 * stopped. */
static void shares_are_those_of_looks_however_many_stops_are_made(void **state)
{
	const struct wp_stack f = { .end = WP_END_ROOT };
	const struct wp_stack g = { .end = WP_END_NO_INFO };
	uint64_t ran = 1000, ns = fake_now_ns;

	(void)state;
	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ ran, 0, 1 }, ns,
			    ns, true);
	for (unsigned int i = 0; i < 80; i++) {
		ns += TICK;
		ran += TICK;
		wp_time_ledger_look(&t->time,
				    &(struct wp_schedstat){ ran, 0, 1 }, ns, ns,
				    true);
		t->stop = (struct wp_stop_request){ .weight_ns = TICK };
		if (i >= 40 && i % 4 != 3)
			assert_int_equal(wp_unstopped_put_off(t), 0);
		else
			assert_int_equal(
				wp_record_running(t,
						  wp_profile_add_stack(
							  &fake.profile,
							  i < 40 ? &f : &g, 0),
						  WP_STATE_RUNNING, TICK),
				0);
	}
	wp_profile_divide_wall(&fake.profile, true);
	assert_int_equal(wall()->nsamples, 2);
	assert_int_equal(wall()->samples[0].wall_ns, 40 * TICK);
	assert_int_equal(wall()->samples[1].wall_ns, 40 * TICK);
	assert_int_equal(wall()->samples[1].looks, 10);
}

static void refused_for_another_tracer_is_said(void **state)
{
	(void)state;
	runs();
	fake_target_write(&fake, TID, "status", "TracerPid:\t8\n");
	assert_int_equal(wp_unstopped_refuse(t, -EPERM), 0);
	assert_no_stack(WP_END_REFUSED);
	assert_int_equal(fake.profile.counters.stops_refused, 1);
	assert_int_equal(fake.profile.counters.stops_given_up, 0);
}

/* The target was dumpable when the recording began. */
static void no_other_tracer_is_blamed_for_what_the_kernel_denies(void **state)
{
	(void)state;
	runs();
	fake_target_write(&fake, TID, "status", "TracerPid:\t0\n");
	assert_int_equal(wp_unstopped_refuse(t, -EPERM), 0);
	assert_no_stack(WP_END_DENIED);
	assert_int_equal(fake.profile.counters.stops_refused, 1);
}

/* An earlier stop of it was given up and is still to come. */
static void a_thread_that_is_traced_already_does_not_stop(void **state)
{
	(void)state;
	runs();
	assert_int_equal(wp_unstopped_refuse(t, -EALREADY), 0);
	assert_no_stack(WP_END_NOT_STOPPED);
	assert_int_equal(fake.profile.counters.stops_given_up, 1);
	assert_int_equal(fake.profile.counters.stops_refused, 0);
}

static void a_thread_on_its_way_out_was_not_refused(void **state)
{
	static const int codes[] = { -ESRCH, -EPERM, -EALREADY };

	(void)state;
	runs();
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		if (i)
			fake_target_stat(&fake, TID, "ZX"[i - 1]);
		else
			fake_target_write(&fake, TID, "stat", "");
		assert_int_equal(wp_unstopped_refuse(t, codes[i]), 0);
	}
	assert_settled();
	assert_int_equal(fake.profile.counters.stops_refused, 0);
	assert_int_equal(fake.profile.counters.stops_given_up, 0);
	assert_int_equal(fake.profile.counters.no_stack, 0);
	assert_int_equal(t->time.running_ns, TICK);
}

static void no_memory_for_a_stop_is_no_refusal(void **state)
{
	(void)state;
	runs();
	assert_int_equal(wp_unstopped_refuse(t, -ENOMEM), -ENOMEM);
	assert_int_equal(fake.profile.counters.stops_refused, 0);
	assert_int_equal(wall()->nsamples, 0);
	wp_stop_request_done(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_running_thread_without_a_stop_has_no_stack),
		TEST(a_waiting_one_has_the_part_that_needs_no_registers),
		TEST(time_that_is_owed_goes_to_the_next_stack),
		TEST(a_wait_is_not_owed),
		TEST(a_stop_that_is_put_off_is_counted),
		TEST(a_thread_that_ended_is_owed_its_time),
		TEST(a_wait_whose_thread_ended_stands_for_no_running_time),
		TEST(shares_are_those_of_looks_however_many_stops_are_made),
		TEST(refused_for_another_tracer_is_said),
		TEST(no_other_tracer_is_blamed_for_what_the_kernel_denies),
		TEST(a_thread_that_is_traced_already_does_not_stop),
		TEST(a_thread_on_its_way_out_was_not_refused),
		TEST(no_memory_for_a_stop_is_no_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
