# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for work are idle; those that wait in the midst of it are not.

The truth is the names of the program's threads."""
import re
import subprocess

import pytest

import pprof_check

from conftest import status_of, tids_of, wait_until, wallprof

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static volatile int on = 1;
#define APART __attribute__((noinline, noclone))

APART void wait_for_work(void)
{
	pthread_mutex_lock(&lock);
	while (on)
		pthread_cond_wait(&work, &lock);
	pthread_mutex_unlock(&lock);
}

APART void *idle_pool(void *arg)
{
	while (on)
		wait_for_work();
	return arg;
}

APART void receive(void) { wait_for_work(); on++; }
APART void query(void) { receive(); on++; }
APART void load_user(void) { query(); on++; }
APART void log_in(void) { load_user(); on++; }

APART void *busy_request(void *arg)
{
	while (on)
		log_in();
	return arg;
}

APART void *busy_lock(void *arg)
{
	while (on)
		pthread_mutex_lock(&held);
	return arg;
}

APART void *busy_spin(void *arg)
{
	for (volatile unsigned long n = 0; on;)
		n++;
	return arg;
}

static void start(const char *name, void *(*run)(void *), int n)
{
	pthread_t t;

	while (n-- > 0) {
		pthread_create(&t, NULL, run, NULL);
		pthread_setname_np(t, name);
	}
}

int main(void)
{
	pthread_setname_np(pthread_self(), "idle-main");
	pthread_mutex_lock(&held);
	start("idle-pool", idle_pool, 17);
	start("busy-request", busy_request, 1);
	start("busy-lock", busy_lock, 1);
	start("busy-spin", busy_spin, 1);
	printf("READY pid=%d\n", (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
}
"""


@pytest.fixture
def pool(start, tmp_path):
    program = tmp_path / "pool"
    subprocess.run(["cc", "-g", "-O1", "-pthread", "-x", "c", "-o", program,
                    "-"], input=PROGRAM.encode(), check=True)
    target = start(program)
    # But for busy-spin, all are in their waits.
    wait_until(lambda: sum(
        status_of(target.pid, tid)["State"][0] == "S" for tid in tids_of(target.pid)) == 20)
    return target


def test_who_waits_for_work_is_idle(pool, tmp_path):
    target = pool
    run = wallprof("-p", target.pid, "-d", 1, "--report",
                   output=tmp_path / "x.pb.gz").check()
    target.assert_unharmed()
    samples = pprof_check.samples(pprof_check.load(str(tmp_path / "x.pb.gz")))
    idle = {(s["labels"]["thread"], s["labels"].get("idle")) for s in samples}
    assert idle == {("idle-main", "true"), ("idle-pool", "true"),
                    ("busy-request", None), ("busy-lock", None),
                    ("busy-spin", None)}
    assert "Idle: 18 of 21 threads, " in run.out, run.out
    # Three are left, of whom one waits for a lock.
    lock = re.search(r"([\d.]+) %    lock", run.out)
    assert abs(float(lock.group(1)) - 100 / 3) < 1, run.out
    assert "idle-pool" not in run.out
    full = wallprof("-p", target.pid, "-d", "0.3", "--full").check()
    assert "Idle:" not in full.out and "idle-pool" in full.out


def test_who_waits_for_work_waits_for_no_lock(pool, tmp_path):
    """All wait in futex(2); the names of functions tell, once all is recorded."""
    run = wallprof("-p", pool.pid, "-d", 1, "--profile", "mutex", "--report",
                   output=tmp_path / "x.pb.gz").check()
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    delay = sum(s["values"]["delay"] for s in pprof_check.samples(p)) / 1e9
    assert 0.8 < delay / (p.duration_nanos / 1e9) < 1.2, delay
    threads, waits, said, unit = re.search(
        r"^(\d+) threads?, (\d+) waits, ([\d.]+) (m?s) of delay$", run.out,
        re.M).groups()
    assert (threads, waits) == ("1", "1"), run.out
    assert abs(float(said) / (1000 if unit == "ms" else 1) - delay) < 0.01
    assert re.search(r"s +100\.0 % .* pause ", run.out), run.out


def test_an_idle_thread_that_holds_a_lock_is_told(pool, tmp_path):
    """Main sleeps with the lock: idle by its own time, and what to look for."""
    run = wallprof("-p", pool.pid, "-d", 1, "--profile", "wall,mutex",
                   "--report", output=tmp_path / "x.pb.gz").check()
    assert "Idle: 18 of 21 threads, " in run.out, run.out
    assert run.out.count("Idle: ") == 1, run.out
    assert "Call tree of idle-main" in run.out, run.out
    assert "mutex: 1 thread, 1 waits, " in run.err, run.err
    samples = pprof_check.samples(
        pprof_check.load(str(tmp_path / "x.mutex.pb.gz")))
    assert [(s["labels"]["thread"], s["labels"].get("idle"))
            for s in samples] == [("idle-main", None)]
