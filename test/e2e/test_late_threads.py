# SPDX-License-Identifier: Apache-2.0
"""Threads that start long after the map was read, with deep stacks."""
import collections
import re

import pprof_check
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
                   prog).check((0, 1))
    whole = cut = 0
    for line in run.out.splitlines():
        stack, _, us = line.rpartition(" ")
        if ";spin" in stack:
            whole += int(us) if ";run;spin" in stack else 0
            cut += int(us) if "[truncated" in stack else 0
    # Until the copies are longer, at most a few samples.
    assert whole > 2e6 and cut < 1e6, run.out


# A hundred threads, each of which begins as the one before has ended and computes for
# 20 to 50 ms.
CHAIN = """
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static volatile unsigned long x;
static double cpu_s;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *run(void *arg)
{
	const int *nth = arg;

	pthread_setname_np(pthread_self(), "link");
	while (now(CLOCK_THREAD_CPUTIME_ID) < 0.02 + *nth * 7 % 31 * 0.001)
		x++;
	cpu_s += now(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

int main(void)
{
	double life_s = 0;

	for (int i = 0; i < 100; i++) {
		double begin = now(CLOCK_MONOTONIC);
		pthread_t t;

		pthread_create(&t, NULL, run, &i);
		pthread_join(t, NULL);
		life_s += now(CLOCK_MONOTONIC) - begin;
	}
	fprintf(stderr, "TRUTH %g %g\\n", life_s, cpu_s);
	return 0;
}
"""


def test_threads_that_follow_one_another_have_their_time(build, tmp_path):
    prog = build(tmp_path, "gcc", "-pthread", source=CHAIN, suffix=".c")
    run = wallprof("--", prog, output=tmp_path / "x.pb.gz").check()
    life, cpu = map(float, re.search(r"TRUTH (\S+) (\S+)", run.err).groups())
    ns, names = collections.Counter(), collections.defaultdict(set)
    for s in pprof_check.samples(pprof_check.load(tmp_path / "x.pb.gz")):
        names[s["labels"]["tid"]].add(s["labels"]["thread"])
        for kind in ("wall", "cpu"):
            ns[s["labels"]["thread"], kind] += s["values"][kind]
    assert all(len(n) == 1 for n in names.values()), names
    # Whoever begins and ends while ticks are missed is not looked at.
    missed = run.counter("missed")
    missed /= missed + int(re.search(r"ticks: (\d+)", run.err)[1])
    assert missed < 0.3, run.err
    assert abs(ns["link", "wall"] / 1e9 - life) < (0.05 + missed) * life, (ns, life, run.err)
    assert abs(ns["link", "cpu"] / 1e9 - cpu) < (0.08 + missed) * cpu, (ns, cpu, run.err)
