# SPDX-License-Identifier: Apache-2.0
"""A Go program (1.19) whose memory lies in every structure that wallprof reads: each
field of it is another in turn, while the program waits, and is set right again.  What
does not lie is told as before, what lies is not taken for whole, and time and memory
are bounded."""
import contextlib
import json
import os
import struct
import subprocess
import threading

import pytest

import pprof_check
from conftest import FIXTURES, WALLPROF

COUNT = 20
# Nowhere, odd, huge, negative; ALL stands for the list of goroutines, SELF for where
# the lie itself is: what is there is something else, or a ring.
ALL, SELF = object(), object()
LIES = [0, 1, 0x1001, 0x10000, 1 << 40, 1 << 63, 2**64 - 1, 2**64 - 8, ALL, SELF]
# Fields of runtime.g of Go 1.19 (src/go/go_layout.c).
G = {"stack.lo": 0, "stack.hi": 8, "m": 48, "sched.sp": 56, "sched.pc": 64,
     "sched.g": 72, "sched.bp": 104, "syscallsp": 112, "syscallpc": 120,
     "status": 144, "goid": 152, "waitsince": 168, "waitreason": 176,
     "lockedm": 232, "gopc": 296, "startpc": 312, "waiting": 328, "labels": 360}
GOID, SP, WAITING, LABELS, M = (G[k] for k in ("goid", "sched.sp", "waiting",
                                               "labels", "m"))
# Of what g's lead to: where that begins in g; fields of sudog, hchan, hmap.
BEHIND = {
    "sudog": ([WAITING], [0, 24, 64, 80]),
    "hchan": ([WAITING, 80], [0, 8, 24, 32]),
    "labels": ([LABELS], [0]),
    "hmap": ([LABELS, 0], [8, 16]),
    "bmap": ([LABELS, 0, 16], [0, 8, 16, 24, 136, 144, 264]),
}
# As many of the list's first are looked at before it is taken for one.
CHECKED = 64
MIB_MAX, SECONDS_MAX = 300, 30


class Memory:
    """What a program has in memory, to read and to write."""

    def __init__(self, pid):
        self.fd = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def word(self, at):
        return struct.unpack("<Q", os.pread(self.fd, 8, at))[0]

    def put(self, at, value):
        os.pwrite(self.fd, struct.pack("<Q", value), at)

    @contextlib.contextmanager
    def lying(self, lies):
        """While it holds, the words at the addresses of LIES are those."""
        was = {at: self.word(at) for at in lies}
        try:
            for at, value in lies.items():
                self.put(at, value)
            yield
        finally:
            for at, value in was.items():
                self.put(at, value)


def symbols_of(program):
    out = subprocess.run(["nm", FIXTURES / program], check=True,
                         capture_output=True, text=True).stdout
    return {line.split()[2]: int(line.split()[0], 16)
            for line in out.splitlines() if len(line.split()) == 3}


class Liar:
    def __init__(self, start, place, name, *args):
        self.place = place
        self.target = start(name, *args)
        self.symbols = symbols_of(name)
        self.memory = Memory(self.target.pid)
        self.allgs = self.symbols["runtime.allgs"]
        array, n = self.memory.word(self.allgs), self.memory.word(self.allgs + 8)
        self.array = array
        self.list = [self.memory.word(array + 8 * i) for i in range(n)]
        self.gs = {self.memory.word(at + GOID): at for at in self.list}

    def lie(self, lie, at):
        return self.array if lie is ALL else at if lie is SELF else lie

    def places(self, path, off):
        """{id: address} of what PATH leads to from each goroutine, by OFF."""
        found = {}
        for goid, at in self.gs.items():
            for step in path:
                at = self.memory.word(at + step)
                if not at:
                    break
            if at:
                found[goid] = at + off
        return found

    def run(self, *args):
        """(status, standard output) of wallprof, whose cost is bounded."""
        measured = self.place / "used"
        run = subprocess.run(
            ["timeout", "-s", "KILL", str(2 * SECONDS_MAX),
             FIXTURES / "measured", measured, WALLPROF, *map(str, args), "-p",
             str(self.target.pid)], stdin=subprocess.DEVNULL,
            capture_output=True)
        assert 0 <= run.returncode <= 4, (run.returncode, run.stderr)
        mib, cpu = map(float, measured.read_text().split())
        assert mib < MIB_MAX and cpu < SECONDS_MAX, (mib, cpu)
        return run.returncode, run.stdout

    def profile(self, *args):
        """What it writes with ARGS, if anything, is a profile."""
        path = self.place / "x.pb.gz"
        path.unlink(missing_ok=True)
        status, _ = self.run(*args, "-q", "-o", path)
        assert status in (0, 1, 2)
        if status != 2:
            pprof_check.validate(pprof_check.load(str(path)),
                                 noted=args[0] == "dump")

    def late(self, before):
        """Ids of goroutines of the program's own, but for the first of the list, by
        which the list is known."""
        first = set(self.list[:CHECKED])
        return [k for k in sorted(before) if is_parked(before[k]) and
                self.gs.get(k, 0) not in first | {0}]

    def goroutines(self):
        """{id: (reason, frames, whether they are said to be cut or guessed, labels,
        what it waits for)} of a dump that says why it has none."""
        _, out = self.run("dump", "-q", "-f", "json")
        process = json.loads(out)["processes"][0]
        assert process["goroutines"] or process["go_error"] or \
            process["lost_goroutines"], process
        return {g["id"]: (g["state"] + g["reason"],
                          tuple((f["address"], f["function"])
                                for f in g["frames"]),
                          g["truncated"] or
                          any(f["guessed"] for f in g["frames"]),
                          json.dumps(g["labels"]), json.dumps(g["waits_for"]))
                for g in process["goroutines"]}


@pytest.fixture
def liar(start, tmp_path):
    liar = Liar(start, tmp_path, "parked", COUNT, tmp_path / "truth")
    yield liar
    os.close(liar.memory.fd)
    # All that lied was set right: it was left alone.
    liar.target.assert_unharmed()


def is_parked(g):
    return "main.deep" in [f[1] for f in g[1]]


def assert_told(before, after, liars):
    """AFTER is what BEFORE was but for LIARS, of which none is whole and wrong."""
    honest = {k for k, v in before.items() if is_parked(v)} - liars
    changed = [(k, before[k], after.get(k)) for k in honest
               if after.get(k) != before[k]]
    assert not changed, (len(changed), changed[0])
    for goid in liars & before.keys() & after.keys():
        frames, cut = after[goid][1:3]
        assert frames in ((), before[goid][1]) or cut, (before[goid],
                                                        after[goid])


def lies_of(liar, places):
    """Each lie in two of the goroutines that have a place for it."""
    chosen = {}
    for i, (goid, at) in enumerate(sorted(places.items())[:2 * len(LIES)]):
        chosen[goid] = (at, liar.lie(LIES[i % len(LIES)], at))
    return chosen


def test_goroutines_that_lie(liar):
    """Each field of struct g, and of what it leads to."""
    before = liar.goroutines()
    parked = set(liar.late(before))
    assert len(parked) >= 9 * COUNT
    fields = {name: ([], off) for name, off in G.items()}
    for name, (path, offs) in BEHIND.items():
        fields.update({f"{name}+{off}": (path, off) for off in offs})
    for name, (path, off) in fields.items():
        places = {k: at for k, at in liar.places(path, off).items()
                  if k in parked}
        chosen = lies_of(liar, places)
        assert chosen, name
        with liar.memory.lying(dict(chosen.values())):
            after = liar.goroutines()
        if not path:
            assert_told(before, {k: v for k, v in after.items()
                                 if k in before}, set(chosen))
            continue
        # Behind one channel or map are several: their stacks are as they were.
        wrong = [k for k, v in before.items()
                 if is_parked(v) and after[k][:3] != v[:3]]
        assert not wrong, (name, wrong)
    assert liar.goroutines().keys() >= parked


def test_stacks_that_lie(liar):
    """What a stack holds where return addresses and frame pointers are: each lie in
    one of each that waits in another way."""
    before = liar.goroutines()
    same = {}
    for goid in liar.late(before):
        same.setdefault(before[goid][1][:3], []).append(goid)
    assert len(same) >= 9
    for word in range(0, 40):
        chosen = {}
        for lie, goid in (pair for ids in same.values()
                          for pair in zip(LIES, ids)):
            at = liar.memory.word(liar.gs[goid] + SP) + 8 * word
            chosen[goid] = (at, liar.lie(lie, at))
        with liar.memory.lying(dict(chosen.values())):
            after = liar.goroutines()
        assert_told(before, after, set(chosen))


@pytest.mark.parametrize("off", [0, 8, 16], ids=["pointer", "length", "cap"])
def test_a_list_that_lies(liar, off):
    before = liar.goroutines()
    for lie in LIES:
        at = liar.allgs + off
        with liar.memory.lying({at: liar.lie(lie, at)}):
            after = liar.goroutines()
        if lie in (1 << 40, 2**64 - 1):
            with liar.memory.lying({at: lie}):
                liar.profile("-d", 0.2)
        wrong = [(before[k], v) for k, v in after.items()
                 if v[1] and not v[2] and is_parked(v) and v != before.get(k)]
        assert not wrong, wrong[0]
    # Places of the list: a goroutine that is none, or one twice.
    chosen = {liar.array + 8 * (100 + i): liar.lie(lie, liar.array + 8 * i)
              for i, lie in enumerate(LIES)}
    gone = {k for k, at in liar.gs.items()
            if at in {liar.memory.word(place) for place in chosen}}
    with liar.memory.lying(chosen):
        after = liar.goroutines()
    assert_told(before, {k: v for k, v in after.items() if k not in gone},
                gone)


@pytest.mark.soak
def test_words_for_waits_that_lie(liar):
    """runtime.waitReasonStrings: pointers and lengths."""
    before = liar.goroutines()
    reasons = liar.symbols["runtime.waitReasonStrings"]
    for off in (0, 8, 2 * 16, 2 * 16 + 8, 9 * 16, 9 * 16 + 8):
        for lie in LIES:
            at = reasons + off
            with liar.memory.lying({at: liar.lie(lie, at)}):
                after = liar.goroutines()
            assert {k: v[1] for k, v in after.items() if is_parked(v)} == \
                {k: v[1] for k, v in before.items() if is_parked(v)}


def test_goroutines_that_change_while_they_are_read(liar):
    """Some are set to one lie after the other, as fast as may be."""
    before = liar.goroutines()
    parked = liar.late(before)
    liars = set(parked[::5])
    was = {liar.gs[k] + off: liar.memory.word(liar.gs[k] + off)
           for k in liars for off in G.values()}
    over = threading.Event()

    def lie_on():
        n = 0
        while not over.is_set():
            for at, right in was.items():
                n += 1
                liar.memory.put(at, liar.lie(LIES[n % len(LIES)], at)
                                if n % 3 else right)

    thread = threading.Thread(target=lie_on)
    thread.start()
    try:
        for _ in range(10):
            after = liar.goroutines()
            # A liar may take the id of another.
            assert_told(before, {k: v for k, v in after.items()
                                 if k not in liars}, liars)
        liar.profile("-d", 1)
    finally:
        over.set()
        thread.join()
        for at, right in was.items():
            liar.memory.put(at, right)


@pytest.mark.soak
def test_books_that_lie(start, tmp_path):
    """Buckets of heap, block and mutex profiles: next, allnext, type, hash, size, length,
    addresses of a stack, and what is counted."""
    liar = Liar(start, tmp_path, "books", tmp_path)
    try:
        for kind, symbol in (("heap", "mbuckets"), ("block", "bbuckets"),
                             ("mutex", "xbuckets")):
            head = liar.symbols[f"runtime.{symbol}"]
            bucket = liar.memory.word(head)
            for at in (head, *range(bucket, bucket + 80, 8)):
                for lie in LIES:
                    with liar.memory.lying({at: liar.lie(lie, at)}):
                        liar.profile("dump", "--profile", kind)
    finally:
        os.close(liar.memory.fd)
    liar.target.assert_unharmed()
