# SPDX-License-Identifier: Apache-2.0
"""The stop window against its bare system calls."""
import json
import os
import signal
import subprocess

from programs import HELPERS, WALLPROF, WORK, helper
from table import median

TEXT = "pause of a busy thread, p50"
ROUNDS = 5
SECONDS = 0.6

# Where the tool runs decides most: a stop across CPUs wakes another CPU twice.
PLACES = [("anywhere", None), ("other CPU", -1), ("same CPU", 0)]


def pin(cpu):
    return (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None


def ours(program, hz, cpu):
    done = subprocess.run(
        [WALLPROF, "-p", str(program.pid), "-d", str(SECONDS), "-r", str(hz),
         "--profile", "wall", "--max-stopped", "0", "-v", "-o", WORK / "x.pb.gz"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, preexec_fn=pin(cpu), text=True, check=True)
    line = next(x for x in done.stderr.splitlines() if "pauses:" in x)
    return float(line.split("p50 ")[1].split()[0])


def bare(tid, hz, cpu, *wait_us):
    done = subprocess.run(
        [HELPERS / "bare_stops", str(tid), str(hz), str(SECONDS), *wait_us],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=pin(cpu),
        text=True, check=True)
    return json.loads(done.stdout)["p50_us"]


def gaps(program):
    program.proc.send_signal(signal.SIGUSR1)
    return json.loads(program.read_line("GAPS"))


def run(table):
    cpus = sorted(os.sched_getaffinity(0))
    ratios = []
    with helper("gaps") as program:
        tid = program.tids()[-1]
        os.sched_setaffinity(tid, {cpus[0]})
        for hz in (100, 1000):
            for place, index in PLACES:
                cpu = None if index is None else cpus[index]
                figures = [[], [], [], []]
                bounded = []
                for _ in range(ROUNDS):
                    gaps(program)
                    figures[0].append(ours(program, hz, cpu))
                    figures[2].append(gaps(program)["p50_us"])
                    figures[1].append(bare(tid, hz, cpu))
                    figures[3].append(gaps(program)["p50_us"])
                    # wallprof waits with a timer: it has other threads to look at.
                    bounded.append(bare(tid, hz, cpu, "60"))
                where = f"{hz} Hz, tool on {place}"
                table.add(where, figures[0], "us", "bare calls", figures[1])
                table.add(where, figures[0], "us", "... waiting 60 us", bounded)
                if hz == 1000:
                    # Most gaps of the target are stops then.
                    table.add(where + ": seen inside", figures[2], "us",
                              "bare calls", figures[3])
                pairs = zip(figures[0], figures[1])
                ratio = median(a / b for a, b in pairs)
                table.limit(f"stop window over bare calls, {where}", ratio,
                            "x", 1.3, ROUNDS)
                ratios.append(ratio)
