#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which mutants of sources do the unit tests of their room kill?

mutate.py [--again] BUILD COMPILE LINK LIBRARIES ROOM TESTS SOURCE...

COMPILE makes an object of a source, LINK a program of objects and LIBRARIES;
TESTS are names of unit tests, built in BUILD without mutants.  The sources with all
their mutants are compiled once (mutants.py) and take their place in the room's
library; a run of each test without one tells which test reaches which; then each is
alive in those that reach it, the quickest first, until one fails twice: it is killed,
as by one that takes too long.  Survivors are in build/mutants/SOURCE, but
for those that equivalent.txt knows: they do what the original does, for a reason
given there.  With --again only the survivors of the last time are tried, and all
others count as killed; with
MUTANTS=N in the environment N of each source, drawn by lot, always the same; with
LOT=X others, as tests that were written for what survived a draw favour it.
"""
import collections
import ctypes
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys

from mutants import Source

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import faults  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "mutants"
# struct reached of mutants.c.
MUTANTS_MAX, TESTS_MAX = 16384, 257
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
        self.link = shlex.split(link)
        self.room, self.tests = room, tests.split()
        name = f"lib{room}.a"
        self.library = self.build / name
        self.libraries = [self.library if lib == f"{build}/{name}" else lib
                          for lib in shlex.split(libraries)]
        shutil.copy(ROOT / build / name, self.library)
        subprocess.run(
            [*self.compile, "-w", "-c", "-o", self.build / "mutants.o",
             HERE / "mutants.c"], cwd=ROOT, check=True)

    def parse(self, path, first, left_out=()):
        args = [a for a in self.compile[1:] if a[:2] in ("-I", "-D", "-s")]
        return Source(str(path), args, first, left_out)

    def compile_text(self, path, mutated, text, object_):
        """The compiler has made OBJECT_ of MUTATED, in file TEXT; it is left as it
        is if it was made of that, after the object without mutants."""
        original = (self.objects.parents[1] / path).with_suffix(".o")
        if object_.exists() and text.exists() and \
                text.read_bytes() == mutated and \
                object_.stat().st_mtime > original.stat().st_mtime:
            return subprocess.CompletedProcess([], 0)
        text.write_bytes(mutated)
        object_.unlink(missing_ok=True)
        return subprocess.run(
            [*self.compile, "-w", "-include", HERE / "mutants.h",
             "-iquote", path.parent, "-c", "-o", object_, text],
            cwd=ROOT, capture_output=True, text=True, check=False)

    def compile_mutants(self, path, first):
        """The source, its mutants numbered from FIRST; its object is in the
        library.  Where a mutant is no C its line has none."""
        left_out = set()
        text = self.build / ("mutated_" + path.name)
        object_ = self.build / (path.stem + ".o")
        for _ in range(20):
            source = self.parse(path, first, left_out)
            mutated = (b'#line 1 "%s"\n' % str(path).encode() +
                       source.mutated())
            done = self.compile_text(path, mutated, text, object_)
            if not done.returncode:
                subprocess.run(["ar", "r", self.library, object_], check=True)
                if left_out:
                    print(f"{path}: no mutants in lines {sorted(left_out)}")
                return source
            lines = {int(n) for n in re.findall(
                rf"^{re.escape(str(path))}:(\d+):.*error", done.stderr, re.M)}
            assert lines - left_out, done.stderr
            left_out |= lines
        raise AssertionError(done.stderr)

    def link_test(self, test):
        program = self.build / ("test_" + test)
        subprocess.run(
            [*self.link, "-o", program, self.objects / f"test_{test}.o",
             self.objects / "limit.o", self.build / "mutants.o",
             *self.libraries], cwd=ROOT, check=True)
        return program

    def reach(self, test):
        """[(mutant, seconds, program, test in it)]."""
        program = self.link_test(test)
        seen = self.build / ("reached_" + test)
        seen.write_bytes(b"")
        if run(program, 200, MUTANTS_REACHED=str(seen)):
            print(f"{program.name} fails without a mutant: left out")
            return []
        data = seen.read_bytes()
        seen.unlink()
        rows = [data[i * MUTANTS_MAX:(i + 1) * MUTANTS_MAX]
                for i in range(TESTS_MAX)]
        times = struct.unpack_from(f"{TESTS_MAX + 1}d", data,
                                   TESTS_MAX * MUTANTS_MAX)
        reached = []
        for nth in range(TESTS_MAX - 1):
            if not times[nth + 1]:
                break
            took = (times[nth + 2] or times[-1]) - times[nth + 1]
            of = {m.start() for row in (rows[0], rows[nth + 1])
                  for m in re.finditer(b"\1", row)}
            if of and run(program, 200, UNIT_TESTS=str(nth)):
                print(f"{program.name}: test {nth} fails alone: left out")
                continue
            reached += [(n, took, program, nth) for n in of]
        return reached


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


def fails(mutant, took, program, which):
    """How: slow or killed; None: it does not."""
    status = run(program, TIMES * took + MORE, MUTANT=str(mutant.n),
                 UNIT_TESTS=",".join(map(str, which)))
    if status is None or status == -signal.SIGALRM:
        return "slow"
    return "killed" if status else None


def kill(job):
    """How a mutant with its tests ended: killed, slow or survived."""
    mutant, tests = job
    for batch in batches(tests):
        how = fails(mutant, *batch)
        # A test that fails by chance, on a busy machine, kills nothing.
        if how and fails(mutant, *batch):
            return how
    return "survived"


def drawn(path, mutants):
    """Those that are tried."""
    most = int(os.environ.get("MUTANTS") or len(mutants))
    lot = random.Random(path + os.environ.get("LOT", ""))
    return lot.sample(mutants, min(most, len(mutants)))


def count(ends):
    """How many were tried and how many killed."""
    return (sum(ends.values()) - ends["equivalent"],
            ends["killed"] + ends["slow"])


def ended(path, mutant, reached, equivalents, last):
    """How a mutant ended, if that is known without a run of it."""
    if key(path, mutant) in equivalents:
        return "equivalent"
    if last is not None and key(path, mutant) not in last:
        return "killed"
    return None if mutant.n in reached else "unreached"


def mutate(pool, source, reached, again, equivalents):
    """Try the mutants of a source: counts by how they ended."""
    path = source.path
    log = OUT / (path + ".json")
    last = json.loads(log.read_text())["survivors"] \
        if again and log.exists() else None
    tried = drawn(path, source.mutants)
    known = [ended(path, m, reached, equivalents, last) for m in tried]
    new = pool.imap(kill, [(m, reached[m.n]) for m, how in zip(tried, known)
                           if not how])
    hows = [how or next(new) for how in known]
    ends = collections.Counter(hows)
    found = [(m, how) for m, how in zip(tried, hows)
             if how in ("survived", "unreached")]
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(json.dumps({"survivors": [key(path, m) for m, _ in found],
                               "ends": ends}))
    (OUT / (path + ".txt")).write_text("".join(
        f"{path}:{m.line}: {m.function}: {m.text}: {m.change} ({how})\n"
        for m, how in found))
    faults.mutated(path, len(source.mutants), *count(ends))
    return ends


def score(ends):
    tried, dead = count(ends)
    return (f"{dead} of {tried} killed ({100 * dead / max(tried, 1):.0f} %; "
            f"{ends['slow']} took too long), {ends['survived']} survived, "
            f"{ends['unreached']} not reached, {ends['equivalent']} equivalent")


def adopt():
    # prctl(2): PR_SET_CHILD_SUBREAPER.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def main(args):
    again = args[0] == "--again"
    if again:
        args = args[1:]
    room, sources = Room(*args[:6]), []
    for name in args[6:]:
        first = 1 + sum(len(s.mutants) for s in sources)
        sources.append(room.compile_mutants(pathlib.Path(name), first))
    assert sum(len(s.mutants) for s in sources) < MUTANTS_MAX
    equivalents = read_equivalents()
    reached, total = collections.defaultdict(list), collections.Counter()
    with multiprocessing.get_context("fork").Pool(
            os.cpu_count(), initializer=adopt) as pool:
        for of in pool.imap(room.reach, room.tests):
            for n, *test in of:
                reached[n].append(test)
        for tests in reached.values():
            tests.sort()
        for source in sources:
            ends = mutate(pool, source, reached, again, equivalents)
            print(f"{source.path}: {score(ends)}", flush=True)
            total += ends
    print(f"{room.room}: {score(total)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
