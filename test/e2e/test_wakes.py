# SPDX-License-Identifier: Apache-2.0
"""Who woke the threads that waited, against what fixtures/handoff.c has counted: each of
its threads is woken by something else."""
import json
import math
import os
import re
import subprocess
import sys

import pprof_check
import pytest

from conftest import FIXTURES, WALLPROF, wallprof

UNKNOWN = "[waker not recorded]"
# Interrupts of an idle CPU are no wakes to some kernels.
CLOCK = {"[interrupt]", UNKNOWN}


def record(out, *options, rounds, feeds_after_ms=0):
    """Wakes of fixtures/handoff.c from its start to its end, and its account."""
    run = wallprof("--profile", "block,wake", *options, "--",
                   FIXTURES / "handoff", rounds, feeds_after_ms, output=out, timeout=300)
    run.check((0, 1))
    truth = json.loads(re.search(r"TRUTH (.*)", run.out).group(1))
    wake = pprof_check.load(str(out).replace(".pb.gz", ".wake.pb.gz"))
    pprof_check.validate(wake)
    block = pprof_check.load(str(out).replace(".pb.gz", ".block.pb.gz"))
    return truth, wake, block


def total(p, woken, keep, value="wakes"):
    """Of the wakes of threads called WOKEN, those whose stack KEEP accepts."""
    return sum(s["values"][value] for s in pprof_check.samples(p)
               if s["labels"]["woken"].startswith(woken + " (")
               and keep([f["name"] for f in s["frames"]], s["labels"]))


def by(function, thread):
    return lambda names, labels: (function in names and
                                  labels["thread"] == thread)


def error_of(block):
    """How far a number of wakes may be told wrong: what is missing is of the first moment,
    before the threads were met; where a busy machine has gaps between windows, of a tenth
    of a second each, these are a sample."""
    text = "\n".join(pprof_check.comments(block))
    part = float(re.search(r"recorded ([\d.]+) %", text).group(1)) / 100
    windows = block.duration_nanos / 1e8 * part
    return 0.05 + 3 * math.sqrt((1 - part) / windows)


@pytest.mark.alone
def test_who_wakes_whom(tmp_path):
    truth, wake, block = record(tmp_path / "x.pb.gz", rounds=800)
    assert [wake.string_table[t.type] for t in wake.sample_type] == [
        "wakes", "delay"]

    def assert_near(got, want):
        assert abs(got / want - 1) < error_of(block), (got, want)

    assert_near(total(wake, "taker", by("let_go", "holder")), truth["taker"])
    much, little = (total(wake, "worker", by(function, "maker"))
                    for function in ("make_much", "make_little"))
    assert_near(much + little, truth["worker"])
    # About half of the stacks are the maker's; those of a busy moment weigh more.
    stacks = int(re.search(r"(\d+) stacks of threads that woke", "\n".join(
        pprof_check.comments(wake))).group(1)) / 2
    assert abs(much / (much + little) - 0.75) < 4 * math.sqrt(
        0.75 * 0.25 / stacks)
    assert_near(total(wake, "ticker",
                      lambda names, labels: names[0] in CLOCK and
                      labels["thread"] == "ticker"), truth["ticker"])
    assert_near(total(wake, "reader",
                      lambda names, labels:
                      names == ["[another process: feeder]"]), truth["reader"])
    # Nobody else wakes them but the end of the process, which wakes all its threads, and
    # nobody wakes for no reason.
    for woken in ("worker", "reader"):
        others = [s for s in pprof_check.samples(wake)
                  if s["labels"]["woken"].startswith(woken + " (") and
                  not {"make_much", "make_little", "[no stack]", UNKNOWN,
                       "[another process: feeder]"} &
                  {f["name"] for f in s["frames"]} and
                  not s["frames"][0].get("file", "").endswith("/_exit.c")]
        assert not others, woken
    waits = {s["labels"].get("wait") for s in pprof_check.samples(wake)
             if s["frames"][0]["name"] == "[interrupt]"}
    assert waits <= {"sleep", None}
    # The other side of the same waits, but for those whose end the kernel did not tell, and
    # for the last, which the main thread ends with the process: either side may miss those.
    for woken in ("taker", "worker", "reader"):
        delay = total(wake, woken,
                      lambda names, labels: names[0] not in (UNKNOWN, "_exit"), "delay")
        waited = sum(s["values"]["delay"] for s in pprof_check.samples(block)
                     if s["labels"]["thread"] == woken and
                     s["labels"]["state"] == "waiting" and
                     not s["labels"].get("woken by", "handoff (").startswith("handoff ("))
        assert abs(delay / waited - 1) < 0.05 + error_of(block), woken


def test_who_wakes_is_of_another_process_that_is_recorded(tmp_path):
    # It is met some milliseconds after it has started, a busy machine's tenths of a second.
    truth, wake, block = record(tmp_path / "x.pb.gz", "--children", rounds=300,
                                feeds_after_ms=1000)
    fed = total(wake, "reader", by("feed", "feeder"))
    unmet = total(wake, "reader", lambda names, labels:
                  any("another process" in name for name in names))
    assert unmet < 0.05 * truth["reader"], unmet
    assert abs(fed / truth["reader"] - 1) < 0.1 + error_of(block), (
        fed, truth)


# In a second of a busy machine there may be but two windows, and few stacks.
@pytest.mark.alone
@pytest.mark.parametrize("form", ["txt", "folded", "svg"])
def test_the_target_goes_on_as_it_did(start, tmp_path, form):
    target = start("handoff", 0)
    out = tmp_path / f"x.{form}"
    wallprof("-p", target.pid, "-d", 1, "--profile", "wake",
             output=out).check((0, 1))
    target.assert_unharmed()
    text = out.read_text()
    assert "let_go" in text and "make_much" in text
    if form == "txt":
        assert re.search(r" \d+  holder \(\d+\) wakes taker \(\d+\)", text)
        assert "wakes from perf events" in text


def test_wakes_of_two_processes_are_told_apart(start, tmp_path):
    targets = [start("handoff", 0) for _ in range(2)]
    pids = ",".join(str(t.pid) for t in targets)
    for out in (tmp_path / "x.pb.gz", tmp_path / "x.txt"):
        wallprof("-p", pids, "-d", 4, "--profile", "wake",
                 output=out).check((0, 1))
    for target in targets:
        target.assert_unharmed()
    wake = pprof_check.load(str(tmp_path / "x.pb.gz"))
    by_pid = {}
    for s in pprof_check.samples(wake):
        if s["labels"]["thread"] == "maker" and s["labels"]["woken"].startswith(
                "worker ("):
            by_pid.setdefault(s["labels"]["pid"], set()).add(
                s["labels"]["woken"])
    # Each maker wakes the worker of its own process, and no other.
    assert set(by_pid) == {t.pid for t in targets}, by_pid
    assert all(len(woken) == 1 for woken in by_pid.values()), by_pid
    assert (tmp_path / "x.txt").read_text().split("\n")[0].endswith(
        "handoff 0 and others")


# A thread that starts when more tids than a filter has room for have been given away.
LATE = """
import os, resource, threading, time
# The copies of its stack get as large as they need to be.
for _ in range(200):
    time.sleep(0.004)
for _ in range(400):
    time.sleep(0.001)
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
end, begin = os.pipe()
def late():
    # Filters are in time for it.
    time.sleep(0.5)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(200):
        os.read(end, 1)
    after = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    print("WAITS %d" % (after - before), flush=True)
thread = threading.Thread(target=late)
thread.start()
time.sleep(0.6)
for _ in range(200):
    time.sleep(0.004)
    os.write(begin, b"x")
thread.join()
"""


def test_a_thread_that_starts_late_is_told_who_wakes_it(tmp_path):
    run = wallprof("--profile", "block,wake", "--", sys.executable, "-c", LATE,
                   output=tmp_path / "x.pb.gz", timeout=120)
    run.check((0, 1))
    waits = int(re.search(r"WAITS (\d+)", run.out).group(1))
    wake = pprof_check.load(str(tmp_path / "x.wake.pb.gz"))
    block = pprof_check.load(str(tmp_path / "x.block.pb.gz"))
    by_main = sum(s["values"]["wakes"] for s in pprof_check.samples(wake)
                  if s["labels"].get("wait") == "pipe" and
                  any("write" in f["name"] for f in s["frames"]))
    assert abs(by_main / waits - 1) < 0.1 + error_of(block), (by_main, waits)


# A thread sends a byte to itself's peer over the loopback device, and waits.
LOOPBACK = """
import os, socket, threading, time
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
client = socket.create_connection(server.getsockname())
peer = server.accept()[0]
def receive():
    while peer.recv(1):
        pass
threading.Thread(target=receive, daemon=True).start()
print("READY pid=%d" % os.getpid(), flush=True)
while True:
    time.sleep(0.003)
    client.send(b"x")
"""


def test_a_packet_over_loopback_is_by_who_sent_it(start, tmp_path):
    """The kernel hands it over in a software interrupt, in the sender's own call."""
    target = start(sys.executable, "-c", LOOPBACK)
    wallprof("-p", target.pid, "-d", 2, "--profile", "wake",
             output=tmp_path / "x.pb.gz").check((0, 1))
    wake = pprof_check.load(str(tmp_path / "x.pb.gz"))
    received = [s for s in pprof_check.samples(wake)
                if s["labels"].get("wait") == "socket"]
    by_leaf = {}
    for s in received:
        names = [f["name"] for f in s["frames"]]
        # A busy kernel leaves it to a thread of its own.
        who = ("sender" if names[0] == "[software interrupt]" and
               any("send" in name for name in names) else
               "kernel" if "ksoftirqd" in names[0] else names[0])
        by_leaf[who] = by_leaf.get(who, 0) + s["values"]["wakes"]
    # Of the first wait of a window the waker is not recorded.
    others = sum(by_leaf.values()) - by_leaf.get("kernel", 0) - by_leaf.get(UNKNOWN, 0)
    assert by_leaf.get("sender", 0) > max(20, 0.9 * others, by_leaf.get(UNKNOWN, 0)), by_leaf


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
def test_wakes_in_a_pid_namespace_are_not_guessed(tmp_path):
    """The kernel tells of them in the numbers of the first one: a thread there with
    such a number is another."""
    out = tmp_path / "x.pb.gz"
    run = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", WALLPROF, "-o",
         out, "--profile", "block,wake", "--", FIXTURES / "handoff", "200"],
        capture_output=True, check=False, text=True, timeout=100)
    assert run.returncode in (0, 1), run.stderr
    assert "host's PID namespace" in run.stderr
    block = pprof_check.load(tmp_path / "x.block.pb.gz")
    assert any("host's PID namespace" in c for c in pprof_check.comments(block))
    assert pprof_check.samples(block)
    for s in pprof_check.samples(block):
        assert s["labels"].get("state") != "runnable", s
        assert "woken by" not in s["labels"], s
