# SPDX-License-Identifier: Apache-2.0
"""Calls of the target that fail because of the tool."""
import time

from programs import fixture
from tools import beside, eu_stack, gdb, wallprof

TEXT = "calls that failed with EINTR, in 3 s"
SECONDS = 3


def stray(tool):
    with fixture("eintr") as program:
        with beside(tool, program.pid):
            time.sleep(SECONDS)
        return sum(t["eintrs"] for t in program.truth().values())


def run(table):
    ours = [stray(wallprof(1000, stop, unbounded=True, profile="wall"))
            for stop in ("auto", "all")]
    for tool in (eu_stack(), gdb()):
        table.add("1000 Hz, auto and all", ours, "EINTR", tool.name,
                  [stray(tool)])
    table.limit("stray EINTR seen by a target", max(ours), "EINTR", 0, 2)
