# SPDX-License-Identifier: Apache-2.0
"""Memory cgroups: a target that lives at its limit, and wallprof in one.

FAULTS_LOG as in fault_records.py.
"""
import errno
import json
import os
import pathlib
import signal

import pytest

from conftest import FIXTURES, wait_until, wallprof
from fault_records import (MODES, check_account, check_end, check_stacks,
                           check_threads, check_whole_time, load, log, record)

MIB = 1 << 20
SECONDS = float(os.environ.get("FAULT_SECONDS", "0.5"))
# Version 2 where systemd has it and where both are mounted, and version 1.
ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"]
FILES = {2: ("memory.max", "memory.current", "memory.events"),
         1: ("memory.limit_in_bytes", "memory.usage_in_bytes",
             "memory.oom_control")}


class MemoryGroup:
    """A cgroup whose memory is limited and counted; dir None: none to be had.
    """

    def __init__(self):
        self.dir = None
        for root in ROOTS:
            path = pathlib.Path(root) / f"wallprof_memory_{os.getpid()}"
            try:
                path.mkdir()
            except OSError:
                continue
            for version, files in FILES.items():
                if (path / files[0]).exists():
                    self.dir, self.version = path, version
                    self.limit, self.usage, self.events = (
                        path / f for f in files)
                    return
            path.rmdir()

    def prefix(self):
        """For a program that is to run in it."""
        return ("/bin/sh", "-c", f'echo $$ >{self.dir}/cgroup.procs && exec "$@"',
                "sh")

    def used(self):
        return int(self.usage.read_text())

    def killed(self):
        """Processes that had to go."""
        return int(dict(line.split() for line in self.events.read_text()
                        .splitlines())["oom_kill"])


def is_removed(path):
    try:
        path.rmdir()
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        return False
    return True


@pytest.fixture
def group():
    group = MemoryGroup()
    if not group.dir:
        pytest.skip("no cgroup with a memory controller may be made here "
                    "(cgroup.subtree_control of version 2, or version 1)")
    yield group
    for pid in (group.dir / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(int(pid), 0)
        except ChildProcessError:
            pass
    # The kernel takes a moment to see that nobody is in it.
    wait_until(lambda: is_removed(group.dir))


@pytest.fixture
def disk(tmp_path):
    """A directory whose files are no memory themselves."""
    for place in (tmp_path, pathlib.Path("/var/tmp")):
        mounts = [line.split() for line in
                  pathlib.Path("/proc/self/mounts").read_text().splitlines()]
        best = max((m for m in mounts if place.is_relative_to(m[1])),
                   key=lambda m: len(m[1]))
        if best[2] not in ("tmpfs", "ramfs"):
            return place
    pytest.skip("no directory on a disk")


@pytest.mark.parametrize("kind, mode", [*(("max", mode) for mode in MODES),
                                        ("high", "auto")])
def test_a_target_at_its_memory_limit(start, tmp_path, group, disk, kind,
                                      mode):
    """16 MiB of its own, 64 MiB of file, 28 MiB to have them in."""
    limit = group.limit
    if kind == "high":
        limit = group.dir / "memory.high"
        if not limit.exists():
            pytest.skip("memory.high is of cgroup version 2")
    limit.write_text(str(28 * MIB))
    argv = ["fault", "pressed", 16, disk]
    target = start(*group.prefix(), FIXTURES / argv[0], *argv[1:])
    out = tmp_path / "x.pb.gz"
    run = record(mode, "-p", target.pid, "-d", SECONDS, output=out)
    check_end(run.status, run.err)
    assert group.killed() == 0
    assert group.used() > 24 * MIB, "it is not at its limit"
    work = check_account(target, *argv)
    log(f"test_a_target_at_its_memory_limit[{kind}-{mode}]", mode, run,
        faults=work["faults"], version=group.version)
    p = load(out)
    check_threads(p, run)
    check_whole_time(p, "pressed")


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_charged_to_the_target(start, tmp_path, group, mode):
    """Looking at 200 threads takes memory, but not the target's."""
    argv = ["fault", "threads", 200]
    target = start(*group.prefix(), FIXTURES / argv[0], *argv[1:])
    before = group.used()
    assert before > MIB
    run = record(mode, "-p", target.pid, "-d", SECONDS,
                 output=tmp_path / "x.pb.gz")
    check_end(run.status, run.err)
    grown = group.used() - before
    check_account(target, *argv)
    log(f"test_nothing_is_charged_to_the_target[{mode}]", mode, run,
        grown=grown)
    assert grown < MIB


@pytest.mark.parametrize("action", ["record", "dump"])
@pytest.mark.parametrize("mib", [32, 16, 8, 4, 2])
def test_little_memory_for_wallprof(start, tmp_path, group, mib, action):
    """All of it, or a clear end; in 32 MiB all of it."""
    group.limit.write_text(str(mib * MIB))
    target = start("fault", "plain")
    out = tmp_path / "x.pb.gz"
    args = (["-r", 1000, "-d", SECONDS, "-o", out] if action == "record" else
            ["--threads", "-f", "json", "-o", out])
    run = wallprof(*args, "-p", target.pid, prefix=group.prefix())
    check_account(target, "fault", "plain")
    log(f"test_little_memory_for_wallprof[{mib}-{action}]", "", run,
        killed=group.killed())
    left = [f.name for f in tmp_path.iterdir()]
    if run.status in (0, 1):
        assert left == ["x.pb.gz"]
        if action == "record":
            p = load(out)
            check_whole_time(p, "worker", "sleeper")
            check_stacks(p, run, "worker", "work_round")
        return
    assert mib < 32, (run.status, run.err)
    if run.status == 2:
        assert run.err.startswith("wallprof: ") and "x.pb.gz" not in left, run.err
        return
    # The kernel's choice, which nothing can be said after.
    assert run.status == -signal.SIGKILL and group.killed(), run.err
    # It was whole when it got its name.
    if "x.pb.gz" in left and action == "record":
        load(out)
    elif "x.pb.gz" in left:
        json.loads(out.read_text())
