# SPDX-License-Identifier: Apache-2.0
"""Go's own heap, block and mutex profiles, read from memory, against what the
program itself writes of the same moment."""
import platform

import pytest

import go_books
import pprof_check
from conftest import FIXTURES, wallprof


@pytest.mark.parametrize("program", ["books", "books-stripped"])
def test_they_are_what_the_program_writes(program, start, tmp_path):
    target = start(program, tmp_path)
    counts = go_books.compare(target, tmp_path)
    target.assert_unharmed()
    assert counts["heap"] > 30 and counts["block"] >= 2 and counts["mutex"], \
        counts
    p = pprof_check.load(str(tmp_path / "heap.pb.gz"))
    text = p.string_table
    assert [(text[t.type], text[t.unit]) for t in p.sample_type] == [
        ("alloc_objects", "count"), ("alloc_space", "bytes"),
        ("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert text[p.default_sample_type] == "inuse_space"
    assert (text[p.period_type.type], text[p.period_type.unit], p.period) == \
        ("space", "bytes", 512 << 10)
    assert any("as of the last garbage collection" in c
               for c in pprof_check.comments(p))


@pytest.mark.skipif(platform.machine() != "x86_64",
                    reason="elsewhere the rate is not found")
@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_ends_sampling_scales_nothing(start, tmp_path, rate):
    target = start("books", tmp_path, rate)
    assert go_books.compare(target, tmp_path)["heap"] > 30
    target.assert_unharmed()
    p = pprof_check.load(str(tmp_path / "heap.pb.gz"))
    assert any("of sampled objects alone: runtime.MemProfileRate is 0 or less"
               in c for c in pprof_check.comments(p))


def test_a_plugin_that_was_the_last_to_allocate(start, tmp_path):
    target = start("goplugs", FIXTURES / "goplugged.so", tmp_path)
    go_books.compare(target, tmp_path, ["heap"])
    target.assert_unharmed()
    stacks = go_books.stacks_of(tmp_path / "heap.pb.gz")
    assert any("Fill" in f[0] for stack, _ in stacks for f in stack)


def dump(pid, kind):
    return wallprof("dump", "--profile", kind, "-p", pid, "-o", "-", "-f",
                    "pprof")


def test_what_is_off_is_said(start, tmp_path):
    target = start("books", tmp_path, "off")
    assert "has not called runtime.SetBlockProfileRate" in \
        dump(target.pid, "block").check(2).err
    assert "has not called runtime.SetMutexProfileFraction" in \
        dump(target.pid, "mutex").check(2).err
    target.assert_unharmed()


def test_a_program_without_books(start):
    # Nothing in it asks for runtime.MemProfile.
    target = start("goroutines")
    assert "no heap profile: this program was linked without one" in \
        dump(target.pid, "heap").check(2).err
    target.assert_unharmed()
    target = start("spinner")
    assert "not a Go program" in dump(target.pid, "heap").check(2).err


@pytest.mark.parametrize("args, words", [
    (("record", "--profile", "goroutine", "-o", "x.pb.gz"),
     "the goroutine profile is one of a dump"),
    (("dump", "--profile", "heap,block", "-o", "x.pb.gz"), "is one of"),
    (("dump", "--profile", "wall", "-o", "x.pb.gz"), "is one of"),
    (("dump", "--profile", "heap", "-o", "x.json"), "is a pprof file")])
def test_what_cannot_be_asked(args, words):
    run = wallprof(*args, "-p", "1").check(64)
    assert words in run.err, run.err
