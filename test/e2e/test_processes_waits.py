# SPDX-License-Identifier: Apache-2.0
"""Waits and thread starts of several processes in one recording: whose is whose, by
what each has written down itself."""
import os
import signal
import sys

import pprof_check
import pytest

from conftest import children_of, wallprof
from test_processes import by_process
from test_profiles_waits import KINDS, LENGTHS, Blocks, between, mark
from test_threadcreate import PATHS, by_path

# Five children that each make as many threads as their argument says.
MAKERS = """
import subprocess, sys
code = '''
import sys, threading, time
for i in range(int(sys.argv[1])):
    thread = threading.Thread(target=time.sleep, args=(0.1,))
    thread.start()
    thread.join()
'''
each = [subprocess.Popen([sys.executable, "-c", code, str(10 + i)])
        for i in range(5)]
for child in each:
    child.wait()
    print(child.pid, flush=True)
"""


def of_process(p, pid):
    """P with the samples of one process only."""
    part = type(p)()
    part.CopyFrom(p)
    del part.sample[:]
    part.sample.extend(
        s for s in p.sample
        if any(p.string_table[label.key] == "pid" and label.num == pid
               for label in s.label))
    return part


def waited(p, value):
    return {pid: ns for (_, pid), ns in by_process(p, value).items()}


def without(p, state):
    """P without the samples in STATE."""
    part = type(p)()
    part.CopyFrom(p)
    del part.sample[:]
    part.sample.extend(
        s for s in p.sample
        if not any(p.string_table[label.key] == "state" and
                   p.string_table[label.str] == state for label in s.label))
    return part


class Part(Blocks):
    """The waits of one process among several, and on how many of the stacks they
    rest."""

    def __init__(self, p, pid, truth):
        part = of_process(p, pid)
        self.got, self.truth, self.stacks, self.part = {}, {}, 0, 1
        self.add(part, truth)
        own, all_waits = (sum(s["values"]["contentions"]
                              for s in pprof_check.samples(q))
                          for q in (part, p))
        self.stacks *= own / all_waits


@pytest.mark.alone
@pytest.mark.parametrize("how", ["-p", "--all"])
def test_waits_are_those_of_each_process(start, tmp_path, how):
    """Two that wait for the same five things, and one that holds a lock."""
    pairs = [start("profiles", "block"), start("profiles", "block")]
    pids = [t.pid for t in (*pairs, start("profiles", "hold", "sleep"))]
    words = ["-p", ",".join(map(str, pids))] if how == "-p" else \
        ["--all", "--max-cpu", "0"]
    before = [mark(t) for t in pairs]
    run = wallprof(*words, "--profile", "wall,block", "-d", 8,
                   output=tmp_path / "x.pb.gz")
    truths = [between(a, mark(t)) for a, t in zip(before, pairs)]
    assert run.status in (0, 1), run.err
    block = pprof_check.load(str(tmp_path / "x.block.pb.gz"))
    wall = pprof_check.load(str(tmp_path / "x.pb.gz"))
    for pid, truth in zip(pids, truths):
        Part(block, pid, truth).check(*truth, *KINDS, *LENGTHS)
    told = waited(without(block, "runnable"), "delay")
    waiting = waited(without(without(wall, "running"), "runnable"), "wall")
    for pid in pids:
        assert told[pid] == pytest.approx(waiting[pid], rel=0.03), (
            pid, told, waiting, run.err)


def test_threads_that_wake_before_the_first_look(start, tmp_path):
    """It takes some milliseconds to begin with so many processes, in which their
    naps of a millisecond, too short for ticks, end and begin."""
    herd = start("herd", 30, 2, 1000)
    run = wallprof("--tree", herd.pid, "--profile", "block", "-d", 4,
                   output=tmp_path / "x.pb.gz")
    assert run.status in (0, 1), run.err
    told = waited(without(pprof_check.load(str(tmp_path / "x.pb.gz")),
                          "runnable"), "contentions")
    # Each has another thread, that waits once.
    few = {pid: told.get(pid, 0) for pid in children_of(herd.pid)
           if told.get(pid, 0) < 5}
    assert not few, told


def test_threads_are_told_of_the_process_that_made_them(start, tmp_path):
    targets = [start("profiles", "churn", 200, n) for n in (300, 500)]

    def work():
        for t in targets:
            os.kill(t.pid, signal.SIGUSR2)
        for t in targets:
            t.read_line("DONE")
        return lambda: True

    run = wallprof("-p", ",".join(str(t.pid) for t in targets),
                   "--profile", "threadcreate", until=work,
                   output=tmp_path / "x.pb.gz")
    run.check()
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    for target in targets:
        counts = by_path(of_process(p, target.pid), "threadcreate")
        truth = target.truth()["paths"]
        assert counts == {"": 0, **{path: truth[path]["count"]
                                    for path in PATHS}}
        assert sum(counts.values()) in (300, 500)


# Three children whose only threads take naps, and say how many.
NAPPERS = """
import subprocess, sys
code = '''
import os, time
end, n = time.monotonic() + 1.5, 0
while time.monotonic() < end:
    time.sleep(0.001)
    n += 1
# At once, where Python is told not to buffer too.
os.write(1, b"%d %d" % (os.getpid(), n) + bytes([10]))
'''
each = [subprocess.Popen([sys.executable, "-c", code]) for i in range(3)]
for child in each:
    child.wait()
"""


@pytest.mark.alone
@pytest.mark.parametrize("how", ["--children", "--all"])
def test_waits_of_processes_that_start_meanwhile(tmp_path, how):
    """A child's first switch comes before wallprof knows of it."""
    run = wallprof(how, "--profile", "block", "--", sys.executable, "-c", NAPPERS,
                   output=tmp_path / "x.pb.gz")
    assert run.status in (0, 1), run.err
    told = waited(without(pprof_check.load(str(tmp_path / "x.pb.gz")),
                          "runnable"), "contentions")
    napped = dict(map(int, line.split()) for line in run.out.splitlines())
    assert len(napped) == 3
    for pid, n in napped.items():
        assert 0.8 * n < told.get(pid, 0) < 1.3 * n + 50, (told, napped)


@pytest.mark.alone
@pytest.mark.parametrize("how", ["--children", "--all"])
def test_threads_of_processes_that_start_meanwhile(tmp_path, how):
    run = wallprof(how, "--profile", "threadcreate", "-r", "20", "--",
                   sys.executable, "-c", MAKERS, output=tmp_path / "x.pb.gz")
    assert run.status in (0, 1), run.err
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    counts = {pid: n for (_, pid), n in
              by_process(p, "threadcreate").items()}
    made = [int(line) for line in run.out.split() if line.isdigit()]
    assert len(made) == 5
    assert [counts.get(pid, 0) for pid in made] == [10, 11, 12, 13, 14], (
        counts, run.err)
