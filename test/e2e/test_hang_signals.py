# SPDX-License-Identifier: Apache-2.0
"""Threads that a signal wakes, which wait again for the same or not; and a time limit
that no call tells."""
import os
import signal
import subprocess
import sys

import pytest

from conftest import family, is_alive, wait_until, wallprof
from test_hang_pipes import is_blocked

# Two threads lock two mutexes in opposite order; the first takes a signal each 20 ms,
# whose handler does nothing, and locks its second one argv[1] seconds after the other.
RING = r"""
import ctypes, signal, sys, threading, time
libc = ctypes.CDLL(None)
mutexes = [ctypes.create_string_buffer(64) for i in range(2)]
both = threading.Barrier(2)
def lock(first, second, seconds=0):
    libc.pthread_mutex_lock(mutexes[first])
    both.wait()
    time.sleep(seconds)
    libc.pthread_mutex_lock(mutexes[second])
signal.signal(signal.SIGALRM, lambda *args: None)
other = threading.Thread(target=lock, args=(1, 0), daemon=True)
other.start()
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
print("READY", flush=True)
lock(0, 1, float(sys.argv[1]))
"""


def test_a_ring_of_locks_holds_against_signals():
    proc = subprocess.Popen([sys.executable, "-c", RING, "0"], text=True,
                            stdout=subprocess.PIPE)
    try:
        assert proc.stdout.readline() == "READY\n"
        wait_until(lambda: wallprof("check", proc.pid, "-i", "100ms").status)
        # Between the two looks of each are two or three signals.
        runs = [wallprof("check", proc.pid, "-i", "300ms") for _ in range(10)]
        # One that the signal wakes as it is looked at has moved.
        assert sum(r.status == 3 and r.out.startswith(
            "deadlock: 2 threads of process ") for r in runs) >= 8, (
                [r.out[:80] for r in runs])
    finally:
        proc.kill()
        proc.wait()


def test_a_ring_that_closes_after_a_check_ends_a_run():
    """Only the other thread stands still, and did when nothing was wrong yet: the first
    check is made after two seconds."""
    run = wallprof("run", "60s", "--on-deadlock=exit", "--", sys.executable, "-c", RING,
                   "5")
    assert run.status == 124, run.err
    assert "deadlock after " in run.err, run.err


# Two processes that each read what only the other could write, by the ends of a pipe;
# the first has a handler for argv[1].
ANSWERS = r"""
import os, signal, sys
down, up = os.pipe(), os.pipe()
signal.signal(signal.SIGINT, signal.SIG_DFL)
if os.fork() == 0:
    os.close(down[1])
    os.close(up[0])
    os.read(down[0], 1)
    os._exit(0)
os.close(down[0])
os.close(up[1])
signal.signal(int(sys.argv[1]), lambda *args: None)
print("READY", flush=True)
os.read(up[0], 1)
"""


# clock_nanosleep(2), on x86-64 and aarch64.
SLEEPS = 230, 115


def check_blocked(program, argument, nready, calls, status):
    """What `check` ends with for PROGRAM, which says READY NREADY times, once it and its
    children sleep or wait in one of CALLS, numbers on x86-64 and aarch64."""
    arguments = argument if isinstance(argument, tuple) else (argument,)
    proc = subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)],
                            text=True, stdout=subprocess.PIPE, start_new_session=True)
    try:
        for _ in range(nready):
            assert proc.stdout.readline() == "READY\n"
        for pid in filter(is_alive, family(proc.pid)):
            wait_until(lambda pid=pid: is_blocked(pid, calls + SLEEPS))
        wallprof("check", proc.pid, "-i", "300ms").check(status)
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


@pytest.mark.parametrize("caught, status", [
    (signal.SIGALRM, 0), (signal.SIGTERM, 3)])
def test_an_alarm_may_end_a_read(caught, status):
    """Who else has the pipe does not matter; other signals come from others."""
    check_blocked(ANSWERS, int(caught), 1, (0, 63), status)


# A process reads what only its first child could write, which reads what the process
# could; a second child sleeps, reads with the first, or has ended.  The process has a
# handler for argv[1]; argv[2] is what the second child does.
CHILD_ANSWERS = r"""
import os, signal, sys, time
down, up = os.pipe(), os.pipe()
signal.signal(signal.SIGINT, signal.SIG_DFL)
def child(does):
    pid = os.fork()
    if pid == 0:
        os.close(down[1])
        os.close(up[0])
        if does == "sleeps":
            os.close(up[1])
            time.sleep(3600)
        if does == "reads":
            os.read(down[0], 1)
        os._exit(0)
    return pid
child("reads")
other = child(sys.argv[2])
if sys.argv[2] == "ends":
    os.waitid(os.P_PID, other, os.WEXITED | os.WNOWAIT)
os.close(down[0])
os.close(up[1])
signal.signal(int(sys.argv[1]), lambda *args: None)
signal.siginterrupt(int(sys.argv[1]), True)
print("READY", flush=True)
os.read(up[0], 1)
"""


@pytest.mark.parametrize("caught, other, status", [
    (signal.SIGCHLD, "sleeps", 0), (signal.SIGTERM, "sleeps", 3),
    (signal.SIGCHLD, "reads", 3), (signal.SIGCHLD, "ends", 3)])
def test_a_child_may_end_a_read(caught, other, status):
    """By SIGCHLD, if that is caught and the child may end."""
    check_blocked(CHILD_ANSWERS, (int(caught), other), 1, (0, 63), status)


# The same with a timer of argv[1]'s signal, which is caught; of another, if argv[1] is
# SIGUSR2.
TIMED_ANSWERS = r"""
import ctypes, signal, sys
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int),
                ("notify", ctypes.c_int), ("room", ctypes.c_char * 48)]
caught, timer = int(sys.argv[1]), ctypes.c_void_p()
sent = signal.SIGUSR1 if caught == signal.SIGUSR2 else caught
event = Event(None, sent, 0)
if ctypes.CDLL(None).timer_create(1, ctypes.byref(event), ctypes.byref(timer)):
    sys.exit("cannot make a timer")
""" + ANSWERS


@pytest.mark.parametrize("caught, status", [
    (signal.SIGRTMIN, 0), (signal.SIGUSR1, 0), (signal.SIGUSR2, 3)])
def test_a_timer_may_end_a_read(caught, status):
    """By a signal that is caught."""
    check_blocked(TIMED_ANSWERS, int(caught), 1, (0, 63), status)


# Two processes that each read what only the other could write, each for argv[1] seconds
# at most, 0: for ever.
HEARTBEATS = r"""
import os, signal, socket, struct, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
ends = socket.socketpair()
limit = struct.pack("ll", int(sys.argv[1]), 0)
own, other = ends[::-1] if os.fork() == 0 else ends
other.close()
own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
os.write(1, b"READY\n")
while True:
    try:
        own.recv(1)
    except BlockingIOError:
        own.send(b"x")
"""


@pytest.mark.parametrize("limit, status", [(3600, 0), (0, 3)])
def test_a_time_limit_of_a_socket_may_end_a_read(limit, status):
    check_blocked(HEARTBEATS, limit, 2, (45, 207), status)
