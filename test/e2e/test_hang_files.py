# SPDX-License-Identifier: Apache-2.0
"""Locks of open files, which /proc/locks does not say the holders of."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from conftest import family, tids_of, tree_of, wait_until
from hangs import Dump, check
from test_hang_pipes import is_blocked

FCNTL, FLOCK = (72, 73) if os.uname().machine == "x86_64" else (25, 32)

# Processes that have locks on argv[1], or wait for one; each says who it is.
# One goes on when the one before it has its lock.
OPEN_FILES = r"""
import fcntl, os, signal, struct, sys, threading, time
SETLK, SETLKW, OFD_SETLK, OFD_SETLKW = 6, 7, 37, 38
READ, WRITE = fcntl.F_RDLCK, fcntl.F_WRLCK
said, has_said = os.pipe()
def say(name):
    os.write(1, f"{name} {os.getpid()}\n".encode())
    os.write(has_said, b"x")
def process(name, work):
    if os.fork() == 0:
        try:
            work(name)
        except BaseException:
            os.killpg(0, signal.SIGKILL)
        time.sleep(3600)
    os.read(said, 1)
def waiter(work):
    process("waiter", work)
def lock(cmd, kind, start=0, n=0, fd=None):
    def work(name):
        at = os.open(sys.argv[1], os.O_RDWR) if fd is None else fd
        if cmd in (SETLKW, OFD_SETLKW):
            say(name)
        fcntl.fcntl(at, cmd, struct.pack("hhqqi4x", kind, 0, start, n, 0))
        if cmd in (SETLK, OFD_SETLK):
            say(name)
    return work
def heir(name):
    fd = os.open(sys.argv[1], os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    say(name)
    time.sleep(3600)
def errand(name):
    fd = os.open(sys.argv[1], os.O_RDWR)
    pid = os.fork()
    if pid == 0:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os._exit(0)
    os.waitpid(pid, 0)
    say(name)
def flock(name):
    fd = os.open(sys.argv[1], os.O_RDWR)
    say(name)
    fcntl.flock(fd, fcntl.LOCK_EX)
"""

# What is run, one word after the other is said; who waits for whom.
OPEN_FILE_CASES = {
    "ranges": ("""
process("far", lock(OFD_SETLK, WRITE, 100, 10))
process("near", lock(OFD_SETLK, WRITE, 5, 10))
process("reader", lock(OFD_SETLK, READ, 0, 5))
waiter( lock(OFD_SETLKW, WRITE, 0, 10))
""", ["far", "near", "reader"], ["near", "reader"]),
    "readers": ("""
process("reader", lock(OFD_SETLK, READ, 0, 90))
process("writer", lock(OFD_SETLK, WRITE, 100, 10))
waiter( lock(OFD_SETLKW, READ, 50))
""", ["reader", "writer"], ["writer"]),
    "posix holder": ("""
process("holder", lock(SETLK, WRITE))
waiter( lock(OFD_SETLKW, WRITE))
""", ["holder"], ["holder"]),
    "posix waiter": ("""
process("holder", lock(OFD_SETLK, WRITE))
waiter( lock(SETLKW, WRITE))
""", ["holder"], ["holder"]),
    "shared": ("""
own = os.open(sys.argv[1], os.O_RDWR)
process("holder", lock(OFD_SETLK, READ))
process("sharer", lock(OFD_SETLK, READ, 0, 5, fd=own))
waiter( lock(OFD_SETLKW, WRITE, 0, 10, fd=own))
""", ["holder", "sharer"], ["holder"]),
    "threads": ("""
def two(name):
    lock(OFD_SETLK, WRITE)(name)
    threading.Thread(target=lock(OFD_SETLKW, WRITE), args=("waiter",)).start()
process("holder", two)
""", ["holder"], ["holder"]),
    # Two threads of a process that wait for two processes.
    "bytes": ("""
def both(name):
    threading.Thread(target=lock(SETLKW, WRITE, 0, 10), args=("first",)).start()
    lock(SETLKW, WRITE, 100, 10)(name)
process("one", lock(SETLK, WRITE, 0, 10))
process("two", lock(SETLK, WRITE, 100, 10))
waiter(both)
""", ["one", "two", "first"], ["one", "two"]),
    # As flock(1) does on a descriptor of a shell's.
    "errand": ("""
process("holder", errand)
waiter(flock)
""", ["holder"], ["holder"]),
    "heir": ("""
process("holder", heir)
waiter( flock)
""", ["holder"], ["holder"]),
}


def count_in(pid, *numbers):
    """How many threads of PID sleep in one of these calls."""
    calls = [pathlib.Path(f"/proc/{pid}/task/{tid}/syscall").read_text()
             for tid in tids_of(pid)]
    return sum(call.split()[0] in map(str, numbers) for call in calls)


@pytest.mark.parametrize("case", OPEN_FILE_CASES)
def test_locks_of_open_files(tmp_path, case):
    """/proc/locks does not say who has them."""
    program, names, holders = OPEN_FILE_CASES[case]
    path = tmp_path / "file"
    path.write_bytes(bytes(1000))
    proc = subprocess.Popen(
        [sys.executable, "-c", OPEN_FILES + program + "time.sleep(3600)",
         path], stdout=subprocess.PIPE, start_new_session=True, text=True)
    try:
        pids = {}
        while set(pids) != {*names, "waiter"}:
            name, pid = proc.stdout.readline().split()
            pids[name] = int(pid)
        wait_until(lambda: count_in(pids["waiter"], FCNTL, FLOCK) ==
                   (2 if case == "bytes" else 1))
        dump = Dump(pids["waiter"], "--follow-processes")
        edges = [e for e in dump.edges if e["kind"] == "file lock"]
        assert (sorted(e["to_pid"] for e in edges) ==
                sorted(pids[h] for h in holders)), (edges, pids)
        assert all(str(path) in e["what"] for e in edges), edges
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


# Has a lock on argv[1] while a shell does argv[2], whose output it reads or not; its
# other process waits for the lock.
ERRANDS = r"""
import fcntl, os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
if os.fork() == 0:
    file.close()
    file = open(sys.argv[1], "w")
    print(os.getpid(), flush=True)
    fcntl.flock(file, fcntl.LOCK_EX)
else:
    subprocess.run(["sh", "-c", sys.argv[2]],
                   stdout=subprocess.PIPE if sys.argv[3] == "reads" else None)
"""
POLLS = f"{sys.executable} -c 'import select; select.poll().poll()'"


def sleeps_below(pid):
    """Does PID, or one that it has started, sleep, in clock_nanosleep or poll?"""
    with contextlib.suppress(OSError):
        return any(is_blocked(p, (230, 115, 7, 73)) for p in family(pid))
    return False


@pytest.mark.parametrize("way", ["waits", "reads"])
@pytest.mark.parametrize("work, verdict", [
    ("while :; do :; done", "healthy"), (POLLS, "healthy"),
    ("sleep 100", "no progress")], ids=["runs", "polls", "sleeps"])
def test_a_lock_that_is_held_for_a_child(tmp_path, work, verdict, way):
    """By a process that waits for a shell, which waits for the child."""
    begun = tmp_path / "begun"
    with subprocess.Popen([sys.executable, "-c", ERRANDS, tmp_path / "lock",
                           f"(touch {begun}; {work}; exit); exit", way],
                          stdout=subprocess.PIPE, start_new_session=True,
                          text=True) as proc:
        try:
            waiter = int(proc.stdout.readline())
            wait_until(lambda: begun.exists() and is_blocked(waiter, [FLOCK]) and
                       (work.startswith("while") or sleeps_below(proc.pid)))
            found = check(waiter)
            assert found.verdict == verdict, (found.why, found.dump,
                                              tree_of(proc.pid))
        finally:
            os.killpg(proc.pid, signal.SIGKILL)
