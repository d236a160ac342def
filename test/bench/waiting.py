# SPDX-License-Identifier: Apache-2.0
"""What threads that only wait cost."""
from programs import HELPERS, counter, fixture, helper, record, spend
from table import median
from tools import switches

TEXT = ("threads that wait, 100 Hz (steady: a run of 3 s less one of 1 s; of "
        "10,000 threads 8 s less 3 s)")
SIZES = [10, 100, 1000, 10000]
LONG, SHORT = 3, 1
# The first tick reads the stacks of all, which takes a second or two of 10,000.
MANY, MANY_LONG, MANY_SHORT = 10000, 8, 3
ROUNDS = 3


def steady(pid, n):
    """What goes on while it records, without start and end."""
    seconds, less = (MANY_LONG, MANY_SHORT) if n >= MANY else (LONG, SHORT)
    before = switches(pid)
    long = record(pid, "-d", seconds)
    moved = switches(pid) - before
    short = record(pid, "-d", less)
    made = [counter(t, r"ticks: (\d+)") for t in (long, short)]
    missed = [counter(t, r"(\d+) missed") for t in (long, short)]
    stops = [counter(t, r"stops: (\d+)") for t in (long, short)]
    cpu = long["cpu_s"] - short["cpu_s"]
    ticks, lost = made[0] - made[1], missed[0] - missed[1]
    return {"core": 100 * cpu / (seconds - less),
            "whole": 100 * long["cpu_s"] / seconds,
            "us": 1e6 * cpu / max(1, ticks),
            "stops": stops[0] - stops[1],
            "hz": counter(long, r"([\d.]+) Hz achieved"),
            "missed": 100 * lost / max(1, ticks + lost),
            "moved": moved}


def rows(table, name, n, took, its):
    """The rows of one target, with what each look costs ITS way."""
    columns = {key: [t[key] for t in took] for key in took[0]}
    table.add(f"{name}: CPU, steady", columns["core"], "% core", "one core",
              [100])
    table.add(f"{name}: CPU, start to end", columns["whole"], "% core",
              "one core", [100])
    for competitor, figure in its:
        table.add(f"{name}: CPU per look at all", columns["us"], "us",
                  competitor, [figure])
    table.add(f"{name}: achieved", columns["hz"], "Hz", "asked", [100],
              more=True)
    table.note(f"stops {median(columns['stops']):.0f}, ticks missed "
               f"{median(columns['missed']):.1f} %, times the target's threads "
               f"woke or slept {median(columns['moved']):.0f}")
    columns["sample"] = [us / n for us in columns["us"]]
    return {key: median(values) for key, values in columns.items()}


def bare_us(pid, way="bare_looks"):
    """One look at all threads and nothing else.  bare_looks: one read of each
    schedstat, files open.  bare_scan: the kernel walks the threads, by BPF."""
    return float(spend(HELPERS / way, pid)["out"])


def bare_wakes(pid):
    """Of every thread what tells where it waits, where all have run: its stack and its
    schedstat, and /proc/TID/syscall besides."""
    spent = spend(HELPERS / "bare_wakes", 100, 5, pid)["out"].split()
    # Percent of a core, for a hundred looks a second.
    return [(name, 100 * float(core)) for name, core in zip(
        ("bare reads of stacks", "... and of /proc/TID/syscall"), spent)]


def measure(table, program, name, n, others):
    took = [steady(program.pid, n) for _ in range(ROUNDS)]
    its = [("bare reads", bare_us(program.pid)),
           ("bare BPF scan", bare_us(program.pid, "bare_scan")),
           *others(program.pid)]
    return rows(table, name, n, took, its)


def eu_stack(pid):
    return [("eu-stack -q", 1e6 * spend("eu-stack", "-q", "-p", pid)["cpu_s"])]


def run(table):
    for n in SIZES:
        with fixture("waiters", n) as program:
            got = measure(table, program, f"{n} threads", n,
                          eu_stack if n <= 1000 else lambda pid: [])
        if n == 1000:
            table.limit("waiting thread that has not run, per sample",
                        got["sample"], "us", 1, ROUNDS)
            table.limit("waiting thread that has not run, stops",
                        got["stops"], "stops", 0, ROUNDS)
        if n == 10000:
            # What all ticks would take, those that were missed included.
            table.limit("10,000 waiting threads at 100 Hz, CPU of wallprof",
                        100 * got["us"] * 100 / 1e6, "% core", 100, ROUNDS)
            table.limit("10,000 waiting threads, stops in steady state",
                        got["stops"], "stops", 0, ROUNDS)
            table.limit("10,000 waiting threads, ticks missed",
                        got["missed"], "%", 1, ROUNDS)
    n = 100
    with helper("nappers", n, 8000) as program:
        got = measure(table, program, f"{n} threads that nap", n, bare_wakes)
    # Five frames or so.
    unwinding = 5 * getattr(table, "frame_ns", 60) / 1e3
    table.limit("waiting thread that has run, per sample, less unwinding",
                got["sample"] - unwinding, "us", 8, ROUNDS)
    table.note("stops of nappers: of those that were running when looked at")
