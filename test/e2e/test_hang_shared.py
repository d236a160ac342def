# SPDX-License-Identifier: Apache-2.0
"""Objects that several processes share: another may end the wait for them."""
import os
import signal
import subprocess
import sys

import pytest

from conftest import wait_until, wallprof
from test_hang_pipes import is_blocked

# The parent takes what its child waits for, an object of kind argv[1] of both, or of
# each its own; and sleeps.
SHARED = r"""
import ctypes, mmap, os, signal, sys, time
kind, shared = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None)
signal.signal(signal.SIGINT, signal.SIG_DFL)
memory = mmap.mmap(-1, 4096, mmap.MAP_ANONYMOUS |
                   (mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE))
begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def make(name, at, *more):
    attr = ctypes.create_string_buffer(64)
    getattr(libc, f"pthread_{name}attr_init")(attr)
    getattr(libc, f"pthread_{name}attr_setpshared")(attr, shared)
    where = ctypes.c_void_p(begin + at)
    getattr(libc, f"pthread_{name}_init")(where, attr, *more)
    return where
mutex, cond, rwlock = make("mutex", 0), make("cond", 64), make("rwlock", 128)
barrier, sem = make("barrier", 256, 2), ctypes.c_void_p(begin + 320)
libc.sem_init(sem, shared, 0)
if kind == "mutex":
    libc.pthread_mutex_lock(mutex)
elif kind in ("rd", "wr"):
    getattr(libc, f"pthread_rwlock_{kind}lock")(rwlock)
child = os.fork()
if child == 0:
    libc.pthread_mutex_lock(mutex)
    if kind == "cond":
        libc.pthread_cond_wait(cond, mutex)
    elif kind in ("rd", "wr"):
        libc.pthread_rwlock_wrlock(rwlock)
    elif kind == "barrier":
        libc.pthread_barrier_wait(barrier)
    elif kind == "sem":
        libc.sem_wait(sem)
print(child, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("shared", [1, 0])
@pytest.mark.parametrize("kind", ["mutex", "cond", "rd", "wr", "barrier",
                                  "sem"])
def test_who_has_what_is_shared_is_not_known(kind, shared):
    proc = subprocess.Popen([sys.executable, "-c", SHARED, kind, str(shared)],
                            stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        child = int(proc.stdout.readline())
        wait_until(lambda: is_blocked(child, (202, 98)))
        run = wallprof("check", child, "-i", "300ms")
        # What only the child has, it will never get.
        assert run.out.startswith("healthy" if shared else "no progress"), (
            run.out, run.err)
        assert run.status == (0 if shared else 4)
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


# Two processes lock mutexes that both have crosswise, of kind argv[1]; or the child takes
# none of its own first, and sleeps.
CROSSWISE = r"""
import ctypes, mmap, os, signal, sys, time
libc = ctypes.CDLL(None)
signal.signal(signal.SIGINT, signal.SIG_DFL)
memory = mmap.mmap(-1, 4096)
begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def make(at):
    attr = ctypes.create_string_buffer(64)
    libc.pthread_mutexattr_init(attr)
    libc.pthread_mutexattr_setpshared(attr, 1)
    libc.pthread_mutexattr_setrobust(attr, sys.argv[1] == "robust")
    libc.pthread_mutexattr_setprotocol(attr, sys.argv[1] == "pi")
    where = ctypes.c_void_p(begin + at)
    libc.pthread_mutex_init(where, attr)
    return where
one, two = make(0), make(64)
held = os.pipe()
libc.pthread_mutex_lock(one)
child = os.fork()
if child == 0:
    libc.pthread_mutex_lock(two)
    os.write(held[1], b"x")
    if len(sys.argv) > 2:
        libc.sleep(3600)
    libc.pthread_mutex_lock(one)
os.read(held[0], 1)
print(child, flush=True)
libc.pthread_mutex_lock(two)
"""


# The kernel lets nobody wait crosswise for PI mutexes (EDEADLK).
@pytest.mark.parametrize("kind, sleeps", [
    ("normal", ()), ("robust", ()), ("normal", ("sleeps",)),
    ("robust", ("sleeps",)), ("pi", ("sleeps",))])
def test_mutexes_of_two_processes_that_are_looked_at(kind, sleeps):
    proc = subprocess.Popen([sys.executable, "-c", CROSSWISE, kind, *sleeps],
                            stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        child = int(proc.stdout.readline())
        wait_until(lambda: is_blocked(proc.pid, (202, 98)) and
                   is_blocked(child, (230, 115) if sleeps else (202, 98)))
        run = wallprof("check", "-i", "300ms", "-p", proc.pid, "-p", child)
        assert f"held by thread {child}" in run.out, run.out
        if sleeps:
            assert "deadlock" not in run.out.lower(), run.out
            return
        assert run.status == 3, (run.out, run.err)
        assert ("2 threads of processes " in run.out and
                " wait for each other (mutex 0x" in run.out), run.out
        # The other process is not asked for.
        run = wallprof("check", "-i", "300ms", "-p", child)
        assert run.status == 0, run.out
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


# The parent waits for a private futex, or for a mutex that its child has locked; the child
# has the parent's memory, or a copy, and sleeps.
ONE_MEMORY = r"""
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static char stack[1 << 16] __attribute__((aligned(16)));
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int word, pipes[2];
static int child(void *kind)
{
	/* glibc's tid is the parent's. */
	if (!strcmp(kind, "mutex")) {
		mutex.__data.__lock = 1;
		mutex.__data.__nusers = 1;
		mutex.__data.__owner = syscall(SYS_gettid);
	}
	(void)!write(pipes[1], "x", 1);
	for (;;)
		syscall(SYS_ppoll, 0, 0, 0, 0);
}
int main(int argc, char **argv)
{
	char byte;

	if (pipe(pipes) ||
	    clone(child, stack + sizeof(stack),
		  (argc > 2 ? CLONE_VM : 0) | SIGCHLD, argv[1]) < 0 ||
	    read(pipes[0], &byte, 1) != 1)
		return 1;
	if (argc <= 2)
		mutex.__data = (struct __pthread_mutex_s){
			.__lock = 1, .__nusers = 1, .__owner = 4194303 };
	puts("READY");
	fflush(stdout);
	if (!strcmp(argv[1], "mutex"))
		pthread_mutex_lock(&mutex);
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return 0;
}
"""


@pytest.mark.parametrize("kind", ["futex", "mutex"])
@pytest.mark.parametrize("memory, status", [(["one"], 0), ([], 4)], ids=["one", "copy"])
def test_a_process_with_the_same_memory_may_wake(build, tmp_path, kind, memory, status):
    """What is private is of a memory, not of a process."""
    prog = build(tmp_path, "gcc", "-pthread", source=ONE_MEMORY, suffix=".c")
    proc = subprocess.Popen([prog, kind, *memory], stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        assert proc.stdout.readline() == "READY\n"
        wait_until(lambda: is_blocked(proc.pid, (202, 98)))
        run = wallprof("check", proc.pid, "-i", "300ms").check(status)
        assert run.out.startswith("no progress" if status else "healthy"), run.out
        if memory:
            assert "gone" not in wallprof("dump", proc.pid, "-q").out
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


# Two processes, each the first of a PID namespace of its own: the first takes a mutex of
# both, and argv[1], "other" or "same", waits for it.
APART = r"""
import ctypes, mmap, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGINT, signal.SIG_DFL)
memory = mmap.mmap(-1, 4096)
mutex = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
attr = ctypes.create_string_buffer(64)
libc.pthread_mutexattr_init(attr)
libc.pthread_mutexattr_setpshared(attr, 1)
libc.pthread_mutex_init(mutex, attr)
def begin(before, after):
    "Lock it BEFORE times, tell the parent, lock it AFTER times."
    told = os.pipe()
    if os.fork() == 0:
        if libc.unshare(0x20000000):
            os._exit(1)
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            os.write(told[1], b"x")
            os.waitpid(pid, 0)
            os._exit(0)
        for i in range(before):
            libc.pthread_mutex_lock(mutex)
        os.write(told[1], b"x")
        for i in range(after):
            libc.pthread_mutex_lock(mutex)
        libc.sleep(3600)
    os.close(told[1])
    # Its pid is told, and it has the mutex.
    for i in range(2):
        if not os.read(told[0], 1):
            sys.exit(1)
if sys.argv[1] == "same":
    begin(1, 1)
else:
    begin(1, 0)
    begin(0, 1)
os.wait()
"""


@pytest.mark.skipif(os.geteuid(), reason="makes PID namespaces")
@pytest.mark.parametrize("who, says, status", [
    ("other", "healthy", 0), ("same", "deadlock", 3)])
def test_owners_of_other_pid_namespaces_have_other_numbers(who, says, status):
    proc = subprocess.Popen([sys.executable, "-c", APART, who],
                            stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    try:
        pids = [proc.stdout.readline()
                for _ in range(1 if who == "same" else 2)]
        if not pids[-1]:
            pytest.skip("no PID namespaces")
        pids = [int(pid) for pid in pids]
        wait_until(lambda: is_blocked(pids[-1], (202, 98)))
        run = wallprof("check", pids[-1], "-i", "300ms")
        assert run.out.startswith(says) and run.status == status, (run.out,
                                                                    run.err)
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()
