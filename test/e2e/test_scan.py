# SPDX-License-Identifier: Apache-2.0
"""Threads asked all at once by BPF: the same profile, and cheap."""
import contextlib
import errno
import os
import pathlib
import platform
import re
import resource

import pprof_check
import pytest

from conftest import FIXTURES, SLOW, status_of, ticks, wait_until, wallprof
from test_weights import check_mayflies, record_shares

# The first tick reads all stacks: that of 10,000 takes a second or two.
LONG, SHORT = 6, 3
SYS_BPF = "280" if platform.machine() == "aarch64" else "321"
# All threads at each tick, and those that were put on a CPU.
WAYS = ["bpf", "switches"]


def skip_without_scan(run):
    text = run.err + run.out
    why = re.search(r"no BPF scan: (.*)", text)
    if why:
        pytest.skip(why.group(1))
    assert run.counter("ticks by a BPF scan") > 0, text


def children_cpu():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def wall_of(samples):
    ns = {}
    for s in samples:
        tid = s["labels"].get("tid")
        ns[tid] = ns.get(tid, 0) + s["values"]["wall"]
    return ns


def test_both_ways_give_the_same_profile_of_threads_that_wait(start, profile):
    target = start("waiters", 300)
    kept = {}
    for way in ("bpf", "proc", "switches"):
        run, p = profile(target.pid, "-d", 1, "--scan", way)
        target.assert_unharmed()
        if way == "proc":
            assert "BPF" not in run.err
        else:
            skip_without_scan(run)
        samples = pprof_check.samples(p)
        ns = wall_of(samples)
        assert len(ns) == 301
        for tid, wall in ns.items():
            assert abs(wall - p.duration_nanos) <= p.period * 1.5, (tid, wall)
        kept[way] = sorted(
            (s["labels"]["tid"], s["labels"]["state"],
             s["labels"].get("wait", ""), tuple(f["name"] for f in s["frames"]))
            for s in samples)
    assert kept["bpf"] == kept["proc"] == kept["switches"]


def test_the_cost_that_is_said_is_the_kernels(start, profile):
    """All that wallprof takes has what starting, naming and writing take, too."""
    target = start("waiters", 300)
    before = children_cpu()
    run, p = profile(target.pid, "-d", 5, "--scan", "proc", "-r", 500)
    all_of_it = 100 * (children_cpu() - before) / (p.duration_nanos / 1e9)
    said = run.counter("% of a core, stops of the target's threads")
    assert 0.5 * all_of_it < said < all_of_it, (said, all_of_it)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stop", ["auto", "all"])
def test_shares_are_those_of_the_fixture_by_scan(start, profile, way, stop):
    run, _ = record_shares(start, profile, "--scan", way, "--stop", stop)
    skip_without_scan(run)


@pytest.mark.parametrize("way", WAYS)
def test_threads_that_come_and_go_by_scan(start, profile, way):
    target = start("churn")
    # 1: where CPUs are few, many end before they are read.
    run, p = profile(target.pid, "-d", 2, "--scan", way, status=(0, 1))
    target.assert_unharmed()
    skip_without_scan(run)
    check_mayflies(p, target)


@pytest.mark.parametrize("way", WAYS)
def test_cpu_time_alone_is_the_same_by_scan(start, profile, way):
    target = start("spinner", 2)
    run, p = profile(target.pid, "--scan", way, "--profile", "cpu", cpu=1)
    target.assert_unharmed()
    skip_without_scan(run)
    by_name = sum(s["values"]["cpu"] for s in pprof_check.samples(p)
                  if any(f["name"] == "spin" for f in s["frames"]))
    assert by_name > 0.9 * sum(s["values"]["cpu"]
                               for s in pprof_check.samples(p)) > 0


def test_without_rights_each_thread_is_asked_and_it_is_said(start):
    target = start("waiters", 300, user=65534, group=65534, extra_groups=[])
    run = wallprof("-p", target.pid, "-d", 1, "-v", user=65534, group=65534,
                   extra_groups=[]).check()
    target.assert_unharmed()
    assert "no BPF scan: " in run.err + run.out
    assert run.counter("had not run since the last") > 300


def test_a_kernel_is_called_too_old_only_if_it_is(start):
    """It takes no BPF program; of Linux 7.3 it was said that it wants 6.7."""
    if os.geteuid():
        pytest.skip("needs root")
    target = start("waiters", 60)
    run = wallprof("-p", target.pid, "-d", 1, "-v", "--scan", "bpf",
                   prefix=(str(FIXTURES / "fault_deny"), SYS_BPF,
                           str(errno.EINVAL))).check()
    target.assert_unharmed()
    text = run.err + run.out
    assert "the kernel does not take the BPF program" in text, text
    is_old = tuple(map(int, os.uname().release.split(".")[:2])) < (6, 7)
    assert ("wants Linux 6.7" in text) == is_old, text


def test_few_threads_are_not_worth_a_scan(start, profile):
    target = start("waiters", 20)
    run, _ = profile(target.pid, "-d", 1)
    assert "BPF" not in run.err


@pytest.mark.parametrize("stop", ["auto", "never"])
def test_registers_come_by_a_scan_and_not_by_a_stop(start, tmp_path, stop):
    # main has its frame by a register that the call it waits in does not save.
    target = start("stack-gcc-O0", "wait")
    lacked = {"auto": "from the wait-site cache",
              "never": "not stopped and perhaps incomplete"}[stop]
    share, cut, without = {}, {}, {}
    for way in ("proc", "auto", "switches"):
        out = tmp_path / f"{way}.pb.gz"
        run = wallprof("-p", target.pid, "-d", 2, "-r", 200, "--stop", stop,
                       "--scan", way, "-v", "--full", output=out)
        # 1 is stacks that are not whole.
        assert run.status in (0, 1), run.err
        p = pprof_check.load(out)
        if way != "proc":
            skip_without_scan(run)
        # What runs has its stack by other ways.
        samples = [s for s in pprof_check.samples(p)
                   if s["labels"]["state"] == "waiting"]
        n = sum(s["values"]["samples"] for s in samples)
        assert n > 50
        share[way] = run.counter(lacked) / n
        cut[way] = sum(s["values"]["samples"] for s in samples
                       if s["frames"][-1]["name"] != "_start") / n
        # Until it is loaded, beside the ticks.
        without[way] = 1 - run.counter("ticks by a BPF scan") / ticks(p)
    target.assert_unharmed()
    # The first look, which asks for a scan, and those that read /proc because
    # the thread was about to wait: 0.11 to 0.13 where a call takes 1.4 us and
    # others want the CPU.
    for way in ("auto", "switches"):
        assert without[way] < 0.5, without
        assert share[way] < 0.2 + without[way], (share, without)
        assert cut[way] < 0.1 + without[way], (cut, without)
    assert share["proc"] > 0.5
    if stop == "never":
        assert cut["proc"] > 0.9


@pytest.mark.parametrize("way", ["auto", "switches"])
def test_who_never_runs_again_gets_its_registers(start, tmp_path, way):
    """Its first stack, from before the first scan, is not all it ever has."""
    target = start("stack-gcc-O0", "idle")
    wait_until(lambda: status_of(target.pid, target.pid)["State"][0] == "S")
    out = tmp_path / "p.pb.gz"
    run = wallprof("-p", target.pid, "-d", 2, "--stop", "never", "-v",
                   "--full", "--scan", way, output=out)
    # 1 is stacks that are not whole.
    assert run.status in (0, 1), run.err
    target.assert_unharmed()
    skip_without_scan(run)
    samples = pprof_check.samples(pprof_check.load(out))
    cut = sum(s["values"]["samples"] for s in samples
              if s["frames"][-1]["name"] != "_start")
    assert sum(s["values"]["samples"] for s in samples) > 50
    assert cut <= 1, run.err


@pytest.mark.parametrize("way", ["auto", "switches"])
def test_one_scan_is_of_all_processes(start, tmp_path, way):
    target = start("herd", 12, 8, 20000)
    out = tmp_path / "x.pb.gz"
    run = wallprof("--tree", target.pid, "-d", 1, "-v", "--full", "--scan", way,
                   output=out)
    assert run.status in (0, 1), run.err
    target.assert_unharmed()
    skip_without_scan(run)
    # But for the first, all ticks: hardly any thread of any is read.
    ticks = float(re.search(r"ticks: (\d+)", run.err).group(1))
    assert run.counter("ticks by a BPF scan") >= ticks - 1
    p = pprof_check.load(out)
    ns = {}
    for s in pprof_check.samples(p):
        key = s["labels"]["pid"]
        ns[key] = ns.get(key, 0) + s["values"]["wall"]
    assert len(ns) == 13
    for pid, wall in ns.items():
        n = 1 if pid == target.pid else 8
        assert wall == pytest.approx(n * p.duration_nanos, rel=0.05), ns


def steady(pid):
    """Between a short recording and a long one: CPU seconds, ticks, misses."""
    def one(seconds):
        before = children_cpu()
        run = wallprof("-p", pid, "-d", seconds, "-v", "--full",
                       output="/dev/null", timeout=300)
        # 1 is many ticks missed at the start.
        assert run.status in (0, 1), run.err
        skip_without_scan(run)
        ticks = float(re.search(r"ticks: (\d+)", run.err).group(1))
        stops = float(re.search(r"stops: (\d+)", run.err).group(1))
        return (children_cpu() - before, ticks, run.counter("missed"), stops)

    short = one(SHORT)
    return [b - a for a, b in zip(short, one(LONG))]


@pytest.mark.alone
@pytest.mark.skipif(SLOW, reason="measures speed")
@pytest.mark.parametrize("n", [3000, pytest.param(10000,
                                                  marks=pytest.mark.soak)])
def test_threads_that_wait_cost_little(start, n):
    target = start("waiters", n)
    cpu, ticks, missed, stops = steady(target.pid)
    target.assert_unharmed()
    assert stops == 0
    assert ticks > 0
    # One core is 10 ms a tick for 10,000.
    assert cpu / ticks < 0.010 * n / 10000, (cpu, ticks)
    if n == 10000:
        assert missed <= 0.01 * (ticks + missed), (ticks, missed)


@contextlib.contextmanager
def raised(least):
    """Limits in /proc/sys, {path: value}: at least that much, then as before."""
    files = {pathlib.Path("/proc/sys", path): n for path, n in least.items()}
    before = {file: int(file.read_text()) for file in files}
    try:
        for file, n in files.items():
            file.write_text(str(max(n, before[file])))
        yield
    finally:
        for file, n in before.items():
            file.write_text(str(n))


@pytest.mark.soak
@pytest.mark.skipif(SLOW, reason="measures speed")
def test_a_hundred_thousand_threads(start, profile):
    """At 10 Hz for a minute, its start and its end with it: at most 40 % of a core;
    every thread has all of its time, and those that are told by name only have it
    together.  To open the files of all and to meet each stack once takes seconds,
    in which ticks are missed."""
    n = 100000
    with raised({"kernel/pid_max": 3 * n, "kernel/threads-max": 2 * n,
                 "vm/max_map_count": 3 * n}):
        target = start("waiters", n)
        before = children_cpu()
        run, p = profile(target.pid, "-d", 60, "-r", 10, status=(0, 1),
                         timeout=300)
        cpu = children_cpu() - before
        target.assert_unharmed()
        ns = wall_of(pprof_check.samples(p))
        target.end()
    skip_without_scan(run)
    # The others are told by name, all together.
    rest = ns.pop(None)
    told = run.counter("told by name only")
    assert 0 < told == n + 1 - len(ns), (told, len(ns))
    assert rest == pytest.approx(told * p.duration_nanos, rel=0.003)
    for tid, wall in ns.items():
        assert abs(wall - p.duration_nanos) <= p.period * 1.5, (tid, wall)
    print(f"{100 * cpu / 60:.1f} % of a core, {run.err}")
    assert cpu < 0.4 * 60, run.err
