# SPDX-License-Identifier: Apache-2.0
"""The biggest programs at hand, with symbols."""
import subprocess
import time

from programs import WALLPROF, WORK, compiler, elf_bytes, record, spend
from table import median
from tools import GDB

TEXT = "big programs, with symbols"
ROUNDS = 3
SECONDS = 1


def voluntary(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/status") as f:
        for line in f:
            if line.startswith("voluntary_ctxt_switches"):
                return int(line.split()[1])
    return 0


def first_stop(argv, program):
    """Milliseconds until the busy thread is first stopped: it never gives up
    its CPU by itself, so the kernel's count of that moves with a stop."""
    argv = [str(program.pid) if a == "PID" else a for a in argv]
    before = voluntary(program.pid, program.busy_tid)
    start = time.monotonic()
    tool = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        while voluntary(program.pid, program.busy_tid) == before:
            if tool.poll() is not None:
                raise RuntimeError(f"{argv[0]} never stopped the busy thread")
            time.sleep(0.0005)
        return 1e3 * (time.monotonic() - start)
    finally:
        # The others end by themselves, and one that is killed while it
        # attaches leaves the target stopped.
        if argv[0] == str(WALLPROF):
            tool.terminate()
        tool.wait()


def is_quiet(program):
    """Nobody stops it, so the count stands still."""
    before = voluntary(program.pid, program.busy_tid)
    time.sleep(0.5)
    return voluntary(program.pid, program.busy_tid) == before


def times_to_first(table, name, program):
    if not is_quiet(program):
        table.note(f"{name}: gives up its CPU by itself, no first stop seen")
        return
    tools = {"ours": [WALLPROF, "-p", "PID", "-q", "-d", "5", "-o",
                      WORK / "first.pb.gz"],
             "eu-stack": ["eu-stack", "-p", "PID"], "gdb": GDB}
    times = {key: [] for key in [*tools, "again"]}
    for _ in range(ROUNDS):
        for key, argv in tools.items():
            times[key].append(first_stop(argv, program))
            # wallprof's first comes behind gdb, which has filled the CPU's caches.
            if key == "ours":
                times["again"].append(first_stop(argv, program))
    for key in ("eu-stack", "gdb"):
        table.add(f"{name}: start to first stop", times["ours"], "ms", key,
                  times[key])
    table.add(f"{name}: start to first stop, once more", times["again"], "ms",
              "the first", times["ours"])
    table.limit(f"first sample after start, {name}", median(times["ours"]),
                "ms", 50, ROUNDS)


def perf_whole(pid):
    """perf record, then perf script: the two as one."""
    data = WORK / "perf.data"
    a = spend("perf", "record", "-q", "-F", 100, "--call-graph", "dwarf", "-p",
              pid, "-o", data, "--", "sleep", SECONDS)
    b = spend("perf", "script", "-i", data)
    return {"wall_s": a["wall_s"] + b["wall_s"],
            "peak_kib": max(a["peak_kib"], b["peak_kib"])}


def costs(table, name, program):
    runs = {
        "ours": lambda: record(program.pid, "-d", SECONDS, "-r", 100),
        "perf dwarf+script": lambda: perf_whole(program.pid),
        "eu-stack": lambda: spend("eu-stack", "-p", program.pid),
        "gdb": lambda: spend(*[program.pid if a == "PID" else a
                               for a in GDB]),
    }
    took = {key: [] for key in runs}
    for i in range(ROUNDS):
        for key, look in runs.items():
            # perf script takes half a minute of some: once is enough.
            if i == 0 or not key.startswith("perf"):
                took[key].append(look())
    peak = {k: [t["peak_kib"] / 1024 for t in v] for k, v in took.items()}
    over = {k: [1e3 * (t["wall_s"] - (SECONDS if k[0] in "op" else 0))
                for t in v] for k, v in took.items()}
    for key in list(runs)[1:]:
        table.add(f"{name}: peak memory", peak["ours"], "MiB", key, peak[key])
    for key in list(runs)[1:]:
        table.add(f"{name}: time beyond the recording", over["ours"], "ms",
                  key, over[key])
    mib = elf_bytes(program.pid) / 2**20
    table.limit(f"peak memory, {name}, {mib:.0f} MiB of ELF files",
                median(peak["ours"]), "MiB", 64, ROUNDS)


def run(table):
    for name in ("clang", "rustc"):
        program = compiler(name)
        if not program:
            table.note(f"{name} is not here")
            continue
        with program:
            table.note(f"{name}: {elf_bytes(program.pid) / 2**20:.0f} MiB of "
                       "ELF files with code mapped")
            times_to_first(table, name, program)
            costs(table, name, program)
