# SPDX-License-Identifier: Apache-2.0
"""Locks and condition variables that are variables have their names in a dump, as
gdb has them."""
import json
import re
import shutil
import subprocess

import pytest

from conftest import wallprof

SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pthread_cond_t queue_not_empty;
static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;
struct {
	long n;
	pthread_mutex_t lock;
	pthread_cond_t done;
} job = { 1, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
static struct { long n; pthread_cond_t cond; } *heap;

static void *want(void *arg)
{
	pthread_mutex_lock(arg);
	return NULL;
}

static void *wait_for(void *arg)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(arg, &mutex);
}

static void begin(const char *name, void *(*f)(void *), void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, f, arg);
	pthread_setname_np(thread, name);
}

int main(void)
{
	heap = calloc(1, sizeof(*heap));
	pthread_mutex_lock(&local_lock);
	pthread_mutex_lock(&job.lock);
	begin("bss", wait_for, &queue_not_empty);
	begin("static", want, &local_lock);
	begin("member", want, &job.lock);
	begin("data", wait_for, &job.done);
	begin("heap", wait_for, &heap->cond);
	printf("READY pid=%d\n", (int)getpid());
	fflush(stdout);
	pause();
	return 0;
}
"""
NAMES = {"bss": "queue_not_empty", "static": "local_lock", "member": "job+8",
         "data": "job+48", "heap": ""}


def by_gdb(pid, address):
    out = subprocess.run(["gdb", "-batch", "-p", str(pid), "-ex",
                          f"info symbol {address}"], check=False, timeout=100,
                         capture_output=True, text=True).stdout
    found = re.search(r"^(\S+)(?: \+ (\d+))? in section", out, re.M)
    return "" if not found else found.group(1) + (
        f"+{found.group(2)}" if found.group(2) else "")


def threads_of(pid, names=tuple(NAMES)):
    """By name, when all of them wait."""
    for _ in range(100):
        dump = json.loads(wallprof("dump", "-f", "json", "-p", pid).out)
        threads = {t["name"]: t for t in dump["processes"][0]["threads"]}
        if all(name in threads and threads[name]["lock"] for name in names):
            return threads
    raise AssertionError(threads)


@pytest.mark.parametrize("flags", [["-g"], ["-no-pie"], ["-rdynamic", "-s"]],
                         ids=" ".join)
def test_names_are_those_of_gdb(start, build, tmp_path, flags):
    target = start(build(tmp_path, "gcc", "-pthread", *flags, source=SOURCE,
                         suffix=".c"))
    threads = threads_of(target.pid)
    for name, variable in NAMES.items():
        lock = threads[name]["lock"]
        # Stripped: what is exported has a name.
        want = variable if "-s" not in flags or name != "static" else ""
        assert lock["variable"] == want, (name, lock)
        assert by_gdb(target.pid, lock["address"]) == want, name
    text = wallprof("dump", "-p", target.pid).out
    assert re.search(r"condvar 0x[0-9a-f]+ <queue_not_empty>", text), text
    assert re.search(r"mutex 0x[0-9a-f]+ <job\+8> held by", text), text
    target.assert_unharmed()


MANY = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t locks_0[300];
pthread_mutex_t locks_1[300];
int first = 1;

static void *want(void *arg)
{
	pthread_mutex_lock(arg);
	return arg;
}

static void begin(const char *name, pthread_mutex_t *lock)
{
	pthread_t thread;

	pthread_mutex_lock(lock);
	pthread_create(&thread, NULL, want, lock);
	pthread_setname_np(thread, name);
}

int main(void)
{
	begin("a", &locks_0[0]);
	begin("b", &locks_0[298]);
	begin("c", &locks_1[0]);
	begin("d", &locks_1[299]);
	printf("READY pid=%d %d\n", (int)getpid(), first);
	fflush(stdout);
	pause();
	return 0;
}
"""


@pytest.mark.parametrize("flags", [["-pie"], ["-no-pie"], ["-Wl,-z,norelro"]],
                         ids=" ".join)
def test_code_and_data_in_one_page_of_the_file(start, build, tmp_path, flags):
    """lld begins a segment in the page of the file in which another ends."""
    if not shutil.which("clang") or not shutil.which("ld.lld"):
        pytest.skip("clang or lld is not installed")
    target = start(build(tmp_path, "clang", "-pthread", "-fuse-ld=lld", *flags,
                         source=MANY, suffix=".c"))
    for name, thread in threads_of(target.pid, "abcd").items():
        if name in "abcd":
            lock = thread["lock"]
            assert lock["variable"].startswith("locks_"), (name, lock)
            assert by_gdb(target.pid, lock["address"]) == lock["variable"]
    target.assert_unharmed()
