# SPDX-License-Identifier: Apache-2.0
"""Threads that a signal wakes again and again, and that wait again for the same."""
import subprocess
import sys

from conftest import wait_until, wallprof

# Two threads lock two mutexes in opposite order; the first takes a signal each 20 ms,
# whose handler does nothing.
RING = r"""
import ctypes, signal, threading, time
libc = ctypes.CDLL(None)
mutexes = [ctypes.create_string_buffer(64) for i in range(2)]
both = threading.Barrier(2)
def lock(first, second):
    libc.pthread_mutex_lock(mutexes[first])
    both.wait()
    libc.pthread_mutex_lock(mutexes[second])
signal.signal(signal.SIGALRM, lambda *args: None)
other = threading.Thread(target=lock, args=(1, 0), daemon=True)
other.start()
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
print("READY", flush=True)
lock(0, 1)
"""


def test_a_ring_of_locks_holds_against_signals():
    proc = subprocess.Popen([sys.executable, "-c", RING], text=True,
                            stdout=subprocess.PIPE)
    try:
        assert proc.stdout.readline() == "READY\n"
        wait_until(lambda: wallprof("check", proc.pid, "-i", "100ms").status)
        runs = [wallprof("check", proc.pid, "-i", "100ms") for _ in range(10)]
        # One that the signal wakes as it is looked at has moved.
        assert sum(r.status == 3 and r.out.startswith(
            "deadlock: 2 threads of process ") for r in runs) >= 8, (
                [r.out[:80] for r in runs])
    finally:
        proc.kill()
        proc.wait()
