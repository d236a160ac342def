# SPDX-License-Identifier: Apache-2.0
"""What tests of faults share: recordings at 1,000 Hz in every mode, and what is
asked of them and of the target's own account.

With FAULTS_LOG=FILE in the environment the figures of each trial are added to
FILE, a line of JSON each: FAULTS.md has them.
"""
import functools
import json
import os
import subprocess

import pprof_check

from conftest import (FIXTURES, WALLPROF, Run, Target, ticks, wallprof)

# "stops": perf events denied, so that every look at a running thread stops it.
MODES = ["auto", "all", "never", "stops"]
SECONDS = float(os.environ.get("FAULT_SECONDS", "0.5"))
SYS_PERF_EVENT_OPEN = 298
DENY_PERF = (str(FIXTURES / "fault_deny"), str(SYS_PERF_EVENT_OPEN), "1")


def log(test, mode, run=None, **figures):
    """One trial for the table of FAULTS.md."""
    if run is not None:
        figures.update(status=run.status, stops=run.counter("made"),
                       repaired=run.counter("EINTR repaired"))
    if os.environ.get("FAULTS_LOG"):
        with open(os.environ["FAULTS_LOG"], "a") as f:
            f.write(json.dumps({"test": test, "mode": mode, **figures}) + "\n")


def mode_args(mode):
    return ("--stop", "auto" if mode == "stops" else mode, "-r", 1000,
            "--max-stopped", 0)


def record(mode, *args, prefix=(), **kwargs):
    if mode == "stops":
        prefix = (*prefix, *DENY_PERF)
    return wallprof(*mode_args(mode), *args, prefix=prefix, **kwargs)


def begin(mode, *args, **kwargs):
    """The same, running on."""
    argv = [*(DENY_PERF if mode == "stops" else ()), str(WALLPROF),
            *(str(a) for a in (*mode_args(mode), *args))]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **kwargs)


def finish(tool):
    """What it gave, once it has ended."""
    out, err = tool.communicate(timeout=100)
    return Run(tool.args, subprocess.CompletedProcess(
        tool.args, tool.returncode, out or b"", err), None)


def load(path):
    p = pprof_check.load(str(path))
    pprof_check.validate(p)
    return p


@functools.lru_cache(maxsize=None)
def quiet_account(*argv):
    """What a fixture says of itself when nobody looks."""
    target = Target([FIXTURES / argv[0], *argv[1:]])
    try:
        # It ends once each kind of work has been done.
        return target.truth()["account"]
    finally:
        target.end()


def check_account(target, *argv):
    """It is unharmed, and says the same as without wallprof."""
    if argv[0] == "fault":
        target.assert_unharmed()
    truth = target.truth()
    want = quiet_account(*argv)
    assert truth["account"] == want, (truth, want)
    assert want["wrong"] == want["eintrs"] == want["lost"] == 0
    assert truth["work"]["rounds"] > 0 and truth["work"]["faults"] > 0
    return truth["work"]


def check_end(status, err):
    """A recording has ended well, or has said why its status is 1."""
    assert status == 0 or (status == 1 and "exit status 1: " in err), (status,
                                                                       err)


LAST = {}


def samples(p):
    """Those of P; many checks ask for them, and they are made once."""
    if LAST.get("p") is not p:
        LAST.update(p=p, samples=pprof_check.samples(p))
    return LAST["samples"]


def wall(p, thread, is_part=lambda s: True):
    """The wall time of the samples of the threads of that name."""
    return sum(s["values"]["wall"] for s in samples(p)
               if s["labels"]["thread"] == thread and is_part(s))


def has_frame(name):
    return lambda s: any(f["name"] == name for f in s["frames"])


def has_wait(wait):
    return lambda s: s["labels"].get("wait") == wait


def check_whole_time(p, *threads):
    """Threads that were there all the time have all of it."""
    tolerance = 0.05 * p.duration_nanos + 3 * p.duration_nanos / ticks(p)
    for thread in threads:
        ns = wall(p, thread)
        assert abs(ns - p.duration_nanos) <= tolerance, (thread, ns,
                                                         p.duration_nanos)


def check_stacks(p, run, thread, frame, others=()):
    """What THREAD runs is FRAME, or it is said that its stack is not known: on
    a machine with much other work a thread that waits for a CPU cannot be
    stopped in time, and where stops are refused has no CPU sample either."""
    right = wall(p, thread, has_frame(frame))
    unknown = wall(p, thread, lambda s: not has_frame(frame)(s) and any(
        f["name"].startswith("[") for f in s["frames"]))
    whole = wall(p, thread)
    # A machine that stands still, as a guest whose host has no time for it, is where
    # it was for as long: between two ticks, of 1 ms, or without a CPU sample.
    still = min(run.counter("missed") * 10**6, 0.5 * whole)
    assert right + unknown > 0.8 * (whole - still), (
        right, unknown, still, whole, pprof_check.described(p))
    lost = run.counter("not in time") + run.counter("refused by the kernel")
    # Nor has one that did not run meanwhile: its stack is told by CPU samples.
    ran = wall(p, thread, lambda s: s["labels"]["state"] == "running")
    # Nor can it be read while another thread that forks has the memory map.
    locked = wall(p, thread, lambda s: any(
        "memory map locked" in f["name"] for f in s["frames"]))
    if not lost and ticks(p) > 99 and ran > 0.05 * p.duration_nanos:
        assert right > 0.8 * (whole - locked - still), (
            right, unknown, locked, still, whole, run.err)


def check_threads(p, run, has_sleeper=True):
    """The two that every fixture has are seen for what they are."""
    check_whole_time(p, "worker")
    check_stacks(p, run, "worker", "work_round")
    if has_sleeper:
        check_whole_time(p, "sleeper")
    # So many that two looks may find it on its way out.  Where CPUs are few it
    # waits for one, mostly.
    if has_sleeper and ticks(p) > 99:
        waited = wall(p, "sleeper",
                      lambda s: s["labels"]["state"] == "waiting")
        polled = wall(p, "sleeper", has_wait("poll"))
        assert polled > 0.5 * waited > 0, (polled, waited, run.err)
