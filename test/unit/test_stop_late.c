/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stop_window.h: a stop that does not come is waited for while the
 * thread lacks a CPU, and given up for the right reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/stop_window.h"
#include "one_target.h"

enum { TID = 7, OTHER = 8, SLICES = 5, MS = WP_NS_PER_MS };

static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	fake_target_add_thread(&fake, OTHER, "worker");
	options = fake_target_options();
	start_target();
	fake.target->tick = 2;
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	assert_non_null(wp_threads_find_or_add(fake.target, OTHER));
	fake.sampler->tick_ns = fake_now_ns += TICK;
	fake_target_schedstat(&fake, TID, 1000, 0, SLICES);
	return 0;
}

static void ask(struct wp_thread *of)
{
	wp_stop_requests_take(&fake.target->stop_requests, 0);
	wp_stop_request_sent(of, SLICES);
	assert_int_equal(
		wp_tracer_interrupt(&fake.tracer, of->tid, (uintptr_t)of), 0);
}

/* T, which has run for a tick, is asked to stop. */
static void ask_running(void)
{
	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ 1000, 0, SLICES },
			    fake_now_ns, fake_now_ns, true);
	wp_stop_request_stack(t, SLICES, TICK);
	ask(t);
}

static bool may_come(uint64_t max_age_ns)
{
	return wp_stop_window_may_come(fake.target, max_age_ns);
}

static void expire(uint64_t max_age_ns)
{
	assert_int_equal(wp_stop_window_expire(fake.target, max_age_ns), 0);
}

static void assert_given_up(enum wp_stack_end why)
{
	assert_false(wp_stop_request_exists(t));
	assert_int_equal(wp_stop_window_count(fake.target), 0);
	assert_int_equal(fake.tracer.len, 0);
	assert_int_equal(fake.profile.counters.stops_given_up, 1);
	assert_int_equal(fake_target_ends(&fake, why), 1);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_NSTATES), TICK);
}

static void a_stop_is_open_while_it_is_to_come(void **state)
{
	(void)state;
	assert_false(wp_stop_window_is_open(t));
	ask_running();
	assert_true(wp_stop_window_is_open(t));
	assert_int_equal(wp_stop_window_count(fake.target), 1);
	/* The thread ended under it. */
	fake.tracer.len = 0;
	assert_false(wp_stop_window_is_open(t));
	assert_int_equal(wp_stop_window_count(fake.target), 0);
	assert_int_equal(t->time.count, 1);
	assert_int_equal(t->time.running_ns, TICK);
	assert_false(wp_stop_window_is_open(t));
	assert_int_equal(t->time.count, 1);
}

static void a_young_stop_may_come(void **state)
{
	(void)state;
	fake_target_stat(&fake, TID, 'D');
	assert_false(may_come(5 * MS));
	ask_running();
	assert_true(may_come(5 * MS));
	fake_now_ns += 5 * MS - 1;
	assert_true(may_come(5 * MS));
	fake_now_ns++;
	assert_false(may_come(5 * MS));
}

static void of_several_the_youngest_counts(void **state)
{
	struct wp_thread *other = wp_threads_find(fake.target, OTHER);

	(void)state;
	fake_target_stat(&fake, TID, 'D');
	fake_target_stat(&fake, OTHER, 'D');
	ask_running();
	fake_now_ns += 5 * MS;
	wp_stop_request_stack(other, SLICES, TICK);
	ask(other);
	assert_true(may_come(5 * MS));
	/* No longer: it ended. */
	fake.tracer.len = 1;
	assert_false(may_come(5 * MS));
}

/* A stop takes effect as the thread is next put on a CPU: it may come for as long as that
 * has not been. */
static void a_thread_that_lacks_a_cpu_may_stop_at_any_age(void **state)
{
	(void)state;
	ask_running();
	fake_now_ns += 1000 * MS;
	assert_true(may_come(MS));
	/* It may have had one before it was interrupted. */
	fake_target_schedstat(&fake, TID, 1000, 0, SLICES + 1);
	assert_true(may_come(MS));
	/* There it should have stopped. */
	fake_target_schedstat(&fake, TID, 1000, 0, SLICES + 2);
	assert_false(may_come(MS));
}

static void what_cannot_be_read_does_not_lack_a_cpu(void **state)
{
	static const char *const stats[] = { "", "7 (fake", "nonsense" };

	(void)state;
	ask_running();
	fake_now_ns += 1000 * MS;
	for (size_t i = 0; i < sizeof(stats) / sizeof(*stats); i++) {
		fake_target_write(&fake, TID, "stat", stats[i]);
		assert_false(may_come(MS));
	}
	fake_target_stat(&fake, TID, 'R');
	assert_true(may_come(MS));
	fake_target_write(&fake, TID, "schedstat", "");
	assert_false(may_come(MS));
}

static void a_stop_is_given_up_at_its_age(void **state)
{
	(void)state;
	fake_target_stat(&fake, TID, 'D');
	ask_running();
	fake.sampler->tick_ns += 200 * MS - 1;
	expire(200 * MS);
	assert_true(t->stop.pending);
	fake.sampler->tick_ns++;
	expire(200 * MS);
	assert_given_up(WP_END_NOT_STOPPED);
	assert_int_equal(fake_stop.nreleases, 1);
	/* There is nothing more to give up. */
	expire(0);
	assert_int_equal(fake.profile.counters.stops_given_up, 1);
}

static void at_the_end_a_thread_without_a_cpu_is_given_up(void **state)
{
	(void)state;
	ask_running();
	fake.sampler->tick_ns += 200 * MS;
	expire(200 * MS);
	assert_true(t->stop.pending);
	expire(0);
	assert_given_up(WP_END_NO_CPU);
}

static void it_is_where_its_last_stack_was_read(void **state)
{
	(void)state;
	ask_running();
	t->last_running_stack = wp_profile_add_stack(
		&fake.profile, &(struct wp_stack){ 0 }, 0);
	expire(0);
	assert_false(wp_stop_request_exists(t));
	assert_int_equal(fake.tracer.len, 0);
	assert_int_equal(fake.profile.counters.stops_given_up, 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_NSTATES), 0);
	assert_int_equal(t->time.running_ns, TICK);
	assert_int_equal(t->time.count, 1);
	assert_int_equal(t->time.weight_ns, t->stop.weight_ns);
}

/* But not one that did not stop on its CPU: it has moved since. */
static void a_thread_that_does_not_stop_is_not_where_it_was(void **state)
{
	(void)state;
	fake_target_stat(&fake, TID, 'D');
	ask_running();
	t->last_running_stack = wp_profile_add_stack(
		&fake.profile, &(struct wp_stack){ 0 }, 0);
	expire(0);
	assert_given_up(WP_END_NOT_STOPPED);
}

static void a_thread_that_ended_under_its_stop_is_given_up_too(void **state)
{
	(void)state;
	fake_target_stat(&fake, TID, 'D');
	ask_running();
	fake.tracer.len = 0;
	expire(0);
	assert_given_up(WP_END_NOT_STOPPED);
	assert_int_equal(fake_stop.nreleases, 0);
}

static void without_room_the_rest_stays_pending(void **state)
{
	const struct wp_stop_request sample = {
		.weight_ns = TICK,
		.slices = SLICES,
		.sp_avma = 4096,
		.facts = { .state_char = 'S', .syscall_nr = SYS_nanosleep },
	};
	struct wp_thread *other = wp_threads_find(fake.target, OTHER);
	struct wp_wait_queue *queue = &fake.target->wait_queue;

	(void)state;
	wp_stop_request_registers(t, &sample);
	ask(t);
	wp_stop_request_stack(other, SLICES, TICK);
	ask(other);
	queue->n = queue->cap;
	assert_int_equal(wp_stop_window_expire(fake.target, 0), -ENOMEM);
	queue->n = 0;
	assert_false(t->stop.pending);
	assert_true(other->stop.pending);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stop_is_open_while_it_is_to_come),
		TEST(a_young_stop_may_come),
		TEST(of_several_the_youngest_counts),
		TEST(a_thread_that_lacks_a_cpu_may_stop_at_any_age),
		TEST(what_cannot_be_read_does_not_lack_a_cpu),
		TEST(a_stop_is_given_up_at_its_age),
		TEST(at_the_end_a_thread_without_a_cpu_is_given_up),
		TEST(it_is_where_its_last_stack_was_read),
		TEST(a_thread_that_does_not_stop_is_not_where_it_was),
		TEST(a_thread_that_ended_under_its_stop_is_given_up_too),
		TEST(without_room_the_rest_stays_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
