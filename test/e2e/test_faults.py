# SPDX-License-Identifier: Apache-2.0
"""Targets that make trouble: each is recorded at 1,000 Hz in every mode.

After each the target's own account (checksums, EINTRs, what was lost, its exit
status) is what it is without a profiler, and wallprof has ended with a right
profile or a clear error.
"""
import os
import signal
import time

import pprof_check
import pytest

from conftest import SLOW, has_run, wait_until, wait_until_sampling
from fault_records import (MODES, SECONDS, begin, check_account, check_end,
                           check_stacks, check_threads, check_whole_time,
                           has_frame, has_wait, load, log, record, samples,
                           wall)

SOAK_SECONDS = float(os.environ.get("FAULT_SOAK_SECONDS", "20"))
FAULTS = {
    "plain": ["plain"],
    "storm": ["storm"],
    "forks": ["forks"],
    "churn": ["churn"],
    "leader": ["leader", 300],
    "undumpable": ["undumpable"],
    "limited": ["limited"],
    "noelf": ["noelf"],
    "maps": ["maps", 65000],
    "code-maps": ["maps", 20000, "x"],
    "threads": ["threads", 4000],
    "deep": ["deep"],
}
# Those take seconds to start: all modes of them are in soak.
SOAK_FAULTS = {**FAULTS, "many": ["threads", 20000],
               "code-maps": ["maps", 60000, "x"]}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_target_in_trouble(start, tmp_path, fault, mode):
    run_fault(start, tmp_path, fault, FAULTS[fault], mode, SECONDS)


def test_many_threads(start, tmp_path):
    run_fault(start, tmp_path, "many", SOAK_FAULTS["many"], "auto", SECONDS)


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", SOAK_FAULTS)
def test_a_target_in_trouble_for_long(start, tmp_path, fault, mode):
    run_fault(start, tmp_path, fault, SOAK_FAULTS[fault], mode, SOAK_SECONDS)


def run_fault(start, tmp_path, fault, args, mode, seconds):
    argv = ["fault", *args]
    begun = time.monotonic()
    target = start(*argv)
    out = tmp_path / "x.pb.gz"
    # A stop comes when its thread has a CPU, and the depth of a stack is learned by some.
    by_stops = mode in ("all", "stops") and fault not in ("threads", "many")
    run = record(mode, "-p", target.pid, *([] if by_stops else ["-d", seconds]), output=out,
                 until=(lambda: has_run(target.pid, seconds)) if by_stops else None)
    check_end(run.status, run.err)
    p = load(out)
    elapsed = time.monotonic() - begun
    work = check_account(target, *argv)
    log(f"test_a_target_in_trouble[{fault}-{mode}]", mode, run,
        faults=work["faults"], rate=round(work["faults"] / elapsed),
        seconds=round(elapsed, 2))
    check_threads(p, run, has_sleeper=fault != "storm")
    if mode == "never":
        assert run.counter("made") == 0
    elif by_stops and not run.lacked_cpu():
        # It did stop threads, or nothing would have been shown.
        assert run.counter("made") > 10 * seconds, run.err
    if fault in PARTICULARS and not SLOW:
        PARTICULARS[fault](p, run, work["faults"] / elapsed)
    if fault == "deep":
        check_deep(p, mode)
    if fault in ("threads", "many"):
        check_many_threads(p, work["faults"])


# How often a second is what a machine with other work has left for it; that
# it happened at all must be seen.
def check_storm(p, run, rate):
    assert rate > 1000
    check_whole_time(p, "stormed", "taker", "storm")
    check_stacks(p, run, "storm", "run_storm")


def check_forks(p, run, rate):
    assert rate > 5
    check_whole_time(p, "forker", "vforker", "spawner")


def check_churn(p, run, rate):
    # 2,000 a second where there are CPUs for it; each computes for 150 us.
    assert rate > 10
    assert wall(p, "mayfly") > 0
    assert run.counter("watched") > 5, run.err


def check_leader(p, run, rate):
    """No stack is lost when the first thread goes."""
    assert run.counter("x memory map read") <= 2, run.err
    assert "address in no module" not in run.err, run.err
    assert "exiting" in pprof_check.by_label(p, "state")


def check_noelf(p, run, rate):
    check_stacks(p, run, "worker", "run_worker")


def check_many_threads(p, threads):
    """Main, the worker and the sleeper are there too; main waits as well."""
    assert len(pprof_check.threads(p)) == threads + 3
    waiting = sum(s["values"]["wall"] for s in samples(p)
                  if has_wait("signal")(s))
    assert abs(waiting / p.duration_nanos / (threads + 1) - 1) < 0.05


def check_deep(p, mode):
    """The reason why there are no more frames; 512 of them in a stop.

    Functions that are inlined in one of the 512 do not count: with debug
    information of libc's, an interrupt in clock_gettime() meets two.
    """
    deep = [[f for f in s["frames"] if not f["inlined"]]
            for s in pprof_check.samples(p) if has_frame("down")(s)]
    assert deep and all(f[-1]["name"].startswith("[truncated") for f in deep)
    assert max(map(len, deep)) <= 513
    assert mode in ("auto", "never") or max(map(len, deep)) == 513


PARTICULARS = {"storm": check_storm, "forks": check_forks,
               "churn": check_churn, "leader": check_leader,
               "noelf": check_noelf}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_the_end_of_all_threads(start, tmp_path, end, mode):
    target = (start("fault", "exits", 40, 7) if end == "exit" else
              start("fault", "churn"))
    out = tmp_path / "x.pb.gz"
    tool = begin(mode, "-p", target.pid, "-o", out)
    wait_until_sampling(tool)
    wait_until(has_run(target.pid, 0.1))
    target.proc.send_signal(signal.SIGTERM if end == "exit" else
                            signal.SIGKILL)
    err = tool.communicate(timeout=100)[1].decode()
    check_end(tool.returncode, err)
    assert "exited while being recorded" in err
    assert target.proc.wait(100) == (7 if end == "exit" else -signal.SIGKILL)
    p = load(out)
    log(f"test_the_end_of_all_threads[{end}-{mode}]", mode,
        status=tool.returncode)
    assert any(has_frame("work_round")(s) for s in pprof_check.samples(p))


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_that_forbids_restart_syscall(start, tmp_path, mode):
    target = start("seccomp")
    out = tmp_path / "x.pb.gz"
    run = record(mode, "-p", target.pid, "-d", SECONDS, output=out)
    check_end(run.status, run.err)
    load(out)
    target.assert_unharmed()
    truth = target.truth()
    log(f"test_a_filter_that_forbids_restart_syscall[{mode}]", mode, run)
    assert truth["polls"] > 5 and truth["naps"] > 50


@pytest.mark.parametrize("mode", MODES)
def test_a_limit_of_descriptors(start, tmp_path, mode):
    """64 of them, for a target with 200 threads."""
    argv = ["fault", "threads", 200]
    target = start(*argv)
    out = tmp_path / "x.pb.gz"
    run = record(mode, "-p", target.pid, "-d", SECONDS, output=out,
                 prefix=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    check_end(run.status, run.err)
    check_account(target, *argv)
    log(f"test_a_limit_of_descriptors[{mode}]", mode, run)
    p = load(out)
    assert len(pprof_check.threads(p)) == 203, run.err
    check_threads(p, run)
