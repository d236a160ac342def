/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  What the scheduler says of threads of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "../../src/dump/thread_times.h"

static sem_t begun, never;
static pid_t waiter_tid;

static void *wait_for_ever(void *arg)
{
	waiter_tid = gettid();
	sem_post(&begun);
	while (sem_wait(&never))
		;
	return arg;
}

static struct wp_process self = WP_PROCESS_INIT;

static int start_waiter(void **state)
{
	pthread_t thread;

	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&never, 0, 0);
	if (pthread_create(&thread, NULL, wait_for_ever, NULL))
		return -1;
	pthread_detach(thread);
	while (sem_wait(&begun))
		;
	return wp_process_open(&self, getpid(), NULL);
}

static int close_self(void **state)
{
	(void)state;
	wp_process_clear(&self);
	return 0;
}

static void every_thread_has_its_times(void **state)
{
	struct wp_thread_times times = WP_THREAD_TIMES_INIT;
	const struct wp_thread_time *t;

	(void)state;
	assert_int_equal(wp_thread_times_read(&times, &self), 0);
	assert_int_equal(times.len, 2);
	t = wp_thread_times_find(&times, waiter_tid);
	assert_non_null(t);
	assert_int_equal(t->tid, waiter_tid);
	assert_in_range(t->cpu, 0, 1 << 16);
	assert_int_not_equal(t->slices, UINT64_MAX);
	t = wp_thread_times_find(&times, getpid());
	assert_non_null(t);
	assert_int_not_equal(t->run_ns, 0);
	assert_null(wp_thread_times_find(&times, 1));
	wp_thread_times_clear(&times);
	assert_null(wp_thread_times_find(&times, getpid()));
}

/* Of a thread that was sampled with SLICES, as its times were read before. */
static struct wp_dump_times set_times(const struct wp_thread_times *times,
				      pid_t tid, uint64_t run_ns,
				      uint64_t slices)
{
	const struct wp_thread_view view = {
		.tid = tid,
		.times = { .run_ns = run_ns, .slices = slices },
	};
	struct wp_sched_clock clock = WP_SCHED_CLOCK_INIT;
	struct wp_dump_thread t = {
		.tid = tid,
		.state = WP_STATE_STOPPED,
		.times = { .cpu = -1, .waited_ns = UINT64_MAX },
	};

	wp_thread_times_set(&t, times, &view, &self, &clock);
	wp_sched_clock_clear(&clock);
	return t.times;
}

static void a_thread_that_ran_before_its_sample_has_no_wait(void **state)
{
	struct wp_thread_times times = WP_THREAD_TIMES_INIT;
	const struct wp_thread_time *before;
	struct wp_dump_times t;

	(void)state;
	assert_int_equal(wp_thread_times_read(&times, &self), 0);
	before = wp_thread_times_find(&times, waiter_tid);
	assert_non_null(before);
	t = set_times(&times, waiter_tid, before->run_ns, before->slices);
	assert_int_equal(t.slices, before->slices);
	assert_int_equal(t.run_ns, before->run_ns);
	assert_int_equal(t.cpu, before->cpu);
	/* It was on a CPU, and has slept since. */
	t = set_times(&times, waiter_tid, before->run_ns + 1, before->slices);
	assert_int_equal(t.slices, UINT64_MAX);
	assert_int_equal(t.waited_ns, UINT64_MAX);
	t = set_times(&times, waiter_tid, before->run_ns, before->slices + 1);
	assert_int_equal(t.slices, UINT64_MAX);
	assert_int_equal(t.waited_ns, UINT64_MAX);
	wp_thread_times_clear(&times);
}

static void a_thread_that_is_not_there_has_no_times(void **state)
{
	const struct wp_thread_times none = WP_THREAD_TIMES_INIT;
	/* No thread of this process. */
	struct wp_dump_times t = set_times(&none, 1, 5, 5);

	(void)state;
	assert_int_equal(t.slices, UINT64_MAX);
	assert_int_equal(t.slices_after, UINT64_MAX);
	assert_int_equal(t.cpu, -1);
	assert_int_equal(t.waited_ns, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_has_its_times),
		cmocka_unit_test(
			a_thread_that_ran_before_its_sample_has_no_wait),
		cmocka_unit_test(a_thread_that_is_not_there_has_no_times),
	};

	return cmocka_run_group_tests_name("thread_times", tests, start_waiter,
					   close_self);
}
