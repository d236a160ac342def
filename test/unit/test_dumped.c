/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  dumped.h: threads of peers that wait since a time that is not known.  The
 * peer is this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/cmd/dumped.h"
#include "wallprof/procfs.h"

static struct {
	sem_t go_on;
	pthread_t thread;
	_Atomic pid_t tid;
	struct wp_dump_thread threads[2];
	struct wp_dump_process processes[2];
	struct wp_snapshot_process peer;
	struct wp_snapshot_process *both[2];
	struct wp_snapshot snapshot;
} it;

static void *wait_twice(void *arg)
{
	(void)arg;
	it.tid = gettid();
	for (int i = 0; i < 2; i++)
		while (sem_wait(&it.go_on))
			;
	return NULL;
}

/* The thread's timeslices, when it waits and has had more than THAN. */
static uint64_t slices_after(uint64_t than)
{
	struct wp_thread_times times = WP_THREAD_TIMES_INIT;
	uint64_t slices = 0;
	bool waits = false;
	char path[64], text[256];

	while (!waits || slices <= than) {
		const struct wp_thread_time *time;
		ssize_t n;

		wp_thread_times_clear(&times);
		usleep(1000);
		if (!it.tid)
			continue;
		assert_int_equal(wp_thread_times_read(&times, &it.peer.process),
				 0);
		time = wp_thread_times_find(&times, it.tid);
		assert_non_null(time);
		slices = time->slices;
		snprintf(path, sizeof(path), "%d/wchan", it.tid);
		n = wp_io_read_at(it.peer.process.task_fd, path, text,
				  sizeof(text));
		waits = n > 0 && strncmp(text, "0", (size_t)n);
	}
	wp_thread_times_clear(&times);
	return slices;
}

static int start_thread(void **state)
{
	(void)state;
	memset(&it, 0, sizeof(it));
	sem_init(&it.go_on, 0, 0);
	it.peer.process = (struct wp_process)WP_PROCESS_INIT;
	if (wp_process_open(&it.peer.process, getpid(), NULL) ||
	    pthread_create(&it.thread, NULL, wait_twice, NULL))
		return -1;
	it.both[1] = &it.peer;
	it.processes[0] = (struct wp_dump_process){ .nthreads = 1 };
	it.processes[1] = (struct wp_dump_process){ .first_thread = 1,
						    .nthreads = 1,
						    .is_peer = true };
	it.threads[0].times.waited_ns = UINT64_MAX;
	it.threads[0].state = WP_STATE_WAITING;
	it.threads[1] = it.threads[0];
	it.threads[1].process = 1;
	it.threads[1].times.slices_after = slices_after(0);
	it.threads[1].tid = it.tid;
	it.snapshot.processes = it.both;
	it.snapshot.dump.processes = it.processes;
	it.snapshot.dump.nprocesses = 2;
	it.snapshot.dump.threads = it.threads;
	it.snapshot.dump.nthreads = 2;
	return 0;
}

static int end_thread(void **state)
{
	(void)state;
	sem_post(&it.go_on);
	sem_post(&it.go_on);
	pthread_join(it.thread, NULL);
	wp_process_clear(&it.peer.process);
	return 0;
}

static void one_that_has_not_run_is_still(void **state)
{
	struct wp_dump_times *times = &it.threads[1].times;

	(void)state;
	assert_true(wp_dumped_wants_look(&it.snapshot));
	wp_dumped_look_again(&it.snapshot);
	assert_true(times->still);
	/* No peer has had its looks. */
	assert_false(it.threads[0].times.still);

	sem_post(&it.go_on);
	slices_after(times->slices_after);
	wp_dumped_look_again(&it.snapshot);
	assert_false(times->still);
}

static void one_that_has_ended_is_not(void **state)
{
	(void)state;
	it.threads[1].times.still = true;
	it.threads[1].tid = 1 << 30;
	wp_dumped_look_again(&it.snapshot);
	assert_false(it.threads[1].times.still);
}

static void what_is_known_is_left(void **state)
{
	struct wp_dump_thread *t = &it.threads[1];
	const struct wp_dump_thread unknown = *t;

	(void)state;
	t->times.waited_ns = 5;
	assert_false(wp_dumped_wants_look(&it.snapshot));
	wp_dumped_look_again(&it.snapshot);
	assert_false(t->times.still);
	*t = unknown;
	t->times.slices_after = UINT64_MAX;
	assert_false(wp_dumped_wants_look(&it.snapshot));
	*t = unknown;
	t->state = WP_STATE_RUNNING;
	assert_false(wp_dumped_wants_look(&it.snapshot));
	*t = unknown;
	it.processes[1].is_peer = false;
	assert_false(wp_dumped_wants_look(&it.snapshot));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_has_not_run_is_still,
						start_thread, end_thread),
		cmocka_unit_test_setup_teardown(one_that_has_ended_is_not,
						start_thread, end_thread),
		cmocka_unit_test_setup_teardown(what_is_known_is_left,
						start_thread, end_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
