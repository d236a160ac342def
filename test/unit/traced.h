/* SPDX-License-Identifier: Apache-2.0 */
/* traced.h - processes to be stopped, and the tracer that stops them.
 *
 * Included by tests only, so it has code.
 */
#ifndef WP_TRACED_H
#define WP_TRACED_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/tracer.h"

#define MS WP_NS_PER_MS
#define SOON_NS (60 * WP_NS_PER_S)

enum { COOKIE = 7, OTHER = 8 };

/* Shared with the processes. */
static struct shared {
	volatile unsigned int rounds;
	volatile unsigned int handled;
	volatile int go;
	volatile pid_t tid;
} * shared;
static struct wp_tracer tracer;
static pid_t children[4];
static size_t nchildren;

static int setup(void **state)
{
	const struct timespec none = { 0 };
	sigset_t set;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	nchildren = 0;
	wp_tracer_init(&tracer);
	/* Of children of the test before. */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (sigtimedwait(&set, NULL, &none) > 0)
		;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < nchildren; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, __WALL);
	}
	wp_tracer_clear(&tracer);
	munmap(shared, sizeof(*shared));
	return 0;
}

/* A process that runs MAIN. */
static pid_t start(void (*main)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		main();
		_exit(0);
	}
	children[nchildren++] = pid;
	return pid;
}

/* The character after "State:", or the number after WORD, of TID's status. */
static long status_of(pid_t tid, const char *word)
{
	char path[64], line[256];
	long ret = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strlen(word)))
			ret = *word == 'S' ? line[strlen(word) + 1] :
					     atol(line + strlen(word));
	if (f)
		fclose(f);
	return ret;
}

static void wait_for_state(pid_t tid, char state)
{
	while (status_of(tid, "State:") != state)
		usleep(1000);
}

static void interrupt(pid_t tid)
{
	assert_int_equal(wp_tracer_interrupt(&tracer, tid, COOKIE), 0);
}

/* TID, which stops soon. */
static struct wp_tracee *stop(pid_t tid)
{
	struct wp_tracee *tracee;

	interrupt(tid);
	tracee = wp_tracer_wait(&tracer, wp_clock_ns() + SOON_NS);
	assert_non_null(tracee);
	assert_int_equal(tracee->tid, tid);
	assert_true(tracee->stopped);
	return tracee;
}

static void assert_free(pid_t tid)
{
	/* On aarch64 it may have to make its call first. */
	if (tracer.len)
		assert_true(tracer.v[0].unwanted);
	while (tracer.len)
		assert_null(wp_tracer_sleep(&tracer, wp_clock_ns() + MS));
	assert_int_equal(tracer.len, 0);
	assert_null(wp_tracer_find(&tracer, COOKIE));
	assert_int_equal(status_of(tid, "TracerPid:"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
