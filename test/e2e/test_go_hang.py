# SPDX-License-Identifier: Apache-2.0
"""Verdicts of check over goroutines."""
import re
import signal

import pytest

from conftest import tids_of, wait_until, wallprof

DEADLOCK, STUCK, HEALTHY = 3, 4, 0


def check(target, status, interval="300ms"):
    return wallprof("check", target.pid, "-i", interval).check(status)


def waits(target, n):
    """Until N goroutines wait as they will."""
    def has_come():
        text = wallprof("dump", target.pid, "-q").out
        return len(re.findall(r"at main\.lockBoth ", text)) >= n
    wait_until(has_come)


@pytest.mark.parametrize("program", ["gohang", "gohang-stripped"])
def test_a_deadlock_of_mutexes(start, program):
    target = start(program, "deadlock")
    waits(target, 2)
    run = check(target, DEADLOCK)
    assert re.match(r"deadlock: all 3 goroutines of process \d+ wait for each "
                    r"other, one of them for a lock at main\.lockBoth "
                    r"gohang\.go:\d+: sync\.Mutex 0x[0-9a-f]+, held\n", run.out), \
        run.out
    target.assert_unharmed()


def test_a_lock_whose_holder_waits_for_a_signal(start):
    """Who holds a lock is written nowhere: it may be who waits for the signal."""
    target = start("gohang", "signal")
    wait_until(lambda: re.search(
        r"\[chan receive.*main\.signalLock(.*\n)*  waits for sync\.Mutex",
        wallprof("dump", target.pid, "-q").out))
    out = check(target, DEADLOCK).out
    assert re.match(r"deadlock: .*, held; unless a signal comes that one of "
                    r"them waits for\n", out), out
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("done")


@pytest.mark.parametrize("mode, reason, site, what", [
    ("leak", "chan send", "main.handle", "channel 0x[0-9a-f]+, unbuffered"),
    ("some", "chan send", "main.handle", "channel 0x[0-9a-f]+, unbuffered"),
    ("lock", "(semacquire|sync.Mutex.Lock)", "main.handleLocked",
     "sync.Mutex 0x[0-9a-f]+, held")])
def test_a_group_that_only_grows(start, mode, reason, site, what):
    target = start("gohang", mode)
    grown = re.compile(
        rf"no progress: goroutines of process \d+ only get more: \d+ wait "
        rf"\({reason}\) at {site} gohang\.go:\d+, \d+ more than [\d.]+ s before, "
        rf"and of those none has run or ended; created by main\.{mode} "
        rf"gohang\.go:\d+; one waits for {what}\n")
    # At its begin there are too few to say so.
    wait_until(lambda: wallprof("check", target.pid, "-i", "300ms").status)
    run = check(target, STUCK, "1s")
    assert grown.match(run.out), run.out
    target.assert_unharmed()


def test_a_queue_that_is_emptied_now_and_then(start):
    """Of its group older goroutines have ended, none that came after those that wait."""
    target = start("gohang", "queue")
    target.read_line("queued")
    outs = [check(target, HEALTHY).out for _ in range(4)]
    assert any(re.search(r"; of goroutines \d+ wait \(chan send\) at main\.handle "
                         r"gohang\.go:\d+, \d+ more than [\d.]+ s before, as in a "
                         r"queue: older ones have ended\n", out) for out in outs), outs
    target.assert_unharmed()


@pytest.mark.parametrize("mode", ["server", "pool", "idle", "ticker",
                                  "timer-lock", "timer-tick", "timer-final",
                                  "timer-group", "waitgroup"])
def test_what_is_healthy(start, mode):
    target = start("gohang", mode)
    for _ in range(3):
        check(target, HEALTHY)
    target.assert_unharmed()


@pytest.mark.parametrize("program", ["gocgo", "gocgo-stripped"])
@pytest.mark.parametrize("mode, status", [("-sleeps", HEALTHY),
                                          ("-waits", STUCK)])
def test_a_thread_of_c_may_call_back(start, program, mode, status):
    """One that will never run again unless Go wakes it may not."""
    target = start(program, mode)
    wait_until(lambda: "[chan receive" in wallprof("dump", target.pid, "-q").out)
    run = check(target, status)
    if status:
        assert "all 1 goroutines of process" in run.out, run.out
    target.assert_unharmed()


def test_a_thread_stands_for_its_process(start):
    """Also where it is named twice, and another process after it."""
    hung, healthy = start("gohang", "deadlock"), start("gohang", "server")
    waits(hung, 2)
    tid = next(t for t in tids_of(hung.pid) if t != hung.pid)
    check(hung, DEADLOCK)
    for pids in ((tid,), (tid, hung.pid), (hung.pid, tid, healthy.pid)):
        run = wallprof("check", "-p", ",".join(map(str, pids)), "-i",
                       "300ms").check(DEADLOCK)
        assert run.out.count(f'\nprocess {hung.pid} "') == 1, run.out
        run = wallprof("dump", "-p", ",".join(map(str, pids)))
        assert len(re.findall(rf"(?m)^process {hung.pid}\b", run.out)) == 1, run.out
        # A busy one may be met where the runtime has no whole stack.
        assert run.status in (0, 1), run.err
    hung.assert_unharmed()
    healthy.assert_unharmed()


@pytest.mark.soak
@pytest.mark.parametrize("mode, status", [
    ("server", HEALTHY), ("pool", HEALTHY), ("deadlock", DEADLOCK),
    ("leak", STUCK), ("lock", STUCK)])
def test_two_hundred_verdicts(start, mode, status):
    target = start("gohang", mode)
    if mode == "deadlock":
        waits(target, 2)
    elif status:
        wait_until(lambda: wallprof("check", target.pid, "-i",
                                    "300ms").status == status)
    for _ in range(200):
        check(target, status)
    target.assert_unharmed()
