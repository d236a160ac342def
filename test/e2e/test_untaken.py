# SPDX-License-Identifier: Apache-2.0
"""Output that nobody takes: a disk that is full, a pipe that is closed."""
import signal
import subprocess

from conftest import WALLPROF, wallprof

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
