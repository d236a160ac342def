# SPDX-License-Identifier: Apache-2.0
"""Two functions that take turns on the CPU, beside perf at a period that is always the
same and at a frequency, all three at once."""
import signal
import subprocess

from others import pprof_check, run_tool
from programs import WALLPROF, WORK, fixture

TEXT = "how far the share of two functions in turn is off a half, points"
ROUNDS, SECONDS = 10, 5
FUNCTIONS = "run_first", "run_second"


def perf_options(hz):
    return {"perf record -F": ["-F", hz], "perf record -c": ["-c", 10**9 // hz]}


def begin_perf(options, pid):
    data = WORK / f"alternate{options[0]}.data"
    return data, subprocess.Popen(
        [*map(str, ["perf", "record", "-q", "-e", "cpu-clock", *options,
                    "--call-graph", "dwarf,2048", "-p", pid, "-o", data])],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def share_of_perf(data):
    stacks = run_tool("perf", "script", "-i", data, "-F", "ip,sym",
                      timeout=90).stdout
    first, second = (stacks.count(" " + name) for name in FUNCTIONS)
    return 100 * first / (first + second)


def share_of_ours(path):
    samples = pprof_check.samples(pprof_check.load(str(path)))
    first, second = (sum(s["values"]["cpu"] for s in samples
                         if any(f["name"] == name for f in s["frames"]))
                     for name in FUNCTIONS)
    return 100 * first / (first + second)


def one(usec, hz):
    """{tool: points off} of one recording."""
    with fixture("rhythm", "alternate", usec) as program:
        perfs = {name: begin_perf(options, program.pid)
                 for name, options in perf_options(hz).items()}
        out = WORK / "alternate.pb.gz"
        try:
            subprocess.run([WALLPROF, "-q", "-p", str(program.pid), "-d",
                            str(SECONDS), "-r", str(hz), "-o", out], check=True)
        finally:
            for _, perf in perfs.values():
                perf.send_signal(signal.SIGINT)
                perf.wait()
        shares = {name: share_of_perf(data)
                  for name, (data, _) in perfs.items()}
    shares["wallprof"] = share_of_ours(out)
    return {name: abs(share - 50) for name, share in shares.items()}


def run(table):
    for usec, hz in ((1000, 99), (5000, 99), (1000, 100), (5000, 100)):
        rounds = [one(usec, hz) for _ in range(ROUNDS)]
        ours = [r["wallprof"] for r in rounds]
        for name in perf_options(hz):
            its = [r[name] for r in rounds]
            table.add(f"{usec} us each, {hz} Hz", ours, "points", name, its,
                      ratio=False)
            table.note(f"worst: {max(ours):.1f}, {name} {max(its):.1f}")
    # Of a coin tossed for each sample.
    table.note(f"noise of {SECONDS * 100} samples: "
               f"{50 / (SECONDS * 100) ** 0.5:.1f} points")
