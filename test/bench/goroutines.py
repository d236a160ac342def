# SPDX-License-Identifier: Apache-2.0
"""What goroutines that mostly wait cost, 100 looks a second."""
from programs import WORK, counter, fixture, record
from table import median

TEXT = "goroutines that wait, 100 Hz (steady: a run of 8 s less one of 3 s)"
# The fixture has twelve times as many, and a few more.
SIZES = [84, 834]
LONG, SHORT, ROUNDS = 8, 3, 2


def steady(pid):
    long, short = record(pid, "-d", LONG), record(pid, "-d", SHORT)
    cpu = long["cpu_s"] - short["cpu_s"]
    return (100 * cpu / (LONG - SHORT),
            counter(long, r"looked at ([\d.]+) times a second"))


def run(table):
    for n in SIZES:
        with fixture("parked", n, WORK / "truth") as program:
            took = [steady(program.pid) for _ in range(ROUNDS)]
        cores = [t[0] for t in took]
        name = f"{12 * n} goroutines"
        table.add(f"{name}: CPU, steady", cores, "% core", "one core", [100])
        table.note(f"looks per second {median([t[1] for t in took]):.0f}")
        if n == SIZES[-1]:
            table.limit("10,000 goroutines at 100 Hz", median(cores), "% core",
                        40, ROUNDS)
