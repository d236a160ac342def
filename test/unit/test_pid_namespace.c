/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  Numbers of threads and children of a process in a PID namespace
 * below this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/dump/pid_namespace.h"
#include "wallprof/clock.h"

/* To the process in the namespace, and from it. */
static int orders[2], answers[2];
static pid_t inner;
static struct wp_snapshot_process process;

/* Say the own number of this thread, and stay. */
static void *stay(void *arg)
{
	pid_t own = gettid();

	if (write(answers[1], &own, sizeof(own)) != sizeof(own))
		_exit(1);
	for (;;)
		pause();
	return arg;
}

/* Begin a thread or child for each byte that comes. */
static void obey(void)
{
	pthread_t thread;
	char order;

	while (read(orders[0], &order, 1) == 1) {
		if (order == 't' && pthread_create(&thread, NULL, stay, NULL))
			_exit(1);
		/* The namespace's first process takes it along. */
		if (order == 'c' && !fork())
			stay(NULL);
	}
	_exit(0);
}

/* Begin a thread ("t") or child ("c"); returns its own number. */
static pid_t begin(const char *order)
{
	pid_t own = 0;

	assert_int_equal(write(orders[1], order, 1), 1);
	assert_int_equal(read(answers[0], &own, sizeof(own)), sizeof(own));
	return own;
}

static int open_inner(void **state)
{
	int own_fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (own_fd < 0 || pipe(orders) || pipe(answers))
		return -1;
	/* Children are in the new namespace, this process is not. */
	if (unshare(CLONE_NEWPID))
		return 0;
	inner = fork();
	if (!inner) {
		close(orders[1]);
		obey();
	}
	/* A sanitizer begins a process at the end, when that namespace is over. */
	if (setns(own_fd, CLONE_NEWPID))
		return -1;
	close(own_fd);
	process.process = (struct wp_process)WP_PROCESS_INIT;
	if (inner < 0 || wp_process_open(&process.process, inner, NULL))
		return -1;
	wp_pid_namespace_find(&process);
	return 0;
}

static int close_inner(void **state)
{
	(void)state;
	if (!inner)
		return 0;
	wp_pid_namespace_clear(&process);
	wp_process_clear(&process.process);
	close(orders[1]);
	return waitpid(inner, NULL, 0) != inner;
}

static void need_namespace(void)
{
	if (!inner)
		skip();
	assert_int_equal(process.level, 1);
}

static void a_thread_that_began_after_the_list_is_found(void **state)
{
	pid_t own, tid;

	(void)state;
	need_namespace();
	assert_int_equal(wp_pid_namespace_thread(&process, 1, 0), inner);
	own = begin("t");
	/* Not at the sample. */
	assert_int_equal(wp_pid_namespace_thread(&process, own, 0), 0);
	tid = wp_pid_namespace_thread(&process, own, wp_clock_ns());
	assert_true(tid > 0);
	assert_int_not_equal(tid, own);
	assert_int_equal(wp_pid_namespace_thread(&process, own, 0), tid);
}

static void what_is_not_there_is_looked_for_a_bounded_time(void **state)
{
	const pid_t none = 4000000;
	uint64_t begin_ns = wp_clock_ns();
	pid_t tid;

	(void)state;
	need_namespace();
	do {
		tid = wp_pid_namespace_thread(&process, none, wp_clock_ns());
		assert_true(tid == 0 || tid == -EAGAIN);
	} while (!tid && wp_clock_ns() - begin_ns < 60 * WP_NS_PER_S);
	assert_int_equal(tid, -EAGAIN);
	/* Whoever is known is found. */
	assert_int_equal(wp_pid_namespace_thread(&process, 1, wp_clock_ns()),
			 inner);
}

static void
children_are_listed_once_until_younger_ones_are_asked_for(void **state)
{
	pid_t first, own, pid;
	uint64_t since_ns;

	(void)state;
	need_namespace();
	first = begin("c");
	since_ns = wp_clock_ns();
	pid = wp_pid_namespace_child(&process, first, since_ns);
	assert_true(pid > 0);
	assert_int_not_equal(pid, first);
	own = begin("c");
	/* Not read again for each that waits. */
	assert_int_equal(wp_pid_namespace_child(&process, own, since_ns), 0);
	assert_true(wp_pid_namespace_child(&process, own, wp_clock_ns()) > 0);
	assert_int_equal(wp_pid_namespace_child(&process, first, 0), pid);
	assert_int_equal(process.children.len, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_began_after_the_list_is_found),
		cmocka_unit_test(
			what_is_not_there_is_looked_for_a_bounded_time),
		cmocka_unit_test(
			children_are_listed_once_until_younger_ones_are_asked_for),
	};

	return cmocka_run_group_tests_name("pid_namespace", tests, open_inner,
					   close_inner);
}
