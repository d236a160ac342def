# SPDX-License-Identifier: Apache-2.0
"""What a busy program loses of its work."""
import mmap
import os
import struct
import subprocess
import time

from programs import HELPERS, WALLPROF, WORK, Program
from table import median, spread
from tools import Nothing, beside, eu_stack, gdb, perf, wallprof

TEXT = "work that busy threads lose, % of what they do alone"
ROUNDS = 4
WINDOW_S, BASE_S = 0.7, 0.4
LINE, SLOTS = 64, 64
# Work goes at the speed of the machine, which on a virtual one changes by more
# than a tool takes.  Time on a CPU is what the scheduler counts: it lacks what
# a tool costs while the target runs (interrupts, caches), and no more.
RATES = ["wall", "held up", "on a CPU"]


class Counter:
    """Busy threads and their exact account."""

    def __init__(self, threads):
        path = WORK / f"counter-{threads}"
        self.program = Program([HELPERS / "counter", threads, path])
        with open(path, "rb") as f:
            self.map = mmap.mmap(f.fileno(), SLOTS * LINE,
                                 prot=mmap.PROT_READ)
        self.pid = self.program.pid
        self.threads = threads
        # CPUCLOCK_SCHED of a process (include/linux/posix-timers_types.h).
        self.clock = ~self.pid << 3 | 2
        self.schedstats = [
            os.open(f"/proc/{self.pid}/task/{tid}/schedstat", os.O_RDONLY)
            for tid in self.program.tids() if tid != self.pid]

    def read(self):
        """(seconds of thread time, of them waiting for a CPU, of them on a
        CPU, work)."""
        waited = sum(int(os.pread(fd, 100, 0).split()[1])
                     for fd in self.schedstats)
        work = sum(struct.unpack_from("<Q", self.map, i * LINE)[0]
                   for i in range(SLOTS))
        return (time.monotonic() * self.threads, waited / 1e9,
                time.clock_gettime(self.clock), work)

    def rates(self, seconds):
        """Over the next SECONDS: work a second, work a second that did not go
        by waiting for a CPU that somebody else had, and seconds on a CPU a
        second."""
        before = self.read()
        time.sleep(seconds)
        t, waited, ran, work = (a - b for a, b in zip(self.read(), before))
        return work / t, work / max(t - waited, 1e-9), ran / t


def tools():
    return [Nothing(), wallprof(100), wallprof(100, profile="wall"),
            wallprof(100, "all"), wallprof(100, "never"), wallprof(1000),
            wallprof(1000, "all"), wallprof(1000, "never"),
            wallprof(1000, "auto", unbounded=True, profile="wall"),
            perf(100, "fp"), perf(100, "dwarf"), perf(1000, "fp"),
            perf(1000, "dwarf"), eu_stack(), gdb()]


def measure(counter, all_tools):
    """{tool: % lost in each round, of each rate}: each window lies between two
    without a tool."""
    lost = {tool.name: tuple([] for _ in RATES) for tool in all_tools}
    for _ in range(ROUNDS):
        before = counter.rates(BASE_S)
        for tool in all_tools:
            with beside(tool, counter.pid):
                with_tool = counter.rates(WINDOW_S)
            after = counter.rates(BASE_S)
            for i in range(len(RATES)):
                lost[tool.name][i].append(
                    100 * (1 - 2 * with_tool[i] / (before[i] + after[i])))
            before = after
    return lost


PAIRS = [("auto 100 Hz", "perf dwarf 100 Hz"),
         ("auto 100 Hz wall", "perf dwarf 100 Hz"),
         ("auto 100 Hz", "perf fp 100 Hz"),
         ("auto 100 Hz", "eu-stack loop"), ("auto 100 Hz", "gdb loop"),
         ("all 100 Hz", "perf dwarf 100 Hz"),
         ("never 100 Hz", "perf fp 100 Hz"),
         ("auto 1000 Hz", "perf dwarf 1000 Hz"),
         ("auto 1000 Hz", "perf fp 1000 Hz"),
         ("auto 1000 Hz no bound wall", "perf dwarf 1000 Hz"),
         ("all 1000 Hz", "perf dwarf 1000 Hz"),
         ("never 1000 Hz", "perf dwarf 1000 Hz")]


WHOLE_S, WHOLE_ROUNDS = 8, 5
WHOLE = {
    "without": ["sleep", WHOLE_S],
    "wall,cpu": [WALLPROF, "-p", "PID", "-d", WHOLE_S, "-q", "-o",
                 WORK / "whole.pb.gz"],
    "perf dwarf": ["perf", "record", "-q", "-F", 99, "--call-graph", "dwarf",
                   "-p", "PID", "-o", WORK / "whole.data", "--", "sleep",
                   WHOLE_S],
}


def whole_run(counter, argv):
    """What is lost from the start of a tool to its end, files written, in ms
    of one thread's work, and of one thread's time on a CPU."""
    base = counter.rates(1)[0]
    before = counter.read()
    subprocess.run([str(a).replace("PID", str(counter.pid)) for a in argv],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    t, _, ran, work = (a - b for a, b in zip(counter.read(), before))
    base = (base + counter.rates(1)[0]) / 2
    return 1000 * (t - work / base), 1000 * (t - ran)


def run_whole(table, counter):
    lost = {name: ([], []) for name in WHOLE}
    for _ in range(WHOLE_ROUNDS):
        for name, argv in WHOLE.items():
            work, cpu = whole_run(counter, argv)
            lost[name][0].append(work)
            # The rest of the machine takes some, too.
            lost[name][1].append(cpu if name == "without" else
                                 cpu - lost["without"][1][-1])
    of_s = counter.threads * WHOLE_S
    for i, what in enumerate(("work", "time on a CPU")):
        row = f"{counter.threads} busy, {what} in {WHOLE_S} s"
        for other in ("perf dwarf", "without"):
            table.add(row, lost["wall,cpu"][i], "ms", other, lost[other][i],
                      ratio=False)
        # Of the total, in %.
        ours, theirs, noise = (ms / of_s / 10 for ms in (
            median(lost["wall,cpu"][i]), median(lost["perf dwarf"][i]),
            half_spread(lost["without"][i])))
        for whose, bound in (("start and end included", 1),
                             ("perf dwarf's the limit", theirs)):
            table.limit(f"{row}, {whose}", ours, "%", bound, WHOLE_ROUNDS,
                        noise=noise)


def half_spread(values):
    low, high = spread(values)
    return (high - low) / 2


def report(table, threads, lost, which):
    """Rows of rate WHICH.  Returns the noise: half of the spread of the same
    measure without a tool."""
    what = RATES[which]
    low, high = spread(lost["without"][which])
    noise = half_spread(lost["without"][which])
    table.note(f"{threads} busy, {what}: no tool at all gives "
               f"{median(lost['without'][which]):.2f} % "
               f"({low:.2f}..{high:.2f})")
    for ours, theirs in PAIRS:
        figures = [lost[name][which] for name in (ours, theirs)]
        # Medians below the noise have no ratio.
        if all(abs(median(f)) > noise and median(f) > 0 for f in figures):
            table.add(f"{threads} {what}, {ours}", figures[0], "%", theirs,
                      figures[1], paired=False)
        else:
            table.add(f"{threads} {what}, {ours}", figures[0], "%", theirs,
                      figures[1], ratio=False)
    return noise


def run(table):
    for threads in (1, 2):
        counter = Counter(threads)
        with counter.program:
            all_tools = tools()
            lost = measure(counter, all_tools)
            run_whole(table, counter)
        for which, name in enumerate(("in all", "waits for a CPU apart",
                                      "time on a CPU")):
            noise = report(table, threads, lost, which)
            table.limit(f"lost at 100 Hz, {threads} busy, {name}",
                        median(lost["auto 100 Hz"][which]), "%", 1, ROUNDS,
                        noise=noise)
            table.limit(f"lost to wall,cpu, perf dwarf's loss the limit, "
                        f"{threads} busy, {name}",
                        median(lost["auto 100 Hz"][which]), "%",
                        median(lost["perf dwarf 100 Hz"][which]), ROUNDS,
                        noise=noise)
        for tool in all_tools:
            if hasattr(tool, "rate"):
                table.note(f"{tool.name}: {tool.rate():.1f} looks a second")
    table.note("a ratio is left out where a median is within the noise")
