# SPDX-License-Identifier: Apache-2.0
"""Every line of a dump is true of a program that changes all the time: of
fixtures/busy.c, which keeps account of what each of its threads does, since
when, and who holds what."""
import json
import mmap
import re
import struct
import time

import pytest

from conftest import wallprof
from hangs import Dump

KINDS = ("sleep", "sleep_until", "lock", "not_empty", "not_full", "poll",
         "read", "spin")
STEP = struct.Struct("5Q")
QUEUE = 3
FOREVER = 1 << 63
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
# Clocks of CPUs and of the whole system differ by less.
SKEW_NS = 300_000
# A CPU's clock stands while a virtual machine's host takes the CPU: a wait may
# be said to be as much shorter than it is, never longer (wallprof/sched.h).
STOLEN_NS = 20_000_000


class Span:
    """Time from .begin to .end, .end being FOREVER while it goes on."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end or FOREVER

    def __repr__(self):
        return f"{self.begin / 1e6:.3f}-{self.end / 1e6:.3f}"


class Account:
    """What the program says of itself."""

    def __init__(self, target, path):
        truth = json.loads(target.ready.split(" ", 2)[2])
        self.nsteps = truth["steps"]
        self.nmutexes = truth["mutexes"]
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        head = struct.unpack_from(f"{self.nmutexes + 2}Q", self.data)
        self.mutexes = {a: i for i, a in enumerate(head[:self.nmutexes])}
        self.conds = dict(zip(head[self.nmutexes:], ("not_empty", "not_full")))
        self.offsets = {}
        at = struct.calcsize(f"{self.nmutexes + 2}Q")
        for _ in range(truth["threads"]):
            self.offsets[self.word(at)] = at
            at += 24 + 2 * self.nsteps * STEP.size
        self.threads, self.held = {}, {}

    def word(self, at):
        return struct.unpack_from("Q", self.data, at)[0]

    def entries(self, at, n, since):
        """Of the ring at AT with N entries so far, those that overlap SINCE or
        are later, by their last or second last field; newest first."""
        for i in range(n - 1, max(-1, n - self.nsteps // 2), -1):
            entry = STEP.unpack_from(self.data,
                                     at + i % self.nsteps * STEP.size)
            yield entry
            if 0 < entry[3] < since:
                return
        assert n < self.nsteps // 2, "the account does not reach back to SINCE"

    def read(self, since):
        """What was done from SINCE on."""
        self.threads, holds = {}, {}
        for tid, at in self.offsets.items():
            self.threads[tid] = [
                (KINDS[kind], arg, Span(begin, end), busy)
                for kind, arg, begin, end, busy in self.entries(
                    at + 24, self.word(at + 8), since)]
            for mutex, *times in self.entries(
                    at + 24 + self.nsteps * STEP.size, self.word(at + 16),
                    since):
                holds.setdefault(mutex, []).append((tid, *times))
        self.held = {}
        for mutex, all_of in holds.items():
            all_of.sort(key=lambda h: h[2])
            left = 0
            # It can be had from when the one before begins to give it back.
            for tid, want, _, leave, done in all_of:
                self.held.setdefault((mutex, tid), []).append(
                    Span(max(want, left), done))
                left = leave


def merged(spans):
    """The same times in order, none twice."""
    ret = []
    for s in sorted(spans, key=lambda s: s.begin):
        if ret and s.begin <= ret[-1].end:
            ret[-1] = Span(ret[-1].begin, max(ret[-1].end, s.end))
        else:
            ret.append(s)
    return ret


def overlaps(spans, others):
    """The times that are in one of SPANS and in one of OTHERS."""
    a, b, both = merged(spans), merged(others), []
    i = j = 0
    while i < len(a) and j < len(b):
        both.append(Span(max(a[i].begin, b[j].begin), min(a[i].end, b[j].end)))
        if a[i].end < b[j].end:
            i += 1
        else:
            j += 1
    return [s for s in both if s.begin <= s.end]


def duration(text, pattern):
    """The time in TEXT at PATTERN's %, in ns, and how exact it is."""
    found = re.search(pattern.replace("%", r"([\d.]+) (ns|us|ms|s)"), text)
    if not found:
        return None, 0
    digits = len(found[1].partition(".")[2])
    unit = UNITS[found[2]]
    return float(found[1]) * unit, unit * 10 ** -digits


class Claims:
    """What a dump says of one thread, against the account."""

    def __init__(self, dump, account, window, tid):
        self.account, self.window = account, window
        self.thread = dump.threads[tid]
        self.tid = tid
        self.kind = next((n[5:] for n in dump.functions(tid)
                          if n.startswith("step_")), None)

    def false(self, why, spans=()):
        return (f"{why}: {self.thread['call']} {self.thread['wait']} "
                f"{self.thread['waited_ns']} {self.thread['lock']} "
                f"moved {self.thread['moved']} in {self.window} {spans} "
                f"{[s[:3] for s in self.steps() if s[0] == self.kind]} "
                f"{self.account.held.get(self.lock(), '')}")

    def steps(self):
        """Its steps in the window."""
        return [s for s in self.account.threads[self.tid]
                if s[2].end >= self.window.begin
                and s[2].begin <= self.window.end]

    def fits(self, kind, argument, span, when):
        """Are the arguments of the call those of a step, if it is looked at
        at WHEN?  That time is in a Span."""
        call = self.thread["call"]
        if kind == "sleep":
            ns, exact = duration(call, "clock_nanosleep %$")
            return ns is None or abs(ns - argument) <= exact
        if kind == "sleep_until":
            ns, exact = duration(call, "clock_nanosleep for % more$")
            if ns is None:
                return "nanosleep" in call and " s" not in call
            slack = exact + SKEW_NS
            when.begin = max(when.begin, argument - ns - slack)
            when.end = min(when.end, argument - ns + slack if ns else
                           FOREVER)
            return when.begin <= when.end
        if kind == "poll":
            ns, _ = duration(call, "at most %$")
            return ns is None or ns == argument * 1e6
        if kind == "read":
            return call.startswith("read fd ")
        return True

    def when(self):
        """The times at which all that is said of it alone is true."""
        waited = self.thread["waited_ns"]
        times = []
        for kind, argument, span, busy in self.steps():
            when = Span(max(span.begin, self.window.begin),
                        min(span.end, self.window.end))
            if kind != self.kind:
                continue
            if self.thread["state"] == "waiting":
                if waited is not None:
                    when.begin = max(when.begin, span.begin + waited - SKEW_NS)
                    # One wait, which may have begun late for want of a CPU.
                    if (kind in ("sleep", "sleep_until", "poll", "read")
                            and span.end != FOREVER):
                        when.end = min(when.end, span.begin + busy + STOLEN_NS +
                                       waited * 17 / 16)
                if not self.fits(kind, argument, span, when):
                    continue
            if when.begin <= when.end:
                times.append(when)
        return times

    def lock(self):
        """The mutex that it waits for, None if it is said to wait for none;
        and who holds it."""
        lock = self.thread["lock"]
        if not lock or lock["kind"] != "mutex":
            return None, None
        return (self.account.mutexes[int(lock["address"], 16)],
                lock["owner_tid"] if lock["holder"] == "thread" else None)

    def lock_told(self):
        """For a message: its lock, who held that, and its own steps."""
        mutex, holder = self.lock()
        if mutex is None:
            return ""
        return (f"mutex {mutex} of {holder} "
                f"{self.account.held.get((mutex, holder))} by "
                f"{[(a, s) for k, a, s, _ in self.steps() if k == 'lock']}")

    def with_holder(self, times):
        """The TIMES at which what is said of its lock is true, too."""
        mutex, holder = self.lock()
        lock = self.thread["lock"]
        if lock and lock["kind"] == "condvar" and self.account.conds.get(
                int(lock["address"], 16)) != self.kind:
            return []
        if mutex is None:
            return times
        wants = (mutex == QUEUE if self.kind != "lock" else
                 any(k == "lock" and a == mutex for k, a, _, _ in self.steps()))
        if not wants:
            return []
        if self.kind == "lock":
            times = overlaps(times, [s for k, a, s, _ in self.steps()
                                     if (k, a) == ("lock", mutex)])
        if holder is None:
            return times
        return overlaps(times, self.account.held.get((mutex, holder), []))


def shown(spans):
    return spans if len(spans) < 4 else f"{len(spans)} times"


def false_lines(dump, account, window):
    """The lines of DUMP that no moment of WINDOW makes true."""
    account.read(window.begin)
    together, others = [window], []
    for tid in account.offsets:
        claims = Claims(dump, account, window, tid)
        t = claims.thread
        if claims.kind is None:
            continue
        times = claims.when()
        if not times:
            yield claims.false(f"{tid} in {claims.kind}")
            continue
        with_holder = claims.with_holder(times)
        if not with_holder:
            yield claims.false(f"{tid} its lock", times)
            continue
        if t["moved"] or t["state"] != "waiting":
            continue
        both = overlaps(together, with_holder)
        if not both:
            yield (f"{tid} not at the moment of the others: "
                   f"{shown(with_holder)} {t['call']} {t['waited_ns']} "
                   f"{t['lock']} in {window}, "
                   f"{account.held.get(claims.lock(), '')}; "
                   + "; ".join(others))
            continue
        together = both
        others.append(f"{tid} {shown(with_holder)} {t['call']} "
                      f"{t['waited_ns']} -> {shown(together)} "
                      f"{claims.lock_told()}")
    for edge in dump.edges:
        if edge["kind"] == "lock":
            t = dump.threads[edge["from_tid"]]
            if t["moved"] or t["lock"]["owner_tid"] != edge["to_tid"]:
                yield f"edge {edge} of {t}"
    for cycle in dump.cycles:
        yield f"deadlock {cycle}"


def look(target, account):
    """Lines, of which those that are false, threads that moved, and those whose
    time is known."""
    begin = time.monotonic_ns()
    dump = Dump(target.pid, statuses=(0, 1))
    window = Span(begin, time.monotonic_ns())
    wrong = list(false_lines(dump, account, window))
    told = [t for t in dump.threads.values() if t["state"] == "waiting"]
    return (len(dump.threads), wrong, sum(t["moved"] for t in told),
            sum(t["waited_ns"] is not None for t in told), len(told))


def look_often(start, tmp_path, times):
    path = tmp_path / "account"
    target = start("busy", path)
    account = Account(target, path)
    sums, wrong = [0] * 4, []
    for _ in range(times):
        lines, bad, *numbers = look(target, account)
        wrong += bad
        sums = [a + b for a, b in zip(sums, (lines, *numbers))]
    target.assert_unharmed()
    print(f"{times} dumps, {sums[0]} threads, {len(wrong)} false; "
          f"{sums[3]} wait, {sums[1]} of them moved, of {sums[2]} it is said "
          f"how long")
    assert not wrong, "\n".join(wrong[:20])
    # Not for want of lines.
    assert sums[2] > sums[3] / 4, sums


def test_every_line_of_a_busy_program_is_true(start, tmp_path):
    look_often(start, tmp_path, 30)


@pytest.mark.soak
def test_every_line_of_a_busy_program_is_true_for_long(start, tmp_path):
    look_often(start, tmp_path, 1000)


def test_text_says_what_json_says(start, tmp_path):
    target = start("busy", tmp_path / "account")
    run = wallprof("--threads", "-p", target.pid)
    assert not re.search(r"sleep 0\.0+ s", run.out), run.out
    assert "DEADLOCK" not in run.out, run.out


def test_threads_that_spin_on_a_busy_machine_have_stacks(start):
    for _ in range(3):
        start("spinner", "1")
    target = start("spinner", "8")
    for _ in range(4):
        dump = Dump(target.pid)
        spins = [t for t in dump.threads if "spin" in dump.functions(t)]
        assert len(spins) == 8, [(t["name"], t["state"], t["truncated"])
                                 for t in dump.threads.values()]
    target.assert_unharmed()


def test_no_stack_has_a_reason(start):
    target = start("spinner", "2")
    run = wallprof("--threads", "--stop=never", "-p", target.pid)
    assert run.status == 1, run.out
    reasons = re.findall(r"\[no stack.*", run.out)
    assert set(reasons) == {
        "[no stack: running, and threads are not to be stopped]"}, run.out
    assert run.err == ("wallprof: exit status 1: 2 of 3 threads were lost or have no "
                       "whole stack\n")
