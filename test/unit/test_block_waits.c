/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  Waits of a target with a fake /proc, clock and tracer and with
 * perf records that the test writes: the sums of the block profile are compared
 * with the waits that were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "fake_perf.h"
#include "one_target.h"

static int setup(void **state)
{
	(void)state;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_target_add_thread(&fake, 7, "worker");
	options = fake_target_options();
	options.wall = false;
	options.block = true;
	options.block_rate.every = 1;
	options.stop = WP_STOP_NEVER;
	return 0;
}

static void finish(void)
{
	assert_int_equal(fake_target_tick(&fake, TICK), 0);
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
}

static struct wp_perf_record record_of(enum wp_perf_type type)
{
	return (struct wp_perf_record){
		.type = type,
		.time_ns = fake_now_ns,
		.tid = 7,
		.period = 1,
	};
}

static void put(const struct wp_perf_record *record)
{
	fake_perf_put(fake_perf_last(), record);
}

static void put_sample(size_t len, bool full)
{
	struct wp_perf_record record = record_of(WP_PERF_SAMPLE_SWITCH);

	record.regs = fake_stack_regs(&stack);
	record.stack = (const uint8_t *)(uintptr_t)record.regs.v[WP_REG_SP];
	record.stack_len = len;
	record.stack_full = full;
	put(&record);
}

static size_t whole_stack(void)
{
	struct wp_regs regs = fake_stack_regs(&stack);

	return (size_t)((uintptr_t)stack.room + sizeof(stack.room) -
			regs.v[WP_REG_SP]);
}

/* The thread leaves its CPU, and DELAY_NS pass until it is back. */
static void wait_for(uint64_t delay_ns, bool preempted)
{
	struct wp_perf_record record = record_of(WP_PERF_SWITCH_OUT);

	record.preempted = preempted;
	put(&record);
	fake_now_ns += delay_ns;
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
}

/* Sums of the block profile, of stacks with at least DEPTH frames (0: none at
 * all). */
static uint64_t sum(uint32_t depth, uint64_t *ret_ns)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_BLOCK];
	uint64_t count = 0;

	*ret_ns = 0;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		uint32_t have = fake.profile.stacks[s->key.stack].depth;

		if (depth ? have < depth : have > 0)
			continue;
		count += s->count;
		*ret_ns += s->wall_ns;
	}
	return count;
}

static void assert_sums(uint32_t depth, uint64_t count, uint64_t ns)
{
	uint64_t got_ns, got = sum(depth, &got_ns);

	assert_int_equal(got, count);
	assert_int_equal(got_ns, ns);
}

static const char *source(void)
{
	return wp_profile_str(&fake.profile,
			      fake.profile.meta.source[WP_PROFILE_BLOCK]);
}

static void each_wait_counts_with_its_stack_and_its_time(void **state)
{
	(void)state;
	start_target();
	assert_true(fake_perf_last()->enabled);
	assert_int_equal(fake_perf_last()->options.switch_sample_every, 1);
	for (int i = 0; i < 5; i++) {
		put_sample(whole_stack(), false);
		wait_for(WP_NS_PER_MS, false);
	}
	finish();
	assert_sums(3, 5, 5 * WP_NS_PER_MS);
	assert_non_null(strstr(source(), "5 stacks"));
	assert_non_null(strstr(source(), "0 of 15 records lost"));
	assert_non_null(strstr(source(), "100 % of the time"));
}

static void waits_for_a_cpu_and_waits_without_a_begin_are_none(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	put_sample(whole_stack(), false);
	wait_for(WP_NS_PER_MS, true);
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_BLOCK].nsamples, 0);
}

static void a_wait_around_lost_records_is_not_known(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	record = record_of(WP_PERF_SWITCH_OUT);
	put(&record);
	fake_now_ns += WP_NS_PER_MS;
	record = record_of(WP_PERF_LOST);
	record.lost = 2;
	put(&record);
	fake_now_ns += WP_NS_PER_MS;
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_BLOCK].nsamples, 0);
	assert_non_null(strstr(source(), "2 of 5 records lost"));
}

static void lost_records_were_like_the_others(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	put_sample(whole_stack(), false);
	wait_for(WP_NS_PER_MS, false);
	record = record_of(WP_PERF_LOST);
	record.lost = 4;
	put(&record);
	finish();
	/* One in two was lost. */
	assert_sums(3, 2, 2 * WP_NS_PER_MS);
}

static void
waits_without_a_stack_go_with_the_stacks_of_their_length(void **state)
{
	(void)state;
	start_target();
	put_sample(whole_stack(), false);
	for (int i = 0; i < 10; i++)
		wait_for(WP_NS_PER_MS, false);
	finish();
	assert_sums(3, 10, 10 * WP_NS_PER_MS);
}

static void without_any_stack_waits_are_counted_all_the_same(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	record = record_of(WP_PERF_SAMPLE_SWITCH);
	put(&record);
	wait_for(WP_NS_PER_MS, false);
	finish();
	assert_sums(0, 1, WP_NS_PER_MS);
}

static void threads_that_are_not_watched_are_left_out(void **state)
{
	(void)state;
	options.thread_globs[0] = "other*";
	start_target();
	put_sample(whole_stack(), false);
	wait_for(WP_NS_PER_MS, false);
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_BLOCK].nsamples, 0);
}

/* Thread WAKER wakes the thread, in an interrupt where HARD. */
static void wake(pid_t waker, bool hard)
{
	struct wp_perf_record record = record_of(WP_PERF_WAKE);

	record.waker_pid = record.waker_tid = waker;
	record.hard_interrupt = hard;
	put(&record);
}

/* The thread leaves its CPU, is woken by WAKER after WAIT_NS and on a CPU
 * QUEUE_NS later. */
static void wait_until_woken(uint64_t wait_ns, uint64_t queue_ns, pid_t waker)
{
	struct wp_perf_record record = record_of(WP_PERF_SWITCH_OUT);

	put_sample(whole_stack(), false);
	put(&record);
	fake_now_ns += wait_ns;
	wake(waker, false);
	fake_now_ns += queue_ns;
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
}

/* The block profile's time in STATE of waits that WAKER ended; "": not known. */
static uint64_t ns_by(enum wp_state in, const char *waker)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_BLOCK];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;

		if (key->state == in &&
		    !strcmp(wp_profile_str(&fake.profile, key->object), waker))
			ns += set->samples[i].wall_ns;
	}
	return ns;
}

static void a_wait_ends_when_the_thread_is_woken(void **state)
{
	(void)state;
	fake_target_add_thread(&fake, 9, "maker");
	start_target();
	tick();
	assert_true(fake_perf_last()->options.wakes);
	assert_in_range(7, fake_perf_last()->first_woken, 9);
	assert_in_range(fake_perf_last()->last_woken, 9, 300);
	wait_until_woken(3 * WP_NS_PER_MS, WP_NS_PER_MS, 9);
	wait_until_woken(2 * WP_NS_PER_MS, WP_NS_PER_MS, 9);
	finish();
	assert_int_equal(ns_by(WP_STATE_WAITING, "maker (9)"),
			 5 * WP_NS_PER_MS);
	assert_int_equal(ns_by(WP_STATE_RUNNABLE, "maker (9)"),
			 2 * WP_NS_PER_MS);
	/* Waits for a CPU are no waits of their own. */
	assert_sums(3, 2, 7 * WP_NS_PER_MS);
	assert_non_null(strstr(source(), "but for 0 waits"));
}

static void who_wakes_may_be_an_interrupt_or_another_process(void **state)
{
	struct wp_perf_record record;
	char self[64];

	(void)state;
	start_target();
	record = record_of(WP_PERF_SWITCH_OUT);
	put(&record);
	fake_now_ns += WP_NS_PER_MS;
	/* Of threads that are not the target's there is nothing to say. */
	record = record_of(WP_PERF_WAKE);
	record.tid = 4711;
	put(&record);
	wake(getpid(), true);
	/* Only the first wake wakes. */
	fake_now_ns += WP_NS_PER_MS;
	wake(getpid(), false);
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	put_sample(whole_stack(), false);
	wait_until_woken(4 * WP_NS_PER_MS, 0, getpid());
	finish();
	snprintf(self, sizeof(self), "test_block_wait (%d)", getpid());
	assert_int_equal(ns_by(WP_STATE_WAITING, self), 5 * WP_NS_PER_MS);
	assert_int_equal(ns_by(WP_STATE_RUNNABLE, self) +
				 ns_by(WP_STATE_RUNNABLE, ""),
			 WP_NS_PER_MS);
}

static void a_wake_while_the_thread_leaves_ends_its_wait(void **state)
{
	struct wp_perf_record record;

	(void)state;
	start_target();
	put_sample(whole_stack(), false);
	wake(9, true);
	fake_now_ns += 20000;
	record = record_of(WP_PERF_SWITCH_OUT);
	put(&record);
	fake_now_ns += WP_NS_PER_MS;
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	/* A wake of long before is of an earlier wait. */
	wake(9, true);
	fake_now_ns += WP_NS_PER_MS;
	put_sample(whole_stack(), false);
	wait_for(3 * WP_NS_PER_MS, false);
	finish();
	assert_int_equal(ns_by(WP_STATE_RUNNABLE, "interrupt"), WP_NS_PER_MS);
	assert_int_equal(ns_by(WP_STATE_WAITING, ""), 3 * WP_NS_PER_MS);
	assert_non_null(strstr(source(), "but for 1 waits"));
}

/* A thread may be woken while it is leaving its CPU, for 50 us at the most. */
static void a_wake_of_before_that_is_of_another_wait(void **state)
{
	for (uint64_t over = 0; over < 2; over++) {
		start_target();
		put_sample(whole_stack(), false);
		wake(9, true);
		fake_now_ns += 50000 + over;
		wait_for(WP_NS_PER_MS, false);
		finish();
		assert_int_equal(ns_by(WP_STATE_RUNNABLE, "interrupt"),
				 over ? 0 : WP_NS_PER_MS);
		assert_int_equal(ns_by(WP_STATE_WAITING, ""),
				 over ? WP_NS_PER_MS : 0);
		teardown(state);
		setup(state);
	}
}

/* The thread is off its CPU for the time of a stop by wallprof, too. */
static void what_a_stop_is_part_of_is_no_wait(void **state)
{
	/* From when until when it is stopped; it is off its CPU from 20 to 30. */
	const struct {
		uint64_t begin, end, counts;
	} cases[] = {
		{ 10, 19, 1 }, { 10, 20, 0 }, { 22, 28, 0 },
		{ 30, 40, 0 }, { 31, 40, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t start_ns;
		struct wp_thread *t;

		start_target();
		tick();
		t = wp_threads_find(fake.target, 7);
		assert_non_null(t);
		start_ns = fake_now_ns;
		t->waits.stop_begin_ns = start_ns + cases[i].begin;
		t->waits.stop_end_ns = start_ns + cases[i].end;
		fake_now_ns += 20;
		wait_for(10, false);
		finish();
		assert_sums(0, cases[i].counts, 10 * cases[i].counts);
		teardown(state);
		setup(state);
	}
}

/* A stop that was given up comes when the thread's wait of 2 ms is over: it is off its CPU
 * once more, until it is let go. */
static void a_stop_that_comes_late_is_no_wait(void **state)
{
	struct wp_perf_record record;
	uint64_t stopped_ns;

	(void)state;
	start_target();
	tick();
	assert_non_null(wp_threads_find(fake.target, 7));
	wait_for(2 * WP_NS_PER_MS, false);
	fake_now_ns += 1000;
	record = record_of(WP_PERF_SWITCH_OUT);
	put(&record);
	stopped_ns = fake_now_ns += 5;
	fake_now_ns += 3 * WP_NS_PER_MS;
	assert_non_null(fake.tracer.on_late);
	fake.tracer.on_late(fake.tracer.late_ctx, 7, stopped_ns);
	/* Nobody's. */
	fake.tracer.on_late(fake.tracer.late_ctx, 4711, stopped_ns);
	fake_now_ns += 5;
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	fake_now_ns += 1000;
	wait_for(WP_NS_PER_MS, false);
	finish();
	assert_sums(0, 2, 3 * WP_NS_PER_MS);
}

/* Long waits are told by ticks: by records they are not added again. */
static void a_long_wait_counts_once(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	struct wp_perf_record record;
	uint64_t count, ns;

	(void)state;
	fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
	start_target();
	put_sample(whole_stack(), false);
	record = record_of(WP_PERF_SWITCH_OUT);
	put(&record);
	for (int i = 0; i < 20; i++)
		tick();
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	fake_target_schedstat(&fake, 7, 2000, 0, 2);
	fake_target_runs(&fake, 7);
	finish();
	count = sum(3, &ns);
	assert_int_equal(count, 1);
	assert_int_equal(ns, 20 * (uint64_t)TICK);
}

/* ... and who ended it is told by the record, of a wait of N ticks. */
static void assert_waker_after(unsigned int n)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	struct wp_perf_record record;

	fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
	start_target();
	record = record_of(WP_PERF_SWITCH_OUT);
	put(&record);
	for (unsigned int i = 0; i < n; i++)
		tick();
	wake(9, true);
	fake_now_ns += WP_NS_PER_MS;
	record = record_of(WP_PERF_SWITCH_IN);
	put(&record);
	fake_target_schedstat(&fake, 7, 2000, 0, 2);
	fake_target_runs(&fake, 7);
	finish();
	assert_int_equal(ns_by(WP_STATE_RUNNABLE, "interrupt"), WP_NS_PER_MS);
}

static void a_long_wait_has_its_waker(void **state)
{
	assert_waker_after(20);
	assert_int_equal(ns_by(WP_STATE_WAITING, ""), 0);
	assert_int_equal(ns_by(WP_STATE_WAITING, "interrupt"),
			 20 * (uint64_t)TICK);
	assert_sums(3, 1, 20 * (uint64_t)TICK + WP_NS_PER_MS);
	teardown(state);
	setup(state);
	/* The shortest that is told by ticks. */
	assert_waker_after(WP_BLOCK_TICKS);
	assert_true(ns_by(WP_STATE_WAITING, "interrupt") > 2 * (uint64_t)TICK);
}

/* Three ticks in a millisecond find one wait, and only then is the end of the wait
 * before it told: nothing is taken from a stack but what it was given. */
static void a_wait_from_before_the_last_ticks_is_not_theirs(void **state)
{
	const struct wp_sample_set *set;
	const struct wp_regs regs = fake_stack_regs(&stack);
	struct wp_perf_record record;

	(void)state;
	fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
	start_target();
	for (int i = 0; i < 2; i++) {
		record = record_of(WP_PERF_SWITCH_OUT);
		put(&record);
		for (int k = 0; i && k < WP_BLOCK_TICKS; k++)
			assert_int_equal(
				fake_target_tick(&fake, WP_NS_PER_MS / 10), 0);
		fake_now_ns += 5 * WP_NS_PER_MS;
		wake(9, true);
		fake_now_ns += 1000;
		record = record_of(WP_PERF_SWITCH_IN);
		put(&record);
	}
	fake_target_schedstat(&fake, 7, 2000, 0, 2);
	fake_target_runs(&fake, 7);
	finish();
	set = &fake.profile.sets[WP_PROFILE_BLOCK];
	assert_true(set->nsamples > 0);
	for (uint32_t i = 0; i < set->nsamples; i++) {
		assert_in_range(set->samples[i].count, 0, 2);
		assert_in_range(set->samples[i].wall_ns, 0, 2 * TICK);
	}
}

static void without_events_ticks_tell_all(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);

	(void)state;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
	fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
	start_target();
	for (int i = 0; i < 3; i++)
		tick();
	assert_sums(3, 1, 3 * (uint64_t)TICK);
	finish();
	assert_non_null(strstr(source(), "refused by the test"));
}

static void events_without_samples_of_switches_are_of_no_use(void **state)
{
	(void)state;
	fake_perf.facts.switch_samples = false;
	start_target();
	assert_true(fake_perf_last()->closed);
	assert_non_null(strstr(source(), "no stacks at context switches"));
}

static void
stacks_that_were_cut_are_copied_longer_in_the_next_window(void **state)
{
	(void)state;
	start_target();
	put_sample(8, true);
	wait_for(WP_NS_PER_MS, false);
	for (int i = 0; i < 12; i++)
		tick();
	assert_int_equal(fake_perf.nopened, 2);
	assert_true(fake_perf.opened[0]->closed);
	assert_int_equal(fake_perf_last()->options.stack_bytes, 32768);
	tick();
	assert_true(fake_perf_last()->enabled);
	finish();
}

static bool is_recording(void)
{
	return fake_perf_last()->enabled && !fake_perf_last()->closed;
}

/* A wait of 1 ms in each of N ticks, recorded where events are: how many ticks
 * found none recording. */
static unsigned int wait_often(unsigned int n)
{
	unsigned int off = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (is_recording()) {
			put_sample(whole_stack(), false);
			wait_for(WP_NS_PER_MS, false);
		} else {
			fake_now_ns += WP_NS_PER_MS;
			off++;
		}
		assert_int_equal(fake_target_tick(&fake, TICK - WP_NS_PER_MS),
				 0);
	}
	return off;
}

static void assert_about(uint64_t val, uint64_t want)
{
	assert_in_range(val, want - want / 4, want + want / 4);
}

static void more_records_than_are_cheap_are_taken_in_windows(void **state)
{
	uint64_t count, ns;

	(void)state;
	/* 300 in 10 ms are three times too many. */
	fake_perf.foreign_each = 99;
	start_target();
	assert_in_range(wait_often(2000), 1000, 1600);
	assert_int_equal(fake_perf.nopened, 1);
	finish();
	count = sum(3, &ns);
	assert_about(count, 2000);
	assert_about(ns, 2000 * WP_NS_PER_MS);
}

static void with_very_many_records_events_are_closed_in_gaps(void **state)
{
	uint64_t count, ns;

	(void)state;
	fake_perf.foreign_each = 1000;
	start_target();
	assert_true(wait_often(4000) > 3900);
	assert_in_range(fake_perf.nopened, 3, 20);
	finish();
	count = sum(3, &ns);
	assert_about(count, 4000);
	assert_about(ns, 4000 * WP_NS_PER_MS);
}

static void stacks_are_taken_at_as_many_switches_as_are_cheap(void **state)
{
	(void)state;
	options.block_rate.every = 0;
	start_target();
	assert_int_equal(fake_perf_last()->options.switch_sample_every, 101);
	/* 100 a second at one in 101 are 10000 switches, which two ticks tell. */
	wait_often(3);
	assert_in_range(fake_perf_last()->options.switch_sample_every, 5, 11);
	/* The rest of the window keeps that. */
	wait_often(5);
	assert_in_range(fake_perf_last()->options.switch_sample_every, 5, 11);
	for (int i = 0; i < 30; i++)
		tick();
	assert_int_equal(fake_perf_last()->options.switch_sample_every, 1);
	finish();
}

static void a_microsecond_passes(void)
{
	fake_now_ns += WP_NS_PER_US;
}

/* What one tick tells of the first samples, and of a window, is told once. */
static void a_late_first_tick_ends_a_window_too(void **state)
{
	(void)state;
	options.block_rate.every = 0;
	start_target();
	for (int i = 0; i < 20; i++) {
		put_sample(whole_stack(), false);
		wait_for(WP_NS_PER_MS, false);
	}
	fake_before_clock = a_microsecond_passes;
	assert_int_equal(fake_target_tick(&fake, 12 * TICK), 0);
	fake_before_clock = NULL;
	/* 20 at one in 101 in 0.14 s. */
	assert_in_range(fake_perf_last()->options.switch_sample_every, 5, 29);
	finish();
}

/* The registers of a thread in a futex(2) call that syscall(2) made. */
static bool find_call(uint64_t *ret_pc)
{
#if defined(__x86_64__)
	static const uint8_t insn[] = { 0x0f, 0x05 };
#else
	static const uint8_t insn[] = { 0x01, 0x00, 0x00, 0xd4 };
#endif
	const uint8_t *code = (const uint8_t *)(uintptr_t)&syscall;

	for (size_t i = 0; i < 128; i++)
		if (!memcmp(code + i, insn, sizeof(insn))) {
			*ret_pc = (uintptr_t)code + i + sizeof(insn);
			return true;
		}
	return false;
}

static void a_call_that_the_code_hides_is_told_by_its_arguments(void **state)
{
	struct wp_perf_record record;
	struct wp_sample_key *key;
	uint64_t pc = 0;

	(void)state;
	if (!find_call(&pc))
		skip();
	start_target();
	record = record_of(WP_PERF_SAMPLE_SWITCH);
	record.regs = fake_stack_regs(&stack);
	wp_reg_set(&record.regs, WP_REG_PC, pc);
	wp_reg_set(&record.regs, wp_syscall_arg_regs[1], FUTEX_WAIT_PRIVATE);
	put(&record);
	wait_for(WP_NS_PER_MS, false);
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_BLOCK].nsamples, 1);
	key = &fake.profile.sets[WP_PROFILE_BLOCK].samples[0].key;
	assert_string_equal(wp_profile_str(&fake.profile, key->syscall),
			    "futex");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_wait_counts_with_its_stack_and_its_time),
		TEST(waits_for_a_cpu_and_waits_without_a_begin_are_none),
		TEST(a_wait_around_lost_records_is_not_known),
		TEST(lost_records_were_like_the_others),
		TEST(waits_without_a_stack_go_with_the_stacks_of_their_length),
		TEST(without_any_stack_waits_are_counted_all_the_same),
		TEST(threads_that_are_not_watched_are_left_out),
		TEST(a_wait_ends_when_the_thread_is_woken),
		TEST(who_wakes_may_be_an_interrupt_or_another_process),
		TEST(a_wake_while_the_thread_leaves_ends_its_wait),
		TEST(a_wake_of_before_that_is_of_another_wait),
		TEST(what_a_stop_is_part_of_is_no_wait),
		TEST(a_stop_that_comes_late_is_no_wait),
		TEST(a_long_wait_counts_once),
		TEST(a_long_wait_has_its_waker),
		TEST(a_wait_from_before_the_last_ticks_is_not_theirs),
		TEST(without_events_ticks_tell_all),
		TEST(events_without_samples_of_switches_are_of_no_use),
		TEST(stacks_that_were_cut_are_copied_longer_in_the_next_window),
		TEST(more_records_than_are_cheap_are_taken_in_windows),
		TEST(with_very_many_records_events_are_closed_in_gaps),
		TEST(stacks_are_taken_at_as_many_switches_as_are_cheap),
		TEST(a_late_first_tick_ends_a_window_too),
		TEST(a_call_that_the_code_hides_is_told_by_its_arguments),
	};

	return cmocka_run_group_tests_name("block_waits", tests, NULL, NULL);
}
