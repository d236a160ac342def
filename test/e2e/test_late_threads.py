# SPDX-License-Identifier: Apache-2.0
"""Threads that start long after the map was read, with deep stacks."""
from conftest import wallprof

# Eight threads start after a second; each computes for half a second of CPU time,
# 16 KiB deep.
SOURCE = """
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long x;

__attribute__((noinline)) static void spin(void)
{
	struct timespec t;

	do {
		for (int i = 0; i < 100000; i++)
			x += i * x;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_nsec < 500000000 && !t.tv_sec);
}

static void *run(void *arg)
{
	volatile char room[16384];

	(void)arg;
	memset((char *)room, 1, sizeof(room));
	spin();
	x += room[x % sizeof(room)];
	return NULL;
}

int main(void)
{
	pthread_t threads[8];

	sleep(1);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


def test_stacks_of_threads_that_start_late_are_whole(build, tmp_path):
    prog = build(tmp_path, "gcc", "-pthread", source=SOURCE, suffix=".c")
    run = wallprof("--stop=never", "--profile", "cpu", "-f", "folded", "--",
                   prog).check()
    whole = cut = 0
    for line in run.out.splitlines():
        stack, _, us = line.rpartition(" ")
        if ";spin" in stack:
            whole += int(us) if ";run;spin" in stack else 0
            cut += int(us) if "[truncated" in stack else 0
    # Until the copies are longer, at most a few samples.
    assert whole > 2e6 and cut < 1e6, run.out
