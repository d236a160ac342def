# SPDX-License-Identifier: Apache-2.0
"""Processes that something holds up, whatever their threads wait for: the freezer of a
cgroup or its limit of CPU time, a core dump, the lock of the memory map."""
import collections
import os
import pathlib
import re
import signal
import time

import pytest

import pprof_check
from conftest import FIXTURES, states_of, wait_until, wait_until_sampling, wallprof
from fault_records import begin, load
from freezer import Freezer
from hangs import Dump, check
from test_deadline import ROOT_ONLY, dead_server, let_die, pid_ready

CORE_PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")


def waits_of(dump):
    return {t["wait"] for t in dump.threads.values()}


def record_waits(pid, tmp_path, *args):
    """The wait reasons with time in a recording, and in its block profile."""
    out = tmp_path / "x.pb.gz"
    tool = begin("auto", "-p", pid, "-o", out, "--profile", "wall,block", *args)
    wait_until_sampling(tool)
    time.sleep(0.5)
    tool.send_signal(signal.SIGINT)
    err = tool.communicate(timeout=100)[1].decode()
    assert tool.returncode in (0, 1), err
    block = load(tmp_path / "x.block.pb.gz")
    return ({s["labels"].get("wait") for s in pprof_check.samples(load(out))
             if s["values"]["wall"]},
            {s["labels"].get("wait") for s in pprof_check.samples(block)
             if s["values"]["delay"]})


@pytest.mark.parametrize("scan", ["proc", "bpf"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_frozen_program_waits_for_the_freezer(start, tmp_path, version, scan):
    """In a recording, a block profile, a dump and a check."""
    target = start("spinner")
    freezer = Freezer(target.pid, version)
    if not freezer.dir:
        pytest.skip("no cgroup freezer that may be written to")
    try:
        freezer.set(True)
        dump = Dump(target.pid)
        assert "frozen" in waits_of(dump), waits_of(dump)
        assert not waits_of(dump) & {"page-fault", "disk"}, waits_of(dump)
        assert dump.processes[target.pid]["hold"] == "frozen"
        text = wallprof("--threads", "-p", target.pid).check().out
        assert ", frozen by a cgroup" in text and "waiting: frozen" in text
        verdict = check(target.pid)
        assert verdict.verdict == "no progress", verdict.why
        assert f"process {target.pid} is frozen by a cgroup" in verdict.why
        for waits in record_waits(target.pid, tmp_path, "--scan", scan):
            assert "frozen" in waits, waits
            assert not waits & {"page-fault", "disk"}, waits
        freezer.set(False)
        dump = Dump(target.pid)
        assert dump.processes[target.pid]["hold"] == ""
        assert "frozen" not in waits_of(dump)
        target.assert_unharmed()
    finally:
        freezer.set(False)
        target.end()
        freezer.remove()


@ROOT_ONLY
@pytest.mark.skipif(CORE_PATTERN.read_text()[0] in "|/\n",
                    reason="cores are not written where a program runs")
def test_a_program_that_dumps_core_waits_for_that(tmp_path):
    """To a file server that does not answer: it goes on for ever."""
    run = ("import os, resource, sys\n"
           "resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))\n"
           "os.chdir(sys.argv[1])\n"
           "os.execv(sys.argv[2], sys.argv[2:])\n")
    command = ["/usr/bin/python3", "-c", run, tmp_path / "mount",
               FIXTURES / "waiters", 3]
    with dead_server(tmp_path, command) as (server, _, prefix):
        pid = pid_ready(server)
        let_die(server)
        os.kill(pid, signal.SIGABRT)
        wait_until(lambda: states_of(pid) <= {"D", "S", "I"} and
                   "CoreDumping:\t1" in
                   pathlib.Path(f"/proc/{pid}/status").read_text())
        dump = Dump(pid)
        assert waits_of(dump) == {"core-dump"}, waits_of(dump)
        assert dump.processes[pid]["hold"] == "core-dump"
        assert ", dumps core" in wallprof("--threads", "-p", pid).out
        verdict = check(pid)
        assert verdict.verdict == "no progress", verdict.why
        assert f"process {pid} dumps core" in verdict.why
        for waits in record_waits(pid, tmp_path):
            assert waits == {"core-dump"}, waits


@pytest.mark.parametrize("args", [[], ["/etc/passwd"]], ids=["anonymous", "file"])
def test_who_waits_for_the_memory_map(start, tmp_path, args):
    """Neither a wait for the disk nor one for who knows what: in a recording, by time, and in
    its block profile.  The truth is what function of the kernel's it sleeps in."""
    target = start("maplock", *args)
    mapper = re.search(r"mapper=(\d+)", target.ready).group(1)
    wchan = pathlib.Path(f"/proc/{target.pid}/task/{mapper}/wchan")
    slept = set()

    def sleeps():
        slept.update({wchan.read_text() for _ in range(2000)} - {"0"})
        return slept
    wait_until(sleeps)
    assert all(re.search("rwsem|mmap|munmap", w) for w in slept), slept
    out = tmp_path / "x.pb.gz"
    run = wallprof("-p", target.pid, "-d", 2, "-o", out, "--profile", "wall,block").check((0, 1))
    lacking = re.search(r"stacks: (\S+) % of wall time.*memory map locked by another thread",
                        run.err)
    # A tenth is too much.
    assert lacking and (run.status == (float(lacking.group(1)) > 10) or
                        run.lacked_cpu()), run.err
    totals = []
    # At a context switch the kernel's function is not known, and a file may have a server.
    names = [{"mmap-lock"}, {"mmap-lock", "syscall:mmap"} if args else {"mmap-lock"}]
    for profile, value in (load(out), "wall"), (load(tmp_path / "x.block.pb.gz"), "delay"):
        waits = collections.Counter()
        for s in pprof_check.samples(profile):
            if s["labels"].get("thread") == "mapper" and s["labels"]["state"] == "waiting":
                waits[s["labels"].get("wait")] += s["values"][value]
        assert sum(waits[n] for n in names.pop(0)) > 0.98 * waits.total(), waits
        totals.append(waits.total())
    # How much it waits is the machine's; the rest it runs, and waits for a CPU.
    assert 0.1e9 < totals[0] < 1.05 * totals[1] and totals[1] < 1.05 * totals[0], (
        totals, run.err)


class Quota:
    """A cgroup with CPU time for 20 ms of each 100 ms."""

    def __init__(self, pid):
        name = f"wallprof_test_{pid}"
        for root in "/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct":
            self.dir = pathlib.Path(root) / name
            try:
                self.dir.mkdir()
            except OSError:
                continue
            # The largest share there is: a busy machine does not keep PID from its limit.
            for limit, text, share, most in (
                    ("cpu.max", "20000 100000", "cpu.weight", "10000"),
                    ("cpu.cfs_quota_us", "20000", "cpu.shares", "262144")):
                if (self.dir / limit).exists():
                    (self.dir / limit).write_text(text)
                    (self.dir / share).write_text(most)
                    (self.dir / "cgroup.procs").write_text(str(pid))
                    return
            self.dir.rmdir()
        pytest.skip("no cgroup can limit CPU time")

    def counts(self):
        """Periods, and those without CPU time left."""
        stat = dict(line.split() for line in
                    (self.dir / "cpu.stat").read_text().splitlines())
        return int(stat["nr_periods"]), int(stat["nr_throttled"])


@ROOT_ONLY
def test_who_has_no_cpu_time_left(start, tmp_path):
    """It waits for a CPU, though all may be idle: the limit is named, and how often it was
    reached, as the kernel counts."""
    out = tmp_path / "x.pb.gz"
    target = start("spinner", 1)
    assert "throttled" not in wallprof("-p", target.pid, "-d", 1, "-o", out).check().err
    quota = Quota(target.pid)
    try:
        wait_until(lambda: quota.counts()[1])
        before = quota.counts()
        err = wallprof("-p", target.pid, "-d", 2, "-o", out).check().err
        after = quota.counts()
        said = re.search(r"throttled: (\d+) of (\d+) periods of cgroup /(\S+) without CPU time "
                         r"left \(20 ms of each 100 ms\)", err)
        assert said and said[3] == quota.dir.name, err
        assert 1 <= int(said[1]) <= after[1] - before[1], (err, before, after)
        assert int(said[1]) <= int(said[2]) <= after[0] - before[0], (err, before, after)
        assert "throttled: " in wallprof("report", out).check().out
    finally:
        target.end()
        wait_until(lambda: not (quota.dir / "cgroup.procs").read_text())
        quota.dir.rmdir()
