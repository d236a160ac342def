# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for words of their own, as libraries do that are not here."""
import pytest

from conftest import wait_until, wallprof
from test_hang_pipes import is_blocked

SOURCE = r"""
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile uint32_t word;

static void futex_wait(uint32_t value, int op)
{
	for (;;)
		syscall(SYS_futex, &word, op, value, NULL, NULL, ~0u);
}

/* As glibc 2.41 does for a condvar of several processes: its word counts signals, and
 * here it is what may be a tid. */
__attribute__((noinline)) void __pthread_cond_wait_common(void)
{
	word = 4242;
	futex_wait(word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME);
}

static int sleep_for_long(void *arg)
{
	struct timespec hour = { 3600, 0 };

	(void)arg;
	return (int)syscall(SYS_nanosleep, &hour, NULL);
}

/* As Zig's Thread.join does: the kernel clears the thread's tid, and wakes. */
static void join_by_tid(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	if (clone(sleep_for_long, stack + sizeof(stack),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		  CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
		  NULL, &word, NULL, &word) > 0)
		futex_wait(word, FUTEX_WAIT);
}

/* As Rust's thread::park and its channels do. */
static void *park(void *arg)
{
	futex_wait(0, FUTEX_WAIT_BITSET_PRIVATE);
	return arg;
}

/* struct futex_waitv of linux/futex.h, which is younger than its call's number. */
static struct {
	uint64_t value, avma;
	uint32_t flags, reserved;
} words[13];

/* As Wine's do that wait for several objects; the words are not private. */
static void wait_for_several(int n)
{
	for (int i = 0; i < n; i++) {
		words[i].avma = (uintptr_t)&word;
		words[i].flags = 2;
	}
	syscall(449, words, n, 0, NULL, CLOCK_MONOTONIC);
}

static void *wait_for_signals(void *arg)
{
	pause();
	return arg;
}

static void wait_beside(int n)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, wait_for_signals, NULL))
		wait_for_several(n);
}

static void join_parked(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, park, NULL))
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	printf("READY pid=%d\n", (int)getpid());
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "condvar"))
		__pthread_cond_wait_common();
	else if (argc > 1 && !strcmp(argv[1], "tid"))
		join_by_tid();
	else if (argc > 1 && !strcmp(argv[1], "parked"))
		join_parked();
	else if (argc > 2 && !strcmp(argv[1], "several"))
		wait_beside(atoi(argv[2]));
	return 1;
}
"""
FUTEX = 202, 98, 449


@pytest.mark.parametrize("mode, status, words", [
    ("condvar", 0, "1 thread, all idle between the looks: 1 condvar"),
    ("tid", 0, "2 threads, all idle between the looks: 1 join, 1 sleep"),
    ("parked", 4, "none is left to end any wait: 1 join, 1 futex"),
    # FUTEX_LOCK_PI and FUTEX_LOCK_PI2 of futex(2).
    ("several 6", 0, "2 threads, all idle between the looks: 1 futex, 1 signal"),
    ("several 13", 0, "2 threads, all idle between the looks: 1 futex, 1 signal")])
def test_a_word_of_its_own(start, build, tmp_path, mode, status, words):
    target = start(build(tmp_path, "gcc", "-g", "-pthread", source=SOURCE,
                         suffix=".c"), *mode.split())
    wait_until(lambda: is_blocked(target.pid, FUTEX))
    run = wallprof("check", target.pid, "-i", "300ms").check(status)
    assert words in run.out, run.out
    target.assert_unharmed()
