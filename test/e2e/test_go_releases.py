# SPDX-License-Identifier: Apache-2.0
"""Goroutines and Go's own profiles of every version of Go that Debian has,
against what the program's runtime says of the same moment."""
import signal

import pytest

import go_books
import goroutine_text
from conftest import wallprof
from go_releases import build

VERSIONS = ["1.21", "1.22", "1.23", "1.24", "1.25", "1.26", "1.27"]
STRIPPED = ("-ldflags", "-s -w")
COUNT = 40
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


@pytest.mark.parametrize("args", [(), STRIPPED], ids=["plain", "stripped"])
@pytest.mark.parametrize("version", VERSIONS)
def test_goroutines(version, args, start, tmp_path):
    truth = tmp_path / "truth"
    target = start(build(version, "parked", tmp_path / "parked", *args), COUNT,
                   truth)
    run = wallprof("dump", "-f", "go", "-p", target.pid).check()
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
