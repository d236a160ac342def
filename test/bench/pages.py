# SPDX-License-Identifier: Apache-2.0
"""Pages of a large profile, beside other viewers."""
import json
import os
import subprocess

import programs
from table import median

TEXT = ("1,000,000 intervals of 50 threads over 10,000 stacks: the page in headless "
        "Chromium")
TRIALS = 3


def measure(script, *args):
    done = subprocess.run(
        ["node", programs.ROOT / "test/html" / script, *args], check=True,
        stdout=subprocess.PIPE, text=True, timeout=600,
        env={**os.environ,
             "NODE_MODULES": str(programs.ROOT / "build/npm/pages"),
             "D3_MODULES": str(programs.ROOT / "build/npm/bench")})
    return json.loads(done.stdout)


def run(table):
    page = programs.WORK / "big.html"
    scope = programs.WORK / "big.speedscope.json"
    for form, path in (("html", page), ("speedscope", scope)):
        subprocess.run([programs.BUILD / "bench/big_profile", form, path],
                       check=True)
    ours = [measure("measure.mjs", page) for _ in range(TRIALS)]
    # It takes the better part of a minute.
    theirs = [measure("measure_speedscope.mjs", scope)]
    # It has no threads and no time: one tree of all calls.
    d3 = [measure("measure_d3.mjs", page)]
    size = page.stat().st_size / 1e6
    table.add("size of the file", [size], "MB", "speedscope.json",
              [scope.stat().st_size / 1e6])
    table.limit("size of the page", size, "MB", 4, 1)
    first = [o["ready"] for o in ours]
    table.add("first picture", first, "ms", "speedscope",
              [t["ready"] for t in theirs])
    table.add("first picture", first, "ms", "d3-flame-graph",
              [t["ready"] for t in d3])
    table.limit("first picture", median(first), "ms", 1500, TRIALS)
    redraws = [ms for o in ours for ms in o["redraws"]]
    table.add("redraw after zoom", redraws, "ms", "d3-flame-graph",
              d3[0]["redraws"])
    table.limit("redraw", median(redraws), "ms", 50, len(redraws))
    table.add("another selection of time", [ms for o in ours
                                            for ms in o["selections"]], "ms")
    heap = [o["heap"] / 1e6 for o in ours]
    table.add("heap", heap, "MB", "speedscope",
              [t["heap"] / 1e6 for t in theirs])
    table.add("heap", heap, "MB", "d3-flame-graph",
              [t["heap"] / 1e6 for t in d3])
    table.limit("heap", median(heap), "MB", 60, TRIALS)
