# SPDX-License-Identifier: Apache-2.0
"""No stop outlives wallprof's attention: Ctrl-Z, SIGSTOP and SIGKILL of it at
random moments, in each stop mode, leave no thread of the target stopped."""
import json
import os
import pty
import random
import re
import select
import signal
import statistics
import subprocess
import sys
import termios
import time

import fcntl
import pytest

from conftest import (SLOW, WALLPROF, is_clean, status_of, wait_until,
                      wait_until_sampling, worker_of)
from fault_records import MODES, begin, load, log

TRIALS = int(os.environ.get("ATTENTION_TRIALS", "15"))
SOAK_TRIALS = int(os.environ.get("ATTENTION_SOAK_TRIALS", "1000"))
# As a shell starts it: SIGTSTP stops none in a group that nobody could set going again.
AS_JOB = {"process_group": 0}
# How long a thread may be held by who is about to let it go, on a busy machine.
SOON = 5


def is_stopped(pid):
    return status_of(pid)["State"][0] == "T"


def stop_and_look(tool, target, sig):
    """True: it stopped, and soon after no thread is left held."""
    tool.send_signal(sig)
    wait_until(lambda: is_stopped(tool.pid), 20)
    wait_until(lambda: is_clean(target.pid), SOON, pause=0)
    # What it had asked for may come late.
    for _ in range(20):
        time.sleep(0.002)
        if not is_clean(target.pid):
            wait_until(lambda: is_clean(target.pid), SOON, pause=0)


def run_stops(start, tmp_path, name, mode, trials):
    seed = int(os.environ.get("FAULT_SEED", "0")) or random.randrange(1 << 30)
    dice = random.Random(seed)
    target = start("spinner", 6)
    out = tmp_path / "x.pb.gz"
    tool = begin(mode, "-p", target.pid, "-o", out, **AS_JOB)
    try:
        wait_until_sampling(tool)
        for _ in range(trials):
            time.sleep(dice.uniform(0, 0.02))
            stop_and_look(tool, target, getattr(signal, "SIG" + name))
            tool.send_signal(signal.SIGCONT)
            wait_until(lambda: not is_stopped(tool.pid), 20)
        tool.send_signal(signal.SIGINT)
        err = tool.communicate(timeout=60)[1].decode()
    finally:
        tool.kill()
        tool.wait()
    assert tool.returncode in (0, 1), (seed, err)
    load(out)
    # The gaps are counted.
    assert int(re.search(r"(\d+) missed", err).group(1)) > 0, err
    target.assert_unharmed()
    log(f"test_stops_of_wallprof[{name}-{mode}]", mode, trials=trials, left=0)


STOPS = pytest.mark.parametrize("name", ["TSTP", "STOP", "TTIN", "TTOU"])
EACH_MODE = pytest.mark.parametrize("mode", MODES)


@STOPS
@EACH_MODE
def test_stops_of_wallprof(start, tmp_path, name, mode):
    run_stops(start, tmp_path, name, mode,
              TRIALS if name in ("TSTP", "STOP") else 3)


@pytest.mark.alone
@EACH_MODE
def test_ctrl_z_lets_go_within_200_ms(start, tmp_path, mode):
    target = start("spinner", 6)
    tool = begin(mode, "-p", target.pid, "-o", tmp_path / "x.pb.gz", **AS_JOB)
    took = []
    try:
        wait_until_sampling(tool)
        for _ in range(TRIALS):
            begin_s = time.monotonic()
            tool.send_signal(signal.SIGTSTP)
            wait_until(lambda: is_stopped(tool.pid) and is_clean(target.pid),
                       20, pause=0)
            took.append(time.monotonic() - begin_s)
            tool.send_signal(signal.SIGCONT)
            wait_until(lambda: not is_stopped(tool.pid), 20)
        tool.send_signal(signal.SIGINT)
        tool.communicate(timeout=60)
    finally:
        tool.kill()
        tool.wait()
    # One that a busy machine made late.
    assert sorted(took)[-2:][0] < 0.2, took
    target.assert_unharmed()


@pytest.mark.soak
@pytest.mark.parametrize("name", ["TSTP", "STOP"])
@EACH_MODE
def test_many_stops_of_wallprof(start, tmp_path, name, mode):
    run_stops(start, tmp_path, name, mode, SOAK_TRIALS)


def run_worker_stops(start, tmp_path, mode, trials):
    """A worker that somebody stops is set going again at once."""
    dice = random.Random(random.randrange(1 << 30))
    target = start("spinner", 6)
    tool = begin(mode, "-p", target.pid, "-o", tmp_path / "x.pb.gz")
    try:
        wait_until_sampling(tool)
        worker = worker_of(tool)
        for _ in range(trials):
            time.sleep(dice.uniform(0, 0.02))
            os.kill(worker, signal.SIGSTOP)
            wait_until(lambda: not is_stopped(worker), SOON, pause=0)
        tool.send_signal(signal.SIGINT)
        err = tool.communicate(timeout=60)[1].decode()
    finally:
        tool.kill()
        tool.wait()
    assert tool.returncode in (0, 1), err
    target.assert_unharmed()
    log(f"test_stops_of_the_worker[{mode}]", mode, trials=trials, left=0)


@EACH_MODE
def test_stops_of_the_worker(start, tmp_path, mode):
    run_worker_stops(start, tmp_path, mode, TRIALS)


@pytest.mark.soak
@EACH_MODE
def test_many_stops_of_the_worker(start, tmp_path, mode):
    run_worker_stops(start, tmp_path, mode, SOAK_TRIALS)


def run_kills(start, tmp_path, mode, whom, trials):
    """SIGKILL: no thread is left held, no file stands under the final name."""
    dice = random.Random(random.randrange(1 << 30))
    target = start("spinner", 6)
    out = tmp_path / "x.pb.gz"
    for _ in range(trials):
        tool = begin(mode, "-p", target.pid, "-o", out)
        try:
            wait_until_sampling(tool)
            worker = worker_of(tool)
            # An init of a container may reap orphans seconds later only.
            end_of_worker = os.pidfd_open(worker)
            time.sleep(dice.uniform(0, 0.01))
            os.kill(tool.pid if whom == "supervisor" else worker,
                    signal.SIGKILL)
            assert tool.wait(30) == -signal.SIGKILL
            wait_until(lambda: is_clean(target.pid), SOON, pause=0)
            assert select.select([end_of_worker], [], [], 30)[0]
            os.close(end_of_worker)
        finally:
            tool.kill()
            tool.communicate()
        assert not out.exists()
    target.assert_unharmed()
    log(f"test_kills_of_wallprof[{whom}-{mode}]", mode, trials=trials, left=0)


WHOM = pytest.mark.parametrize("whom", ["supervisor", "worker"])


@WHOM
@EACH_MODE
def test_kills_of_wallprof(start, tmp_path, mode, whom):
    run_kills(start, tmp_path, mode, whom, max(TRIALS // 4, 1))


@pytest.mark.soak
@WHOM
@EACH_MODE
def test_many_kills_of_wallprof(start, tmp_path, mode, whom):
    run_kills(start, tmp_path, mode, whom, SOAK_TRIALS)


# A shell with one job, which has the terminal; it says the job's pid.
SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
os.write(int(sys.argv[1]), b"%d\\n" % job)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]) & 127)
"""


class Job:
    """wallprof with ARGS, as a job of a shell at the terminal SLAVE."""

    def __init__(self, slave, *args):
        def take():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        r, w = os.pipe()
        self.shell = subprocess.Popen(
            [sys.executable, "-c", SHELL, str(w), WALLPROF, *(str(a) for a in args)],
            stdin=slave, stdout=slave, stderr=slave, preexec_fn=take, pass_fds=(w,))
        os.close(w)
        with os.fdopen(r) as f:
            self.pid = int(f.readline())
        self.poll, self.wait = self.shell.poll, self.shell.wait
        self.stderr, self.returncode = None, None

    def send_signal(self, sig):
        os.kill(self.pid, sig)

    def kill(self):
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)


def test_ctrl_z_and_ctrl_c_at_a_terminal(start, tmp_path):
    target = start("spinner", 6)
    out = tmp_path / "x.pb.gz"
    master, slave = pty.openpty()
    tool = Job(slave, "--stop", "all", "-p", target.pid, "-o", out)
    os.close(slave)
    try:
        wait_until_sampling(tool)
        for _ in range(5):
            os.write(master, b"\x1a")
            wait_until(lambda: is_stopped(tool.pid), 20)
            wait_until(lambda: is_clean(target.pid), SOON, pause=0)
            tool.send_signal(signal.SIGCONT)
            wait_until(lambda: not is_stopped(tool.pid), 20)
        os.write(master, b"\x03")
        assert tool.wait(60) in (0, 1)
    finally:
        tool.kill()
        tool.wait()
        os.close(master)
    load(out)
    target.assert_unharmed()


def full_pipe(room):
    """A pipe that takes ROOM bytes more; its two ends."""
    r, w = os.pipe()
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, bytes(4096))
    except BlockingIOError:
        os.read(r, room)
    os.set_blocking(w, True)
    return r, w


def writes_to_a_pipe(pid):
    with open(f"/proc/{pid}/wchan") as f:
        return "pipe_write" in f.read()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", [
    ("--threads",), ("--check",), ("-d", "0.2"),
    # More than there is room for: of a write that a signal cuts short after some
    # bytes stdio(3) writes the rest.
    ("-d", "0.2", "-f", "html", "-o", "-"),
    ("-d", "0.2", "-f", "html", "-o", "/dev/fd/{fd}")])
def test_one_signal_ends_what_nobody_reads(start, what, sig):
    target = start("waiters", 2)
    r, w = full_pipe(8192 if "html" in what else 0)
    tool = subprocess.Popen(
        [WALLPROF, "-p", str(target.pid), *(x.format(fd=w) for x in what)],
        stdin=subprocess.DEVNULL, stdout=w, stderr=subprocess.DEVNULL,
        pass_fds=(w,))
    try:
        worker = worker_of(tool)
        wait_until(lambda: writes_to_a_pipe(worker))
        tool.send_signal(sig)
        assert tool.wait(20) == -sig
    finally:
        tool.kill()
        tool.wait()
        os.close(r)
        os.close(w)
    target.assert_unharmed()


@pytest.mark.parametrize("what", [("-q", "-o", "{tmp}/x.pb.gz"),
                                  ("--timeout", "30")])
def test_a_stopped_neighbour_brings_nobody_a_hangup(tmp_path, what):
    """In a process group that is orphaned, as under setsid(1), the kernel sends
    SIGHUP to all of it when a process ends whose parent is in another group of
    the session, if one of it is stopped (kill_orphaned_pgrp)."""
    script = ('sleep 100 & kill -STOP $!; "$@"; echo $?; kill -KILL $!')
    done = subprocess.run(
        ["sh", "-c", script, "sh", WALLPROF,
         *(w.format(tmp=tmp_path) for w in what), "--", "sleep", "0.3"],
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=100)
    # 1: ticks that a busy machine missed.
    assert done.returncode == 0, done.stderr
    assert done.stdout in (b"0\n", b"1\n" if "-q" in what else b"0\n"), \
        done.stderr


def seconds_to_end(tool):
    """From a SIGINT to the end of TOOL.  Popen.wait() would tell a later time: it looks
    31, 63 and 113 ms after it was called."""
    fd = os.pidfd_open(tool.pid)
    try:
        begin_s = time.monotonic()
        tool.send_signal(signal.SIGINT)
        assert select.select([fd], [], [], 60)[0]
        return time.monotonic() - begin_s
    finally:
        os.close(fd)


@pytest.mark.alone
@pytest.mark.parametrize("what", [
    ("--threads",), ("--threads", "-f", "json", "-o"), ("--check", "-i", "0.2"),
    ("-f", "pprof", "--stop", "all", "-o")], ids=" ".join)
def test_an_interrupt_is_answered_in_every_phase(start, tmp_path, what):
    """4,000 threads: a dump or check, and a recording that has no sample yet, ends
    within 100 ms, whatever it is at, and leaves no file but one that was done; a
    recording that has one goes on to name functions and to write."""
    target = start("waiters", 4000)
    argv = [WALLPROF, "-p", str(target.pid), *what,
            *([tmp_path / "x"] if "-o" in what else [])]
    late = []
    for i in range(20):
        tool = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(i * 0.03)
        done = tool.poll() is not None
        took_s = 0 if done else seconds_to_end(tool)
        status = tool.wait(60)
        if not done and status == -signal.SIGINT:
            for path in tmp_path.iterdir():
                assert path.name == "x" and "json" in what, path
                assert len(json.loads(path.read_text())["processes"]) == 1
            late.append(took_s)
        for path in tmp_path.iterdir():
            path.unlink()
    # One that a busy machine made late.
    assert late and sorted(late)[-2:][0] < 0.1, late
    target.assert_unharmed()


def seconds_to_file(target, out):
    """From SIGINT to the end of a recording."""
    tool = subprocess.Popen([WALLPROF, "-q", "-p", str(target.pid), "-o", out],
                            stdin=subprocess.DEVNULL)
    try:
        wait_until_sampling(tool)
        time.sleep(0.2)
        took_s = seconds_to_end(tool)
        assert tool.wait(60) in (0, 1)
    finally:
        tool.kill()
        tool.wait()
    load(out)
    out.unlink()
    return took_s


@pytest.mark.alone
@pytest.mark.skipif(SLOW, reason="measures time")
def test_an_interrupted_recording_is_soon_written(start, tmp_path):
    """Threads that want every CPU do not keep it from naming functions: 48 and
    55 ms on two quiet CPUs, 48 and 175 where they do."""
    waiters, spinner = start("waiters", 2), start("spinner", 6)
    quiet, busy = [], []
    for _ in range(5):
        os.kill(spinner.pid, signal.SIGSTOP)
        quiet.append(seconds_to_file(waiters, tmp_path / "x.pb.gz"))
        os.kill(spinner.pid, signal.SIGCONT)
        busy.append(seconds_to_file(spinner, tmp_path / "x.pb.gz"))
    assert statistics.median(busy) < 2.5 * statistics.median(quiet), (quiet, busy)
    spinner.assert_unharmed()
