# SPDX-License-Identifier: Apache-2.0
"""Shares and sums: what the profile says is what the fixture did."""
import os
import time

import pprof_check
import pytest

from conftest import FIXTURES, SLOW, tids_of

# The phases of fixtures/shares.c as wallprof sees them.
PHASES = {
    "spin": lambda s: s["labels"]["state"] in ("running", "runnable")
    and any(f["name"] == "do_spin" for f in s["frames"]),
    "sleep": lambda s: s["labels"].get("wait") == "sleep",
    "lock": lambda s: s["labels"].get("wait") == "lock"
    and any(f["name"] == "do_lock" for f in s["frames"]),
    "read": lambda s: s["labels"].get("wait") == "pipe"
    and any(f["name"] == "do_read" for f in s["frames"]),
}


@pytest.mark.parametrize("seconds", [20])
def test_shares_are_those_of_the_fixture(start, profile, seconds):
    target = start("shares")
    run, p = profile(target.pid, "-d", seconds, "-r", 100)
    target.assert_unharmed()
    truth = target.truth()
    samples = pprof_check.samples(p)
    for worker in truth["workers"]:
        mine = [s for s in samples if s["labels"]["tid"] == worker["tid"]]
        assert {s["labels"]["thread"] for s in mine} == {worker["name"]}
        whole = sum(s["values"]["wall"] for s in mine)
        true_whole = sum(worker[phase] for phase in PHASES)
        for phase, is_phase in PHASES.items():
            share = sum(s["values"]["wall"] for s in mine
                        if is_phase(s)) / whole
            want = worker[phase] / true_whole
            assert abs(share - want) < 0.02, (worker, phase, share, want)


@pytest.mark.parametrize("stop", ["auto", "all", "never"])
def test_weights_add_up_to_the_time_watched(start, profile, stop):
    target = start("shares")
    _, p = profile(target.pid, "-d", 3, "--stop", stop)
    target.assert_unharmed()
    assert abs(p.duration_nanos - 3e9) < 0.5e9
    per_thread = {}
    for s in pprof_check.samples(p):
        tid = s["labels"]["tid"]
        per_thread[tid] = per_thread.get(tid, 0) + s["values"]["wall"]
    assert len(per_thread) == 7
    for tid, ns in per_thread.items():
        assert abs(ns - p.duration_nanos) <= p.period * 1.5, (tid, ns)


def test_weights_stay_right_when_stops_run_out(start, profile):
    target = start("spinner", 2)
    run, p = profile(target.pid, "-d", 3, "-r", 500, "--max-stopped", "0.2",
                     "--profile", "wall")
    target.assert_unharmed()
    assert run.counter("left out for --max-stopped") > 100
    busy = sum(s["values"]["wall"] for s in pprof_check.samples(p)
               if any(f["name"] == "spin" for f in s["frames"]))
    assert abs(busy / p.duration_nanos - 2) < 0.05
    assert run.counter("% of the recording in all") < (3 if SLOW else 1)


def test_runnable_is_told_from_running(start, profile):
    """Eight spinners cannot have eight CPUs here."""
    cpus = os.cpu_count()
    target = start("spinner", cpus * 4)
    _, p = profile(target.pid, "-d", 4)
    ns = {}
    for s in pprof_check.samples(p):
        state = s["labels"]["state"]
        ns[state] = ns.get(state, 0) + s["values"]["wall"]
    ran = ns["running"] / (ns["running"] + ns["runnable"])
    assert 0.05 < ran < 0.5, ns
    assert ns["runnable"] > ns["running"]


def test_threads_that_come_and_go(start, profile):
    target = start("churn")
    run, p = profile(target.pid, "-d", 4)
    target.assert_unharmed()
    by_name = {}
    for s in pprof_check.samples(p):
        name = s["labels"]["thread"]
        by_name[name] = by_name.get(name, 0) + s["values"]["wall"]
    # Some 450 threads a second that live 3 ms: 1.3 threads at any time.
    assert 0.4 < by_name["mayfly"] / p.duration_nanos < 3, by_name
    assert run.counter("threads") > 100


def ran_ns(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
        return int(f.read().split()[0])


@pytest.mark.parametrize("stop", ["auto", "all"])
@pytest.mark.parametrize("kinds", ["wall", "wall,cpu"])
def test_a_thread_that_hardly_gets_a_cpu_has_a_stack(start, profile, kinds,
                                                     stop):
    """It waits for a CPU for hundreds of milliseconds, and so does its stop."""
    cpu = min(os.sched_getaffinity(0))
    target = start("spinner", 1)
    tid = max(tids_of(target.pid))
    while ran_ns(target.pid, tid) < 50e6:
        time.sleep(0.01)
    os.sched_setaffinity(tid, [cpu])
    os.setpriority(os.PRIO_PROCESS, tid, 19)
    for _ in range(4):
        start("/usr/bin/taskset", "-c", cpu, FIXTURES / "spinner", 1)
    run, p = profile(target.pid, "-d", 5, "--profile", kinds, "--stop", stop)
    target.assert_unharmed()
    mine = [s for s in pprof_check.samples(p)
            if s["labels"]["tid"] == tid]
    whole = sum(s["values"]["wall"] for s in mine)
    assert abs(whole / p.duration_nanos - 1) < 0.1
    spins = sum(s["values"]["wall"] for s in mine
                if any(f["name"] == "spin" for f in s["frames"]))
    assert spins > 0.95 * whole, run.err
    assert run.counter("not in time") == 0, run.err
