# SPDX-License-Identifier: Apache-2.0
"""Callers are callers, in programs that nobody here wrote: see call_edges.py."""
import pytest

from call_edges import Edges
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
    _, p = profile(target.pid, "-d", 1, "-r", 200)
    edges = Edges()
    edges.add(p)
    assert edges.direct > 5 and not edges.wrong, edges.wrong
    for sample in p.sample:
        sample.location_id.reverse()
    edges = Edges()
    edges.add(p)
    assert len(edges.wrong) > 5
