# SPDX-License-Identifier: Apache-2.0
"""One look at every thread, with names, files, lines and inlined calls."""
from programs import HELPERS, WALLPROF, WORK, fixture, spend
from tools import GDB

TEXT = "a dump of all threads, start to end"
SIZES = [(10, 7), (100, 5), (1000, 3)]

TOOLS = {"ours": [WALLPROF, "--threads", "-p", "PID"],
         "again": ["env", f"WALLPROF_CACHE={WORK}/names", WALLPROF,
                   "--threads", "-p", "PID"],
         "eu-stack -i -s": ["eu-stack", "-i", "-s", "-p", "PID"],
         "eu-stack": ["eu-stack", "-p", "PID"], "gdb": GDB}


def look(argv, pid):
    """What a dump took, or None if it was not one."""
    took = spend(*[pid if a == "PID" else a for a in argv])
    return took if "wait_for_ever" in took["out"] else None


def run(table):
    for n, rounds in SIZES:
        with fixture("waiters", n) as program:
            measure(table, program.pid, n, rounds)


def measure(table, pid, n, rounds):
    if not look(TOOLS["ours"], pid):
        table.note(f"{n} threads: --threads shows none in this build: skipped")
        return
    look(TOOLS["again"], pid)
    bare = []
    wall = {name: [] for name in TOOLS}
    cpu = {name: [] for name in TOOLS}
    for _ in range(rounds):
        for name, argv in TOOLS.items():
            took = look(argv, pid)
            if took:
                wall[name].append(1e3 * took["wall_s"])
                cpu[name].append(1e3 * took["cpu_s"])
        bare.append(1e3 * spend(HELPERS / "bare_dump", pid)["cpu_s"])
    ours, again = wall.pop("ours"), wall.pop("again")
    table.add(f"{n} threads: the second dump", again, "ms", "the first", ours)
    table.add(f"{n} threads: the second dump, CPU", cpu["again"], "ms",
              "bare reads", bare)
    for name, its in wall.items():
        if its:
            table.add(f"{n} threads", ours, "ms", name, its)
            table.add(f"{n} threads: CPU", cpu["ours"], "ms", name, cpu[name])
        else:
            table.note(f"{n} threads: {name} does not show them")
    its = wall["eu-stack -i -s"]
    if its:
        table.limit(f"dump of {n} threads, times as fast as eu-stack -i -s",
                    table.ratio(ours, its), "x", 1, rounds,
                    least=True)
