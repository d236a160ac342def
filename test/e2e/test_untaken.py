# SPDX-License-Identifier: Apache-2.0
"""Output that nobody takes: a disk that is full, a pipe that is closed, or that has
no reader."""
import os
import signal
import subprocess

import pytest

from conftest import WALLPROF, children_of, is_alive, wait_until, wallprof

EXIT_DEADLOCK = 3


def until_closed(*args):
    """Status and standard error of wallprof, of whose output one line is read."""
    tool = subprocess.Popen([WALLPROF, *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = tool.stdout.readline()
    tool.stdout.close()
    with tool.stderr:
        said = tool.stderr.read()
    return tool.wait(100), line.decode(), said.decode()


def opens(pid):
    """Does PID wait for the other end of a pipe that it opens (fs/pipe.c)?"""
    with open(f"/proc/{pid}/wchan") as f:
        return f.read() in ("fifo_open", "wait_for_partner")


def test_a_verdict_stands_without_its_dump(hang):
    target = hang("hang", "abba", "normal")
    run = wallprof("check", target.pid, "-i", "100ms", output="/dev/full")
    assert run.status == EXIT_DEADLOCK, run.err
    assert run.err.startswith("deadlock: ") and "cannot write" in run.err


def test_a_verdict_that_nobody_sees_is_none(hang):
    target = hang("hang", "abba", "normal")
    with open("/dev/full", "w") as full:
        done = subprocess.run([WALLPROF, "check", str(target.pid), "-i", "100ms"],
                              stdout=full, stderr=subprocess.PIPE, timeout=100)
    assert done.returncode == 2 and b"cannot write" in done.stderr


def test_of_a_dump_that_is_read_no_further_nothing_is_said(start, hang):
    """Its text is longer than a pipe takes at once."""
    many = start("waiters", 600)
    status, line, said = until_closed("dump", many.pid)
    assert (status, said) == (-signal.SIGPIPE, "") and line
    target = hang("hang", "abba", "normal")
    status, line, said = until_closed("check", "-p", f"{target.pid},{many.pid}",
                                      "-i", "100ms")
    assert line.startswith("deadlock: ")
    assert (status, said) == (EXIT_DEADLOCK, "")


@pytest.mark.parametrize("sig", ["INT", "TERM"])
@pytest.mark.parametrize("what", ["dump", "check", "record", "command"])
def test_a_pipe_without_a_reader_is_waited_for_until_a_signal(start, tmp_path, what,
                                                              sig):
    pipe, mark = tmp_path / "pipe.txt", tmp_path / "mark"
    os.mkfifo(pipe)
    if what == "command":
        args = ["record", "-o", pipe, "--", "touch", mark]
    else:
        args = [what, "-o", pipe, start("spinner", 1).pid]
    tool = subprocess.Popen([WALLPROF, *map(str, args)], stdin=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)
    worker = wait_until(lambda: children_of(tool.pid))[0]
    wait_until(lambda: opens(worker))
    others = children_of(worker)
    number = getattr(signal, "SIG" + sig)
    tool.send_signal(number)
    try:
        assert tool.wait(30) == -number
    finally:
        tool.kill()
        tool.wait()
    with tool.stderr:
        assert tool.stderr.read() == b""
    for pid in [worker, *others]:
        wait_until(lambda p=pid: not is_alive(p))
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    assert not mark.exists()
    assert {p.name for p in tmp_path.iterdir()} == {pipe.name}
