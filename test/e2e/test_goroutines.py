# SPDX-License-Identifier: Apache-2.0
"""Goroutines of Go programs, read from memory, against what the runtime itself
says of the same moment: all of them are parked, so each must be equal."""
import collections
import json
import os
import platform
import re
import signal

import jsonschema
import pytest

import goroutine_text
import pprof_check
from conftest import ROOT, wallprof

COUNT = 40
KINDS = 12
# The thread that polls for all of them has its caller in a register there, which a dump
# of a thread that is not stopped does not have.
STATUSES = (0, 1) if platform.machine() == "aarch64" else (0,)
PROGRAMS = ["parked", "parked-stripped", "parked-pie", "parked-cgo"]


@pytest.fixture
def parked(start, tmp_path):
    def begin(name="parked", count=COUNT):
        target = start(name, count, tmp_path / "truth")
        return target
    return begin


def truth_of(target, tmp_path):
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("done")
    return goroutine_text.parse((tmp_path / "truth").read_text())


def dump_of(pid, *args):
    run = wallprof("--threads", "-f", "json", *args, "-p", pid).check(STATUSES)
    dump = json.loads(run.out)
    jsonschema.validate(dump, json.loads(
        (ROOT / "test/data/dump.schema.json").read_text()))
    return dump["processes"][0]


def is_of_the_test(goroutine):
    """The one that writes the truth, and the one that hands it the signal."""
    return any(f[0] in ("main.main", "os/signal.loop")
               for f in goroutine.frames)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_goroutine_is_as_the_runtime_says(parked, program, tmp_path):
    target = parked(program)
    process = dump_of(target.pid)
    truth = truth_of(target, tmp_path)
    target.assert_unharmed()
    mine = goroutine_text.of_dump(process)
    assert process["go_error"] == "" and process["lost_goroutines"] == 0
    assert len(truth) >= KINDS * COUNT
    wrong = []
    for goid, want in truth.items():
        got = mine.pop(goid)
        got = got._replace(frames=goroutine_text.without_wrappers(got, want))
        if not is_of_the_test(want) and got != want:
            wrong.append((goid, got, want))
    assert not wrong, (len(wrong), wrong[0])
    # What else there is are the runtime's own, which it does not print.
    for g in mine.values():
        assert g.created[0].startswith("runtime.") or \
            g.frames == (), g
    cut = [g for g in process["goroutines"] if g["truncated"]]
    assert not cut, cut[0]
    assert all(g["frames"][-1]["function"] == "runtime.goexit"
               for g in process["goroutines"] if g["frames"])


@pytest.mark.parametrize("program", ["parked", "parked-stripped",
                                     "parked-pie"])
def test_the_runtimes_own_text(parked, program, tmp_path):
    """Down to how far each pc is behind the start of its function."""
    target = parked(program)
    run = wallprof("dump", "-f", "go", "-p", target.pid).check(STATUSES)
    truth = truth_of(target, tmp_path)
    truth = goroutine_text.parse((tmp_path / "truth").read_text(), True)
    target.assert_unharmed()
    mine = goroutine_text.parse(run.out, True)
    wrong = []
    for goid, want in truth.items():
        got = mine.pop(goid)
        got = got._replace(frames=goroutine_text.without_wrappers(got, want))
        if not is_of_the_test(want) and got != want:
            wrong.append((goid, got, want))
    assert not wrong, (len(wrong), wrong[0])
    # The runtime's own have nothing that is shown; of one that runs it is not known.
    assert all(g.reason == "running" and not g.frames for g in mine.values()), mine
    assert len(truth) >= KINDS * COUNT


@pytest.mark.parametrize("program", ["parked-stripped", "parked-pie"])
def test_what_each_waits_for(parked, program):
    """Channels and locks by the addresses that the program has for them."""
    target = parked(program)
    process = dump_of(target.pid)
    target.assert_unharmed()
    right = goroutine_text.compare_waits(process, target.read_line("WAITS"))
    assert right >= KINDS * COUNT
    polled = [(g, w) for g in process["goroutines"] for w in g["waits_for"]
              if w["kind"] == "fd"]
    (g, wait), = polled
    assert g["reason"] == "IO wait" and \
        "os.(*File).Read" in [f["function"] for f in g["frames"]]
    link = os.readlink(f"/proc/{target.pid}/fd/{wait['fd']}")
    assert wait["text"] == f"{link}, to read" and link.startswith("pipe:")


def test_who_waits_for_one_lock(parked):
    target = parked()
    run = wallprof("--threads", "--group", "-p", target.pid).check(STATUSES)
    target.assert_unharmed()
    waits = re.search("mutex=(0x[0-9a-f]+) rw=(0x[0-9a-f]+)",
                      target.read_line("WAITS"))
    locks = re.findall(r"^(\d+) goroutines wait for (\S+) (\S+), (.*); Go does "
                       "not note by whom$", run.out, re.M)
    assert locks == [
        (str(2 * COUNT), "sync.RWMutex", waits.group(2), "held by a writer"),
        (str(COUNT), "sync.Mutex", waits.group(1), "held")]


def test_a_c_program_has_no_such_text(start):
    target = start("spinner")
    run = wallprof("dump", "-f", "go", "-p", target.pid).check(2)
    assert "has no goroutines: not a Go program" in run.err


def test_labels_and_times(parked, tmp_path):
    target = parked()
    process = dump_of(target.pid)
    target.assert_unharmed()
    kinds = collections.Counter()
    for g in process["goroutines"]:
        functions = [f["function"] for f in g["frames"]]
        if "main.deep" not in functions:
            continue
        kinds[bool(g["labels"])] += 1
        if g["labels"]:
            keys, values = zip(*g["labels"])
            assert keys == ("kind", "n") and values[0] == "parked"
            assert int(values[1]) % 3 == 0
        # Two collections met every one of these in its wait.
        if g["state"] == "waiting":
            assert 0 < g["waited_ns"] < 200 * 10**9
    labelled = KINDS * len(range(0, COUNT, 3))
    assert kinds[True] in range(labelled, labelled + 10), kinds
    assert kinds[False] >= KINDS * (COUNT - len(range(0, COUNT, 3)))


def test_groups(parked):
    target = parked()
    run = wallprof("--threads", "--group", "-p", target.pid).check(STATUSES)
    target.assert_unharmed()
    heads = re.findall(r"^(\d+) goroutines \[([^\]]*)\] at (\S+) .*:"
                       r"((?: \d+,?)+)(?: and (\d+) more)?$", run.out, re.M)
    total = collections.Counter()
    for n, _, site, ids, more in heads:
        assert int(n) == len(ids.split()) + int(more or 0)
        total[site] += int(n)
    alone = re.findall(r"^goroutine \d+ \[[^\]]*\].* at (\S+)", run.out, re.M)
    total.update(alone)
    assert total["main.receive"] == COUNT and total["main.lock"] == COUNT, total
    assert re.search(r"^\d+ goroutines of go1\.\d+", run.out, re.M)


@pytest.mark.parametrize("program", ["parked", "parked-stripped"])
def test_the_profile_counts_goroutines(parked, program, tmp_path):
    target = parked(program)
    out = tmp_path / "g.pb.gz"
    wallprof("dump", "--profile", "goroutine", "-p", target.pid,
             output=out).check()
    truth = truth_of(target, tmp_path)
    target.assert_unharmed()
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    sites, labelled, waits = (collections.Counter() for _ in range(3))
    for s in pprof_check.samples(p):
        n = s["values"]["goroutine"]
        names = [f["name"] for f in s["frames"]]
        assert names[-1] == "runtime.goexit", names
        main = [n for n in names if n.startswith("main.")]
        if "main.deep" not in main:
            continue
        sites[main[0]] += n
        waits[s["labels"]["wait"]] += n
        assert ("n" in s["labels"]) == ("kind" in s["labels"])
        labelled[s["labels"].get("kind")] += n
    want = collections.Counter(
        next(f[0] for f in g.frames if f[0].startswith("main."))
        for g in truth.values() if ("main.deep" in [f[0] for f in g.frames]))
    assert sites == want
    assert waits == collections.Counter(
        g.reason for g in truth.values()
        if "main.deep" in [f[0] for f in g.frames])
    assert labelled["parked"] >= KINDS * len(range(0, COUNT, 3))


def test_a_c_program_has_no_such_profile(start):
    target = start("spinner")
    run = wallprof("dump", "--profile", "goroutine", "-f", "pprof", "-p",
                   target.pid).check(2)
    assert "has no goroutines: not a Go program" in run.err


def test_a_c_program_has_none(start):
    target = start("spinner")
    process = dump_of(target.pid)
    assert process["goroutines"] == [] and process["go_version"] == ""
    assert process["go_error"] == ""
    assert "goroutine" not in wallprof("--threads", "-p", target.pid).out
