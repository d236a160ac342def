# SPDX-License-Identifier: Apache-2.0
"""What is written, and how long that takes."""
from programs import HELPERS, WORK, fixture, record, spend

TEXT = "output of a recording of 1 s at 100 Hz"
ROUNDS = 3
SECONDS = 1
# Ours, and what comes nearest of perf's.
OUTPUTS = {"pb.gz": "perf.data", "folded": "perf script", "txt": "perf script"}


def kib(path):
    return path.stat().st_size / 1024


def over_ms(took):
    return 1e3 * (took["wall_s"] - SECONDS)


def ours(pid, ending):
    """(KiB, ms beyond the recording)."""
    path = WORK / f"x.{ending}"
    took = record(pid, "-d", SECONDS, output=path.name)
    return kib(path), over_ms(took)


def perf(pid):
    """The same of perf's data and of its text."""
    data, text = WORK / "perf.data", WORK / "perf.txt"
    took = spend("perf", "record", "-q", "-F", 100, "--call-graph", "dwarf",
                 "-p", pid, "-o", data, "--", "sleep", SECONDS)
    script = spend("sh", "-c", f"perf script -i {data} >{text}")
    return {"perf.data": (kib(data), over_ms(took)),
            "perf script": (kib(text), 1e3 * script["wall_s"])}


def distinct_stacks(table):
    """Of 1,000,000 stacks of 8 to 24 frames, made in memory."""
    took = [spend(HELPERS / "big_profile", "pprof", WORK / "big.pb.gz", "distinct")
            for _ in range(ROUNDS)]
    table.add("1,000,000 stacks, pb.gz: write", [1e3 * float(t["out"])
                                                 for t in took], "ms")
    table.add("1,000,000 stacks, pb.gz: memory", [t["peak_kib"] / 1024
                                                  for t in took], "MiB")


def run(table):
    distinct_stacks(table)
    for name, args in (("shares", []), ("waiters", [1000])):
        with fixture(name, *args) as program:
            theirs, took = [], {ending: [] for ending in OUTPUTS}
            for _ in range(ROUNDS):
                theirs.append(perf(program.pid))
                for ending, figures in took.items():
                    figures.append(ours(program.pid, ending))
        for ending, other in OUTPUTS.items():
            for i, (what, unit) in enumerate(((": size", "KiB"),
                                              (": names, write", "ms"))):
                table.add(f"{name}, {ending}{what}",
                          [t[i] for t in took[ending]], unit, other,
                          [t[other][i] for t in theirs])
    table.note("perf sees only what runs: the busy threads of shares, none of "
               "the waiters")
