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
