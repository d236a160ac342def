#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which mutants of sources do the unit tests of their room kill?

mutate.py [--again] BUILD COMPILE LINK LIBRARIES ROOM TESTS SOURCE...

COMPILE makes an object of a source, LINK a program of objects and LIBRARIES;
TESTS are names of unit tests, built in BUILD without mutants.  A source with all
its mutants is compiled once (mutants.py); a run without one tells which test
reaches which; then each is alive in those that reach it, the quickest first, until
one fails: it is killed, as by one that takes too long.  Survivors are in build/mutants/SOURCE, but
for those that equivalent.txt knows: they do what the original does, for a reason
given there.  With --again only the survivors of the last time are tried; with
MUTANTS=N in the environment N of each source, drawn by lot, always the same.
"""
import collections
import json
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import struct
import subprocess
import sys

from mutants import Source

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "mutants"
# struct reached of mutants.c.
MUTANTS_MAX, TESTS_MAX = 4096, 257
# Tests that take less than this run together.
TOGETHER = 0.03
# A test has this many times what it takes without a mutant, and MORE seconds.
TIMES, MORE = 5, 3
MEMORY = 4 << 30


def key(path, m):
    """What a mutant is called in equivalent.txt."""
    return "\t".join((str(path), m.function, m.text, m.change))


def read_equivalents():
    lines = (HERE / "equivalent.txt").read_text().splitlines()
    return {"\t".join(line.split("\t")[:4]) for line in lines
            if line and not line.startswith("#")}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))


def end_children():
    """What a test left behind is ours by now (PR_SET_CHILD_SUBREAPER)."""
    me = os.getpid()
    while True:
        with open(f"/proc/{me}/task/{me}/children") as f:
            pids = [int(p) for p in f.read().split()]
        if not pids:
            return
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def run(program, seconds, **environment):
    """The status of a test; None: it took too long."""
    test = subprocess.Popen(
        [program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, cwd=ROOT, preexec_fn=limits,
        env={**os.environ, "UNIT_SECONDS": str(int(seconds) + 1),
             **environment})
    try:
        return test.wait(seconds + 5)
    except subprocess.TimeoutExpired:
        return None
    finally:
        test.kill()
        test.wait()
        end_children()


class Room:
    """What all sources of a room have in common."""

    def __init__(self, build, compile_, link, libraries, room, tests):
        self.build = ROOT / build / "mutants"
        self.build.mkdir(parents=True, exist_ok=True)
        self.objects = ROOT / build / "test" / "unit"
        self.compile = shlex.split(compile_)
        self.link, self.libraries = shlex.split(link), shlex.split(libraries)
        self.room, self.tests = room, tests.split()
        done = subprocess.run(
            [*self.compile, "-w", "-c", "-o", self.build / "mutants.o",
             HERE / "mutants.c"], cwd=ROOT, check=False)
        assert not done.returncode

    def parse(self, path, left_out=()):
        args = [a for a in self.compile[1:] if a[:2] in ("-I", "-D", "-s")]
        return Source(str(path), args, left_out)

    def compile_mutants(self, path):
        """The source and its object.  Where a mutant is no C its line has
        none."""
        left_out = set()
        for _ in range(20):
            source = self.parse(path, left_out)
            text = self.build / ("mutated_" + path.name)
            text.write_bytes(b'#line 1 "%s"\n' % str(path).encode() +
                             source.mutated())
            done = subprocess.run(
                [*self.compile, "-w", "-include", HERE / "mutants.h",
                 "-iquote", path.parent, "-c", "-o",
                 self.build / "mutated.o", text],
                cwd=ROOT, capture_output=True, text=True, check=False)
            if not done.returncode:
                return source, left_out
            lines = {int(n) for n in re.findall(
                rf"^{re.escape(str(path))}:(\d+):.*error", done.stderr, re.M)}
            assert lines - left_out, done.stderr
            left_out |= lines
        raise AssertionError(done.stderr)

    def link_tests(self):
        programs = []
        for test in self.tests:
            program = self.build / ("test_" + test)
            done = subprocess.run(
                [*self.link, "-o", program, self.objects / f"test_{test}.o",
                 self.objects / "limit.o", self.build / "mutated.o",
                 self.build / "mutants.o", *self.libraries], cwd=ROOT,
                stderr=subprocess.PIPE, check=False)
            # A test may have its own of what the source needs.
            if done.returncode:
                print(f"test_{test} does not link: left out")
            else:
                programs.append(program)
        assert programs, done.stderr
        return programs

    def reach(self, programs):
        """{mutant: [(seconds, program, test)], quickest first}."""
        reached = collections.defaultdict(list)
        seen = self.build / "reached"
        for program in programs:
            seen.write_bytes(b"")
            status = run(program, 200, MUTANTS_REACHED=str(seen))
            if status:
                print(f"{program.name} fails without a mutant: left out")
                continue
            data = seen.read_bytes()
            rows = [data[i * MUTANTS_MAX:(i + 1) * MUTANTS_MAX]
                    for i in range(TESTS_MAX)]
            times = struct.unpack_from(f"{TESTS_MAX + 1}d", data,
                                       TESTS_MAX * MUTANTS_MAX)
            for test in range(TESTS_MAX - 1):
                if not times[test + 1]:
                    break
                took = (times[test + 2] or times[-1]) - times[test + 1]
                if run(program, 200, UNIT_TESTS=str(test)):
                    print(f"{program.name}: test {test} fails alone: left out")
                    continue
                for n in range(MUTANTS_MAX):
                    if rows[test + 1][n] or rows[0][n]:
                        reached[n].append((took, program, test))
        return {n: sorted(of) for n, of in reached.items()}


def batches(tests):
    """(seconds, program, tests of it) of TESTS, first what takes little."""
    done = set()
    for bound in (TOGETHER, float("inf")):
        of = collections.defaultdict(lambda: [0, []])
        for took, program, test in tests:
            batch = of[program]
            if (program, test) not in done and (
                    not batch[1] or batch[0] + took <= bound):
                done.add((program, test))
                batch[0] += took
                batch[1].append(test)
        for program, (took, which) in sorted(of.items(),
                                             key=lambda b: b[1][0]):
            if which:
                yield took, program, which


def kill(mutant, tests):
    """How it ended: killed, slow or survived."""
    for took, program, which in batches(tests):
        status = run(program, TIMES * took + MORE, MUTANT=str(mutant.n),
                     UNIT_TESTS=",".join(map(str, which)))
        if status is None or status == -signal.SIGALRM:
            return "slow"
        if status:
            return "killed"
    return "survived"


def drawn(path, mutants):
    """Those that are tried."""
    most = int(os.environ.get("MUTANTS") or len(mutants))
    return random.Random(str(path)).sample(mutants, min(most, len(mutants)))


def mutate(room, path, again, equivalents):
    """Try the mutants of a source: counts by how they ended."""
    log = OUT / (str(path) + ".json")
    source, left_out = room.compile_mutants(path)
    last = json.loads(log.read_text()) if again and log.exists() else None
    reached = room.reach(room.link_tests())
    found, ends = [], collections.Counter()
    for m in drawn(path, source.mutants):
        if key(path, m) in equivalents:
            ends["equivalent"] += 1
            continue
        how = "unreached"
        if last is not None and key(path, m) not in last["survivors"]:
            how = "killed"
        elif m.n in reached:
            how = kill(m, reached[m.n])
        ends[how] += 1
        if how in ("survived", "unreached"):
            found.append((m, how))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(json.dumps({"survivors": [key(path, m) for m, _ in found],
                               "ends": ends}))
    (OUT / (str(path) + ".txt")).write_text("".join(
        f"{path}:{m.line}: {m.function}: {m.text}: {m.change} ({how})\n"
        for m, how in found))
    if left_out:
        print(f"{path}: no mutants in lines {sorted(left_out)}")
    return ends


def score(ends):
    tried = sum(ends.values()) - ends["equivalent"]
    dead = ends["killed"] + ends["slow"]
    return (f"{dead} of {tried} killed ({100 * dead / max(tried, 1):.0f} %; "
            f"{ends['slow']} took too long), {ends['survived']} survived, "
            f"{ends['unreached']} not reached, {ends['equivalent']} equivalent")


def main(args):
    again = args[0] == "--again"
    if again:
        args = args[1:]
    # prctl(2): PR_SET_CHILD_SUBREAPER.
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    room = Room(*args[:6])
    equivalents = read_equivalents()
    total = collections.Counter()
    for name in args[6:]:
        ends = mutate(room, pathlib.Path(name), again, equivalents)
        print(f"{name}: {score(ends)}", flush=True)
        total += ends
    print(f"{room.room}: {score(total)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
