/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  books.h: what schedstat tells goes to the thread's ledger and to its
 * entry in the profile, each nanosecond once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/books.h"
#include "../../src/sample/goroutine_times.h"
#include "../../src/sample/record.h"
#include "one_target.h"

enum { TID = 7, MS = WP_NS_PER_MS };

static struct wp_thread *t;
static struct wp_goroutine_times times;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	return 0;
}

/* At tick NUMBER of the target, 10 ms after the thread was first watched. */
static void start(uint64_t number)
{
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	fake.target->tick = number;
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake.sampler->region_end_ns = fake_now_ns;
}

static void pass_tick(void)
{
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake.sampler->region_end_ns = fake_now_ns;
}

static void look(uint64_t run_ns, uint64_t queued_ns, uint64_t slices,
		 bool ready)
{
	const struct wp_schedstat now = { run_ns, queued_ns, slices };

	wp_books_look(t, &now, fake_now_ns, ready);
}

static uint64_t cpu_ns(void)
{
	return fake.profile.threads[t->index].cpu_ns;
}

static void cpu_time_before_the_recording_is_not_counted(void **state)
{
	(void)state;
	start(1);
	look(500 * MS, 0, 40, false);
	assert_int_equal(cpu_ns(), 0);
	assert_int_equal(fake.target->switches, 0);
	pass_tick();
	look(503 * MS, 1 * MS, 42, false);
	assert_int_equal(cpu_ns(), 3 * MS);
	assert_int_equal(fake.target->switches, 2);
	assert_int_equal(t->time.running_ns, 3 * MS);
	assert_int_equal(t->time.runnable_ns, 1 * MS);
}

static void a_thread_that_began_meanwhile_has_all_its_cpu_time(void **state)
{
	(void)state;
	start(2);
	look(3 * MS, 0, 4, false);
	assert_int_equal(cpu_ns(), 3 * MS);
	assert_int_equal(fake.target->switches, 4);
}

/* Another thread has the tid: its counters begin below. */
static void cpu_time_that_goes_back_is_not_added(void **state)
{
	uint64_t sum_ns;

	(void)state;
	start(1);
	look(500 * MS, 100 * MS, 40, false);
	pass_tick();
	look(1 * MS, 0, 1, false);
	assert_int_equal(cpu_ns(), 0);
	sum_ns = t->time.running_ns + t->time.runnable_ns + t->time.waiting_ns;
	assert_int_equal(sum_ns, 2 * TICK);
}

static void a_look_is_of_its_time_but_the_last_of_the_last_tick(void **state)
{
	(void)state;
	start(1);
	/* The look took a while: what schedstat told has passed by then. */
	fake_now_ns += MS;
	look(0, 0, 1, true);
	assert_int_equal(t->time.accounted_ns, fake.sampler->tick_ns + MS);
	pass_tick();
	fake.sampler->finishing = true;
	fake_now_ns += 5 * MS;
	look(0, 0, 1, true);
	assert_int_equal(t->time.accounted_ns, fake.sampler->tick_ns);
	fake.sampler->tick_ns = fake_now_ns;
	fake_now_ns += 5 * MS;
	wp_books_read(t, &(struct wp_schedstat){ 0, 0, 1 }, fake_now_ns);
	assert_int_equal(t->time.accounted_ns, fake.sampler->tick_ns);
}

static void between_two_looks_the_books_are_kept_too(void **state)
{
	(void)state;
	start(1);
	look(10 * MS, 0, 1, false);
	fake_now_ns += 4 * MS;
	wp_books_read(t, &(struct wp_schedstat){ 11 * MS, 2 * MS, 3 },
		      fake_now_ns);
	assert_int_equal(cpu_ns(), 1 * MS);
	assert_int_equal(fake.target->switches, 2);
	assert_int_equal(t->time.accounted_ns, fake_now_ns);
	assert_int_equal(t->time.running_ns, 1 * MS);
	assert_int_equal(t->time.runnable_ns, 2 * MS);
	assert_int_equal(t->time.looks, 1);
}

static void without_wall_samples_cpu_time_alone_is_counted(void **state)
{
	uint64_t before_ns;

	(void)state;
	start(1);
	before_ns = t->time.accounted_ns;
	wp_books_count(t, &(struct wp_schedstat){ 10 * MS, 0, 1 });
	wp_books_count(t, &(struct wp_schedstat){ 14 * MS, 0, 3 });
	assert_int_equal(cpu_ns(), 4 * MS);
	assert_int_equal(fake.target->switches, 2);
	/* Has it run since?  Not by the same numbers. */
	assert_int_equal(t->time.base.run_ns, 14 * MS);
	assert_int_equal(t->time.base.slices, 3);
	assert_int_equal(t->time.accounted_ns, before_ns);
	assert_false(wp_time_ledger_owes(&t->time));
}

/* A kernel without CONFIG_SCHED_INFO: zeros, or anything. */
static void without_schedstat_a_look_tells_the_state(void **state)
{
	const struct wp_schedstat nonsense = { 7, 8, 9 };

	(void)state;
	start(2);
	fake.sampler->schedstat_works = false;
	look(7 * MS, 8 * MS, 9, true);
	assert_int_equal(t->time.running_ns, TICK);
	pass_tick();
	/* The tick ends later than the look in it. */
	fake.sampler->region_end_ns += MS;
	look(70 * MS, 80 * MS, 90, false);
	assert_int_equal(t->time.running_ns, TICK);
	assert_int_equal(t->time.waiting_ns, TICK + MS);
	wp_books_read(t, &nonsense, fake_now_ns + TICK);
	wp_books_count(t, &nonsense);
	assert_int_equal(t->time.waiting_ns, TICK + MS);
	assert_int_equal(t->time.base.run_ns, 0);
	assert_int_equal(cpu_ns(), 0);
	assert_int_equal(fake.target->switches, 0);
}

/* T is found in one wait at two looks, of which the second pays its time at once. */
static void wait_for_two_looks(void)
{
	const struct wp_thread_facts facts = { .state_char = 'S',
					       .syscall_nr = SYS_nanosleep };
	const struct wp_stack none = { .end = WP_END_EMPTY };

	look(0, 0, 1, false);
	assert_int_equal(
		wp_wait_queue_add(t, &facts,
				  wp_profile_add_stack(&fake.profile, &none, 0),
				  TICK),
		0);
	assert_int_equal(wp_record_wait(&fake.target->wait_queue.v[0]), 0);
	fake.target->wait_queue.n = 0;
	pass_tick();
	assert_int_equal(wp_record_unchanged(t, 1, t->target->loop->tick_ns,
					     t->target->loop->region_end_ns),
			 0);
}

/* It was woken right after the first look, and got a CPU for a moment at the end: the
 * kernel tells so only then. */
static void a_wait_that_was_paid_too_much_gives_back(void **state)
{
	const struct wp_profile_sample *sample;

	(void)state;
	start(1);
	wait_for_two_looks();
	sample = fake.profile.sets[WP_PROFILE_WALL].samples;
	assert_int_equal(sample->wall_ns, 2 * TICK);
	assert_int_equal(sample->exact_ns, TICK);
	pass_tick();
	look(1 * MS, 2 * TICK - 1 * MS, 2, false);
	assert_int_equal(sample->wall_ns, TICK);
	assert_int_equal(sample->exact_ns, 0);
	assert_int_equal(t->time.running_ns, 1 * MS);
	assert_int_equal(t->time.runnable_ns, 2 * TICK - 1 * MS);
	assert_int_equal(t->time.waiting_ns, 0);
}

/* The same, told by the schedstat that is read after a stop. */
static void it_gives_back_between_two_looks_too(void **state)
{
	(void)state;
	start(1);
	wait_for_two_looks();
	fake_now_ns += MS;
	wp_books_read(t, &(struct wp_schedstat){ 0, 4 * MS, 2 }, fake_now_ns);
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].samples->wall_ns,
			 2 * TICK - 3 * MS);
	assert_int_equal(t->time.runnable_ns, 4 * MS);
}

/* In a profile of another kind its sample is given back too, not one of wall time. */
static void it_gives_back_to_the_kind_that_is_recorded(void **state)
{
	(void)state;
	options.wall_kind = WP_PROFILE_THREADS;
	start(1);
	wait_for_two_looks();
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].nsamples, 0);
	pass_tick();
	look(0, 2 * TICK, 2, false);
	assert_int_equal(fake.profile.sets[WP_PROFILE_THREADS].samples->wall_ns,
			 TICK);
}

static void the_cpu_time_of_a_go_program_is_its_goroutines(void **state)
{
	(void)state;
	start(1);
	wait_for_two_looks();
	fake.target->goroutines = &times;
	times.cpu_ns = 5;
	pass_tick();
	look(3 * MS, TICK, 2, false);
	fake.target->goroutines = NULL;
	assert_int_equal(times.cpu_ns, 5 + 3 * MS);
	assert_int_equal(cpu_ns(), 0);
	/* Its threads have no samples of waiting: none is touched. */
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].samples->wall_ns,
			 2 * TICK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cpu_time_before_the_recording_is_not_counted),
		TEST(a_thread_that_began_meanwhile_has_all_its_cpu_time),
		TEST(cpu_time_that_goes_back_is_not_added),
		TEST(a_look_is_of_its_time_but_the_last_of_the_last_tick),
		TEST(between_two_looks_the_books_are_kept_too),
		TEST(without_wall_samples_cpu_time_alone_is_counted),
		TEST(without_schedstat_a_look_tells_the_state),
		TEST(a_wait_that_was_paid_too_much_gives_back),
		TEST(it_gives_back_between_two_looks_too),
		TEST(it_gives_back_to_the_kind_that_is_recorded),
		TEST(the_cpu_time_of_a_go_program_is_its_goroutines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
