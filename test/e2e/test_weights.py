# SPDX-License-Identifier: Apache-2.0
"""Shares and sums: what the profile says is what the fixture did."""
import os

import pprof_check
import pytest

from conftest import (FIXTURES, SLOW, CpuClock, in_window, schedstat, tids_of,
                      tolerance, wait_until)

# What fixtures/shares.c is in when it is in no other function of its own, and
# as what it waits there; in do_lock, below ask, it waits for the lock.
WAITS = {"do_spin": None, "do_sleep": "sleep", "ask": "pipe",
         "do_lock": "lock", "do_read": "pipe"}


def phase_of(sample):
    names = [f["name"] for f in sample["frames"]]
    return next((n for n in names if n in WAITS), "")


def record_shares(start, profile, *args):
    """Record fixtures/shares.c and hold each worker's shares against its own
    account."""
    target = start("shares")
    before = {tid: schedstat(target.pid, tid) for tid in tids_of(target.pid)}
    run, p = profile(target.pid, "-d", 4, "-r", 250, *args)
    queued = {tid: (schedstat(target.pid, tid)[1] - was[1]) / p.duration_nanos
              for tid, was in before.items()}
    target.assert_unharmed()
    for worker in target.truth()["workers"]:
        check_shares(p, worker, queued[worker["tid"]])
    return run, p


def check_shares(p, worker, queued):
    """QUEUED: the share of the time that it waited for a CPU, of which is not
    known so well what it was in: where it waits for long is told once it runs.
    """
    mine = [s for s in pprof_check.samples(p)
            if s["labels"]["tid"] == worker["tid"]]
    assert {s["labels"]["thread"] for s in mine} == {worker["name"]}
    whole = sum(s["values"]["wall"] for s in mine)
    truth = in_window(worker["spans"], p)
    # The spans' clock may be set meanwhile: by 9 ms, once.
    assert abs(sum(truth.values()) / p.duration_nanos - 1) < 0.005
    got = dict.fromkeys((*WAITS, ""), 0)
    for s in mine:
        ns, phase = s["values"]["wall"], phase_of(s)
        got[phase] += ns
        if phase and s["labels"]["state"] == "waiting":
            assert s["labels"]["wait"] == WAITS[phase], (s, worker["name"])
    for phase in WAITS:
        share, want = got[phase] / whole, truth.get(phase, 0) / p.duration_nanos
        changes = 2 * sum(what == phase for what, _, _ in worker["spans"])
        bound = 0.01 + tolerance(p, changes) + queued / 4
        assert abs(share - want) < bound, (phase, share, want, bound, got,
                                           truth)
    # Between two spans, where it may have waited for a CPU as well.
    assert got[""] / whole < 0.01 + queued / 4, got


def test_shares_are_those_of_the_fixture(start, profile):
    record_shares(start, profile)


@pytest.mark.parametrize("stop", ["auto", "all", "never"])
def test_weights_add_up_to_the_time_watched(start, profile, stop):
    target = start("shares")
    _, p = profile(target.pid, "-d", 1, "--stop", stop, status=(0, 1))
    target.assert_unharmed()
    assert p.duration_nanos > 0.99e9
    per_thread = {}
    for s in pprof_check.samples(p):
        tid = s["labels"]["tid"]
        per_thread[tid] = per_thread.get(tid, 0) + s["values"]["wall"]
    assert len(per_thread) == 7
    for tid, ns in per_thread.items():
        assert abs(ns - p.duration_nanos) <= p.period * 1.5, (tid, ns)


@pytest.mark.alone
def test_weights_stay_right_when_stops_run_out(start, profile):
    target = start("spinner", 2)
    run, p = profile(target.pid, "-r", 500, "--max-stopped", "0.2", "--profile",
                     "wall", cpu=5)
    target.assert_unharmed()
    # So long that a pause in which the machine takes wallprof its CPU is no 1 %.
    assert run.counter("left out for --max-stopped") > 100
    busy = sum(s["values"]["wall"] for s in pprof_check.samples(p)
               if any(f["name"] == "spin" for f in s["frames"]))
    assert abs(busy / p.duration_nanos - 2) < 0.05
    assert run.counter("% of the recording in all") < (3 if SLOW else 1)


def test_runnable_is_told_from_running(start, profile):
    """Four times as many spinners as CPUs: most of
    their time they wait for one."""
    spinners = os.cpu_count() * 4
    target = start("spinner", spinners)
    with CpuClock(target.pid) as clock:
        _, p = profile(target.pid, "-d", 2)
    target.assert_unharmed()
    ns = dict.fromkeys(pprof_check.STATES, 0)
    for s in pprof_check.samples(p):
        ns[s["labels"]["state"]] += s["values"]["wall"]
    ran, not_sure = clock.spent(p)
    assert ns["runnable"] > ns["running"] > 0.8 * ran - not_sure, (ns, ran)
    whole = spinners * p.duration_nanos
    assert abs(ns["running"] + ns["runnable"] - whole) < 0.05 * whole, ns


def check_mayflies(p, target):
    """The short lives of fixtures/churn.c: who is seen at a tick stands for
    those who are not, so their time is known as well as they are many.  Each
    waits for a CPU when it is made, and perhaps when it ends."""
    samples = [s["values"] for s in pprof_check.samples(p)
               if s["labels"]["thread"] == "mayfly"]
    seen = sum(v["samples"] for v in samples)
    wall = sum(v["wall"] for v in samples)
    truth = in_window(target.truth()["spans"], p)
    most, bound = truth["live"] + 2 * truth["late"], 0.1 + 4 / seen ** 0.5
    assert seen > 50
    assert ((1 - bound) * truth["live"] < wall < (1 + bound) * most), (
        wall, truth, seen)


def test_threads_that_come_and_go(start, profile):
    target = start("churn")
    # Those that end before they are read have no stack, and are over a tenth
    # of the time where CPUs are few.
    run, p = profile(target.pid, "-d", 2, status=(0, 1))
    target.assert_unharmed()
    check_mayflies(p, target)
    assert run.counter("threads") > 100


@pytest.mark.parametrize("stop", ["auto", "all"])
@pytest.mark.parametrize("kinds", ["wall", "wall,cpu"])
def test_a_thread_that_hardly_gets_a_cpu_has_a_stack(start, profile, kinds,
                                                     stop):
    """It waits for a CPU for hundreds of milliseconds, and so does its stop."""
    cpu = min(os.sched_getaffinity(0))
    target = start("spinner", 1)
    tid, = set(tids_of(target.pid)) - {target.pid}
    wait_until(lambda: schedstat(target.pid, tid)[0] > 50e6)
    os.sched_setaffinity(tid, [cpu])
    os.setpriority(os.PRIO_PROCESS, tid, 15)
    for _ in range(4):
        start("/usr/bin/taskset", "-c", cpu, FIXTURES / "spinner", 1)

    def has_waited():
        _, waited, slices = schedstat(target.pid, tid)

        def later():
            _, now_waited, now_slices = schedstat(target.pid, tid)
            return now_waited > waited + 1e9 and now_slices > slices + 2
        return later

    run, p = profile(target.pid, "--profile", kinds, "--stop", stop,
                     until=has_waited)
    target.assert_unharmed()
    mine = [s for s in pprof_check.samples(p)
            if s["labels"]["tid"] == tid]
    whole = sum(s["values"]["wall"] for s in mine)
    assert abs(whole / p.duration_nanos - 1) < 0.1
    spins = sum(s["values"]["wall"] for s in mine
                if any(f["name"] == "spin" for f in s["frames"]))
    assert spins > 0.95 * whole, run.err
    # The recording may end while one is waited for.
    assert run.counter("not in time") <= 1, run.err
