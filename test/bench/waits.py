# SPDX-License-Identifier: Apache-2.0
"""What a program that switches all the time loses to a record of its waits."""
import json
import signal
import time

from programs import WALLPROF, WORK, fixture
from table import median, spread
from tools import Nothing, Recorder, beside

TEXT = "switches that two threads handing a token over lose, % of theirs alone"
ROUNDS = 6
WINDOW_S, BASE_S = 2.0, 1.0


def tool(name, *profiles):
    return Recorder(name, [WALLPROF, "-p", "PID", "-q", "--profile",
                           *profiles, "-o", WORK / "waits.pb.gz"])


def perf_switches(how):
    """A stack at every switch."""
    return Recorder(f"perf {how}, each switch",
                    ["perf", "record", "-q", "-e", "context-switches", "-c",
                     "1", "--call-graph", how, "-p", "PID", "-o",
                     WORK / "perf.data"])


def mark(program):
    program.proc.send_signal(signal.SIGUSR1)
    return json.loads(program.read_line("MARK"))


def rate(program, seconds):
    """Switches a second over the next SECONDS, by the program's account."""
    mark(program)
    time.sleep(seconds)
    return mark(program)["since_mark"]["switches_per_s"]


def measure(program, tools):
    """{tool: % lost in each round}: each window lies between two without."""
    lost = {t.name: [] for t in tools}
    for _ in range(ROUNDS):
        before = rate(program, BASE_S)
        for t in tools:
            with beside(t, program.pid):
                with_tool = rate(program, WINDOW_S)
            after = rate(program, BASE_S)
            lost[t.name].append(100 * (1 - 2 * with_tool / (before + after)))
            before = after
    return lost


def run(table):
    tools = [Nothing(), tool("block", "block"), tool("wall", "wall,cpu"),
             tool("all", "wall,cpu,block,mutex"), perf_switches("fp"),
             perf_switches("dwarf")]
    with fixture("profiles", "pingpong") as program:
        rate(program, BASE_S)
        table.note(f"alone: {rate(program, BASE_S):.0f} switches a second")
        lost = measure(program, tools)
    low, high = spread(lost["without"])
    table.note(f"no tool at all gives {median(lost['without']):.2f} % "
               f"({low:.2f}..{high:.2f})")
    for name, what in (("block", "--profile block"),
                       ("wall", "--profile wall,cpu"),
                       ("all", "--profile wall,cpu,block,mutex")):
        for theirs in ("perf fp, each switch", "perf dwarf, each switch"):
            table.add(what, lost[name], "%", theirs, lost[theirs],
                      ratio=False)
    table.limit("switches lost to --profile block", median(lost["block"]), "%",
                5, ROUNDS, noise=(high - low) / 2)
