# SPDX-License-Identifier: Apache-2.0
"""Block and mutex profiles: shares are those that the fixture has measured
around its own calls, and both tell the same story of a lock."""
import json
import math
import os
import re
import signal
import time

import pytest

import pprof_check
from conftest import tolerance, wallprof

LENGTHS = ("short", "middle", "long")
KINDS = ("cond", "pipe", "sleep", "epoll", "mutex")
CALLERS = ("lock_caller_a", "lock_caller_b", "lock_caller_c")


def mark(target):
    target.proc.send_signal(signal.SIGUSR1)
    return json.loads(target.read_line("MARK")[len("MARK"):])


def functions(account):
    """{function: (count, ns)} of a block account."""
    return {name: (v["count"], v["ns"]) for t in account["threads"]
            for name, v in t["functions"].items()}


def between(before, after):
    a, b = functions(before), functions(after)
    return {k: (b[k][0] - a[k][0], b[k][1] - a[k][1]) for k in b}


def by_function(p, names):
    """{function: [contentions, delay]} of the samples below it."""
    found = {n: [0, 0] for n in names}
    for s in pprof_check.samples(p):
        for f in s["frames"]:
            if f["name"] in found:
                found[f["name"]][0] += s["values"]["contentions"]
                found[f["name"]][1] += s["values"]["delay"]
                break
    return found


class Blocks:
    """Recordings of fixtures/profiles.c, mode block: what the profiles say of
    each function, what the fixture has measured, and on how many stacks the
    former rests."""

    def __init__(self, profile, target, *args):
        self.got, self.truth, self.stacks, self.part = {}, {}, 0, 1
        # So many are told in some 2 to 4 s; fewer where others switch a lot too.
        for _ in range(8):
            self.record(profile, target, *args)
            if self.stacks > 400:
                break
        assert self.stacks > 200, self.stacks

    def record(self, profile, target, *args):
        marks = []

        def begun():
            """The accounts are of the recording's time, not of the tool's start and end."""
            marks.append(mark(target))
            end = time.monotonic() + 4

            def over():
                if time.monotonic() < end:
                    return False
                marks.append(mark(target))
                return True
            return over

        _, p = profile(target.pid, "--profile", "block", *args, status=(0, 1), until=begun)
        self.add(p, between(*marks))

    def add(self, p, truth):
        assert [(p.string_table[t.type], p.string_table[t.unit])
                for t in p.sample_type] == [("contentions", "count"),
                                            ("delay", "nanoseconds")]
        how, = (c for c in pprof_check.comments(p) if c.startswith("block: "))
        self.stacks += int(re.search(r"; (\d+) stacks", how).group(1))
        part = re.search(r"recorded ([\d.]+) % of the time", how)
        self.part = min(self.part, float(part.group(1)) / 100 if part else 1)
        for sums, more in ((self.got, by_function(p, truth)),
                           (self.truth, truth)):
            for name, (count, ns) in more.items():
                was = sums.get(name, (0, 0))
                sums[name] = was[0] + count, was[1] + ns

    def check(self, *parts, column=1):
        """Each of PARTS, functions whose names begin or end so, has its share:
        it rests on as many of the stacks as it has of the waits, each of which
        stands for as much; four standard deviations.  Long waits are known one
        by one, but for the first and the last.  Where others switch so much
        that switches are recorded a part of the time the rest is supposed to
        be alike.  COLUMN: 0 counts, 1 time."""
        base = 0.02 if self.part > 0.9 else 0.05
        all_got, all_truth = (sum(v[column] for v in sums.values())
                              for sums in (self.got, self.truth))
        waits = sum(v[0] for v in self.truth.values())
        for part in parts:
            names = [n for n in self.truth
                     if n.startswith(part) or n.endswith(part)]
            have = sum(self.got[n][column] for n in names) / all_got
            want = sum(self.truth[n][column] for n in names) / all_truth
            short = [n for n in names if not n.endswith("long")]
            stacks = (self.stacks * sum(self.truth[n][0] for n in short) /
                      waits)
            share = sum(self.truth[n][column] for n in short) / all_truth
            bound = base + 4 * max(share / max(1, stacks) ** 0.5,
                                   want * (1 - want) / self.stacks ** 0.5)
            assert abs(have - want) < bound, (part, have, want, bound,
                                              self.got, self.truth)


@pytest.mark.alone
def test_block_shares(start, profile):
    target = start("profiles", "block")
    blocks = Blocks(profile, target)
    target.assert_unharmed()
    blocks.check(*blocks.truth, *KINDS, *LENGTHS)
    # A wait for a lock may be several of the kernel's.
    for sums in (blocks.got, blocks.truth):
        for name in [n for n in sums if n.startswith("mutex")]:
            del sums[name]
    blocks.check(*blocks.truth, *LENGTHS, column=0)


@pytest.mark.alone
def test_block_shares_under_load(start, profile):
    start("profiles", "cpu", 4)
    target = start("profiles", "block")
    blocks = Blocks(profile, target)
    blocks.check(*KINDS, *LENGTHS)
    target.assert_unharmed()


@pytest.mark.alone
@pytest.mark.parametrize("rate", ["1/1", "1/13", "2ms"])
def test_block_rate_changes_no_share(start, profile, rate):
    target = start("profiles", "block")
    blocks = Blocks(profile, target, "--block-rate", rate)
    blocks.check(*KINDS, *LENGTHS)
    target.assert_unharmed()


def test_block_labels(start, profile):
    target = start("profiles", "block")
    # Where others switch much, few stacks are told.
    _, p = profile(target.pid, "--profile", "block", "-d", 2, status=(0, 1))
    waits = {"cond": "condvar", "pipe": "pipe", "sleep": "sleep",
             "epoll": "poll", "mutex": "lock"}
    seen = {}
    for s in pprof_check.samples(p):
        if s["labels"]["state"] == "runnable":
            assert not s["values"]["contentions"], s
            continue
        assert s["labels"]["state"] == "waiting"
        names = [f["name"] for f in s["frames"]]
        for name in names:
            m = re.fullmatch(r"([a-z]+)_(short|middle|long)", name)
            if m:
                # It asks for the lock to be taken, and waits for the answer.
                kind = "pipe" if "wait_until_held" in names else m[1]
                key = kind, s["labels"]["wait"]
                seen[key] = seen.get(key, 0) + s["values"]["delay"]
                assert s["labels"]["thread"] == m[1]
    for kind, wait in waits.items():
        here = {w: ns for (k, w), ns in seen.items() if k == kind}
        assert here[wait] / sum(here.values()) > 0.99, (kind, here)


@pytest.mark.alone
def test_waiting_is_apart_from_waiting_for_a_cpu(start, tmp_path):
    """Spinners make woken threads wait for a CPU.  Of each thread, the block
    profile's waiting is the wall profile's, which is what the scheduler leaves:
    neither running nor in a run queue."""
    for _ in range(2):
        start("spinner", 2)
    target = start("profiles", "block")
    wallprof("-p", target.pid, "-d", 4, "--profile", "wall,cpu,block",
             output=tmp_path / "x.pb.gz").check((0, 1))
    target.assert_unharmed()
    wall = pprof_check.load(str(tmp_path / "x.pb.gz"))
    block = pprof_check.load(str(tmp_path / "x.block.pb.gz"))
    pprof_check.validate(block)
    waits = [sum(s["values"][value] for s in pprof_check.samples(p)
                 if s["labels"]["state"] == "waiting")
             for p, value in ((wall, "wall"), (block, "delay"))]
    queued = sum(s["values"]["delay"] for s in pprof_check.samples(block)
                 if s["labels"]["state"] == "runnable")
    assert abs(waits[1] / waits[0] - 1) < 0.01, waits
    assert queued > 0.01 * waits[0], (queued, waits)


def test_who_wakes_is_told(start, tmp_path):
    """Three wait for a lock: the holder wakes them, or each other; those that nap
    are woken by the timer's interrupt.

    No CPU is idle meanwhile: on one machine (Linux 6.18, 2 CPUs) perf record, too,
    has no sample of any event that comes while the second CPU is, though perf stat
    counts it, and whom such an interrupt wakes nobody can tell.
    """
    for _ in range(os.cpu_count()):
        start("spinner", 1)
    target = start("profiles", "hold", "sleep")
    wallprof("-p", target.pid, "-d", 3, "--profile", "block",
             output=tmp_path / "x.pb.gz").check((0, 1))
    target.assert_unharmed()
    samples = pprof_check.samples(pprof_check.load(str(tmp_path / "x.pb.gz")))
    threads = {f"{s['labels']['thread']} ({s['labels']['tid']})"
               for s in samples}
    wakers = {"lock": threads, "sleep": {"interrupt"}}
    for wait, known in wakers.items():
        by = {}
        for s in samples:
            if s["labels"].get("wait") == wait:
                who = s["labels"].get("woken by")
                by[who] = by.get(who, 0) + s["values"]["delay"]
        told = sum(ns for who, ns in by.items() if who in known)
        not_told = by.get(None, 0)
        assert told > 0.9 * (sum(by.values()) - not_told), (wait, by)
        # The rest is long waits of before the first and after the last record.
        assert not_told < 0.5 * sum(by.values()), (wait, by)


def delay(p, keep):
    return sum(s["values"]["delay"] for s in pprof_check.samples(p)
               if keep({f["name"] for f in s["frames"]}))


def queued_ns(target, account):
    """For how long the callers have waited for a CPU."""
    total = 0
    for w in account["waiters"]:
        with open(f"/proc/{target.pid}/task/{w['tid']}/schedstat") as f:
            total += int(f.read().split()[1])
    return total


def two_sides(target, out):
    """What callers waited, what it is told to be caused by, what the fixture
    has measured, and how much of that may be waiting for a CPU behind the wait,
    each as a share of one thread's time; how often each caller waited; what part of
    the time switches were recorded; the mutex profile; and the Run."""
    begin, before = time.monotonic_ns(), mark(target)
    queued = -queued_ns(target, before)
    run = wallprof("-p", target.pid, "-d", 4, "-r", 1000, "--max-stopped", 0,
                   "--profile", "block,mutex", output=out).check((0, 1))
    end, after = time.monotonic_ns(), mark(target)
    queued += queued_ns(target, after)
    assert not os.path.exists(out)
    block = pprof_check.load(str(out).replace(".pb.gz", ".block.pb.gz"))
    mutex = pprof_check.load(str(out).replace(".pb.gz", ".mutex.pb.gz"))
    for p in (block, mutex):
        pprof_check.validate(p)
    ns, count = (sum(w[key] for w in after["waiters"]) -
                 sum(w[key] for w in before["waiters"])
                 for key in ("ns", "count"))
    truth = ns / (end - begin)
    waited = delay(block, lambda names: names & set(CALLERS))
    caused = delay(mutex, lambda names: True)
    part = float(re.search(r"recorded ([\d.]+) %", "\n".join(
        pprof_check.comments(block))).group(1)) / 100
    return (waited / block.duration_nanos, caused / block.duration_nanos,
            truth, queued / (end - begin), count / len(after["waiters"]), part,
            mutex, run)


@pytest.mark.parametrize("how", ["sleeping", "spinning"])
def test_two_sides_of_one_lock(start, tmp_path, how):
    """What callers wait is what the holder makes them wait."""
    target = start("profiles", "hold",
                   {"sleeping": "sleep", "spinning": "spin"}[how])
    waited, caused, truth, queued, count, part, mutex, run = two_sides(
        target, tmp_path / "x.pb.gz")
    target.assert_unharmed()
    # That is told by ticks; all callers wait for the same release.
    bound = 0.05 + len(CALLERS) * tolerance(mutex, 2 * count) / truth
    what = (f"waited {waited}, caused {caused}, truth {truth}, queued {queued},"
            f" bound {bound}, recorded {part}")
    # Whoever is woken may wait for a CPU before it has the lock.
    assert 1 - bound - queued / truth < caused / truth < 1 + bound, what
    # Switches are recorded in windows of ten ticks, and where others switch often
    # these are a sample of the time.
    bound += 3 * math.sqrt((1 - part) / (400 * part))
    assert 1 - bound - queued / truth < waited / truth < 1 + bound, what
    assert abs(caused / waited - 1) < bound, what
    blamed = delay(mutex, lambda names: "hold_" + how in names)
    named = delay(mutex, lambda names: not any(n[0] == "[" for n in names))
    assert blamed / named > 0.95
    # Some stops come too late, and are said to.  A holder that sleeps needs none.
    made, late = (run.counter(said) for said in ("made", "not in time"))
    in_time = made / (made + late) if late else 1
    assert named / delay(mutex, lambda names: True) > 0.75 * in_time, run.err


def test_a_lock_without_an_owner_is_kept_and_said(start, profile):
    """Rust's, glibc's own locks, ...: here a lock of the fixture's."""
    target = start("hang-musl", "abba", "normal")
    _, p = profile(target.pid, "--profile", "mutex", "-d", 1)
    roots = {s["frames"][-1]["name"] for s in pprof_check.samples(p)}
    assert "[holder not recorded, those who waited]" in roots
