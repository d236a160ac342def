/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  A process that does not come back from the kernel, and what held it up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/cmd/stuck.h"
#include "wallprof/procfs.h"

static pid_t child;

static void on_signal(int sig)
{
	(void)sig;
}

/* A child that runs WAIT(ARG), and then ends. */
static void begin(void (*wait)(const char *arg), const char *arg)
{
	child = fork();
	assert_true(child >= 0);
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wait(arg);
	_exit(0);
}

static int end(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void wait_until_asleep(void)
{
	struct wp_proc_stat stat = { .state_char = '?' };

	while (stat.state_char != 'S') {
		assert_int_equal(wp_proc_stat_read(&stat, child), 0);
		poll(NULL, 0, 1);
	}
}

static void pause_always(const char *arg)
{
	(void)arg;
	signal(SIGUSR1, on_signal);
	for (;;)
		pause();
}

static void looks_that_it_sleeps_through_are_counted(void **state)
{
	struct wp_stuck stuck = WP_STUCK_INIT;
	uint64_t slices;

	(void)state;
	begin(pause_always, NULL);
	wait_until_asleep();
	/* It may be about to sleep. */
	do {
		slices = stuck.slices;
		wp_stuck_look(&stuck, child);
		poll(NULL, 0, 1);
	} while (stuck.slices != slices);
	assert_int_equal(stuck.state_char, 'S');
	assert_false(wp_stuck_is_in_kernels_work(&stuck, child));
	for (unsigned int n = stuck.nstill + 1; n < 5; n++) {
		wp_stuck_look(&stuck, child);
		assert_int_equal(stuck.nstill, n);
	}
	kill(child, SIGUSR1);
	slices = stuck.slices;
	do {
		poll(NULL, 0, 1);
		wp_stuck_look(&stuck, child);
	} while (stuck.slices == slices);
	assert_int_equal(stuck.nstill, 0);
}

static void who_cannot_be_seen_changes_nothing(void **state)
{
	struct wp_stuck stuck = { 3, 7, 'D' };

	(void)state;
	begin(pause_always, NULL);
	wp_stuck_look(&stuck, INT32_MAX);
	assert_int_equal(stuck.nstill, 3);
	assert_int_equal(wp_stuck_find_target(INT32_MAX), 0);
}

/* A fifo below the parent's root. */
static void open_below_parent(const char *path)
{
	char dir[32];

	snprintf(dir, sizeof(dir), "/proc/%d", getppid());
	(void)!openat(open(dir, O_RDONLY | O_DIRECTORY), path, O_RDONLY);
}

static void its_call_tells_whose_file_holds_it_up(void **state)
{
	char dir[] = "/tmp/test_stuckXXXXXX", path[64], text[WP_STUCK_TEXT],
	     want[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "root%s/fifo", dir);
	assert_int_equal(mkfifo(path + strlen("root"), 0600), 0);
	begin(open_below_parent, path);
	wait_until_asleep();
	while (wp_stuck_find_target(child) != getpid())
		poll(NULL, 0, 1);
	wp_stuck_describe(child, text);
	snprintf(want, sizeof(want), "file or memory of process %d cannot",
		 getpid());
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, "its file server does not answer"));
	unlink(path + strlen("root"));
	rmdir(dir);
}

static void other_calls_tell_nothing(void **state)
{
	char text[WP_STUCK_TEXT];

	(void)state;
	begin(pause_always, NULL);
	wait_until_asleep();
	assert_int_equal(wp_stuck_find_target(child), 0);
	wp_stuck_describe(child, text);
	assert_non_null(strstr(text, "of what is looked at cannot be had"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, end)
	const struct CMUnitTest tests[] = {
		TEST(looks_that_it_sleeps_through_are_counted),
		TEST(who_cannot_be_seen_changes_nothing),
		TEST(its_call_tells_whose_file_holds_it_up),
		TEST(other_calls_tell_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
