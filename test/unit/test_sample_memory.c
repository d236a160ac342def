/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  A tick of a recording for which there is no memory, at whichever
 * allocation, is -ENOMEM.  So is its end, or all is there but words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "fake_perf.h"
#include "few_allocations.h"
#include "one_target.h"

#ifdef CAN_FAIL
enum { WAITER = 7, HOLDER = 8, SLEEPER = 9, MANY = 1 << 20 };

/* As a default mutex of glibc lies in memory (struct_mutex.h). */
static struct {
	uint32_t lock, count, owner, nusers, kind, spins;
	uint64_t list[2];
} mutex __attribute__((
	aligned(16))) = { .lock = 2, .owner = HOLDER, .nusers = 1 };

/* What perf events tell before each step; NULL: there are none. */
static void (*records)(void);

static int setup(void **state)
{
	(void)state;
	/* The same lot for each. */
	fake_now_ns = 1000 * WP_NS_PER_S;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_stop.regs = fake_stack_regs(&stack);
	options = fake_target_options();
	records = NULL;
	return 0;
}

static void add_threads(void)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	char text[256];

	fake_target_add_thread(&fake, WAITER, "waiter");
	fake_target_add_thread(&fake, HOLDER, "holder");
	fake_target_add_thread(&fake, SLEEPER, "sleeper");
	fake_target_waits(&fake, SLEEPER, SYS_read, 4711, &regs);
	snprintf(text, sizeof(text),
		 "%ld 0x%llx 0x%x 0x2 0x0 0x0 0x0 0x%llx 0x%llx\n",
		 (long)SYS_futex, (unsigned long long)(uintptr_t)&mutex,
		 FUTEX_WAIT_PRIVATE, (unsigned long long)regs.v[WP_REG_SP],
		 (unsigned long long)regs.v[WP_REG_PC]);
	fake_target_write(&fake, WAITER, "syscall", text);
	fake_target_stat(&fake, WAITER, 'S');
}

/* All threads are new to the first tick; one ends before the second. */
static int first_tick(void)
{
	return wp_sampler_tick(fake.sampler);
}

static int second_tick(void)
{
	return wp_sampler_tick(fake.sampler);
}

static int finish(void)
{
	return wp_sampler_finish(fake.sampler);
}

static int (*const steps[])(void) = { first_tick, second_tick, finish };
enum { NSTEPS = 3 };

static void put(enum wp_perf_type type, pid_t tid)
{
	struct wp_perf_record record = {
		.type = type,
		.time_ns = fake_now_ns,
		.pid = getpid(),
		.tid = tid,
		.parent_tid = HOLDER,
		.waker_pid = getpid(),
		.waker_tid = HOLDER,
		.period = TICK,
		.regs = fake_stack_regs(&stack),
	};

	record.stack = (const uint8_t *)(uintptr_t)record.regs.v[WP_REG_SP];
	record.stack_len = (size_t)((uintptr_t)stack.room + sizeof(stack.room) -
				    record.regs.v[WP_REG_SP]);
	fake_perf_put(fake_perf_last(), &record);
	fake_now_ns += WP_NS_PER_US;
}

static void put_cpu(void)
{
	put(WP_PERF_SAMPLE_CPU, HOLDER);
	/* One that no list has told. */
	put(WP_PERF_SAMPLE_CPU, 30);
}

static void put_waits(void)
{
	put(WP_PERF_SAMPLE_SWITCH, HOLDER);
	put(WP_PERF_SWITCH_OUT, HOLDER);
	put(WP_PERF_SWITCH_OUT, WAITER);
	put(WP_PERF_WAKE, WAITER);
	put(WP_PERF_SAMPLE_WAKE, WAITER);
	put(WP_PERF_SWITCH_IN, WAITER);
	put(WP_PERF_SWITCH_IN, HOLDER);
}

static void put_starts(void)
{
	put(WP_PERF_FORK, 40);
	put(WP_PERF_SAMPLE_THREAD_START, HOLDER);
	put(WP_PERF_FORK, 41);
	put(WP_PERF_EXIT, 41);
}

/* Do the steps up to NTH, of which that one can allocate N times; how often it did is
 * in *RET_N. */
static int play(size_t nth, long n, long *ret_n)
{
	int rc = 0;

	add_threads();
	start_target();
	for (size_t i = 0; i <= nth && !rc; i++) {
		fake_now_ns += TICK;
		if (i == 1) {
			fake_target_end_thread(&fake, SLEEPER);
			fake_target_add_thread(&fake, SLEEPER + 1, "new");
		}
		if (records)
			records();
		if (i == nth)
			allocations_left = n;
		rc = steps[i]();
	}
	*ret_n = n - allocations_left;
	allocations_left = -1;
	return rc;
}

/* Samples and time of all kinds, and whose they are. */
static uint64_t sum(void)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		const struct wp_sample_set *set = &fake.profile.sets[kind];

		for (uint32_t i = 0; i < set->nsamples; i++) {
			const struct wp_profile_sample *s = &set->samples[i];

			sum += (s->count + s->wall_ns) *
			       (uint64_t)fake.profile.threads[s->key.thread]
				       .tid *
			       (1 + s->key.state) *
			       (1 + fake.profile.stacks[s->key.stack].depth);
		}
	}
	return sum;
}

static void assert_errors(void (*choose)(void))
{
	for (size_t nth = 0; nth < NSTEPS; nth++) {
		bool is_end = nth == NSTEPS - 1;
		uint64_t all;
		long need, n;

		choose();
		assert_int_equal(play(nth, MANY, &need), 0);
		all = sum();
		teardown(NULL);
		setup(NULL);
		for (long i = 0; i < need; i++) {
			int rc;

			choose();
			rc = play(nth, i, &n);
			if (rc != -ENOMEM && !(is_end && !rc && sum() == all))
				fail_msg("allocation %ld of %ld in step %zu", i,
					 need, nth);
			teardown(NULL);
			setup(NULL);
		}
	}
}

static void choose_wall(void)
{
}

static void choose_mutex(void)
{
	options.mutex = true;
}

static void choose_wakes(void)
{
	options.wake = options.block = true;
	options.block_rate.every = 1;
	records = put_waits;
}

static void choose_cpu(void)
{
	options.cpu = true;
	records = put_cpu;
}

static void choose_only_cpu(void)
{
	choose_cpu();
	options.wall = false;
}

static void choose_start_records(void)
{
	options.thread_starts = true;
	records = put_starts;
}

static void choose_copies(void)
{
	options.call_memory = true;
	options.kernel = true;
}

static void choose_starts(void)
{
	options.thread_starts = true;
	fake_perf.open_rc[WP_PERF_AUTO] = -EPERM;
}

static void choose_no_stops(void)
{
	options.stop = WP_STOP_NEVER;
}

static void choose_stops_of_all(void)
{
	options.stop = WP_STOP_ALL;
}

static void a_recording_of_the_wall_clock_says_so(void **state)
{
	(void)state;
	assert_errors(choose_wall);
}

static void one_of_locks_says_so(void **state)
{
	(void)state;
	assert_errors(choose_mutex);
}

static void one_of_waits_and_wakes_says_so(void **state)
{
	(void)state;
	assert_errors(choose_wakes);
}

static void one_of_thread_starts_says_so(void **state)
{
	(void)state;
	assert_errors(choose_starts);
}

static void one_without_stops_says_so(void **state)
{
	(void)state;
	assert_errors(choose_no_stops);
}

static void one_that_stops_all_says_so(void **state)
{
	(void)state;
	assert_errors(choose_stops_of_all);
}

static void one_of_the_cpu_says_so(void **state)
{
	(void)state;
	assert_errors(choose_cpu);
}

static void one_of_the_cpu_alone_says_so(void **state)
{
	(void)state;
	assert_errors(choose_only_cpu);
}

static void one_of_records_of_thread_starts_says_so(void **state)
{
	(void)state;
	assert_errors(choose_start_records);
}

static void one_that_copies_memory_says_so(void **state)
{
	(void)state;
	assert_errors(choose_copies);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#endif

int main(void)
{
#ifdef CAN_FAIL
	const struct CMUnitTest tests[] = {
		TEST(a_recording_of_the_wall_clock_says_so),
		TEST(one_of_locks_says_so),
		TEST(one_of_waits_and_wakes_says_so),
		TEST(one_of_thread_starts_says_so),
		TEST(one_without_stops_says_so),
		TEST(one_that_stops_all_says_so),
		TEST(one_of_the_cpu_says_so),
		TEST(one_of_the_cpu_alone_says_so),
		TEST(one_of_records_of_thread_starts_says_so),
		TEST(one_that_copies_memory_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0;
#endif
}
