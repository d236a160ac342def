/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  Wakes of a target with a fake /proc, clock and tracer and with perf
 * records that the test writes: the wake profile is compared with what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../src/sample/wakers.h"
#include "fake_perf.h"
#include "one_target.h"

/* Waits; wakes; is of another process. */
enum { WORKER = 7, MAKER = 9, STRANGER = 1 };

static int setup(void **state)
{
	(void)state;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_target_add_thread(&fake, WORKER, "worker");
	fake_target_add_thread(&fake, MAKER, "maker");
	options = fake_target_options();
	options.wall = false;
	options.wake = true;
	options.block_rate.every = 1;
	options.stop = WP_STOP_NEVER;
	return 0;
}

static void start(void)
{
	start_target();
	tick();
}

static void finish(void)
{
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
}

static void put(enum wp_perf_type type, pid_t tid)
{
	struct wp_perf_record record = {
		.type = type,
		.time_ns = fake_now_ns,
		.tid = tid,
		.period = 1,
	};

	fake_perf_put(fake_perf_last(), &record);
}

static struct wp_perf_record wake_record(enum wp_perf_type type, pid_t waker)
{
	return (struct wp_perf_record){
		.type = type,
		.time_ns = fake_now_ns,
		.tid = WORKER,
		.waker_pid = waker,
		.waker_tid = waker,
	};
}

static void put_wake(pid_t waker, bool hard, bool soft)
{
	struct wp_perf_record record = wake_record(WP_PERF_WAKE, waker);

	record.hard_interrupt = hard;
	record.soft_interrupt = soft;
	fake_perf_put(fake_perf_last(), &record);
}

/* A sample of WAKER, with its stack. */
static void put_waker(pid_t waker, bool soft)
{
	struct wp_perf_record record = wake_record(WP_PERF_SAMPLE_WAKE, waker);

	record.soft_interrupt = soft;
	record.regs = fake_stack_regs(&stack);
	record.stack = (const uint8_t *)(uintptr_t)record.regs.v[WP_REG_SP];
	record.stack_len = (size_t)((uintptr_t)stack.room + sizeof(stack.room) -
				    record.regs.v[WP_REG_SP]);
	fake_perf_put(fake_perf_last(), &record);
}

/* The worker waits for 2 ms until the maker wakes it; SAMPLED: with a stack. */
static void wait_for_maker(bool sampled)
{
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += 2 * WP_NS_PER_MS;
	put_wake(MAKER, false, false);
	if (sampled)
		put_waker(MAKER, false);
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_SWITCH_IN, WORKER);
}

/* The text of the first frame of sample S, "" if that is code. */
static const char *text_of(const struct wp_profile_sample *s)
{
	const struct wp_profile_stack *of = &fake.profile.stacks[s->key.stack];
	const struct wp_frame *frame;

	if (!of->depth)
		return "";
	frame = wp_profile_frame(&fake.profile, of, 0);
	return frame->flags & WP_FRAME_NAMED ?
		       wp_profile_str(&fake.profile, (uint32_t)frame->pc_avma) :
		       "";
}

/* The one sample of the wake profile with TEXT, at DEPTH or more. */
static const struct wp_profile_sample *sample_of(const char *text,
						 uint32_t depth)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WAKE];
	const struct wp_profile_sample *found = NULL;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		if (strcmp(text_of(s), text) ||
		    fake.profile.stacks[s->key.stack].depth < depth)
			continue;
		assert_null(found);
		found = s;
	}
	assert_non_null(found);
	return found;
}

static void assert_by(const struct wp_profile_sample *s, pid_t thread,
		      uint64_t count, uint64_t ns)
{
	assert_int_equal(fake.profile.threads[s->key.thread].tid, thread);
	assert_string_equal(wp_profile_str(&fake.profile, s->key.object),
			    "worker (7)");
	assert_int_equal(s->count, count);
	assert_int_equal(s->wall_ns, ns);
}

static const char *source(void)
{
	return wp_profile_str(&fake.profile,
			      fake.profile.meta.source[WP_PROFILE_WAKE]);
}

static uint32_t nsamples(void)
{
	return fake.profile.sets[WP_PROFILE_WAKE].nsamples;
}

static void a_wake_has_the_stack_of_who_made_it(void **state)
{
	(void)state;
	start();
	assert_true(fake_perf_last()->options.wakes);
	assert_int_equal(fake_perf_last()->options.wake_sample_every, 1);
	for (int i = 0; i < 5; i++)
		wait_for_maker(true);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("", 3), MAKER, 5, 10 * WP_NS_PER_MS);
	assert_int_equal(fake.profile.sets[WP_PROFILE_BLOCK].nsamples, 0);
	assert_non_null(strstr(source(), "5 stacks of threads"));
	assert_non_null(strstr(source(), "0 waits whose wake"));
}

/* The kernel may write the sample first, and it may be lost. */
static void the_sample_alone_tells_the_wake_as_well(void **state)
{
	(void)state;
	start();
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += WP_NS_PER_MS;
	put_waker(MAKER, false);
	put_wake(MAKER, false, false);
	put(WP_PERF_SWITCH_IN, WORKER);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("", 3), MAKER, 1, WP_NS_PER_MS);
}

static void wakes_without_a_stack_go_with_those_that_have(void **state)
{
	(void)state;
	start();
	for (int i = 0; i < 10; i++)
		wait_for_maker(i == 4);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("", 3), MAKER, 10, 20 * WP_NS_PER_MS);
}

static void without_any_stack_wakes_are_counted_all_the_same(void **state)
{
	(void)state;
	start();
	wait_for_maker(false);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("", 0), MAKER, 1, 2 * WP_NS_PER_MS);
	assert_int_equal(fake.profile.stacks[sample_of("", 0)->key.stack].depth,
			 0);
}

/* Who is no thread of the target is a frame, and the sample is of who was woken. */
static void others_are_named(void **state)
{
	static const struct {
		pid_t waker;
		bool hard, soft;
		const char *text;
	} rows[] = {
		{ MAKER, true, false, "[interrupt]" },
		{ 0, true, false, "[interrupt]" },
		{ 0, false, true, "[software interrupt]" },
		{ STRANGER, false, true, "[software interrupt]" },
		{ STRANGER, false, false, "[another process: " },
		{ 2, false, false, "[kernel thread: kthreadd]" },
		{ INT32_MAX, false, false, "[another process: ended]" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wp_profile_sample *s;

		setup(state);
		start();
		put(WP_PERF_SWITCH_OUT, WORKER);
		fake_now_ns += WP_NS_PER_MS;
		put_wake(rows[i].waker, rows[i].hard, rows[i].soft);
		put(WP_PERF_SWITCH_IN, WORKER);
		finish();
		assert_int_equal(nsamples(), 1);
		s = &fake.profile.sets[WP_PROFILE_WAKE].samples[0];
		assert_by(s, WORKER, 1, WP_NS_PER_MS);
		assert_non_null(strstr(text_of(s), rows[i].text));
		teardown(state);
	}
	setup(state);
}

/* The worker waits for 1 ms until this process, which is called NAME, wakes it. */
static void wait_for_us(const char *name)
{
	prctl(PR_SET_NAME, name);
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += WP_NS_PER_MS;
	put_wake(getpid(), false, false);
	put(WP_PERF_SWITCH_IN, WORKER);
	tick();
}

/* The number of samples with TEXT. */
static uint32_t count_of(const char *text)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WAKE];
	uint32_t n = 0;

	for (uint32_t i = 0; i < set->nsamples; i++)
		n += !strcmp(text_of(&set->samples[i]), text);
	return n;
}

/* It has executed a program, or another has its tid. */
static void others_are_known_by_the_name_that_they_have(void **state)
{
	char before[16];

	(void)state;
	prctl(PR_GET_NAME, before);
	start();
	wait_for_us("first");
	/* To read it each time would take too long. */
	wait_for_us("second");
	assert_int_equal(fake_target_tick(&fake, WP_NS_PER_S), 0);
	wait_for_us("third");
	finish();
	prctl(PR_SET_NAME, before);
	assert_int_equal(count_of("[another process: first]"), 1);
	assert_int_equal(count_of("[another process: second]"), 0);
	assert_int_equal(count_of("[another process: third]"), 1);
}

/* What a software interrupt does while the thread is in no system call is not by the
 * thread. */
static void a_software_interrupt_is_by_a_call_or_by_nobody(void **state)
{
	(void)state;
	start();
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += WP_NS_PER_MS;
	put_wake(MAKER, false, true);
	put_waker(MAKER, true);
	put(WP_PERF_SWITCH_IN, WORKER);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("[software interrupt]", 1), MAKER, 1, WP_NS_PER_MS);
	assert_int_equal(
		fake.profile
			.stacks[sample_of("[software interrupt]", 1)->key.stack]
			.depth,
		1);
}

static void a_wake_that_was_not_told_is_counted(void **state)
{
	(void)state;
	start();
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_SWITCH_IN, WORKER);
	finish();
	assert_by(sample_of("[waker not recorded]", 1), WORKER, 1,
		  WP_NS_PER_MS);
	assert_non_null(strstr(source(), "1 waits whose wake"));
}

/* Why the thread waited is known from when it left its CPU. */
static void the_reason_of_the_wait_goes_with_the_wake(void **state)
{
	struct wp_perf_record record = { .type = WP_PERF_SAMPLE_SWITCH,
					 .tid = WORKER };

	(void)state;
	start();
	record.time_ns = fake_now_ns;
	record.regs = fake_stack_regs(&stack);
	fake_perf_put(fake_perf_last(), &record);
	wait_for_maker(true);
	finish();
	assert_int_not_equal(sample_of("", 3)->key.wait, WP_WAIT_NONE);
}

/* Also of a wait that began before any record: ticks know since when. */
static void a_long_wait_has_its_whole_delay(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);

	(void)state;
	fake_target_waits(&fake, WORKER, SYS_nanosleep, 0, &regs);
	start();
	for (int i = 0; i < 19; i++)
		tick();
	put_wake(MAKER, false, false);
	put_waker(MAKER, false);
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_SWITCH_IN, WORKER);
	fake_target_schedstat(&fake, WORKER, 2000, 0, 2);
	fake_target_runs(&fake, WORKER);
	finish();
	assert_by(sample_of("", 3), MAKER, 1, 20 * (uint64_t)TICK);
	assert_int_equal(sample_of("", 3)->key.wait, WP_WAIT_SLEEP);
}

/* One wait of 1 ms in each of 2000 ticks, recorded where events are, and three times too
 * many records: there are windows and gaps. */
static void wakes_in_gaps_are_weighed_for(void **state)
{
	unsigned int off = 0;
	const struct wp_profile_sample *s;

	(void)state;
	fake_perf.foreign_each = 99;
	start();
	for (int i = 0; i < 2000; i++) {
		if (!fake_perf_last()->enabled) {
			fake_now_ns += 3 * WP_NS_PER_MS;
			off++;
		} else {
			wait_for_maker(true);
		}
		assert_int_equal(
			fake_target_tick(&fake, TICK - 3 * WP_NS_PER_MS), 0);
	}
	assert_in_range(off, 1000, 1700);
	finish();
	s = sample_of("", 3);
	assert_in_range(s->count, 1500, 2500);
	assert_in_range(s->wall_ns, 3000 * WP_NS_PER_MS, 5000 * WP_NS_PER_MS);
}

static void tick_with_wakes(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		for (int k = 0; k < 3; k++)
			wait_for_maker(true);
		assert_int_equal(
			fake_target_tick(&fake, TICK - 9 * WP_NS_PER_MS), 0);
	}
}

static void stacks_are_taken_at_as_many_wakes_as_are_cheap(void **state)
{
	(void)state;
	options.block_rate.every = 0;
	start();
	assert_int_equal(fake_perf_last()->options.wake_sample_every, 17);
	/* 300 a second at one in 17 are 5100 wakes, which two ticks tell. */
	tick_with_wakes(3);
	assert_in_range(fake_perf_last()->options.wake_sample_every, 3, 5);
	/* At one in 3 they would be 900: all are cheap. */
	tick_with_wakes(5);
	assert_in_range(fake_perf_last()->options.wake_sample_every, 3, 5);
	tick_with_wakes(5);
	assert_int_equal(fake_perf_last()->options.wake_sample_every, 1);
	for (int i = 0; i < 30; i++)
		tick();
	assert_int_equal(fake_perf_last()->options.wake_sample_every, 1);
	finish();
}

static void what_cannot_be_recorded_is_said(void **state)
{
	(void)state;
	fake_perf.facts.wake_rc = -EACCES;
	start();
	finish();
	assert_non_null(strstr(source(), "not recorded: the kernel"));
	teardown(state);
	setup(state);
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	start();
	finish();
	assert_non_null(strstr(source(), "not recorded: refused by the test"));
	assert_int_equal(nsamples(), 0);
}

/* Compare the ranges of TIDS[0..n) with WANT[0..len). */
static void assert_ranges(const pid_t *tids, size_t n,
			  const struct wp_tid_range *want, size_t len)
{
	struct wp_tid_range got[WP_PERF_RANGES_MAX];

	assert_int_equal(wp_wakers_ranges(got, tids, n), len);
	assert_memory_equal(got, want, len * sizeof(*want));
}

static void tids_are_in_few_ranges(void **state)
{
	const pid_t near[] = { 7, 8, 9, 11, 500 };
	const struct wp_tid_range of_near[] = { { 7, 9 },
						{ 11, 11 },
						{ 500, 500 } };
	/* The least gaps are those of 10 to 12, 12 to 15 and 15 to 19. */
	const pid_t far[] = { 1, 10, 12, 15, 19, 29, 39, 49, 59, 69, 79 };
	const struct wp_tid_range of_far[] = { { 1, 1 },   { 10, 19 },
					       { 29, 29 }, { 39, 39 },
					       { 49, 49 }, { 59, 59 },
					       { 69, 69 }, { 79, 79 } };

	(void)state;
	assert_ranges(near, 5, of_near, 3);
	assert_ranges(near, 1, (struct wp_tid_range[]){ { 7, 7 } }, 1);
	assert_ranges(far, 11, of_far, 8);
	assert_ranges(far, 0, of_far, 0);
}

/* Ticks tell of a wait if they have met it often enough. */
static void a_wait_that_few_ticks_met_is_not_theirs(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);

	(void)state;
	fake_target_waits(&fake, WORKER, SYS_nanosleep, 0, &regs);
	start();
	put_wake(MAKER, false, false);
	fake_now_ns += WP_NS_PER_MS;
	put(WP_PERF_SWITCH_IN, WORKER);
	fake_target_schedstat(&fake, WORKER, 2000, 0, 2);
	fake_target_runs(&fake, WORKER);
	finish();
	assert_int_equal(nsamples(), 0);
}

static void a_sample_that_comes_twice_is_one(void **state)
{
	(void)state;
	start();
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += WP_NS_PER_MS;
	put_wake(MAKER, false, false);
	put_waker(MAKER, false);
	put_waker(MAKER, false);
	put(WP_PERF_SWITCH_IN, WORKER);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("", 3), MAKER, 1, WP_NS_PER_MS);
}

/* The thread that a tid names at the wake may be another's. */
static void a_stack_of_who_is_not_recorded_is_none(void **state)
{
	(void)state;
	start();
	put(WP_PERF_SWITCH_OUT, WORKER);
	fake_now_ns += WP_NS_PER_MS;
	put_wake(0, false, true);
	put_waker(0, false);
	put(WP_PERF_SWITCH_IN, WORKER);
	finish();
	assert_int_equal(nsamples(), 1);
	assert_by(sample_of("[software interrupt]", 1), WORKER, 1,
		  WP_NS_PER_MS);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tids_are_in_few_ranges),
		TEST(a_wake_has_the_stack_of_who_made_it),
		TEST(the_sample_alone_tells_the_wake_as_well),
		TEST(wakes_without_a_stack_go_with_those_that_have),
		TEST(without_any_stack_wakes_are_counted_all_the_same),
		cmocka_unit_test_teardown(others_are_named, teardown),
		TEST(a_software_interrupt_is_by_a_call_or_by_nobody),
		TEST(a_wake_that_was_not_told_is_counted),
		TEST(the_reason_of_the_wait_goes_with_the_wake),
		TEST(a_long_wait_has_its_whole_delay),
		TEST(wakes_in_gaps_are_weighed_for),
		TEST(stacks_are_taken_at_as_many_wakes_as_are_cheap),
		TEST(what_cannot_be_recorded_is_said),
		TEST(a_wait_that_few_ticks_met_is_not_theirs),
		TEST(a_sample_that_comes_twice_is_one),
		TEST(a_stack_of_who_is_not_recorded_is_none),
		TEST(others_are_known_by_the_name_that_they_have),
	};

	return cmocka_run_group_tests_name("wakes", tests, NULL, NULL);
}
