/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  Thread starts of a target with a fake /proc, clock and tracer
 * and with perf records that the test writes: the threadcreate profile is compared
 * with the threads that were started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/sample/thread_starts.h"
#include "fake_perf.h"
#include "few_allocations.h"
#include "one_target.h"

static int setup(void **state)
{
	(void)state;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_target_add_thread(&fake, 7, "maker");
	options = fake_target_options();
	options.wall = false;
	options.thread_starts = true;
	return 0;
}

static void start(void)
{
	start_target();
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
}

static void finish(void)
{
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
}

static void put(enum wp_perf_type type, pid_t tid, pid_t parent_tid)
{
	struct wp_perf_record record = {
		.type = type,
		.time_ns = fake_now_ns,
		.tid = tid,
		.parent_tid = parent_tid,
	};

	fake_perf_put(fake_perf_last(), &record);
}

static void put_sample(pid_t tid, size_t len)
{
	struct wp_perf_record record = {
		.type = WP_PERF_SAMPLE_THREAD_START,
		.time_ns = fake_now_ns,
		.tid = tid,
		.regs = fake_stack_regs(&stack),
	};
	uint64_t sp = record.regs.v[WP_REG_SP];

	record.stack = (const uint8_t *)(uintptr_t)sp;
	record.stack_full = len;
	record.stack_len = len ? len :
				 (size_t)((uintptr_t)stack.room +
					  sizeof(stack.room) - sp);
	fake_perf_put(fake_perf_last(), &record);
}

enum { WITH_STACK = true, WITHOUT = false };

/* Threads that thread CREATOR started, with the stack that did it or without; and
 * how long they lived. */
static uint64_t count(pid_t creator, bool with_stack, uint64_t *ret_ns)
{
	const struct wp_sample_set *set =
		&fake.profile.sets[WP_PROFILE_THREADCREATE];
	uint64_t n = 0;

	*ret_ns = 0;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		if (fake.profile.threads[s->key.thread].tid != creator ||
		    (fake.profile.stacks[s->key.stack].depth > 0) != with_stack)
			continue;
		n += s->count;
		*ret_ns += s->wall_ns;
	}
	return n;
}

static void assert_starts(pid_t creator, bool with_stack, uint64_t want,
			  uint64_t want_ns)
{
	uint64_t ns, n = count(creator, with_stack, &ns);

	assert_int_equal(n, want);
	assert_int_equal(ns, want_ns);
}

static const char *source(void)
{
	return wp_profile_str(
		&fake.profile,
		fake.profile.meta.source[WP_PROFILE_THREADCREATE]);
}

static void a_thread_counts_with_its_creators_stack_and_its_life(void **state)
{
	(void)state;
	start();
	assert_true(fake_perf_last()->options.tasks);
	for (pid_t tid = 100; tid < 103; tid++) {
		put(WP_PERF_FORK, tid, 7);
		put_sample(7, 0);
	}
	fake_now_ns += 5 * WP_NS_PER_MS;
	put(WP_PERF_EXIT, 100, 7);
	put(WP_PERF_EXIT, 101, 7);
	/* One ends at the end of the recording. */
	fake_now_ns += 5 * WP_NS_PER_MS;
	finish();
	assert_starts(7, WITH_STACK, 3,
		      2 * 5 * WP_NS_PER_MS + 10 * WP_NS_PER_MS + TICK);
	assert_non_null(strstr(source(), "3 threads created, 0 without"));
	assert_non_null(strstr(source(), "perf events of each thread"));
}

/* What is served has no end. */
static void a_thread_that_lives_has_a_life_so_far(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
	assert_int_equal(wp_sampler_settle(fake.sampler), 0);
	assert_starts(7, WITH_STACK, 1, TICK);
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
	assert_int_equal(wp_sampler_settle(fake.sampler), 0);
	assert_starts(7, WITH_STACK, 1, 2 * TICK);
	fake_now_ns += 5 * WP_NS_PER_MS;
	put(WP_PERF_EXIT, 100, 7);
	finish();
	assert_starts(7, WITH_STACK, 1, 2 * TICK + 5 * WP_NS_PER_MS);
}

/* The last stops may take longer than the last tick. */
static void a_thread_that_starts_after_the_last_tick_is_not_told(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_now_ns += TICK + 1;
	put(WP_PERF_FORK, 101, 7);
	put_sample(7, 0);
	fake_now_ns -= TICK + 1;
	finish();
	assert_starts(7, WITH_STACK, 1, TICK);
	assert_starts(7, WITHOUT, 0, 0);
}

static void a_thread_whose_sample_does_not_come_counts_without(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_EXIT, 100, 7);
	finish();
	assert_starts(7, WITHOUT, 1, WP_NS_PER_MS);
	assert_non_null(strstr(source(), "1 without the stack"));
}

static void a_sample_of_a_process_that_starts_is_no_threads(void **state)
{
	struct wp_perf_record record = { .type = WP_PERF_SAMPLE_THREAD_START };

	(void)state;
	start();
	put_sample(7, 0);
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	/* The thread has its stack: this one is a process's. */
	put_sample(7, 0);
	/* One whose registers are not known, and the end of an unknown. */
	put(WP_PERF_FORK, 101, 7);
	record.time_ns = fake_now_ns;
	record.tid = 7;
	fake_perf_put(fake_perf_last(), &record);
	put(WP_PERF_EXIT, 4711, 7);
	finish();
	assert_starts(7, WITH_STACK, 1, TICK);
	assert_starts(7, WITHOUT, 1, TICK);
}

static void a_tid_that_comes_again_is_another_thread(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_now_ns += WP_NS_PER_MS;
	/* The record of its end was lost. */
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	finish();
	assert_starts(7, WITH_STACK, 2, WP_NS_PER_MS + TICK);
}

static void creators_that_are_not_watched_are_left_out(void **state)
{
	(void)state;
	options.thread_globs[0] = "other*";
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	put(WP_PERF_FORK, 101, 7);
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_THREADCREATE].nsamples,
			 0);
}

static void records_are_read_between_ticks_too(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_sleep(fake.sampler, fake_now_ns), 0);
	assert_int_equal(fake_perf_last()->next, 2);
	finish();
	assert_starts(7, WITH_STACK, 1, 2 * (uint64_t)TICK);
}

static void a_stack_that_was_cut_makes_copies_longer(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 8);
	tick();
	assert_int_equal(fake_perf.nopened, 2);
	assert_int_equal(fake_perf_last()->options.stack_bytes, 32768);
	assert_true(fake_perf_last()->enabled);
	finish();
	assert_starts(7, WITH_STACK, 1, 2 * (uint64_t)TICK);
	assert_int_equal(fake_target_ends(&fake, WP_END_BEYOND_COPY), 1);
}

static void threads_whose_record_was_lost_are_found_in_the_list(void **state)
{
	struct wp_perf_record lost = { .type = WP_PERF_LOST, .lost = 3 };

	(void)state;
	start();
	lost.time_ns = fake_now_ns;
	fake_perf_put(fake_perf_last(), &lost);
	fake_target_add_thread(&fake, 100, "missed");
	tick();
	tick();
	tick();
	finish();
	/* What the list tells is the thread itself. */
	assert_starts(100, WITHOUT, 1, 4 * (uint64_t)TICK);
	assert_non_null(strstr(source(), "3 records of perf events lost"));
}

static void an_end_whose_record_was_lost_is_seen_in_the_list(void **state)
{
	struct wp_perf_record lost = { .type = WP_PERF_LOST, .lost = 1 };

	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	lost.time_ns = fake_now_ns;
	fake_perf_put(fake_perf_last(), &lost);
	tick();
	tick();
	finish();
	/* Half-way to the tick that did not find it. */
	assert_starts(7, WITH_STACK, 1, TICK / 2);
}

static void without_events_the_lists_of_ticks_tell(void **state)
{
	(void)state;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	start();
	fake_target_add_thread(&fake, 100, "new");
	tick();
	tick();
	fake_target_end_thread(&fake, 100);
	tick();
	finish();
	/* It began and ended half-way between two ticks; 7 was there before. */
	assert_starts(100, WITHOUT, 1, 2 * (uint64_t)TICK);
	assert_starts(7, WITHOUT, 0, 0);
	assert_non_null(strstr(source(), "told by lists of threads"));
	assert_non_null(strstr(source(), "refused by the test"));
}

static void threads_that_live_already_have_not_started(void **state)
{
	(void)state;
	start_target();
	/* When the events were open, before the recording began. */
	fake_now_ns--;
	put(WP_PERF_FORK, 99, 7);
	put_sample(7, 0);
	fake_now_ns++;
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	finish();
	assert_starts(7, WITH_STACK, 1, TICK);
}

/* What happens while the target is held, and while its recording begins, is
 * recorded. */
static void threads_of_a_held_target_count_from_its_first_instant(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	fake.held = true;
	start_target();
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_now_ns += WP_NS_PER_MS;
	assert_int_equal(wp_sampler_begin(fake.target, &err), 0);
	finish();
	assert_starts(7, WITH_STACK, 1, TICK + WP_NS_PER_MS);
}

static void all_but_one_thread_of_a_held_target_are_its_own(void **state)
{
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	fake.held = true;
	fake.process.pid = 7;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	start_target();
	fake_target_add_thread(&fake, 100, "early");
	assert_int_equal(wp_sampler_begin(fake.target, &err), 0);
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
	finish();
	assert_starts(100, WITHOUT, 1, TICK + TICK / 2);
	assert_starts(7, WITHOUT, 0, 0);
}

static void the_profile_says_why_it_has_no_stacks(void **state)
{
	static const struct {
		int rc;
		bool user_only;
		const char *want;
	} rows[] = {
		{ -EPERM, true, "perf_event_paranoid" },
		{ -EACCES, false, "tracefs" },
		{ -ENOENT, false, "no tracepoint" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_perf.facts.thread_start_rc = rows[i].rc;
		fake_perf.facts.user_only = rows[i].user_only;
		start();
		finish();
		assert_non_null(strstr(source(), rows[i].want));
		teardown(NULL);
		setup(NULL);
	}
}

/* The record of a process that starts names its first thread. */
static void a_process_that_starts_is_no_thread(void **state)
{
	struct wp_perf_record record = {
		.type = WP_PERF_FORK, .pid = 100, .tid = 100, .parent_tid = 7
	};

	(void)state;
	start();
	record.time_ns = fake_now_ns;
	fake_perf_put(fake_perf_last(), &record);
	put_sample(7, 0);
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_THREADCREATE].nsamples,
			 0);
}

static void put_starts_by_another(pid_t n)
{
	for (pid_t i = 0; i < n; i++)
		put(WP_PERF_FORK, 200 + i, 8);
}

/* Samples come right after their record, but records of other CPUs between. */
static void a_stack_finds_its_start_among_the_last_64(void **state)
{
	(void)state;
	start();
	put(WP_PERF_FORK, 100, 7);
	put_starts_by_another(63);
	put_sample(7, 0);
	finish();
	assert_starts(7, WITH_STACK, 1, TICK);
	teardown(NULL);
	setup(NULL);
	start();
	put(WP_PERF_FORK, 100, 7);
	put_starts_by_another(64);
	put_sample(7, 0);
	finish();
	assert_starts(7, WITH_STACK, 0, 0);
	assert_starts(7, WITHOUT, 1, TICK);
}

static void lose(uint64_t n)
{
	const struct wp_perf_record lost = { .type = WP_PERF_LOST,
					     .time_ns = fake_now_ns,
					     .lost = n };

	fake_perf_put(fake_perf_last(), &lost);
}

static void a_start_that_a_record_told_is_not_counted_by_the_list(void **state)
{
	(void)state;
	start();
	lose(1);
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_target_add_thread(&fake, 100, "known");
	for (int i = 0; i < 3; i++)
		tick();
	finish();
	assert_starts(7, WITH_STACK, 1, 4 * (uint64_t)TICK);
	assert_starts(100, WITHOUT, 0, 0);
}

/* The list was read before the thread began. */
static void a_thread_that_lives_has_not_ended_if_the_list_lacks_it(void **state)
{
	(void)state;
	start();
	fake_now_ns -= 5 * WP_NS_PER_MS;
	lose(1);
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_now_ns += 5 * WP_NS_PER_MS;
	fake_target_add_thread(&fake, 100, "new");
	assert_int_equal(wp_thread_starts_tick(fake.target), 0);
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_EXIT, 100, 7);
	fake_target_end_thread(&fake, 100);
	finish();
	assert_starts(7, WITH_STACK, 1, 6 * WP_NS_PER_MS);
}

/* Of two ticks after the loss what was lost is in the list; whose record comes later
 * has one. */
static void lists_are_compared_for_two_ticks_after_a_loss(void **state)
{
	for (int after = 0; after < 4; after++) {
		start();
		lose(1);
		for (int i = 0; i < after; i++)
			tick();
		fake_target_add_thread(&fake, 100, "new");
		for (int i = 0; i < 4; i++)
			tick();
		finish();
		assert_starts(100, WITHOUT, after < 2,
			      after < 2 ? 5 * (uint64_t)TICK : 0);
		teardown(state);
		setup(state);
	}
}

static void threads_of_the_first_list_are_no_starts_after_a_loss(void **state)
{
	(void)state;
	start();
	lose(1);
	for (int i = 0; i < 4; i++)
		tick();
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_THREADCREATE].nsamples,
			 0);
}

static void lists_tell_no_thread_that_is_not_watched(void **state)
{
	(void)state;
	options.thread_globs[0] = "other*";
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	start();
	fake_target_add_thread(&fake, 100, "new");
	tick();
	tick();
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_THREADCREATE].nsamples,
			 0);
}

/* PID's thread 100 starts, by thread 7. */
static void put_start_of(pid_t pid)
{
	const struct wp_perf_record record = { .type = WP_PERF_FORK,
					       .time_ns = fake_now_ns,
					       .pid = pid,
					       .tid = 100,
					       .parent_tid = 7 };

	fake_perf_put(fake_perf_last(), &record);
}

static void sleep_for(uint64_t ns)
{
	fake_now_ns += ns;
	assert_int_equal(wp_sampler_sleep(fake.sampler, fake_now_ns), 0);
}

/* Events of all processes: each record goes to its own, one that is not recorded is
 * passed over; who began in this tick is known in the next. */
static void records_of_several_go_to_their_process(void **state)
{
	(void)state;
	options.many = true;
	start();
	fake_now_ns -= WP_NS_PER_MS;
	put_start_of(4711);
	fake_now_ns += 2 * WP_NS_PER_MS;
	put_start_of(fake.process.pid);
	sleep_for(5 * WP_NS_PER_MS);
	assert_int_equal(fake_perf_last()->next, 1);
	tick();
	sleep_for(5 * WP_NS_PER_MS);
	assert_int_equal(fake_perf_last()->next, 2);
	finish();
	assert_starts(7, WITHOUT, 1, 2 * (uint64_t)TICK + 2 * 5 * WP_NS_PER_MS);
	assert_true(fake_perf_last()->enabled);
}

static void events_of_one_process_end_with_the_recording(void **state)
{
	(void)state;
	start();
	assert_true(fake_perf_last()->enabled);
	finish();
	assert_false(fake_perf_last()->enabled);
}

/* Its first instructions are over when it is found. */
static void threads_of_a_process_that_is_born_count_from_its_start(void **state)
{
	(void)state;
	start_target();
	fake_now_ns -= 5 * WP_NS_PER_MS;
	wp_thread_starts_begin(fake.target, fake_now_ns);
	put(WP_PERF_FORK, 100, 7);
	put_sample(7, 0);
	fake_now_ns += 5 * WP_NS_PER_MS;
	finish();
	assert_starts(7, WITH_STACK, 1, TICK + 5 * WP_NS_PER_MS);
}

static void without_thread_starts_there_is_nothing_to_do(void **state)
{
	(void)state;
	options.thread_starts = false;
	options.wall = true;
	start();
	wp_thread_starts_begin(fake.target, fake_now_ns);
	wp_thread_starts_renumber(fake.target, NULL);
	finish();
	assert_int_equal(fake_perf.nopened, 0);
}

#ifdef CAN_FAIL
static void what_is_told_without_memory_is_an_error(void **state)
{
	long n = 0;
	int rc;

	do {
		if (n) {
			teardown(state);
			setup(state);
		}
		start();
		put(WP_PERF_FORK, 100, 7);
		put_sample(7, 0);
		/* Its creator is seen here first. */
		put(WP_PERF_FORK, 101, 9);
		put(WP_PERF_EXIT, 101, 9);
		fake_now_ns += TICK;
		fake.sampler->tick_ns = fake_now_ns;
		allocations_left = n++;
		rc = wp_thread_starts_tick(fake.target);
		allocations_left = -1;
		assert_true(!rc || rc == -ENOMEM);
	} while (rc && n < 1000);
	assert_true(n > 3);
	finish();
	assert_starts(7, WITH_STACK, 1, 2 * (uint64_t)TICK);
	assert_starts(9, WITHOUT, 1, 0);
}

static void events_cannot_begin_without_memory(void **state)
{
	(void)state;
	options.thread_starts = false;
	options.wall = true;
	start_target();
	for (long n = 0; n < 2; n++) {
		allocations_left = n;
		assert_int_equal(wp_thread_starts_open(fake.target), -ENOMEM);
		allocations_left = -1;
		wp_thread_starts_close(fake.target);
	}
	assert_int_equal(wp_thread_starts_open(fake.target), 0);
}
#endif

/* However rare ticks are. */
static void records_are_read_each_20_ms(void **state)
{
	uint64_t from_ns;

	(void)state;
	start();
	from_ns = fake_now_ns;
	assert_int_equal(wp_sampler_sleep(fake.sampler, from_ns + WP_NS_PER_S),
			 0);
	assert_int_equal(fake_now_ns - from_ns, 20 * WP_NS_PER_MS);
	from_ns = fake_now_ns;
	assert_int_equal(
		wp_sampler_sleep(fake.sampler, from_ns + 5 * WP_NS_PER_MS), 0);
	assert_int_equal(fake_now_ns - from_ns, 5 * WP_NS_PER_MS);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_counts_with_its_creators_stack_and_its_life),
		TEST(a_thread_that_lives_has_a_life_so_far),
		TEST(a_thread_that_starts_after_the_last_tick_is_not_told),
		TEST(a_thread_whose_sample_does_not_come_counts_without),
		TEST(a_sample_of_a_process_that_starts_is_no_threads),
		TEST(a_tid_that_comes_again_is_another_thread),
		TEST(creators_that_are_not_watched_are_left_out),
		TEST(records_are_read_between_ticks_too),
		TEST(a_stack_that_was_cut_makes_copies_longer),
		TEST(threads_whose_record_was_lost_are_found_in_the_list),
		TEST(an_end_whose_record_was_lost_is_seen_in_the_list),
		TEST(without_events_the_lists_of_ticks_tell),
		TEST(threads_that_live_already_have_not_started),
		TEST(threads_of_a_held_target_count_from_its_first_instant),
		TEST(all_but_one_thread_of_a_held_target_are_its_own),
		TEST(the_profile_says_why_it_has_no_stacks),
		TEST(a_process_that_starts_is_no_thread),
		TEST(a_stack_finds_its_start_among_the_last_64),
		TEST(a_start_that_a_record_told_is_not_counted_by_the_list),
		TEST(a_thread_that_lives_has_not_ended_if_the_list_lacks_it),
		TEST(lists_are_compared_for_two_ticks_after_a_loss),
		TEST(threads_of_the_first_list_are_no_starts_after_a_loss),
		TEST(lists_tell_no_thread_that_is_not_watched),
		TEST(records_of_several_go_to_their_process),
		TEST(events_of_one_process_end_with_the_recording),
		TEST(threads_of_a_process_that_is_born_count_from_its_start),
		TEST(without_thread_starts_there_is_nothing_to_do),
#ifdef CAN_FAIL
		TEST(what_is_told_without_memory_is_an_error),
		TEST(events_cannot_begin_without_memory),
#endif
		TEST(records_are_read_each_20_ms),
	};

	return cmocka_run_group_tests_name("thread_starts", tests, NULL, NULL);
}
