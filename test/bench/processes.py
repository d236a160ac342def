# SPDX-License-Identifier: Apache-2.0
"""What many processes cost."""
import shutil

from programs import HELPERS, WALLPROF, WORK, counter, fixture, spend

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


def floor(pid):
    """What reads alone of the threads that wake take: of stack and schedstat; of
    /proc/TID/syscall besides."""
    took = spend(HELPERS / "bare_wakes", RATE, SHORT, pid)
    return [float(word) for word in took["out"].split()]


def run(table):
    for nap in NAPS:
        with fixture("herd", PROCESSES, THREADS, nap) as herd:
            took = [(tree(herd.pid, LONG), tree(herd.pid, SHORT))
                    for _ in range(ROUNDS)]
            bare = [floor(herd.pid) for _ in range(ROUNDS)]
            others = [perf(LONG) for _ in range(ROUNDS if shutil.which("perf")
                                                else 0)]
        core = [100 * (a["cpu_s"] - b["cpu_s"]) / (LONG - SHORT)
                for a, b in took]
        peak = [a["peak_kib"] / 1024 for a, _ in took]
        name = f"one thread of each wakes every {nap // 1000} ms"
        table.add(f"{name}: CPU, steady", core, "% core", "perf record -a",
                  [100 * o["cpu_s"] / LONG for o in others] or [3])
        table.add(f"{name}: its stacks and schedstat, bare reads",
                  [b[0] for b in bare], "% core", "with /proc/TID/syscall",
                  [b[1] for b in bare])
        table.add(f"{name}: peak memory", peak, "MiB", "perf record -a",
                  [o["peak_kib"] / 1024 for o in others] or [80])
        table.note("ticks missed "
                   f"{counter(took[0][0], r'([0-9]+) missed'):.0f}; perf wrote "
                   f"{sum(o['bytes'] for o in others) / 1e6:.1f} MB")
        table.limit(f"{name}: memory", max(peak), "MiB", 80, ROUNDS)
        cpu, least = (sorted(v)[len(v) // 2] for v in
                      (core, [b[0] for b in bare]))
        # Where the bare reads alone take that much, it cannot be had.
        if least < 3:
            table.limit(f"{name}: CPU", cpu, "% core", 3, ROUNDS)
        else:
            table.limit(f"{name}: CPU over bare reads", cpu / least, "x", 2.5,
                        ROUNDS)
