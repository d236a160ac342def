# SPDX-License-Identifier: Apache-2.0
"""Go programs that call C code, which calls back: one stack from one to the other."""
import re
import signal

import pytest

import goroutine_text
import pprof_check
from conftest import FIXTURES, wait_until, wallprof

PROGRAMS = ["gocgo", "gocgo-stripped"]
GO = ["main.caller", "main.sleeper", "main.spinner"]


@pytest.fixture
def gocgo(start, tmp_path):
    def begin(name):
        target = start(name, tmp_path / "truth")
        # They are in C code, or back from there.
        wait_until(lambda: wallprof("dump", target.pid, "-q").out.count(
            "[syscall]") >= 2)
        return target
    return begin


@pytest.mark.parametrize("program", PROGRAMS)
def test_goroutines_behind_c_code(gocgo, program, tmp_path):
    """As the runtime itself says, to the byte."""
    target = gocgo(program)
    run = wallprof("dump", "-f", "go", "-p", target.pid).check()
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("done")
    target.assert_unharmed()
    mine = goroutine_text.parse(run.out, True)
    seen = 0
    for goid, want in goroutine_text.parse(
            (tmp_path / "truth").read_text(), True).items():
        if not any(f[0] in GO for f in want.frames):
            continue
        got = mine[goid]
        assert got._replace(
            frames=goroutine_text.without_wrappers(got, want)) == want
        seen += 1
    assert seen == 3


def follows(want, names):
    it = iter(names)
    return all(any(w == n for n in it) for w in want)


@pytest.mark.parametrize("program", PROGRAMS)
def test_c_frames_under_gos(gocgo, profile, program):
    target = gocgo(program)
    _, p = profile(target.pid, "-d", 2)
    target.assert_unharmed()
    ns = dict.fromkeys(GO, 0)
    c_ns = dict(ns)
    c_code = {"main.sleeper": ["clock_nanosleep"], "main.spinner": [],
              "main.caller": ["main.goCallback", "runtime.cgocallback"]}
    for s in pprof_check.samples(p):
        names = [f["name"].split("@")[0] for f in s["frames"]]
        site = next((n for n in names if n in GO), None)
        if not site:
            continue
        assert names[-1] == "runtime.goexit", names
        ns[site] += s["values"]["wall"]
        c_ns[site] += s["values"]["wall"] * follows(
            [*c_code[site], "runtime.cgocall", site, "runtime.goexit"], names)
    for site in GO:
        assert abs(ns[site] - p.duration_nanos) < 0.05 * p.duration_nanos, ns
        assert c_ns[site] > 0.9 * ns[site], (site, pprof_check.described(p))


def test_libraries_with_a_runtime_each(start, tmp_path):
    """The goroutines are those of one library; whose are missing is said."""
    libraries = [FIXTURES / f"golib_{k}.so" for k in "ab"]
    target = start("goloads", *libraries)

    def dumped():
        # While they start, a thread may be met where it has no whole stack.
        out = wallprof("dump", "-q", target.pid).check((0, 1)).out
        return out if out.count("main.waitHere golib.go") >= 3 else None
    out = wait_until(dumped)
    read = set(re.findall(r"main\.waitHere golib\.go:\d+  (golib_[ab])", out))
    assert len(read) == 1, read
    other = libraries["golib_a" in read]
    assert re.search(r"\ngoroutines could not be read: those of 1 more Go "
                     rf"runtime \({other}\)\n\d+ goroutines of go", out), out
    path = tmp_path / "x.pb.gz"
    wallprof("dump", "--profile", "goroutine", "-q", "-p", target.pid,
             output=path).check()
    assert f"goroutine: all but those of 1 more Go runtime ({other})" in \
        pprof_check.comments(pprof_check.load(str(path)))
    target.assert_unharmed()
