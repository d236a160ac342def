/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  What the scheduler says of threads of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/dump/thread_times.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"
#include "wallprof/snapshot.h"

static sem_t begun, never;
static pid_t waiter_tid;

static void *wait_for_ever(void *arg)
{
	/* It has slept before. */
	for (int i = 0; i < 4; i++)
		usleep(1);
	waiter_tid = gettid();
	sem_post(&begun);
	while (sem_wait(&never))
		;
	return arg;
}

static struct wp_process self = WP_PROCESS_INIT;
static struct wp_sched_clock cpus = WP_SCHED_CLOCK_INIT;

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
	wp_sched_clock_clear(&cpus);
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
	assert_int_not_equal(t->slices, UINT64_MAX);
	t = wp_thread_times_find(&times, getpid());
	assert_non_null(t);
	assert_int_not_equal(t->run_ns, 0);
	assert_null(wp_thread_times_find(&times, 1));
	wp_thread_times_clear(&times);
	assert_null(wp_thread_times_find(&times, getpid()));
}

/* Of thread TID, which was looked at as LOOK says, and sampled with schedstat TIMES
 * a second after its wait began. */
static struct wp_dump_times set_times(pid_t tid, struct wp_thread_look look,
				      struct wp_schedstat times)
{
	const struct wp_call_memory memory = { .time_ns = wp_clock_ns() };
	const struct wp_thread_view view = {
		.tid = tid,
		.look = look,
		.times = times,
		.schedstat_fd = -1,
		.syscall_fd = -1,
		.memory = &memory,
	};
	struct wp_dump_thread t = {
		.tid = tid,
		.state = WP_STATE_STOPPED,
		.times = { .cpu = -1, .waited_ns = UINT64_MAX },
	};

	wp_thread_times_set(&t, &view, &self, &cpus);
	return t.times;
}

/* A look at the waiter, whose wait began a second ago. */
static struct wp_thread_look look_at_waiter(void)
{
	const struct wp_sched_cpu *cpu = wp_sched_clock_find(&cpus, 0);
	struct wp_thread_look look = { .times = { 7, 0, 3 } };

	if (cpu && cpu->known)
		look.exec_start_ns = wp_clock_ns() - cpu->offset_ns -
				     WP_NS_PER_S;
	return look;
}

static void a_wait_began_when_the_thread_last_ran(void **state)
{
	struct wp_thread_look look = look_at_waiter();
	struct wp_dump_times t = set_times(waiter_tid, look, look.times);

	(void)state;
	assert_int_equal(t.run_ns, 7);
	assert_int_equal(t.slices, 3);
	assert_int_equal(t.cpu, 0);
	assert_int_not_equal(t.slices_after, UINT64_MAX);
	if (!look.exec_start_ns)
		return;
	assert_in_range(t.waited_ns, 999 * WP_NS_PER_MS, 2 * WP_NS_PER_S);
	/* It was stopped after its look. */
	t = set_times(waiter_tid, look,
		      (struct wp_schedstat){ UINT64_MAX, 0, 3 });
	assert_true(t.was_stopped);
	assert_int_equal(t.slices, 3);
	assert_in_range(t.waited_ns, 999 * WP_NS_PER_MS, 2 * WP_NS_PER_S);
}

static void a_thread_that_ran_before_its_sample_has_no_wait(void **state)
{
	static const struct wp_schedstat later[] = { { 8, 0, 3 },
						     { 7, 0, 4 },
						     { UINT64_MAX, 0, 4 } };
	struct wp_thread_look look = look_at_waiter();

	(void)state;
	for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++) {
		struct wp_dump_times t = set_times(waiter_tid, look, later[i]);

		assert_int_equal(t.run_ns, 7);
		assert_int_equal(t.slices, UINT64_MAX);
		assert_int_equal(t.waited_ns, UINT64_MAX);
	}
}

static void a_cpu_that_no_look_found_is_read(void **state)
{
	struct wp_thread_look look = { .times = { 7, 0, 3 }, .cpu = -1 };

	(void)state;
	assert_in_range(set_times(waiter_tid, look, look.times).cpu, 0,
			1 << 16);
}

static void a_thread_that_is_not_there_has_no_times(void **state)
{
	const struct wp_thread_look none = { .times = { .slices = UINT64_MAX },
					     .cpu = -1 };
	/* No thread of this process. */
	struct wp_dump_times t = set_times(1, none, none.times);

	(void)state;
	assert_int_equal(t.slices, UINT64_MAX);
	assert_int_equal(t.slices_after, UINT64_MAX);
	assert_int_equal(t.cpu, -1);
	assert_int_equal(t.waited_ns, UINT64_MAX);
}

static void times_are_read_by_what_is_kept_open(void **state)
{
	struct wp_thread_view view = { .tid = 1, .syscall_fd = -1 };
	struct wp_sched_clock none = WP_SCHED_CLOCK_INIT;
	struct wp_dump_thread t = { .tid = 1, .state = WP_STATE_RUNNING };
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat",
		 waiter_tid);
	view.schedstat_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(view.schedstat_fd >= 0);
	wp_thread_times_set(&t, &view, &self, &none);
	assert_int_equal(t.times.slices_after,
			 wp_thread_times_slices(&self, waiter_tid));
	close(view.schedstat_fd);
}

static uint64_t sleeps_of_waiter(void)
{
	char text[4096];
	uint64_t sleeps = 0;
	ssize_t n = wp_thread_times_file(&self, waiter_tid, "status", text,
					 sizeof(text));

	assert_true(n > 0);
	assert_int_equal(wp_proc_status_parse(&sleeps, text, (size_t)n,
					      "voluntary_ctxt_switches", 10),
			 0);
	return sleeps;
}

/* The waiter, asleep in its call. */
static void find_waiter(struct wp_dump_thread *ret)
{
	struct wp_proc_syscall call = { .running = true };
	char text[256];

	*ret = WP_DUMP_THREAD_INIT;
	ret->tid = waiter_tid;
	while (call.running) {
		ssize_t n = wp_thread_times_file(&self, waiter_tid, "syscall",
						 text, sizeof(text));

		assert_true(n > 0);
		assert_int_equal(wp_proc_syscall_parse(&call, text, (size_t)n),
				 0);
	}
	ret->call.nr = call.nr;
	memcpy(ret->call.args, call.args, sizeof(ret->call.args));
	ret->times.slices_at = wp_thread_times_slices(&self, waiter_tid);
	ret->times.sleeps_at = UINT64_MAX;
}

static void a_wait_goes_on_while_the_thread_sleeps(void **state)
{
	const struct wp_thread_view view = { .schedstat_fd = -1,
					     .syscall_fd = -1 };
	struct wp_dump_thread t;

	(void)state;
	find_waiter(&t);
	assert_true(wp_thread_times_same_wait(&t, &view, &self));
	t.call.args[0]++;
	assert_false(wp_thread_times_same_wait(&t, &view, &self));
	t.call.args[0]--;
	t.times.slices_at--;
	assert_false(wp_thread_times_same_wait(&t, &view, &self));
	t.times.was_stopped = true;
	assert_true(wp_thread_times_same_wait(&t, &view, &self));
}

/* This thread runs, and has since it was put on its CPU. */
static void what_was_woken_waits_no_longer(void **state)
{
	struct wp_snapshot_process process = { .process = self };
	struct wp_snapshot_process *processes[] = { &process };
	struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT,
					.processes = processes };
	const pid_t tids[] = { gettid(), waiter_tid };

	(void)state;
	assert_non_null(wp_dump_add_process(&snapshot.dump));
	for (uint32_t i = 0; i < 2; i++) {
		struct wp_dump_thread *t = wp_dump_add_thread(&snapshot.dump);
		struct wp_edge *e = wp_dump_add_edge(&snapshot.dump);

		assert_true(t && e);
		t->tid = tids[i];
		t->state = WP_STATE_WAITING;
		t->times.slices_after = wp_thread_times_slices(&self, tids[i]);
		e->from = i;
	}
	wp_snapshot_finish(&snapshot);
	assert_true(snapshot.dump.threads[0].open_ended);
	assert_false(snapshot.dump.threads[1].open_ended);
	wp_dump_clear(&snapshot.dump);
}

static void edges_are_not_sought_for_each_thread(void **state)
{
	enum { EDGES = 1 << 16, THREADS = 200000 };
	struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT };
	uint64_t began_ns = wp_clock_cpu_ns();

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		struct wp_dump_thread *t = wp_dump_add_thread(&snapshot.dump);

		assert_non_null(t);
		if (i)
			t->state = WP_STATE_WAITING;
	}
	for (int i = 0; i < EDGES; i++)
		assert_non_null(wp_dump_add_edge(&snapshot.dump));
	wp_snapshot_finish(&snapshot);
	assert_true(wp_clock_cpu_ns() - began_ns < 2 * WP_NS_PER_S);
	wp_dump_clear(&snapshot.dump);
}

static void a_stop_in_which_another_took_the_cpu_ends_no_wait(void **state)
{
	const struct wp_thread_view view = { .schedstat_fd = -1,
					     .syscall_fd = -1 };
	struct wp_dump_thread t;

	(void)state;
	find_waiter(&t);
	/* Put on a CPU to stop, again after another, and to go back. */
	t.times.slices_at -= 3;
	t.times.was_stopped = true;
	assert_false(wp_thread_times_same_wait(&t, &view, &self));
	t.times.sleeps_at = sleeps_of_waiter() - 2;
	assert_true(wp_thread_times_same_wait(&t, &view, &self));
	/* It slept once more. */
	t.times.sleeps_at--;
	assert_false(wp_thread_times_same_wait(&t, &view, &self));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_has_its_times),
		cmocka_unit_test(a_wait_began_when_the_thread_last_ran),
		cmocka_unit_test(
			a_thread_that_ran_before_its_sample_has_no_wait),
		cmocka_unit_test(a_wait_goes_on_while_the_thread_sleeps),
		cmocka_unit_test(what_was_woken_waits_no_longer),
		cmocka_unit_test(edges_are_not_sought_for_each_thread),
		cmocka_unit_test(
			a_stop_in_which_another_took_the_cpu_ends_no_wait),
		cmocka_unit_test(a_cpu_that_no_look_found_is_read),
		cmocka_unit_test(a_thread_that_is_not_there_has_no_times),
		cmocka_unit_test(times_are_read_by_what_is_kept_open),
	};

	return cmocka_run_group_tests_name("thread_times", tests, start_waiter,
					   close_self);
}
