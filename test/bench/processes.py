# SPDX-License-Identifier: Apache-2.0
"""What many processes cost."""
import shutil

from programs import WALLPROF, WORK, counter, fixture, spend

PROCESSES, THREADS = 200, 15
RATE, LONG, SHORT, ROUNDS = 20, 8, 2, 3
TEXT = (f"{PROCESSES} processes of {THREADS} threads, {RATE} Hz (steady: a run of "
        f"{LONG} s less one of {SHORT} s)")
# How often one thread of each process sleeps, in microseconds.
NAPS = [50000, 1000000]


def tree(pid, seconds):
    took = spend(WALLPROF, "--tree", pid, "-r", RATE, "-d", seconds, "-v",
                 "-o", WORK / "herd.pb.gz")
    if took["status"] > 1:
        raise RuntimeError(took["err"])
    return took


def perf(seconds):
    """The same of all processes, by samples of those that run."""
    out = WORK / "perf.data"
    took = spend("perf", "record", "-q", "-a", "-F", RATE, "--call-graph",
                 "dwarf", "-o", out, "sleep", seconds)
    took["bytes"] = out.stat().st_size if out.exists() else 0
    return took


def run(table):
    for nap in NAPS:
        with fixture("herd", PROCESSES, THREADS, nap) as herd:
            took = [(tree(herd.pid, LONG), tree(herd.pid, SHORT))
                    for _ in range(ROUNDS)]
            others = [perf(LONG) for _ in range(ROUNDS if shutil.which("perf")
                                                else 0)]
        core = [100 * (a["cpu_s"] - b["cpu_s"]) / (LONG - SHORT)
                for a, b in took]
        peak = [a["peak_kib"] / 1024 for a, _ in took]
        name = f"one thread of each wakes every {nap // 1000} ms"
        table.add(f"{name}: CPU, steady", core, "% core", "perf record -a",
                  [100 * o["cpu_s"] / LONG for o in others] or [3])
        table.add(f"{name}: peak memory", peak, "MiB", "perf record -a",
                  [o["peak_kib"] / 1024 for o in others] or [80])
        table.note("ticks missed "
                   f"{counter(took[0][0], r'([0-9]+) missed'):.0f}; perf wrote "
                   f"{sum(o['bytes'] for o in others) / 1e6:.1f} MB")
        table.limit(f"{name}: memory", max(peak), "MiB", 80, ROUNDS)
        table.limit(f"{name}: CPU", sorted(core)[len(core) // 2], "% core", 3,
                    ROUNDS)
