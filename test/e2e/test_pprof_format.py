# SPDX-License-Identifier: Apache-2.0
"""The pprof writer's file, as other programs read it.

The profile is the one of test/unit/profile_maker.h, written by its unit test:
so what it says is known to the last digit.
"""
import os
import pathlib
import re
import subprocess

import pytest

import pprof_check

WRITER = pathlib.Path(os.environ.get("BUILD_DIR", "build/release"),
                      "test_pprof").absolute()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    if not WRITER.exists():
        pytest.skip(f"{WRITER} is not built (make unit)")
    path = tmp_path_factory.mktemp("pprof") / "server.pb.gz"
    subprocess.run([WRITER, path], check=True)
    return path


@pytest.fixture(scope="module")
def profile(path):
    return pprof_check.load(path)


def go_pprof(path, *options):
    run = subprocess.run(["go", "tool", "pprof", *options, path],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False,
                         env={**os.environ, "PPROF_TMPDIR": str(path.parent)})
    assert run.returncode == 0, run.stdout
    return run.stdout


def test_every_rule_holds(profile):
    pprof_check.validate(profile)


def test_weights_are_the_threads_time(profile):
    assert pprof_check.threads(profile) == dict.fromkeys(
        (100, 101, 102, 103), 10 * 10**9)
    assert pprof_check.by_label(profile, "state") == {
        "running": 8_900_000_000, "runnable": 10_000_000_000,
        "waiting": 21_100_000_000}
    assert pprof_check.by_label(profile, "wait", "samples") == {
        None: 1890, "lock": 1200, "poll": 900, "syscall:membarrier": 10}


def test_stacks_keep_their_inlined_frames(profile):
    stacks = pprof_check.stacks(profile)
    assert stacks["main", "serve", "handle", "parse_inline"] == 10**9
    leaf = next(s["frames"] for s in pprof_check.samples(profile)
                if s["frames"][0]["name"] == "parse_inline")[0]
    assert leaf == {"name": "parse_inline", "file": "/src/parse.h", "line": 7,
                    "address": 0x400300, "mapping": "/usr/bin/server",
                    "build_id": "00ff", "inlined": True}


def test_comments_have_the_counters(profile):
    assert "command: /usr/bin/server --port 80" in pprof_check.comments(profile)
    assert pprof_check.counter(profile, "missed") == 2
    assert pprof_check.counter(profile, "EINTR repaired") == 1
    assert pprof_check.counter(profile, "refused by the kernel") == 0


def test_a_broken_rule_is_found(profile):
    for spoil in (lambda p: setattr(p.location[0], "id", 9),
                  lambda p: setattr(p.location[0], "address", 1),
                  lambda p: p.string_table.__setitem__(0, "x"),
                  lambda p: p.sample[0].value.append(1),
                  lambda p: setattr(p.sample[0].label[1], "num_unit", 0),
                  lambda p: p.sample[0].label.pop(0),
                  lambda p: p.function.add(id=len(p.function) + 1, name=1),
                  lambda p: setattr(p, "default_sample_type", 0)):
        bad = type(profile)()
        bad.CopyFrom(profile)
        spoil(bad)
        with pytest.raises(AssertionError):
            pprof_check.validate(bad)


def test_go_tool_pprof_top(path):
    out = go_pprof(path, "-top")
    assert "File: server" in out and "Build ID: 00ff" in out
    assert "Total samples = 40s" in out
    assert re.search(r"12s 30.00% .* __lll_lock_wait$", out, re.M)


def test_go_tool_pprof_tags(path):
    out = go_pprof(path, "-tags")
    for tid in range(100, 104):
        # A plain number: not dropped, not scaled to a unit.
        assert re.search(rf"10.0s \(25.00%\): {tid}$", out, re.M), out
    assert re.search(r"9.0s \(42.65%\): poll$", out, re.M)
    assert r"\x1b[31m" in out and "\x1b" not in out


def test_go_tool_pprof_roots_and_filters(path):
    assert re.search(r"^ +0 .* 10s 25.00%  work-2$",
                     go_pprof(path, "-tagroot=thread", "-top"), re.M)
    out = go_pprof(path, "-tagfocus=state=waiting", "-top")
    assert "Showing nodes accounting for 21s, 52.50% of 40s total" in out
    out = go_pprof(path, "-tagfocus=tid=101", "-top")
    assert "Showing nodes accounting for 10s, 25.00% of 40s total" in out


def test_go_tool_pprof_raw_and_traces(path):
    raw = go_pprof(path, "-raw")
    assert "samples/count wall/nanoseconds[dflt]" in raw
    assert "PeriodType: wall nanoseconds" in raw and "Duration: 10s" in raw
    assert "1: 0x400000/0x410000/0x1000 /usr/bin/server 00ff [FN]" in raw
    traces = go_pprof(path, "-traces")
    assert re.search(r" 1s +parse_inline.*\n +handle\n +serve\n +main\n",
                     traces)
