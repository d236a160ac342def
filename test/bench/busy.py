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
        self.schedstats = [
            os.open(f"/proc/{self.pid}/task/{tid}/schedstat", os.O_RDONLY)
            for tid in self.program.tids() if tid != self.pid]

    def read(self):
        """(seconds of thread time, of them waiting for a CPU, work)."""
        waited = sum(int(os.pread(fd, 100, 0).split()[1])
                     for fd in self.schedstats)
        work = sum(struct.unpack_from("<Q", self.map, i * LINE)[0]
                   for i in range(SLOTS))
        return time.monotonic() * self.threads, waited / 1e9, work

    def rates(self, seconds):
        """Over the next SECONDS: work a second, and work a second that did not
        go by waiting for a CPU that somebody else had."""
        before = self.read()
        time.sleep(seconds)
        t, waited, work = (a - b for a, b in zip(self.read(), before))
        return work / t, work / max(t - waited, 1e-9)


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
    lost = {tool.name: ([], []) for tool in all_tools}
    for _ in range(ROUNDS):
        before = counter.rates(BASE_S)
        for tool in all_tools:
            with beside(tool, counter.pid):
                with_tool = counter.rates(WINDOW_S)
            after = counter.rates(BASE_S)
            for i in range(2):
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


WHOLE_S = 8
WHOLE = {
    "wall,cpu": [WALLPROF, "-p", "PID", "-d", WHOLE_S, "-q", "-o",
                 WORK / "whole.pb.gz"],
    "perf dwarf": ["perf", "record", "-q", "-F", 99, "--call-graph", "dwarf",
                   "-p", "PID", "-o", WORK / "whole.data", "--", "sleep",
                   WHOLE_S],
}


def whole_run(counter, argv):
    """What is lost from the start of a tool to its end, files written, in ms
    of one thread's work."""
    base = counter.rates(2)[0]
    before = counter.read()
    subprocess.run([str(a).replace("PID", str(counter.pid)) for a in argv],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    t, _, work = (a - b for a, b in zip(counter.read(), before))
    base = (base + counter.rates(2)[0]) / 2
    return 1000 * (t - work / base)


def run_whole(table, counter):
    lost = {name: [] for name in WHOLE}
    for _ in range(ROUNDS):
        for name, argv in WHOLE.items():
            lost[name].append(whole_run(counter, argv))
    row = f"{counter.threads} busy, all of a recording of {WHOLE_S} s"
    table.add(row, lost["wall,cpu"], "ms", "perf dwarf", lost["perf dwarf"],
              ratio=False)
    table.limit(f"{row}, perf dwarf's loss the limit",
                median(lost["wall,cpu"]), "ms", median(lost["perf dwarf"]),
                ROUNDS)


def report(table, threads, lost, which, what):
    """Rows of rate WHICH.  Returns the noise: half of the spread of the same
    measure without a tool."""
    low, high = spread(lost["without"][which])
    noise = (high - low) / 2
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
        for which, what in ((0, "wall"), (1, "held up")):
            noise = report(table, threads, lost, which, what)
            name = "in all" if which == 0 else "waits for a CPU apart"
            table.limit(f"lost at 100 Hz, {threads} busy, {name}",
                        median(lost["auto 100 Hz"][which]), "%", 1, ROUNDS,
                        noise=noise)
            table.limit(f"lost to wall,cpu, perf dwarf's loss the limit, "
                        f"{threads} busy, {name}",
                        median(lost["auto 100 Hz"][which]), "%",
                        median(lost["perf dwarf 100 Hz"][which]), ROUNDS)
        for tool in all_tools:
            if hasattr(tool, "rate"):
                table.note(f"{tool.name}: {tool.rate():.1f} looks a second")
    table.note("a ratio is left out where a median is within the noise")
