# SPDX-License-Identifier: Apache-2.0
"""make bench: wallprof beside its competitors, in one run.

bench.py [GROUP]: prints the table and writes bench.csv to the object directory.
Every figure is a median of paired runs; ratios come first, and say how many
times better wallprof does (below 1: worse).
"""
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

import alternate
import big
import busy
import dump
import frames
import goroutines
import harm
import heap
import others
import pages
import processes
import server
import sizes
import waiting
import waits
import window
from programs import BUILD, ROOT, WORK
from table import Table

GROUPS = {"frames": frames, "window": window, "waiting": waiting,
          "busy": busy, "alternate": alternate, "waits": waits,
          "goroutines": goroutines,
          "server": server, "dump": dump, "big": big,
          "sizes": sizes, "harm": harm, "heap": heap, "processes": processes,
          "programs": others, "html": pages}


def commit():
    """Of the tree that this is run in; a "+": it has changes."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always",
                           "--dirty=+", "--exclude=*"], text=True,
                          capture_output=True, check=False)
    return f"commit {done.stdout.strip() or 'not known'}"


def machine():
    """Words that say where, and of what, the figures are."""
    model = "CPU"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return [f"{os.cpu_count()} CPUs", model, f"Linux {platform.release()}",
            f"load {os.getloadavg()[0]:.1f} at the start", commit()]


def main():
    # Each look is a first one, but where a row says otherwise.
    os.environ["WALLPROF_CACHE"] = ""
    wanted = sys.argv[1:] or list(GROUPS)
    unknown = [g for g in wanted if g not in GROUPS]
    if unknown:
        print(f"bench: no group {unknown[0]}; there are {', '.join(GROUPS)}",
              file=sys.stderr)
        return 64
    # A shell ignores SIGINT for what it starts in the background, and the tools
    # that the bench ends by SIGINT would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start = time.monotonic()
    table = Table()
    about = machine()
    print(", ".join(about))
    print("ratio: how many times better wallprof is; spread: of its own "
          "figures, the middle half")
    try:
        for name in wanted:
            table.begin(name, GROUPS[name].TEXT)
            begun = time.monotonic()
            GROUPS[name].run(table)
            table.note(f"({time.monotonic() - begun:.0f} s)")
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
        failed = table.print_limits()
        table.print_goals(about)
        table.write(BUILD / "bench.csv", about)
    print(f"\n{failed} limits do not hold; {BUILD / 'bench.csv'} written; "
          f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
