# SPDX-License-Identifier: Apache-2.0
"""How right a profile is: beside the target's own clocks and the scheduler's
books of it."""
import collections
import contextlib
import math
import os
import re
import signal
import subprocess
import time

import pprof_check
import pytest

import rhythm
from conftest import (FIXTURES, WALLPROF, Target, children_of, status_of,
                      tids_of, wait_until, wait_until_sampling)
from freezer import Freezer

RATES = (1, 10, 100, 1000)


def books(pid):
    """{tid: [run ns, queued ns, slices]} by /proc/TID/schedstat."""
    ret = {}
    for tid in tids_of(pid):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
            ret[tid] = [int(n) for n in f.read().split()]
    return ret


def quiet_books(pid):
    """The same, if no thread runs any more."""
    first = books(pid)
    time.sleep(0.05)
    sleeps = all(status_of(pid, tid)["State"][0] == "S" for tid in first)
    return first if sleeps and books(pid) == first else None


def count_schedstats(tool):
    """How many threads' books wallprof, TOOL, or its child, has open."""
    n = 0
    for pid in (tool.pid, *children_of(tool.pid)):
        with contextlib.suppress(OSError):
            n += sum(os.readlink(fd.path).endswith("/schedstat")
                     for fd in os.scandir(f"/proc/{pid}/fd"))
    return n


def test_sums_are_exact_at_any_rate():
    """A target in step with 100 and 10 Hz."""
    jobs = [(("wake", 10000, 30), "-d", 3, "-r", rate) for rate in RATES]
    for rec in rhythm.record_many(jobs, len(jobs)):
        assert abs(rec.running_error()) < 0.005, (rec.running_error(),
                                                  rec.truth)
        ran = rec.of("wall", state="running")
        assert abs(rec.of("cpu") - ran) <= 0.001 * ran


def record_burst(tmp_path, *options, nthreads=64, watched=None,
                 meanwhile=None):
    """A profile of a target whose threads sleep before the recording and at its
    end, and its books before and after; MEANWHILE(target) while they run.
    WATCHED: how many threads are, if not all."""
    out = tmp_path / "p.pb.gz"
    target = Target([FIXTURES / "rhythm", "burst", 20000, 1, nthreads, 1])
    try:
        before = wait_until(lambda: quiet_books(target.pid))
        tool = subprocess.Popen([WALLPROF, "-q", "-p", str(target.pid),
                                 *map(str, options), "-o", str(out)])
        # Then the first look at each thread has been.
        wait_until(lambda: count_schedstats(tool) >= (
            watched or nthreads + 1))
        wait_until_sampling(tool)
        target.proc.send_signal(signal.SIGUSR1)
        if meanwhile:
            meanwhile(target)
        target.read_line("DONE")
        after = wait_until(lambda: quiet_books(target.pid))
        tool.send_signal(signal.SIGINT)
        assert tool.wait(100) in (0, 1)
        p = pprof_check.load(str(out))
    finally:
        target.end()
    del before[target.pid], after[target.pid]
    return p, before, after


def check_books(p, before, after):
    """All that the books tell of running and of waiting for a CPU is in P, and
    nothing else; for each thread by state, nanoseconds."""
    got = {tid: collections.Counter() for tid in before}
    for s in pprof_check.samples(p):
        if s["labels"]["tid"] in got:
            got[s["labels"]["tid"]][s["labels"]["state"]] += (
                s["values"]["wall"])
    for tid, (ran, queued, _) in after.items():
        sums = got[tid]
        assert abs(sum(sums.values()) - p.duration_nanos) < 1e6, (
            tid, sums, p.duration_nanos)
        want = ran - before[tid][0], queued - before[tid][1]
        assert abs(sums["running"] - want[0]) < 1e5, (tid, sums, want)
        assert abs(sums["runnable"] - want[1]) < 1e5, (tid, sums, want)
    return got


@pytest.mark.alone
@pytest.mark.parametrize("rate", [7, 100])
@pytest.mark.parametrize("stop", ["auto", "all", "never"])
def test_sums_of_each_thread_are_the_kernels(tmp_path, rate, stop):
    check_books(*record_burst(tmp_path, "-r", rate, "--stop", stop))


# How long a target is stopped or frozen, seconds: many ticks.
HELD = 0.5


def hold(target):
    """Stop TARGET by a signal while its threads run."""
    time.sleep(0.2)
    target.proc.send_signal(signal.SIGSTOP)
    time.sleep(HELD)
    target.proc.send_signal(signal.SIGCONT)


@pytest.mark.alone
@pytest.mark.parametrize("stop", ["auto", "all", "never"])
def test_sums_are_the_kernels_of_a_target_that_is_stopped(tmp_path, stop):
    """And some of the time that it was is told as such: how much of the time it
    did not run, looks say."""
    got = check_books(*record_burst(tmp_path, "--stop", stop, nthreads=8,
                                    meanwhile=hold))
    for sums in got.values():
        assert sums["stopped"] > 0, sums


def test_sums_are_the_kernels_of_a_target_that_is_frozen(tmp_path):
    def freeze(target):
        freezer = Freezer(target.pid)
        if not freezer.dir:
            pytest.skip("no cgroup freezer that may be written to")
        frozen.append(freezer)
        freezer.set(True)
        time.sleep(HELD)
        freezer.set(False)

    frozen = []
    try:
        check_books(*record_burst(tmp_path, nthreads=8, meanwhile=freeze))
    finally:
        for freezer in frozen:
            freezer.set(False)
            freezer.remove()


def test_sums_are_the_kernels_of_the_threads_that_are_chosen(tmp_path):
    p, before, after = record_burst(tmp_path, "-t", "odd*", nthreads=8,
                                    watched=4)
    got = {s["labels"]["tid"] for s in pprof_check.samples(p)}
    assert len(got) == 4 and got < set(before), (got, before)
    check_books(p, {tid: before[tid] for tid in got},
                {tid: after[tid] for tid in got})


def test_functions_in_step_with_the_rate_get_their_shares():
    jobs = [(("alternate", usec), "-d", 3, "-r", 100)
            for usec in (1000, 5000)]
    for rec in rhythm.record_many(jobs, 1):
        z = rec.deviations("cpu", rhythm.RUNS, "cpu_samples")
        assert abs(z) < 5, (z, rec.truth)


@pytest.mark.alone
@pytest.mark.parametrize("options", [("--profile", "wall"), ("--stop", "all")],
                         ids=["no-cpu-samples", "stop-all"])
def test_functions_beside_others_get_their_shares_when_stops_run_out(options):
    """One function alone and one beside another thread that runs, for which half
    as many stops are left, as long by their thread's CPU clock.  Looks meet what
    waits for a CPU too: its share is at most off towards that of the time.  The stops that
    are left tell it within three binomial standard errors: 190 where one takes 100 us.  A
    pause in which the machine takes wallprof its CPU leaves no stops for 200 times as long;
    what is owed for that goes to whatever runs then."""
    part, seconds = 0.005, 4
    rec = rhythm.record(("beside", 500000), "-d", seconds, "-r", 1000,
                        "--max-stopped", 100 * part, *options)
    left_out, made, pause_us = (
        float(re.search(said, rec.report)[1]) for said in (
            r"(\d+) left out for --max-stopped", r"stops: (\d+) made",
            r"pauses: .* max ([\d.]+) us"))
    assert left_out > 1000, rec.report
    got = [rec.within("wall", f, state="running") for f in rhythm.RUNS]
    share, truths = got[0] / sum(got), rec.shares_of_first()
    bound = max(0.04, 3 * (0.25 / made) ** 0.5) + pause_us / 1e6 / part / seconds
    assert min(truths) - bound < share < max(truths) + bound, (share, truths, rec.report)


def print_worst(title, figures):
    figures = sorted(figures, key=abs)
    print(f"{title}: worst {figures[-1]:+.3f}, root mean square "
          f"{math.sqrt(sum(x * x for x in figures) / len(figures)):.3f}, "
          f"{len(figures)} figures", flush=True)


@pytest.mark.soak
@pytest.mark.parametrize("usec", [10000, 5000, 20000, 3333, 1000, 999])
def test_locked_targets(usec, capsys):
    """Each period with each duty and rate, ten times 5 s: 120 recordings.  As many at
    once as leave each a CPU when it wants one; of short waits, which end early where a
    look wakes their CPU, one."""
    recs = []
    for duty, at_once in ((5, 4), (30, 2), (70, 1)):
        at_once = at_once if usec > 1000 else 1
        recs += rhythm.record_many(
            [(("wake", usec, duty), "-d", 5, "-r", rate)
             for rate in RATES for _ in range(10)], at_once)
    errors = [100 * r.running_error() for r in recs]
    # Where it waits for a CPU is another share: as often before the one as before
    # the other.
    parts = {"running": [r.deviations("wall", rhythm.RUNS, "cpu_samples",
                                      state="running") for r in recs],
             "sleeping": [r.deviations("wall", rhythm.SLEEPS, "samples",
                                       state="waiting") for r in recs]}
    with capsys.disabled():
        print_worst(f"\n{usec} us: running, points", errors)
        for what, zs in parts.items():
            known = [z for z in zs if z is not None]
            print_worst(f"{usec} us: {what} stacks, standard errors", known)
            # Ten for each duty and rate.
            beyond = [f"{(5, 30, 70)[i // 40]} % {RATES[i // 10 % 4]} Hz {z:+.1f}"
                      for i, z in enumerate(zs) if z and abs(z) > 3]
            print(f"{usec} us: {what} stacks: {len(beyond)} of {len(known)} "
                  f"beyond 3: {', '.join(beyond)}", flush=True)
    assert max(abs(e) for e in errors) < 0.5


@pytest.mark.soak
@pytest.mark.parametrize("usec", [500, 1000, 2000, 5000])
@pytest.mark.parametrize("rate", [100, 99, 97])
def test_alternating_functions(usec, rate, capsys):
    jobs = [(("alternate", usec), "-d", 5, "-r", rate)] * 100
    zs = [r.deviations("cpu", rhythm.RUNS, "cpu_samples")
          for r in rhythm.record_many(jobs, 4)]
    with capsys.disabled():
        print_worst(f"\n{usec} us, {rate} Hz: standard errors", zs)
    assert sum(abs(z) > 3 for z in zs) <= 5


@pytest.mark.soak
def test_known_shares(capsys):
    """12 s at 100 Hz of a target in step with nothing, twenty times each: the share of
    each state, and running of wall and of cpu."""
    recs = rhythm.record_many(
        [(("wake", 13700, duty), "-d", 12, "-r", 100)
         for duty in (30, 50, 80) for _ in range(20)], 2)
    states = {
        "running": lambda truth: truth["cpu"],
        "runnable": lambda truth: truth["queued"],
        "waiting": lambda truth: truth["sleep_first"] + truth["sleep_second"]}
    worst = 0
    with capsys.disabled():
        for state, of in states.items():
            errors = [100 * (r.of("wall", state=state) - of(r.truth)) /
                      r.duration for r in recs]
            print_worst(f"\n{state}, points", errors)
            worst = max(worst, *map(abs, errors))
        ran = [r.of("wall", state="running") for r in recs]
        errors = [100 * (r.of("cpu") - ns) / ns for r, ns in zip(recs, ran)]
        print_worst("\ncpu against running, %", errors)
    assert worst < 0.5
    assert max(map(abs, errors)) <= 0.1


@pytest.mark.soak
def test_errors_of_the_report(capsys):
    """How often the truth is within two of the errors that are printed, of 200
    recordings; sites of one recording err together, so one of them counts."""
    recs = rhythm.record_many([(("wake", 13700, 30), "-d", 3, "-r", 100)] * 200, 3)
    rows = [r.errors_of_waits()["sleep_first"] for r in recs]
    within = sum(abs(wrong) <= 2 * error for wrong, error in rows)
    with capsys.disabled():
        print_worst("\nerrors", [wrong / error for wrong, error in rows])
        print(f"{within} of {len(rows)} within 2", flush=True)
    assert 186 <= within <= 194
