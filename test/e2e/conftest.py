# SPDX-License-Identifier: Apache-2.0
"""Start fixtures, run wallprof on them, check that nobody was harmed."""
import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD_DIR", "build/release")
WALLPROF = BUILD / "wallprof"
FIXTURES = ROOT / "build" / "fixtures"
SLOW = "asan" in BUILD.name or "valgrind" in os.environ.get("WRAP", "")

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gate import (  # noqa: E402,F401  pylint: disable=unused-import
    pytest_sessionfinish, pytest_terminal_summary, record_fault)


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: takes minutes (make soak)")
    config.addinivalue_line(
        "markers", "alone: measures what the machine's load changes, or sets "
        "what the whole machine has: runs when no other test does")
    # A shell's background and nohup(1) have some ignored; what is started here
    # would inherit that, and heed it.
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, signal.SIG_DFL)


def status_of(pid, tid=None):
    """/proc/PID/status as a dict."""
    path = f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status"
    with open(path, errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f
                    if ":\t" in line)


def tids_of(pid):
    return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))


class Target:
    """A running program that wallprof is pointed at."""

    def __init__(self, argv, ready=True, **kwargs):
        self.argv = [str(a) for a in argv]
        self.proc = subprocess.Popen(self.argv, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE,
                                     stdin=subprocess.DEVNULL, **kwargs)
        self.pid = self.proc.pid
        self.ready = ""
        if ready:
            self.ready = self.read_line("READY")
            self.pid = int(re.search(r"pid=(\d+)", self.ready).group(1))

    def read_line(self, start, timeout=30):
        """The next line of its output that begins with START."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not select.select([self.proc.stdout], [], [], 1)[0]:
                continue
            line = self.proc.stdout.readline().decode(errors="replace")
            if line.startswith(start):
                return line
            if not line:
                break
        raise AssertionError(f"{self.argv}: no line {start}; stderr: "
                             f"{self.proc.stderr.read1().decode()}")

    def is_running(self):
        return self.proc.poll() is None

    def assert_unharmed(self):
        """It runs on, nobody traces it, no thread is stopped."""
        assert self.is_running(), f"{self.argv} ended: {self.proc.returncode}"
        for tid in tids_of(self.pid):
            try:
                status = status_of(self.pid, tid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            assert status["TracerPid"] == "0", status
            assert status["State"][0] not in "Tt", status

    def truth(self):
        """End it with SIGTERM and return its own account."""
        self.proc.send_signal(signal.SIGTERM)
        line = self.read_line("TRUTH")
        assert self.proc.wait(20) == 0
        return json.loads(line[len("TRUTH"):])

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()
        self.proc.stderr.close()


class Run:
    """What a run of wallprof gave."""

    def __init__(self, argv, done, output):
        self.argv = argv
        self.status = done.returncode
        self.out = done.stdout.decode(errors="replace")
        self.err = done.stderr.decode(errors="replace")
        self.output = output

    def check(self, status=0):
        assert self.status == status, (
            f"{' '.join(self.argv)}\nstatus {self.status}, wanted {status}\n"
            f"{self.err}\n{self.out[:2000]}")
        return self

    def counter(self, phrase):
        """The number before PHRASE in the summary, 0 when it is not there."""
        found = re.search(r"([\d.]+) " + re.escape(phrase), self.err + self.out)
        return float(found.group(1)) if found else 0


def wallprof(*args, output=None, timeout=120, prefix=(), **kwargs):
    """Run wallprof with ARGS to its end; with OUTPUT, -o is added."""
    argv = [*prefix, str(WALLPROF), *(str(a) for a in args)]
    if output:
        at = argv.index("--") if "--" in argv else len(argv)
        argv[at:at] = ["-o", str(output)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, **kwargs)
    return Run(argv, done, output)


@pytest.fixture
def start():
    """start(NAME or argv...) runs a program; all are ended after the test."""
    targets = []

    def begin(*argv, **kwargs):
        argv = list(argv)
        if "/" not in str(argv[0]):
            argv[0] = FIXTURES / str(argv[0])
        target = Target(argv, **kwargs)
        targets.append(target)
        return target

    yield begin
    for target in targets:
        target.end()


@pytest.fixture
def profile(tmp_path):
    """profile(pid, *options) records and returns (Run, decoded profile)."""
    import pprof_check

    def record(pid, *args, status=0, **kwargs):
        out = tmp_path / f"p{len(list(tmp_path.iterdir()))}.pb.gz"
        run = wallprof("-p", pid, *args, output=out, **kwargs).check(status)
        p = pprof_check.load(str(out))
        pprof_check.validate(p)
        return run, p

    return record


def free_port():
    """A TCP port of 127.0.0.1 that nobody has."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stack_variants():
    """The names of fixtures/stack.c's builds, by the table they are made of:
    a build that is missing is a failure, not a test less."""
    table = (ROOT / "fixtures" / "fixtures.mk").read_text()
    lines = re.search(r"^STACKS := ((?:.*\\\n)*.*)", table, re.M).group(1)
    return sorted("stack-" + word.split(":")[0]
                  for word in lines.split() if ":" in word)


def raise_nofile():
    """As many descriptors as are allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
