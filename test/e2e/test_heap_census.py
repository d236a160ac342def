# SPDX-License-Identifier: Apache-2.0
"""--heap-census: what glibc's malloc holds, by size, when a recording begins and ends.

The truth is the account of fixtures/census.c, by the size of chunks, and malloc's own."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import pprof_check
from conftest import ROOT, wallprof
from debian import Packages

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
# glibc 2.31, 2.41 and what comes.
SUITES = ("bullseye", "trixie", "sid", "experimental")
PACKAGES = Packages(ROOT / "build" / "glibc", SUITES)
GROWN, OLD = "more than at first", "as many as at first"


def begin(start, suite):
    """The fixture, with the C library of SUITE."""
    if not suite:
        return start("census")
    root = PACKAGES.unpack(suite, f"libc6/{suite}")
    if not root:
        pytest.skip(f"no libc6 of {suite} from Debian")
    libc, = root.rglob("libc.so.6")
    loader, = (p for p in libc.parent.glob("ld-*.so*")
               if p.name.startswith("ld-linux-"))
    threads = libc.parent / "libpthread.so.0"
    preload = ("--preload", threads) if suite == "bullseye" else ()
    return start(loader, "--library-path", libc.parent, *preload,
                 ROOT / "build/fixtures/census")


def work(target):
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("DONE")
    return lambda: True


def census(target, tmp_path, *args):
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   *args, output=tmp_path / "p.pb.gz",
                   until=lambda: work(target)).check((0, 1))
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    pprof_check.validate(p)
    return run, pprof_check.samples(p)


def by_class(samples):
    """{(is it mapped, least and largest chunk): {part: (chunks, bytes)}}"""
    ret = collections.defaultdict(dict)
    for s in samples:
        part, name = (f["name"] for f in s["frames"])
        least, most = (int(n) for n in re.findall(r"\d+", name))
        mapped = name.startswith("mapped")
        own = 16 if mapped else 8
        key = mapped, least and least + 8, most + own
        ret[key][part] = (s["values"]["inuse_objects"],
                          s["values"]["inuse_space"])
        assert s["labels"]["bytes"] == most + own
    return ret


def count(books, key):
    """Chunks and bytes of BOOKS that are of the class KEY.  Since 2.43 mapped ones have
    their header beside their size."""
    mapped, least, most = key
    chunks = size = 0
    for text, n in books.items():
        if text.startswith("m") != mapped:
            continue
        each = int(text.lstrip("m"))
        each = -(-each // 4096) * 4096 if mapped else each
        if least <= each <= most:
            chunks += n
            size += n * each
    return chunks, size


def numbers(run):
    """What is said of the last count."""
    said, = re.findall(r"; then (.*)", run.err)
    return {name: int(re.search(rf"(\d+) {name}", said).group(1))
            for name in ("bytes in use", "arenas", "more kept free")}


@pytest.mark.parametrize("suite", ("",) + SUITES)
def test_growth_is_that_of_the_programs_books(start, tmp_path, suite):
    target = begin(start, suite)
    run, samples = census(target, tmp_path)
    target.assert_unharmed()
    truth = target.truth()
    classes = by_class(samples)
    grown = 0
    for key, parts in classes.items():
        before, after = (count(truth[name], key) for name in ("before", "after"))
        more = parts.get(GROWN, (0, 0))
        assert more == (max(0, after[0] - before[0]),
                        max(0, after[1] - before[1])), key
        # Malloc's callers in libraries have a few chunks of their own.
        all_ = more[0] + parts.get(OLD, (0, 0))[0]
        assert 0 <= all_ - after[0] <= 6, (key, parts, after)
        grown += more[0]
    assert grown > 1000
    for name, n in truth["after"].items():
        size = int(name.lstrip("m"))
        size = -(-size // 4096) * 4096 if name[0] == "m" else size
        assert n == 0 or any(key[0] == (name[0] == "m") and key[1] <= size <= key[2]
                             for key in classes), name
    for word in ("not read", "no chunks", "malloc says"):
        assert word not in run.err, run.err


@pytest.mark.parametrize("suite", ("",) + SUITES)
def test_sums_are_those_of_malloc_itself(start, tmp_path, suite):
    """mallinfo(3) has in use what threads keep, and the heads of other arenas."""
    target = begin(start, suite)
    run, samples = census(target, tmp_path)
    truth = target.truth()
    said = numbers(run)
    heads = truth["heap"] + truth["fast"] - (said["bytes in use"] +
                                             said["more kept free"])
    assert said["arenas"] == 2 and said["more kept free"] > 4096, run.err
    assert 2000 < heads < 2400, (truth, run.err)
    assert truth["mapped"] == sum(
        s["values"]["inuse_space"] for s in samples
        if s["frames"][-1]["name"].startswith("mapped"))


def test_a_static_program_has_one(start, tmp_path):
    target = start("heap-static", "5")
    before, _ = census(target, tmp_path)
    run, samples = census(target, tmp_path)
    target.assert_unharmed()
    # 200 objects of 1024 bytes a round, aligned; 5 rounds keep every tenth.
    grown = [s for s in samples if s["frames"][0]["name"] == GROWN]
    assert sum(s["values"]["inuse_space"] for s in grown) > 1 << 20, run.err
    assert numbers(run)["bytes in use"] > numbers(before)["bytes in use"]


LINKS = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile double table[] = { 1.0 };
struct node { struct node *next; double weight; };

int main(void)
{
    struct node *list = NULL;
    void *freed[14];

    for (int i = 0; i < 300000; i++) {
        struct node *n = malloc(sizeof(*n));
        n->next = list;
        n->weight = table[0];
        list = n;
    }
    for (int i = 0; i < 14; i++)
        memset(freed[i] = malloc(100 + i / 7 * 100), 1, 100);
    for (int i = 0; i < 14; i++)
        free(freed[i]);
    printf("READY pid=%d\\n", getpid());
    printf("TRUTH {\\"heap\\": %zu}\\n", mallinfo2().uordblks);
    fflush(stdout);
    pause();
}
"""


def test_nodes_with_a_word_of_the_data_are_in_use(start, tmp_path):
    """The program's data is libc's, in a static program: 1.0 is in both, and in nodes."""
    subprocess.run(["gcc", "-O1", "-static", "-xc", "-", "-o", tmp_path / "links"],
                   input=LINKS.encode(), check=True)
    target = start(tmp_path / "links")
    heap = json.loads(target.read_line("TRUTH").split(" ", 1)[1])["heap"]
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   "-d", "1", output=tmp_path / "p.pb.gz").check()
    said = numbers(run)
    # Seven each of 112 and 208 bytes are kept; what else is, libc has freed.
    assert 2240 <= said["more kept free"] < 8192, run.err
    assert said["bytes in use"] + said["more kept free"] == heap, run.err
    assert said["bytes in use"] > 300000 * 32


@pytest.mark.parametrize("program, library, name", [
    ("heap-musl", None, "libc.so"), ("heap-musl-static", None, "heap-musl-static"),
    ("heap", "libjemalloc.so.2", "libjemalloc"),
    ("heap", "libtcmalloc_minimal.so.4", "libtcmalloc"),
    ("heap", "libmimalloc.so.2", "libmimalloc")])
def test_another_malloc_is_named(start, program, library, name):
    env = dict(os.environ)
    if library:
        env["LD_PRELOAD"] = str(LIBRARIES / library)
    target = start(program, "1", env=env)
    work(target)
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   "-d", "1")
    assert run.status == 2, run.err
    assert re.search(rf"malloc is that of \S*{name}", run.err), run.err
    target.assert_unharmed()


def test_go_has_none(start, tmp_path):
    target = start("books", tmp_path)
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   "-d", "1")
    assert run.status == 2 and "leave out --heap-census" in run.err, run.err


def test_a_program_that_allocates_is_read_all_the_same(start, tmp_path):
    """No thread is stopped: what changes while it is read is said."""
    target = start("/usr/bin/perl", "-e",
                   "$| = 1; @k = map { 'x' x 700 } 1..30000; "
                   "print 'READY pid=', $$, \"\\n\"; "
                   "while (1) { my @x = map { [$_] } 1..1000 }")
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   "-d", "1", output=tmp_path / "p.pb.gz").check((0, 1))
    target.assert_unharmed()
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    held = sum(s["values"]["inuse_objects"] for s in pprof_check.samples(p)
               if "malloc of 697 to 712" in [f["name"] for f in s["frames"]])
    assert 30000 <= held < 30300, run.err
    assert "stops: 0 made" in run.err


TOP_MOVES = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	void *kept[64] = { 0 };

	printf("READY pid=%d\\n", getpid());
	fflush(stdout);
	for (unsigned int i = 0;; i++) {
		free(kept[i % 64]);
		kept[i % 64] = malloc(2000 + i * 7919 % 60000);
	}
}
"""


def test_a_heap_whose_top_moves_is_one_of_glibc(build, start, tmp_path):
    """An arena that changed while it was read was none: 19 of 150 were refused."""
    target = start(build(tmp_path, "gcc", source=TOP_MOVES, suffix=".c"))
    for _ in range(30):
        wallprof("-p", target.pid, "--profile", "heap", "--heap-census", "-d", "0.02",
                 output=tmp_path / "p.pb.gz").check((0, 1))
    target.assert_unharmed()


def test_a_process_that_ends_is_counted_once(start, tmp_path):
    target = start("census")
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   output=tmp_path / "p.pb.gz", until=lambda: ended(target))
    assert run.status == 1 and "the process had ended" in run.err, run.err
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    assert {s["frames"][0]["name"] for s in pprof_check.samples(p)} == {OLD}


def ended(target):
    target.truth()
    return lambda: True


def test_leaks_are_what_has_grown(start):
    target = start("census")
    run = wallprof("leaks", target.pid, "--heap-census",
                   until=lambda: work(target)).check((0, 1))
    lines = run.out.splitlines()
    at = next(i for i, li in enumerate(lines) if li.startswith("Growth: "))
    assert re.match(r" +5.7\d MiB .* 2  malloc of 2883577 to 3145720$",
                    lines[at + 2]), run.out
    assert "Who" not in run.out and OLD not in run.out


def test_the_programs_owner_may_make_one(start):
    """It takes no probe, and no capability."""
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    target = start("/usr/bin/setpriv", *user[1:], "/usr/bin/perl", "-e",
                   "$| = 1; print 'READY pid=', $$, \"\\n\"; sleep 100")
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-census",
                   "-d", "1", prefix=user).check()
    assert "in use at the end" in run.out, run.err
