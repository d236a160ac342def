# SPDX-License-Identifier: Apache-2.0
"""Verdicts of Python programs, whose locks are semaphores that any thread may
release: queues, events and pools of threads wait for them when they are idle."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import family, run_ns, states_of, wait_until, wallprof

BEGIN = """
import queue, signal, socket, threading, time
work, done = queue.Queue(), threading.Event()
a, b = threading.Lock(), threading.Lock()
def serve():
    while True:
        work.get()
def start(n, target=serve, *args):
    threads = [threading.Thread(target=target, args=args) for _ in range(n)]
    for t in threads:
        t.start()
    return threads
def accept():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        s.accept()
def cross(first, second):
    with first:
        time.sleep(0.2)
        with second:
            pass
"""
PROGRAMS = {
    "accepts": ("start(3); accept()", "healthy"),
    "sleeps": ("start(3); time.sleep(3600)", "healthy"),
    "pool": ("from concurrent.futures import ThreadPoolExecutor as P;"
             "pool = P(3); [pool.submit(time.sleep, 0.1) for _ in range(3)];"
             "accept()", "healthy"),
    "reads": ("start(3); a, b = socket.socketpair(); start(1, b.recv, 1);"
              "time.sleep(3600)", "healthy"),
    "until a signal": ("signal.signal(signal.SIGTERM, lambda *_: done.set());"
                       "start(3); done.wait()", "healthy"),
    "crosswise": ("t = start(1, cross, a, b) + start(1, cross, b, a);"
                  "[x.join() for x in t]", "no progress"),
    "child reads": ("import subprocess as s; start(3); p = s.Popen(['cat'],"
                    "stdin=s.PIPE, stdout=s.PIPE); p.stdin.write(bytes(10**7))",
                    "deadlock"),
    "nobody puts": ("start(3)[0].join()", "no progress"),
}


# One thread has the mutex and wants the GIL, which the first one has, that wants the mutex;
# or which has let it go meanwhile, and gets the mutex.  Others take turns at the GIL.
GIL = """
import ctypes, threading, sys, time
mutex, ready = ctypes.create_string_buffer(64), threading.Event()
keeps, lets_go = ctypes.PyDLL(None), ctypes.CDLL(None)
def spin():
    while True:
        pass
def hold():
    while True:
        lets_go.pthread_mutex_lock(mutex)
        ready.set()
        time.sleep(0.2)
        lets_go.pthread_mutex_unlock(mutex)
for target in (hold, *([spin] * int(sys.argv[2]))):
    threading.Thread(target=target).start()
ready.wait()
print("READY", flush=True)
while True:
    (keeps if sys.argv[1] == "keeps" else lets_go).pthread_mutex_lock(mutex)
    lets_go.pthread_mutex_unlock(mutex)
"""


@pytest.mark.parametrize("spinners", [0, 2])
@pytest.mark.parametrize("gil, status", [("keeps", 3), ("lets go", 0)])
def test_the_gil_has_a_holder(gil, status, spinners):
    """Who waits for it wakes each 5 ms, and waits again."""
    if sys.version_info < (3, 11):
        pytest.skip("its threads have no tids")
    with subprocess.Popen([sys.executable, "-c", GIL, gil, str(spinners)],
                          stdout=subprocess.PIPE, text=True) as proc:
        try:
            assert proc.stdout.readline() == "READY\n"
            if status:
                wait_until(lambda: "held by thread" in re.findall(
                    r"Python GIL.*|$", wallprof("dump", proc.pid, "-q").out)[0])
            hung = []

            def look():
                """At some looks it is awake, and on a busy machine waits for a CPU."""
                run = wallprof("check", proc.pid, "-i", "300ms")
                hung.extend([run.out] * bool(run.status))
                return len(hung) >= 5
            if status:
                assert any(look() for _ in range(30)), hung
            else:
                assert not any(look() or hung for _ in range(10)), hung
            for out in hung:
                assert re.match(r"deadlock: 2 threads of process \d+ wait for each "
                                r"other \(.*Python GIL 0x", out), out
        finally:
            proc.kill()


def is_idle(pid):
    """Neither it nor a child of its has run for 200 ms."""
    before = [(p, run_ns(p)) for p in family(pid)]
    time.sleep(0.2)
    return (before == [(p, run_ns(p)) for p in family(pid)] and
            not any("R" in states_of(p) for p, _ in before))


@pytest.mark.parametrize("name", PROGRAMS)
def test_verdict_of_python(name, tmp_path):
    script, verdict = PROGRAMS[name]
    threads = 3 if name == "crosswise" else 4
    with subprocess.Popen([sys.executable, "-c", BEGIN + script],
                          cwd=tmp_path, start_new_session=True) as proc:
        tasks = pathlib.Path(f"/proc/{proc.pid}/task")
        try:
            wait_until(lambda: len(list(tasks.iterdir())) >= threads)
            wait_until(lambda: is_idle(proc.pid))
            run = wallprof("check", proc.pid, "-i", "300ms")
            run.check({"healthy": 0, "deadlock": 3, "no progress": 4}[verdict])
            assert run.out.startswith(verdict), run.out
            out = wallprof("dump", proc.pid, "-q").check(0).out
            assert "lock Python lock 0x" in out, out
        finally:
            os.killpg(proc.pid, signal.SIGKILL)
