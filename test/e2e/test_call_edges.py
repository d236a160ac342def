# SPDX-License-Identifier: Apache-2.0
"""Callers are callers, in programs that nobody here wrote: see call_edges.py."""
import json

import pytest

from call_edges import Code, Edges
from conftest import has_run, wait_until, wallprof
from test_unwind_corpus import BUSY, busy


@pytest.mark.parametrize("name", ["bash", "perl", "python3"])
def test_callers_are_callers(profile, name):
    edges = Edges()
    with busy(*BUSY[name]) as pid:
        for options in (["--profile", "wall"], ["--profile", "wall,cpu"],
                        ["--profile", "cpu", "--stop", "never"]):
            _, p = profile(pid, "-r", 500, *options, cpu=1)
            edges.add(p)
    assert edges.edges > 300
    assert not edges.wrong, edges.wrong


def test_the_oracle_knows_wrong_callers(start, profile):
    """Or nothing would be found out: the same stacks the other way round."""
    target = start("stack-gcc-O2", "spin")
    _, p = profile(target.pid, "-r", 200, cpu=0.5)
    edges = Edges()
    edges.add(p)
    assert edges.direct > 5 and not edges.wrong, edges.wrong
    for sample in p.sample:
        sample.location_id.reverse()
    edges = Edges()
    edges.add(p)
    assert len(edges.wrong) > 5


def rows(pid):
    """The pc and the return addresses of each thread's whole stack."""
    run = wallprof("--threads", "-f", "json", "-p", pid)
    for t in json.loads(run.out)["processes"][0]["threads"]:
        row = [int(f["address"], 16) for f in t["frames"] if not f["inlined"]]
        if row and not t["truncated"]:
            yield row[:1] + [a + 1 for a in row[1:]]


@pytest.mark.parametrize("args", [
    ["goroutines"], ["goroutines-stripped"], ["stack-gcc-O2", "spin"]])
def test_the_oracle_knows_frames_that_are_left_out(start, args):
    """By Go's own table of functions, and by .eh_frame_hdr."""
    target = start(*args)
    wait_until(has_run(target.pid, 0.05))
    code, found = Code(target.pid), 0
    for row in rows(target.pid):
        assert not code.refutes(row), row
        assert code.refutes(row + [0]), row
        found += sum(bool(code.refutes(row[:i] + row[i + 1:]))
                     for i in range(1, len(row) - 1))
    assert found > 2
