# SPDX-License-Identifier: Apache-2.0
"""What a Go program's runtime has noted, by wallprof and by the program."""
import collections
import signal

import pprof_check
from conftest import wallprof

# Of each the functions of which one is in the stacks that are compared: it waits
# on after the dump, for the signal and to write.
KINDS = {"heap": "", "block": ("main.contend", "main.receive"),
         "mutex": ("main.contend", "main.receive")}


def stacks_of(path):
    """{(functions and lines, outermost last; bytes): values} of a file."""
    p = pprof_check.load(str(path))
    found = collections.defaultdict(lambda: collections.Counter())
    for s in pprof_check.samples(p):
        key = (tuple((f["name"], f["line"]) for f in s["frames"]),
               s["labels"].get("bytes"))
        found[key].update(s["values"])
    return found


def is_near(a, b):
    return all(abs(a[k] - b[k]) <= 1 + 1e-3 * b[k] for k in a.keys() | b.keys())


def compare(target, place, kinds=tuple(KINDS)):
    """Dump the books of the fixture, have it write the same, and compare them:
    {kind: number of stacks}."""
    for kind in kinds:
        wallprof("dump", "--profile", kind, "-p", target.pid,
                 output=place / f"{kind}.pb.gz").check()
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("done")
    rate = place / "rate"
    factor = float(rate.read_text()) if rate.exists() else 1
    counts = {}
    for kind in kinds:
        only = KINDS[kind]
        pprof_check.validate(pprof_check.load(str(place / f"{kind}.pb.gz")),
                             noted=True)
        mine, truth = (stacks_of(place / name)
                       for name in (f"{kind}.pb.gz", kind))
        for values in truth.values():
            if "delay" in values:
                values["delay"] *= factor
        # What it did not do after the dump, to write.
        want = {k: v for k, v in truth.items() if any(v.values()) and
                any(f[0].startswith(only) for f in k[0])}
        got = {k: v for k, v in mine.items() if
               any(f[0].startswith(only) for f in k[0])}
        assert got.keys() == want.keys(), (
            kind, sorted(got.keys() ^ want.keys())[:2])
        wrong = [(k, got[k], want[k]) for k in got
                 if not is_near(got[k], want[k])]
        assert not wrong, (kind, len(wrong), len(got), wrong[0])
        counts[kind] = len(got)
    return counts
