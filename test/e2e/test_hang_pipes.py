# SPDX-License-Identifier: Apache-2.0
"""Calls that wait for either of two descriptors, or for another than their first."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import pprof_check
from conftest import ROOT, run_ns, states_of, wait_until, wallprof

# A feeder fills a pipe, a mover moves what is in it or in a file to another pipe by
# the call argv[1] until that is full, and its reader does as argv[2] says.
MOVERS = r"""
import ctypes, os, sys, time
call, reader = sys.argv[1:]
libc = ctypes.CDLL(None)
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]
in_read, in_write = os.pipe()
out_read, out_write = os.pipe()
file = os.open(sys.executable, os.O_RDONLY)
def feed():
    os.write(in_write, bytes(65536))
def move():
    if call == "splice":
        os.splice(in_read, out_write, 65536)
    elif call == "tee":
        libc.tee(in_read, out_write, 65536, 0)
    elif call == "vmsplice":
        libc.vmsplice(out_write, ctypes.byref(Iovec(bytes(4096), 4096)), 1, 0)
    else:
        os.sendfile(out_write, file, 0, 65536)
def child(work, *others):
    pid = os.fork()
    if pid == 0:
        for fd in others:
            os.close(fd)
        while True:
            work()
    return pid
feeder = child(feed, in_read, out_read, out_write)
mover = child(move, in_write, out_read)
for fd in in_read, in_write, out_write:
    os.close(fd)
print(feeder, mover, flush=True)
if reader == "waits":
    os.waitpid(mover, 0)
time.sleep(3600)
"""
NUMBERS = {"splice": (275, 76), "tee": (276, 77), "vmsplice": (278, 75),
           "sendfile": (40, 71)}


def is_blocked(pid, numbers):
    """Does PID sleep in one of these calls, and has not run for a while?"""
    path = pathlib.Path(f"/proc/{pid}/syscall")
    before = run_ns(pid)
    if path.read_text().split()[0] not in map(str, numbers):
        return False
    signal.sigtimedwait([], 0.2)
    return run_ns(pid) == before and "R" not in states_of(pid)


@contextlib.contextmanager
def started(script, *argv):
    """It runs in a session of its own, which is killed with all that it started."""
    with subprocess.Popen([sys.executable, "-c", script, *argv],
                          stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as proc:
        try:
            yield proc
        finally:
            os.killpg(proc.pid, signal.SIGKILL)


@pytest.mark.parametrize("call", NUMBERS)
@pytest.mark.parametrize("reader, status, verdict", [
    ("sleeps", 0, "healthy"), ("waits", 3, "deadlock")])
def test_a_call_that_fills_a_pipe(call, reader, status, verdict):
    """Its reader could empty that, or waits for the call's process to end."""
    with started(MOVERS, call, reader) as proc:
        _, mover = map(int, proc.stdout.readline().split())
        wait_until(lambda: is_blocked(mover, NUMBERS[call]))
        run = wallprof("check", mover, "-i", "300ms").check(status)
        assert run.out.startswith(verdict), run.out
        text = wallprof("dump", mover, "-q").out
        assert f"  in {call} fd " in text, text
        if call in ("splice", "tee"):
            assert text.count("pipe:[") >= 2 and " to fd " in text, text
        if call == "sendfile":
            assert re.search(r"in sendfile fd \d+ file /.* to fd \d+ pipe:", text), text


# A mover waits for data of a socket, which it moves to a pipe by sendfile; the pipe's
# reader waits for the mover.  The socket's other end has a third process, or the reader.
SENDFILE = """
import os, signal, socket, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
own, other = socket.socketpair()
ends = os.pipe()
if sys.argv[1] == "third" and os.fork() == 0:
    own.close()
    os.closerange(ends[0], ends[1] + 1)
    time.sleep(3600)
if sys.argv[1] == "third":
    other.close()
mover = os.fork()
if mover == 0:
    other.close()
    os.close(ends[0])
    os.sendfile(ends[1], own.fileno(), None, 1)
    os._exit(0)
own.close()
os.close(ends[1])
print(mover, flush=True)
os.read(ends[0], 1)
"""


@pytest.mark.parametrize("who, status", [("third", 0), ("reader", 3)])
def test_sendfile_waits_for_a_socket(who, status):
    """Which a third process may write to."""
    with started(SENDFILE, who) as proc:
        mover = int(proc.stdout.readline())
        wait_until(lambda: is_blocked(mover, NUMBERS["sendfile"]) and
                   is_blocked(proc.pid, (0, 63)))
        wallprof("check", mover, "-i", "300ms").check(status)


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot mount")
def test_sendfile_waits_for_a_file_server(tmp_path):
    """That does not answer; the reader of the socket that is written to waits, too."""
    server = subprocess.Popen(["/usr/bin/python3", ROOT / "test" / "e2e" /
                               "silent_files.py", tmp_path, "sendfile"],
                              stdout=subprocess.PIPE, text=True,
                              start_new_session=True)
    try:
        said = server.stdout.readline().split()
        if not said:
            pytest.skip("cannot mount")
        pid = int(said[1])
        wait_until(lambda: is_blocked(pid, NUMBERS["sendfile"]))
        run = wallprof("check", pid, "-i", "300ms").check(0)
        assert run.out.startswith("healthy"), run.out
        text = wallprof("dump", pid, "-q").out
        assert re.search(r"  in sendfile fd \d+ file .*/x to fd \d+ unix ", text), text
        assert "stuck" not in text and "waits for" not in text, text
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


# Reads a pipe of which it has both ends.
OWN_PIPE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("READY", flush=True)
os.read(int(sys.argv[1]), 1)
"""
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot be another user")
def test_a_pipe_that_another_user_has_open(tmp_path):
    """Whose descriptors may not be read: this test's."""
    ends = os.pipe()
    proc = subprocess.Popen([*NOBODY, sys.executable, "-c", OWN_PIPE,
                             str(ends[0])], stdout=subprocess.PIPE, text=True,
                            pass_fds=ends, cwd=tmp_path)
    try:
        assert proc.stdout.readline() == "READY\n"
        wait_until(lambda: is_blocked(proc.pid, (0, 63)))
        for prefix in NOBODY, ():
            run = wallprof("check", proc.pid, "-i", "300ms",
                           prefix=prefix).check(0)
            assert run.out.startswith("healthy"), run.out
        os.close(ends[1])
        run = wallprof("check", proc.pid, "-i", "300ms").check(3)
        assert "waits for its own process" in run.out, run.out
        wallprof("check", proc.pid, "-i", "300ms", prefix=NOBODY).check(0)
    finally:
        proc.kill()
        proc.wait()
        os.close(ends[0])


# Opens the FIFO argv[1] to read and write, and waits for what only it could write, or
# for room that only it could make.
FIFO = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
fd = os.open(sys.argv[1], os.O_RDWR)
if sys.argv[3] == "deleted":
    os.unlink(sys.argv[1])
print("READY", flush=True)
while sys.argv[2] == "write":
    os.write(fd, bytes(4096))
os.read(fd, 1)
"""


@pytest.mark.parametrize("name, status", [("named", 0), ("deleted", 3)])
@pytest.mark.parametrize("way, numbers", [("read", (0, 63)),
                                          ("write", (1, 64))])
def test_a_fifo_may_be_opened_by_its_name(tmp_path, way, numbers, name, status):
    """By anybody, at any time: one of no process that lives yet."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with subprocess.Popen([sys.executable, "-c", FIFO, path, way, name],
                          stdout=subprocess.PIPE, text=True) as proc:
        try:
            assert proc.stdout.readline() == "READY\n"
            wait_until(lambda: is_blocked(proc.pid, numbers))
            run = wallprof("check", proc.pid, "-i", "300ms").check(status)
            assert "waits for its own process" in run.out or not status, run.out
        finally:
            proc.kill()


# Waits for any child, or for what it traces, thread argv[1], unless that is 0; its only
# child reads a pipe of it, as strace's does for -o '|gzip >file'.
TRACER = """
import ctypes, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
SEIZE = 0x4206
if int(sys.argv[1]) and ctypes.CDLL(None).ptrace(SEIZE, int(sys.argv[1]), 0, 0):
    sys.exit("cannot trace")
ends = os.pipe()
child = os.fork()
if child == 0:
    os.close(ends[1])
    os.read(ends[0], 1)
    os._exit(0)
os.close(ends[0])
print(child, flush=True)
os.waitpid(-1, 0x40000000)
"""


# Says its own number, and that of another thread of it.  PR_SET_PTRACER, for anybody,
# where Yama wants it.
TRACED = """
import ctypes, os, threading, time
ctypes.CDLL(None).prctl(0x59616d61, -1, 0, 0, 0)
other = threading.Thread(target=time.sleep, args=(3600,))
other.start()
print(os.getpid(), other.native_id, flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("traces, status", [("first", 0), ("second", 0), ("none", 3)])
def test_a_tracer_waits_for_what_it_traces(traces, status):
    """Which is no child of it, and may be any thread."""
    traced = subprocess.Popen([sys.executable, "-c", TRACED],
                              stdout=subprocess.PIPE, text=True)
    tids = dict(zip(("first", "second"), traced.stdout.readline().split()))
    try:
        with started(TRACER, tids.get(traces, "0")) as proc:
            child = int(proc.stdout.readline())
            wait_until(lambda: is_blocked(child, (0, 63)) and
                       is_blocked(proc.pid, (61, 260)))
            run = wallprof("check", proc.pid, "-i", "300ms").check(status)
            assert traces != "none" or "wait for each other" in run.out, run.out
    finally:
        traced.kill()
        traced.wait()


# Its session has lost its leader, as of what nohup(1) started before a logout; its
# child is argv[1:].
ORPHAN = """
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.setsid()
if os.fork() != 0:
    os._exit(0)
proc = subprocess.Popen(sys.argv[1:])
print(proc.pid, flush=True)
proc.wait()
"""


# Alone: a process of root's that has lost its parent since, as tests make them, may have
# been below the orphan.
@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="cannot be another user")
@pytest.mark.parametrize("script, status", [
    # Nobody else can have it,
    ("import os; ends = os.pipe(); print(flush=True); os.read(ends[0], 1)", 3),
    # this process, which may not be read, has it too.
    ("import os; print(flush=True); os.read(0, 1)", 0)], ids=["own", "given"])
def test_a_pipe_in_a_session_without_leader(tmp_path, script, status):
    """Processes that may not be read are older than the pipe, or have it."""
    ends = os.pipe()
    with subprocess.Popen([*NOBODY, sys.executable, "-c", ORPHAN, sys.executable,
                           "-c", script], stdin=ends[0], cwd=tmp_path,
                          stdout=subprocess.PIPE, text=True) as proc:
        os.close(ends[0])
        pid = int("".join(proc.stdout.readline() for _ in range(2)))
        try:
            wait_until(lambda: is_blocked(pid, (0, 63)))
            run = wallprof("check", pid, "-i", "300ms", prefix=NOBODY)
            run.check(status)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.close(ends[1])


# Reads a pipe whose writing end another process has, in a thread with descriptors of its
# own, or in all of them; the first thread of that process waits for the reader.
OWN_DESCRIPTORS = """
import ctypes, os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
CLONE_FILES = 0x400
libc = ctypes.CDLL(None)
ends, down = os.pipe(), os.pipe()
def keep(ready):
    if libc.unshare(CLONE_FILES):
        sys.exit("cannot unshare")
    ready.set()
    libc.sleep(3600)
if os.fork() == 0:
    os.close(down[1])
    if sys.argv[1] == "thread":
        ready = threading.Event()
        threading.Thread(target=keep, args=(ready,)).start()
        ready.wait()
        os.close(ends[0])
        os.close(ends[1])
    os.write(1, b"READY\\n")
    libc.read(down[0], ctypes.create_string_buffer(1), 1)
os.close(down[0])
libc.read(ends[0], ctypes.create_string_buffer(1), 1)
"""


@pytest.mark.parametrize("where, status", [("thread", 0), ("all", 3)])
def test_a_thread_may_have_descriptors_of_its_own(where, status):
    """By which it may write to the pipe that its process has closed."""
    with started(OWN_DESCRIPTORS, where) as proc:
        assert proc.stdout.readline() == "READY\n"
        wait_until(lambda: is_blocked(proc.pid, (0, 63)))
        run = wallprof("check", proc.pid, "-i", "300ms").check(status)
        assert not status or run.out.startswith("deadlock: "), run.out


# A thread whose table of descriptors is its own reads a pipe, or waits for an epoll that
# watches it, where its process has a file of the same number.
OWN_TABLE = """
import ctypes, os, select, sys, threading
libc = ctypes.CDLL(None)
ends = os.pipe()
table = os.open("/dev/null", os.O_RDONLY)
def use():
    if libc.unshare(0x400):
        sys.exit("cannot unshare")
    os.dup2(ends[0], table)
    if sys.argv[1] == "epoll":
        epoll = select.epoll()
        epoll.register(table, select.EPOLLIN)
        os.dup2(epoll.fileno(), 99)
    print("READY", threading.get_native_id(), table, os.readlink("/proc/thread-self/fd/" +
          str(table)), flush=True)
    if sys.argv[1] == "epoll":
        libc.epoll_wait(99, ctypes.create_string_buffer(64), 1, -1)
    libc.read(table, ctypes.create_string_buffer(1), 1)
threading.Thread(target=use).start()
libc.sleep(3600)
"""


# On x86-64 and aarch64.
OWN_NUMBERS = {"read": ("0", "63"), "epoll": ("232", "22")}


@pytest.mark.parametrize("call, text", [
    ("read", "read fd {fd} {pipe}"),
    ("epoll", "fd 99 watching 1 descriptor: fd {fd} {pipe}")])
def test_what_a_thread_has_open_of_its_own_is_told(tmp_path, call, text):
    """In a dump, and in a recording, where its wait is one for a pipe."""
    proc = subprocess.Popen([sys.executable, "-c", OWN_TABLE, call],
                            stdout=subprocess.PIPE, text=True)
    try:
        _, tid, fd, pipe = proc.stdout.readline().split()
        syscall = pathlib.Path(f"/proc/{proc.pid}/task/{tid}/syscall")
        wait_until(lambda: syscall.read_text().split()[0] in OWN_NUMBERS[call])
        run = wallprof("--threads", "-p", proc.pid).check()
        assert text.format(fd=fd, pipe=pipe) in run.out, run.out
        out = tmp_path / "x.pb.gz"
        wallprof("-p", proc.pid, "-d", 0.3, output=out).check()
        waits = {(s["labels"]["wait"], s["labels"].get("object"))
                 for s in pprof_check.samples(pprof_check.load(out))
                 if str(s["labels"]["tid"]) == tid and "wait" in s["labels"]}
        want = {"read": ("pipe", f"fd {fd} {pipe}"),
                "epoll": ("poll", "fd 99 epoll")}[call]
        assert waits == {want}, waits
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()


# Waits for what only it could write to a pipe: its writing end is in a message that a
# child has not received, or a write to it waits in an io_uring, open or closed, behind a
# timer; or an io_uring of a process that has nothing to do with it.
UNSEEN_WRITERS = r"""
import ctypes, mmap, os, signal, socket, struct, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
IO_URING_SETUP, IO_URING_ENTER, TIMEOUT, WRITE, HARDLINK = 425, 426, 11, 23, 8
libc = ctypes.CDLL(None)
def make_ring():
    room = ctypes.create_string_buffer(120)
    fd = libc.syscall(IO_URING_SETUP, 8, room)
    if fd < 0:
        print("NONE", flush=True)
        os._exit(0)
    return fd, room.raw
def write_later(w):
    fd, params = make_ring()
    sq, cq = (struct.unpack_from("10I", params, at) for at in (40, 80))
    nsq, ncq = struct.unpack_from("2I", params, 0)
    queue = mmap.mmap(fd, max(sq[6] + 4 * nsq, cq[5] + 16 * ncq), offset=0)
    entries = mmap.mmap(fd, 64 * nsq, offset=0x10000000)
    limit = ctypes.create_string_buffer(struct.pack("<qq", 3600, 0))
    byte = ctypes.create_string_buffer(b"x")
    for i, entry in enumerate(((TIMEOUT, HARDLINK, 0, -1, 0, ctypes.addressof(limit), 1),
                               (WRITE, 0, 0, w, 2**64 - 1, ctypes.addressof(byte), 1))):
        entries[64 * i:64 * i + 40] = struct.pack("<BBHiQQIIQ", *entry, 0, i)
        struct.pack_into("I", queue, sq[6] + 4 * i, i)
    struct.pack_into("I", queue, sq[1], 2)
    assert libc.syscall(IO_URING_ENTER, fd, 2, 0, 0, None, 0) == 2
    return queue, entries, limit, byte
r, w = os.pipe()
own, other = socket.socketpair()
if sys.argv[1] == "sent" and os.fork() == 0:
    own.close()
    os.closerange(r, w + 1)
    time.sleep(3600)
if sys.argv[1] == "sent":
    other.close()
    socket.send_fds(own, [b"x"], [w])
if sys.argv[1] in ("ring", "closed ring"):
    kept = write_later(w)
if sys.argv[1] == "closed ring":
    # mmap.mmap has descriptors of its own.
    for fd in range(3, 64):
        if os.path.realpath(f"/proc/self/fd/{fd}").endswith("[io_uring]"):
            os.close(fd)
if sys.argv[1] == "other ring" and os.fork() == 0:
    os.closerange(r, w + 1)
    kept = make_ring()
    print("READY", flush=True)
    time.sleep(3600)
if sys.argv[1] != "other ring":
    print("READY", flush=True)
libc.read(r, ctypes.create_string_buffer(1), 1)
"""


@pytest.mark.parametrize("where, status", [
    ("sent", 0), ("ring", 0), ("closed ring", 0), ("other ring", 3),
    ("nowhere", 3)])
def test_who_writes_to_a_pipe_may_not_be_seen(where, status):
    """By any descriptor: it is in a message on its way, or the kernel writes."""
    with started(UNSEEN_WRITERS, where) as proc:
        if proc.stdout.readline() != "READY\n":
            pytest.skip("no io_uring")
        wait_until(lambda: is_blocked(proc.pid, (0, 63)))
        run = wallprof("check", proc.pid, "-i", "300ms").check(status)
        assert not status or "waits for its own process" in run.out, run.out
        why = {"sent": "descriptors are on their way to process ",
               "ring": "for a process that has an io_uring",
               "closed ring": "for a process that has an io_uring"}.get(where, "")
        assert bool(why) == ("part of no deadlock: " in run.err), run.err
        assert why in run.err, run.err
