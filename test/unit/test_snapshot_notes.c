/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  What is noted of a thread after its sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/dump/snapshot_priv.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"

/* A child that answers each byte of DOWN by one of UP. */
static int down[2], up[2];
static pid_t child;

static void answer(void)
{
	char byte;

	while (read(down[0], &byte, 1) == 1 && write(up[1], &byte, 1) == 1)
		;
	_exit(0);
}

static int start_child(void **state)
{
	(void)state;
	if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child) {
		close(down[1]);
		answer();
	}
	return child < 0 ? -1 : 0;
}

static int end_child(void **state)
{
	(void)state;
	close(down[1]);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void await_wait(const struct wp_process *process)
{
	struct wp_proc_syscall call = { .running = true };

	while (call.running || call.nr != SYS_read) {
		char text[256];
		ssize_t n = wp_io_read_at(process->proc_fd, "syscall", text,
					  sizeof(text));

		assert_true(n > 0);
		assert_int_equal(wp_proc_syscall_parse(&call, text, (size_t)n),
				 0);
	}
}

static void ask_child(void)
{
	char byte = 0;

	assert_int_equal(write(down[1], &byte, 1), 1);
	assert_int_equal(read(up[0], &byte, 1), 1);
}

/* Is the wait of the child, which WAKES between its sample and its notes, or not, one
 * that may have ended? */
static bool is_open_ended(bool wakes)
{
	const struct wp_sampler_options options = {
		.wall = true,
		.wall_kind = WP_PROFILE_THREADS,
		.interval_ns = 10 * WP_NS_PER_MS,
		.stop = WP_STOP_NEVER,
		.max_depth = 16,
		.call_memory = true,
	};
	struct wp_snapshot_sample sample = { .tracer = WP_TRACER_INIT };
	struct wp_snapshot_process of = { .process = WP_PROCESS_INIT };
	struct wp_sched_clock clock = WP_SCHED_CLOCK_INIT;
	const struct wp_dump_thread *t;
	bool result;

	assert_int_equal(wp_process_open(&of.process, child, NULL), 0);
	wp_fdinfo_init(&of.fdinfo, of.process.proc_fd);
	await_wait(&of.process);
	assert_int_equal(wp_profile_init(&sample.profile), 0);
	wp_tracer_init(&sample.tracer);
	assert_int_equal(
		wp_sampler_new(&sample.sampler, &options, &sample.tracer, NULL),
		0);
	assert_int_equal(wp_sampler_add_target(sample.sampler, &of.process,
					       &sample.profile, &sample.target,
					       NULL),
			 0);
	assert_int_equal(wp_sampler_sample_once(sample.sampler), 0);
	if (wakes)
		ask_child();
	assert_int_equal(wp_snapshot_note_threads(&sample, &of, &clock), 0);
	assert_int_equal(sample.profile.nthreads, 1);
	t = &sample.notes[0].thread;
	assert_int_equal(t->state, WP_STATE_WAITING);
	result = t->open_ended;
	wp_sampler_free(sample.sampler);
	wp_tracer_clear(&sample.tracer);
	free(sample.notes);
	wp_profile_clear(&sample.profile);
	wp_sched_clock_clear(&clock);
	wp_fdinfo_clear(&of.fdinfo);
	wp_process_clear(&of.process);
	return result;
}

/* It may have got what it waited for, and wait for the next. */
static void a_wait_that_ended_after_its_sample_is_open_ended(void **state)
{
	(void)state;
	assert_false(is_open_ended(false));
	assert_true(is_open_ended(true));
	assert_false(is_open_ended(false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_wait_that_ended_after_its_sample_is_open_ended),
	};

	return cmocka_run_group_tests_name("snapshot_notes", tests, start_child,
					   end_child);
}
