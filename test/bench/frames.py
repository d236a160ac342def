# SPDX-License-Identifier: Apache-2.0
"""What a frame costs each unwinder, on the same snapshots."""
import json
import subprocess

from programs import HELPERS, WORK, Program, fixture, nginx, redis
from table import median

TEXT = "unwinding, by program: all of its snapshots, over and over"

# Every way of compiling that all back ends know.
STACKS = ["gcc-O0", "gcc-O2", "gcc-O3", "gcc-O2-fp", "gcc-O0-nofp",
          "gcc-O2-nopie", "gcc-O2-static", "gcc-O2-noplt", "clang-O0",
          "clang-O2", "clang-O3", "clang-O2-fp"]
PYTHON = """def f(n):
    return f(n - 1) if n else sum(i for i in iter(int, 1))
print("READY", flush=True)
f(20)
"""
PERL = """$|=1; print "READY\\n"; f(20);
sub f { my $n = shift; if ($n) { f($n - 1) } else { 1 while 1 } }
"""
BASH = """f() { if (($1)); then f $(($1-1)); else while :; do :; done; fi; }
echo READY; f 10
"""


def git():
    """It has answered once and waits for more."""
    subprocess.run(["git", "init", "-q", WORK / "git"], check=True,
                   stderr=subprocess.DEVNULL)
    program = Program(["git", "cat-file", "--batch"], ready=None,
                      stdin=subprocess.PIPE, cwd=WORK / "git")
    program.proc.stdin.write(b"nothing\n")
    program.proc.stdin.flush()
    program.read_line("nothing")
    return program


STARTS = [lambda name=name: fixture(f"stack-{name}", "s") for name in STACKS]
STARTS += [lambda argv=argv: fixture(*argv) for argv in
           (["cxx"], ["shares"], ["deep", "s"], ["waiters", 50])]
STARTS += [lambda: Program(["python3", "-c", PYTHON]),
           lambda: Program(["perl", "-e", PERL]),
           lambda: Program(["bash", "-c", BASH]),
           lambda: Program(["gdb", "-nx", "-q", "-ex", "echo READY\\n",
                            "-ex", "python while True: pass"]),
           git, redis, nginx]


def measure(table):
    """What unwind_bench says of each program, by kind of line."""
    lines = []
    for start in STARTS:
        try:
            with start() as program:
                done = subprocess.run(
                    [HELPERS / "unwind_bench", "-n", "8", str(program.pid)],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    timeout=120, check=False)
        except (OSError, RuntimeError) as error:
            table.note(f"left out: {error}"[:90])
            continue
        if done.returncode:
            table.note(f"left out: {done.stderr.decode().strip()}"[:90])
            continue
        lines += [json.loads(line) for line in done.stdout.splitlines()]
    return lines


def figures(lines, kind, key):
    """{backend: its figure per program}, for programs that all could do."""
    by_pid = {}
    for line in lines:
        if line["kind"] == kind:
            by_pid.setdefault(line["pid"], {})[line["backend"]] = line[key]
    backends = {b for v in by_pid.values() for b in v}
    whole = [v for v in by_pid.values() if set(v) == backends]
    return {b: [v[b] for v in whole] for b in sorted(backends)}


def sums(lines, backend):
    total = {}
    for line in lines:
        if line["kind"] == "diff" and line["backend"] == backend:
            for key in ("equal", "shorter", "longer", "different"):
                total[key] = total.get(key, 0) + line[key]
    return total


def run(table):
    lines = measure(table)
    taken = [line for line in lines if line["kind"] == "snapshots"]
    table.note(f"{sum(t['snapshots'] for t in taken)} snapshots of "
               f"{len(taken)} programs, {sum(t['frames'] for t in taken)} "
               "frames; n counts programs")
    warm = figures(lines, "warm", "ns")
    cold = figures(lines, "cold", "us")
    for name in sorted(warm):
        if name != "rows":
            table.add("warm, per frame", warm["rows"], "ns", name, warm[name])
    for name in sorted(cold):
        if name != "rows":
            table.add("cold: files opened, first stack", cold["rows"], "us",
                      name, cold[name])
    for name in sorted(warm):
        if name == "rows":
            continue
        d = sums(lines, name)
        where = {line["pid"] for line in lines if line["kind"] == "diff"
                 and line["backend"] == name and line["different"]}
        table.add("stacks that differ from ours", [d["different"]], "stacks",
                  name)
        table.note(f"{d['equal']} equal, {d['shorter']} end earlier, "
                   f"{d['longer']} go on; " + ", ".join(
                       t["exe"].rsplit("/", 1)[1] for t in taken
                       if t["pid"] in where))
    cached = [min(pair) for pair in zip(warm["libunwind-cached"],
                                        warm["libunwind-sharded"])]
    table.limit("ns per frame, warm", median(warm["rows"]), "ns", 60,
                len(taken))
    table.limit("times faster than libunwind with its cache (the faster way)",
                table.ratio(warm["rows"], cached), "x", 5,
                len(taken), least=True)
    # For the bounds that say "plus unwinding".
    table.frame_ns = median(warm["rows"])
