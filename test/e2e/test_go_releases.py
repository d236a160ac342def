# SPDX-License-Identifier: Apache-2.0
"""Goroutines and Go's own profiles of every version of Go that Debian has,
against what the program's runtime says of the same moment."""
import collections
import json
import signal

import pytest

import go_books
import goroutine_text
import pprof_check
from conftest import wallprof
from go_releases import EXTERNAL, build

VERSIONS = ["1.19", "1.21", "1.22", "1.23", "1.24", "1.25", "1.26", "1.27"]
STRIPPED = ("-ldflags", "-s -w")
COUNT = 170
# The signal's, and the one that writes.
OF_THE_TEST = ("main.main", "os/signal.loop")

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("args", [(), STRIPPED], ids=["plain", "stripped"])
@pytest.mark.parametrize("version", VERSIONS)
def test_books(version, args, start, tmp_path):
    target = start(build(version, "books", tmp_path / "books", *args), tmp_path)
    counts = go_books.compare(target, tmp_path)
    target.assert_unharmed()
    assert counts["heap"] > 30 and counts["block"] >= 2 and counts["mutex"], \
        counts


@pytest.mark.parametrize("args", [
    (), STRIPPED, ("-buildmode=pie",), EXTERNAL],
    ids=["plain", "stripped", "pie", "cgo"])
@pytest.mark.parametrize("version", VERSIONS)
def test_goroutines(version, args, start, tmp_path):
    truth = tmp_path / "truth"
    target = start(build(version, "parked", tmp_path / "parked", *args), COUNT,
                   truth)
    run = wallprof("dump", "-f", "go", "-p", target.pid).check()
    process = json.loads(wallprof("dump", "-f", "json", "-p",
                                  target.pid).check().out)["processes"][0]
    assert goroutine_text.compare_waits(
        process, target.read_line("WAITS")) >= 12 * COUNT
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("done")
    target.assert_unharmed()
    mine = goroutine_text.parse(run.out, True)
    wrong, right = [], 0
    for goid, want in goroutine_text.parse(truth.read_text(), True).items():
        got = mine.get(goid)
        if any(f[0] in OF_THE_TEST for f in want.frames):
            continue
        if got:
            got = got._replace(
                frames=goroutine_text.without_wrappers(got, want))
        right += got == want
        if got != want:
            wrong.append((goid, got, want))
    assert not wrong, (len(wrong), wrong[0])
    assert right >= 12 * COUNT


def times_of(target):
    target.proc.send_signal(signal.SIGUSR1)
    return json.loads(target.read_line("TIMES")[len("TIMES"):])


@pytest.mark.parametrize("version", VERSIONS)
def test_recordings(version, start, profile, tmp_path):
    """Shares of wall time and CPU time by profiler label, as the goroutines measure
    them."""
    target = start(build(version, "goshares", tmp_path / "goshares", *STRIPPED),
                   8)
    before = times_of(target)
    _, p = profile(target.pid, "-d", 5)
    after = times_of(target)
    target.assert_unharmed()
    wall, cpu = collections.Counter(), collections.Counter()
    for s in pprof_check.samples(p):
        names = {f["name"] for f in s["frames"]}
        part = next((n for n in ("main.spin", "main.nap", "main.ask")
                     if n in names), None)
        wall[s["labels"].get("kind"), part] += s["values"]["wall"]
        cpu[s["labels"].get("kind"), "main.spin" in names] += \
            s["values"]["cpu"]
    for i, kind in enumerate("ab"):
        truth = [y - x for x, y in zip(before[i], after[i])]
        mine = [wall[kind, part] for part in ("main.spin", "main.nap",
                                              "main.ask")]
        for want, got in zip(truth, mine):
            assert abs(want / sum(truth) - got / sum(mine)) < 0.04, (truth, mine)
    # Nearly all that computes has its label.
    spins = sum(ns for (_, spins), ns in cpu.items() if spins)
    assert cpu["a", True] + cpu["b", True] > 0.95 * spins > 0, cpu


@pytest.mark.parametrize("version", VERSIONS)
def test_threads_at_rest_are_whole(version, start, tmp_path):
    """As the linker of each version writes their first functions."""
    target = start(build(version, "goroutines", tmp_path / "go", *STRIPPED))
    for _ in range(5):
        run = wallprof("dump", "-f", "json", "-p", target.pid).check((0, 1))
        for t in json.loads(run.out)["processes"][0]["threads"]:
            assert t["state"] != "waiting" or not t["truncated"], t
    target.assert_unharmed()
