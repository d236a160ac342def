# SPDX-License-Identifier: Apache-2.0
"""Recordings of fixtures/rhythm.c beside its own account of the same time."""
import bisect
import concurrent.futures
import math
import os
import re
import tempfile

import pprof_check
from conftest import FIXTURES, Target, wallprof

RUNS = ("run_first", "run_second")
SLEEPS = ("sleep_first", "sleep_second")


def at(marks, ns):
    """The sums of MARKS at the time NS."""
    i = bisect.bisect([m[0] for m in marks], ns)
    assert i, "before the first mark"
    if i == len(marks):
        # It got no CPU since.
        return marks[-1][1:]
    a, b = marks[i - 1], marks[i]
    part = (ns - a[0]) / (b[0] - a[0])
    return [x + (y - x) * part for x, y in zip(a[1:], b[1:])]


class Recording:
    """What a profile says of the one thread of fixtures/rhythm.c, in
    nanoseconds, and what it did."""

    def __init__(self, p, truth, pid, report):
        self.report = report
        begin, end = p.time_nanos, p.time_nanos + p.duration_nanos
        self.duration = p.duration_nanos
        self.truth = dict(zip(truth["names"], (
            y - x for x, y in zip(at(truth["marks"], begin),
                                  at(truth["marks"], end)))))
        # [length, ns of the first name, ...] from one mark to the next.
        marks = [m for m in truth["marks"] if begin <= m[0] <= end]
        self.steps = [[y - x for x, y in zip(a, b)]
                      for a, b in zip(marks, marks[1:])]
        self.everything = pprof_check.samples(p)
        self.samples = [s for s in self.everything
                        if s["labels"]["tid"] != pid]
        assert self.samples

    def of(self, value, **labels):
        """The sum of VALUE ("wall", "cpu", ...) over samples with LABELS."""
        return sum(s["values"].get(value, 0) for s in self.samples
                   if all(s["labels"].get(k) == v for k, v in labels.items()))

    def within(self, value, function, **labels):
        return sum(s["values"].get(value, 0) for s in self.samples
                   if any(f["name"] == function for f in s["frames"]) and
                   all(s["labels"].get(k) == v for k, v in labels.items()))

    def shares_of_first(self):
        """Of RUNS, run_first's share of the CPU time and of the time, which is
        longer where it waited for a CPU, of a target that does not sleep."""
        cpu = self.truth["run_first"] / sum(self.truth[f] for f in RUNS)
        runs = [(step[0], *(step[1 + list(self.truth).index(f)] for f in RUNS))
                for step in self.steps]
        time = (sum(ns * first / (first + second) for ns, first, second in runs)
                / sum(ns for ns, _, _ in runs))
        return cpu, time

    def running_error(self):
        """Of the share of the time that it ran, by its own clock."""
        return (self.of("wall", state="running") - self.truth["cpu"]
                ) / self.duration

    def errors_of_waits(self):
        """{function: (by how many points its wait's share in the report is wrong,
        the error that the report says)}."""
        rows = re.findall(r"(\d+(?:\.\d+)?) % \u00b1(\d+(?:\.\d+)?) +\w+ +(\w+) \(",
                          self.report.split("Where threads wait")[1]
                          .split("\n\n")[0])
        whole = sum(s["values"]["wall"] for s in self.everything)
        return {function: (float(share) - 100 * self.truth[function] / whole,
                           float(error))
                for share, error, function in rows if function in SLEEPS}

    def deviations(self, value, functions, count, **labels):
        """Of samples with LABELS: by how many standard errors of as many tosses of a coin as COUNT
        ("samples", "cpu_samples") says the first one's share of FUNCTIONS is
        wrong; None where that is nothing to go by."""
        got = [self.within(value, f, **labels) for f in functions]
        want = [self.truth[f] for f in functions]
        n = sum(self.within(count, f, **labels) for f in functions)
        if not n or not sum(got) or not sum(want):
            return None
        share = want[0] / sum(want)
        error = math.sqrt(share * (1 - share) / n)
        return (got[0] / sum(got) - share) / error if error else None


def record(mode, *options):
    """Record fixtures/rhythm.c in MODE, a tuple of its arguments."""
    fd, out = tempfile.mkstemp(suffix=".pb.gz")
    os.close(fd)
    target = Target([FIXTURES / "rhythm", *mode])
    try:
        wallprof("-p", target.pid, *options, output=out).check((0, 1))
        p = pprof_check.load(out)
        pprof_check.validate(p)
        report = wallprof("report", "--full", out).check().out
        return Recording(p, target.truth(), target.pid, report)
    finally:
        target.end()
        os.unlink(out)


def record_many(jobs, at_once):
    """[record(*job) for job in JOBS], AT_ONCE at a time."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda job: record(*job), jobs))
