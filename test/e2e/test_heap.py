# SPDX-License-Identifier: Apache-2.0
"""--profile heap: what a program allocates, and what of it is in use.

The truth is the account of fixtures/heap.c, by site.  An object of SIZE bytes is in the
profile with the probability 1 - exp(-SIZE / RATE): bytes of many have a variance of at
most bytes * RATE."""
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

import pprof_check
from conftest import (FIXTURES, WALLPROF, has_slept, wait_until, wait_until_sampling,
                      wallprof, worker_of)

RATE = 64 << 10
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
MUSL = "/lib/ld-musl-x86_64.so.1"
# Objects of one size each: that in bytes.
SIZES = {"site_malloc_16": 16, "site_malloc_100": 100, "site_malloc_4k": 4096,
         "site_malloc_20k": 20000, "site_malloc_200k": 200000,
         "site_malloc_1m": 1 << 20, "site_calloc": 48, "site_aligned": 1024,
         "site_memalign": 500, "site_posix": 3000, "site_strdup": 301,
         "site_longjmp": 700, "site_failed": 2000}
COLUMNS = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def by_site(p, pid=None):
    """{site: [sums of COLUMNS]}, of process PID alone; "" is what is of no site."""
    sums = {}
    for s in pprof_check.samples(p):
        if pid not in (None, s["labels"].get("pid")):
            continue
        site = next((f["name"] for f in s["frames"]
                     if f["name"].startswith("site_")), "")
        row = sums.setdefault(site, [0, 0, 0, 0])
        for i, column in enumerate(COLUMNS):
            row[i] += s["values"][column]
    return sums


def work(target):
    """Have TARGET allocate; it has done so when this returns."""
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("DONE", timeout=1000)
    return lambda: True


def record(target, tmp_path, *args):
    """The heap profile of TARGET's work."""
    out = tmp_path / "p.pb.gz"
    # On some machines a probe on mmap takes 50 us.
    run = wallprof("-p", target.pid, "--profile", "heap,wall", "--heap-rate",
                   RATE, "--heap-anyway", *args, output=out,
                   until=lambda: work(target)).check((0, 1))
    p = pprof_check.load(str(tmp_path / "p.heap.pb.gz"))
    pprof_check.validate(p)
    return run, p


def allowed(bytes_):
    """Five standard deviations, and as few samples as tell no deviation."""
    return 5 * math.sqrt(bytes_ * RATE) + 4 * RATE


def compare(truth, p, pid=None):
    compare_sums(truth, by_site(p, pid))


def compare_sums(truth, sums, said=""):
    for site, (objects, bytes_, kept, kept_bytes) in truth.items():
        got = sums.get(site, [0, 0, 0, 0])
        assert abs(got[1] - bytes_) <= allowed(bytes_), (site, got, bytes_, said)
        assert abs(got[3] - kept_bytes) <= allowed(kept_bytes), (
            site, got, kept_bytes)
        size = SIZES.get(site)
        if size:
            # Of one size, objects are bytes divided by it; counts are rounded
            # at random to whole numbers.
            assert abs(got[0] * size - got[1]) <= size * (
                5 * math.sqrt(got[0]) + 5), (site, got)
            assert objects * size == bytes_ and kept * size == kept_bytes
    whole = [sum(t[i] for t in truth.values()) for i in range(4)]
    for i in (1, 3):
        got = sum(row[i] for site, row in sums.items() if site)
        assert abs(got - whole[i]) <= allowed(whole[i])


PROGRAMS = {
    "glibc": ("heap", None),
    "glibc-static": ("heap-static", None),
    "musl": ("heap-musl", None),
    "musl-static": ("heap-musl-static", None),
    "jemalloc": ("heap", "libjemalloc.so.2"),
    "tcmalloc": ("heap", "libtcmalloc_minimal.so.4"),
    "mimalloc": ("heap", "libmimalloc.so.2"),
}


# Ways to probe, and the first kernel that has them.
TIERS = {"session": (6, 13), "multi": (6, 6), "perf": (5, 10)}
KERNEL = tuple(int(n) for n in os.uname().release.split(".")[:2])
each_tier = pytest.mark.parametrize("tier", [
    pytest.param(tier, marks=pytest.mark.skipif(
        KERNEL < first, reason=f"Linux {KERNEL} has no {tier} probes"))
    for tier, first in TIERS.items()])


@each_tier
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_programs_books(start, tmp_path, name, tier):
    program, library = PROGRAMS[name]
    env = dict(os.environ)
    if library:
        env["LD_PRELOAD"] = str(LIBRARIES / library)
    target = start(program, "20", env=env)
    run, p = record(target, tmp_path, "--heap-probe", tier)
    target.assert_unharmed()
    assert ", 0 of them lost" in run.err, run.err
    compare(target.truth(), p)


def with_its_own_library(tmp_path):
    """The environment of a program whose C library has no probes of other tests."""
    shutil.copy(LIBRARIES / "libc.so.6", tmp_path)
    return {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}


@each_tier
@pytest.mark.parametrize("name", ["glibc", "musl"])
def test_probes_do_not_cut_the_stacks_of_cpu_and_wall_time(start, tmp_path,
                                                            name, tier):
    """Where a call takes the probe of its return, its return address is not on the
    stack.  What cannot be told of it ends a stack, but makes no false frame.  Another
    recording of the same library would have all returns of a session's probed: the
    target has a library of its own."""
    if name == "glibc":
        target = start("heap", "100", env=with_its_own_library(tmp_path))
    else:
        library = shutil.copy(MUSL, tmp_path)
        target = start(library, FIXTURES / "heap-musl", "100")
    assert f" {tmp_path}/" in pathlib.Path(f"/proc/{target.pid}/maps").read_text()
    out = tmp_path / "p.pb.gz"
    run = wallprof("-p", target.pid, "-r", 500, "--profile", "heap,wall,cpu",
                   "--heap-anyway", "--heap-probe", tier, output=out,
                   until=lambda: work(target)).check((0, 1))
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    whole = every = 0
    for s in pprof_check.samples(p):
        names = [f["name"] for f in s["frames"]]
        every += s["values"]["cpu"]
        whole += s["values"]["cpu"] * (not names[-1].startswith("["))
        for inner, outer in zip(names, names[1:]):
            if inner.startswith("site_") and not outer.startswith("["):
                assert outer == "run_site" or outer == inner, s
    # What the kernel executes out of its place is not known.
    assert whole > 0.9 * every, f"{whole / every}\n{run.err}{pprof_check.described(p)}"


def test_a_kernel_without_a_way_to_probe_is_said(start):
    """What is wanted is taken, or refused with the reason: nothing else is taken."""
    target = start("heap", "1")
    for tier, first in TIERS.items():
        run = wallprof("-p", target.pid, "--profile", "heap", "--heap-anyway",
                       "-d", 0.2, "--heap-probe", tier, "-o", "/dev/null")
        if KERNEL < first:
            assert run.status == 2 and f"({tier}: " in run.err, run.err
        else:
            assert run.status in (0, 1), run.err


REALLOCED = 150000 * 1000
REALLOCS = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile none;
int main(void) {
    sigset_t set;
    int sig;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("READY pid=%d\\n", (int)getpid());
    fflush(stdout);
    while (!sigwait(&set, &sig) && sig == SIGUSR1) {
        for (int i = 0; i < 150000; i++) {
            none = realloc(none, 1000);
            free(none);
            none = NULL;
        }
        puts("DONE");
        fflush(stdout);
    }
}
"""


def start_compiled(start, tmp_path, name, source):
    """A program of SOURCE, with the allocator called NAME."""
    program, library = PROGRAMS[name]
    compiler = ["musl-gcc" if "musl" in program else "gcc", "-O1",
                *(("-static",) if "static" in program else ())]
    subprocess.run([*compiler, "-xc", "-", "-o", tmp_path / "program"],
                   input=source.encode(), check=True)
    env = dict(os.environ)
    if library:
        env["LD_PRELOAD"] = str(LIBRARIES / library)
    return start(tmp_path / "program", env=env)


@each_tier
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_realloc_of_nothing_is_one_allocation(start, tmp_path, name, tier):
    """glibc's ends in malloc, which is probed as well.  150 MB in 2,300 samples."""
    target = start_compiled(start, tmp_path, name, REALLOCS)
    run, p = record(target, tmp_path, "--heap-probe", tier)
    got = sum(s["values"]["alloc_space"] for s in pprof_check.samples(p))
    assert abs(got - REALLOCED) <= allowed(REALLOCED), (got, run.err)


KEEPS = REALLOCS.replace('''        for (int i = 0; i < 150000; i++) {
            none = realloc(none, 1000);
            free(none);
            none = NULL;
        }
''', """
        for (int i = 0; i < 200; i++, usleep(1000))
            if (!realloc(none, 1 << 20))
                return 1;
        for (int i = 0; i < 50; i++, usleep(1000))
            if (realloc(none, 1ul << 47))
                return 1;
""")


@each_tier
@pytest.mark.parametrize("name", ["glibc", "glibc-static", "musl", "jemalloc"])
def test_a_realloc_of_nothing_is_in_use(start, tmp_path, name, tier):
    """Each is sampled: 200 objects of 1 MiB are kept, and 50 fail."""
    target = start_compiled(start, tmp_path, name, KEEPS)
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-rate", "1K",
                   "--heap-anyway", "--heap-probe", tier, output=tmp_path / "p.pb.gz",
                   until=lambda: work(target))
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    for column in ("alloc_space", "inuse_space"):
        got = sum(s["values"][column] for s in pprof_check.samples(p))
        assert abs(got - 200 * MIB) < MIB / 2, (column, got / MIB, run.err)


THROWERS = {
    "glibc": ("throws", None),
    "static": ("throws-static", None),
    "jemalloc": ("throws", "libjemalloc.so.2"),
    "tcmalloc": ("throws", "libtcmalloc_minimal.so.4"),
}


@each_tier
@pytest.mark.parametrize("name", THROWERS)
def test_what_operator_new_throws_is_caught(start, tmp_path, name, tier):
    """A probe on its return would have the program end.  Where it calls malloc, that one
    is probed; of others what is in use is not known, and that is said."""
    program, library = THROWERS[name]
    env = dict(os.environ)
    if library:
        env["LD_PRELOAD"] = str(LIBRARIES / library)
    target = start(program, env=env)
    run, p = record(target, tmp_path, "--heap-probe", tier)
    target.assert_unharmed()
    truth, sums = target.truth(), by_site(p)
    said = "are of operator new of lib" + name in run.err
    assert said == (library is not None), run.err
    if library:
        assert "operator new, are not known to be in use" in run.err, run.err
        for site in ("site_new", "site_new_aligned"):
            got = sums[site]
            assert abs(got[1] - truth[site][1]) <= allowed(truth[site][1]), got
        assert sums["site_new"][3] == 0
        del truth["site_new"], truth["site_new_aligned"]
        for site in set(sums) - set(truth):
            del sums[site]
    compare_sums(truth, sums, run.err)


def begin_recording(target, out):
    """A wallprof that records TARGET's heap, as it does by default."""
    tool = subprocess.Popen([str(WALLPROF), "-p", str(target.pid), "-d", "1000",
                             "--profile", "heap,wall", "--heap-anyway", "-o", str(out)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until_sampling(tool)
    return tool


@each_tier
def test_what_operator_new_throws_is_caught_beside_another_recording(start, tmp_path,
                                                                     tier):
    """Two processes of one library have each other's probes: the return of operator new
    must have none in either."""
    env = {**os.environ, "LD_PRELOAD": str(LIBRARIES / "libjemalloc.so.2")}
    target, other = (start("throws", env=env) for _ in range(2))
    tool = begin_recording(other, tmp_path / "other.pb.gz")
    run, _ = record(target, tmp_path, "--heap-probe", tier)
    assert "of operator new of libjemalloc" in run.err, run.err
    target.assert_unharmed()
    work(other)
    tool.send_signal(signal.SIGINT)
    assert tool.wait(100) in (0, 1), tool.stderr.read()
    other.assert_unharmed()


@pytest.mark.skipif(KERNEL < TIERS["session"], reason=f"Linux {KERNEL} has no session probes")
@pytest.mark.parametrize("other", ["multi", "perf"])
def test_return_probes_of_another_take_nothing_away(start, tmp_path, other):
    """They are hit by each process that has the file: a realloc of nothing returns, and so
    the malloc that it jumps to, to the kernel's trampoline."""
    subprocess.run(["gcc", "-O1", "-xc", "-", "-o", tmp_path / "program"],
                   input=REALLOCS.encode(), check=True)
    target, neighbour = (start(tmp_path / "program") for _ in range(2))
    tool = subprocess.Popen([WALLPROF, "-q", "-p", str(neighbour.pid), "--profile",
                             "heap,wall", "--heap-anyway", "--heap-probe", other, "-o",
                             tmp_path / "other.pb.gz"])
    try:
        wait_until_sampling(tool)
        run, p = record(target, tmp_path, "--heap-probe", "session")
    finally:
        tool.send_signal(signal.SIGINT)
        tool.wait(timeout=100)
    got = sum(s["values"]["alloc_space"] for s in pprof_check.samples(p))
    assert abs(got - REALLOCED) <= allowed(REALLOCED), (got, run.err)


FORKS = """
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char was[8];
    void *code = dlsym(RTLD_DEFAULT, "malloc");
    sigset_t set;
    int sig;
    memcpy(was, code, sizeof(was));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("READY pid=%d\\n", (int)getpid());
    fflush(stdout);
    BODY
}
"""


@each_tier
def test_children_are_rid_of_probes(start, tmp_path, tier):
    """A forked child has its parent's breakpoints at first."""
    target = start_compiled(start, tmp_path, "glibc", FORKS.replace("BODY", """
    sigwait(&set, &sig);
    sig = memcmp(was, code, sizeof(was)) != 0;  // a child may be rid of them before it runs
    if (fork()) for (;;) pause();
    for (int i = 0; memcmp(was, code, sizeof(was)) && i < 20000; i++) {
        void *volatile p = malloc(100);
        free(p);
        usleep(1000);
    }
    printf("DONE\\nprobed %d, then %d\\n", sig, memcmp(was, code, sizeof(was)) != 0);
    return 0;"""))
    record(target, tmp_path, "--heap-probe", tier)
    assert target.read_line("probed") == "probed 1, then 0\n"


@pytest.mark.skipif(KERNEL < TIERS["multi"], reason=f"Linux {KERNEL} has perf events alone")
def test_what_forked_children_pay_is_in_the_budget(start, tmp_path):
    """They come faster than they can be rid of probes.  8 s were 1,641 children and 0.0 %,
    of 25,923 children without a profile."""
    target = start_compiled(start, tmp_path, "glibc", FORKS.replace("BODY", """
    for (sig = 0;; sig++) {
        if (!fork()) {
            for (int i = 0; i < 1000; i++) {
                void *volatile p = malloc(100);
                free(p);
            }
            _exit(0);
        }
        wait(NULL);
    }"""))
    run = wallprof("-p", target.pid, "--profile", "heap", "-d", 4,
                   output=tmp_path / "p.pb.gz")
    assert run.status == 1, run.err
    assert "of the time of its threads and forked children" in run.err, run.err


def record_perl(tmp_path, end):
    """The heap profile of a command, perl: 3,000 strings of 10,000 bytes, which it
    makes when its allocator is probed, then END."""
    out, pid = tmp_path / "p.pb.gz", tmp_path / "pid"
    own = text_of("self", "libc.so.6")
    script = ("open F, '>', '.new'; print F $$; close F; rename '.new', 'pid'; my @x; "
              "select undef, undef, undef, 0.01 until -e 'go'; "
              "push @x, 'x' x (10000 + $_) for 1..3000; " + end)

    tool = subprocess.Popen(
        [WALLPROF, "--profile", "heap", "--heap-rate", str(RATE), "--heap-anyway", "-o", out,
         "--", "/usr/bin/perl", "-e", script], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: pid.exists() and
                   text_of(pid.read_text(), "libc.so.6") != own)
        # It sleeps again when the last probe is there.
        wchan = pathlib.Path(f"/proc/{worker_of(tool)}/wchan")
        wait_until(lambda: "sigtimedwait" in wchan.read_text())
        (tmp_path / "go").touch()
        err = tool.communicate(timeout=100)[1]
    finally:
        tool.kill()
        tool.wait()
    assert tool.returncode in (0, 1), err
    return pprof_check.load(str(out))


def test_the_allocator_of_a_command_is_found(tmp_path):
    """It is mapped after the command has begun."""
    p = record_perl(tmp_path, "kill 9, $$")
    # The program ends with what it keeps: each of the strings.
    in_use = sum(s["values"]["inuse_space"] for s in pprof_check.samples(p))
    assert in_use >= 3000 * 10000 - allowed(3000 * 10000)


def test_an_exec_ends_what_was_in_use(tmp_path):
    """A program's memory goes with it, freed or not."""
    p = record_perl(tmp_path, "exec 'sleep', 0.3")
    assert sum(s["values"]["alloc_space"] for s in pprof_check.samples(p)) > 2e7
    assert not any(s["values"]["inuse_space"] for s in pprof_check.samples(p)
                   if any("perl" in f["name"].lower() for f in s["frames"]))


MAPS = """
import mmap, signal, threading
one = lambda: mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
print('READY pid=%d' % __import__('os').getpid(), flush=True)
signal.sigwait([signal.SIGUSR1])
maps = [one() for i in range(300)]
for m in maps[::3] + maps[1::3]: m.close()
own = [bytearray(1 << 20) for i in range(100)]
print('DONE', flush=True)
signal.sigwait([signal.SIGTERM])
"""
MIB = 1 << 20


@each_tier
@pytest.mark.parametrize("args", [(), ("--heap-large",)])
def test_memory_that_the_program_maps_itself(start, tmp_path, args, tier):
    """300 MiB by mmap, of which 100 are not unmapped, and 100 of an allocator, which
    maps them: that is counted once."""
    script = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, " \
             "[signal.SIGUSR1, signal.SIGTERM])\n" + MAPS
    target = start("/usr/bin/python3", "-c", script)
    _, p = record(target, tmp_path, "--heap-probe", tier, *args)
    sums = {True: [0, 0], False: [0, 0]}
    for s in pprof_check.samples(p):
        own = any(f["name"].startswith("mmap") for f in s["frames"][:1])
        sums[own][0] += s["values"]["alloc_space"]
        sums[own][1] += s["values"]["inuse_space"]
    for got, truth in ((sums[True], (300, 100)), (sums[False], (100, 100))):
        for have, want in zip(got, truth):
            assert abs(have - want * MIB) < allowed(want * MIB), sums


MOVES = """
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MIB = 1 << 20 };
static char *maps[200];
static char *map(size_t size, int fd) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
}
int main(void) {
    sigset_t set;
    int sig, file = memfd_create("file", 0);
    char *of_file;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("READY pid=%d\\n", (int)getpid());
    fflush(stdout);
    sigwait(&set, &sig);
    for (int i = 0; i < 200; i++, usleep(1000))
        maps[i] = map(MIB, -1);
    for (int i = 0; i < 100; i++, usleep(1000))
        mremap(maps[i], MIB, 2 * MIB, MREMAP_MAYMOVE);
    for (int i = 100; i < 150; i++, usleep(1000))
        mremap(maps[i], MIB, MIB / 2, 0);
    // One fails; one leaves what it was moved from; one is none of the process's own.
    mremap(maps[150], MIB, 1ul << 47, MREMAP_MAYMOVE);
    mremap(maps[151], MIB, MIB, MREMAP_MAYMOVE | 4, NULL);
    of_file = map(8 * MIB, file);
    mremap(of_file, 8 * MIB, 16 * MIB, MREMAP_MAYMOVE);
    sbrk(64 * MIB);
    sbrk(-32 * MIB);
    puts("DONE");
    fflush(stdout);
    sigwait(&set, &sig);
}
"""


@each_tier
@pytest.mark.parametrize("args", [(), ("--heap-large",)])
def test_memory_that_is_moved_and_given_back(start, tmp_path, args, tier):
    """Each mapping is sampled.  mremap gives back what was there, and maps the rest."""
    target = start(compiled(tmp_path, MOVES))
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-rate", "1K",
                   "--heap-anyway", "--heap-probe", tier, *args,
                   output=tmp_path / "p.pb.gz", until=lambda: work(target))
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    whole = {"alloc_space": 200 + 200 + 25 + 1, "inuse_space": 200 + 50 + 25 + 1}
    if args:
        whole["alloc_space"] += 64
        whole["inuse_space"] += 32
    for column, mib in whole.items():
        got = sum(s["values"][column] for s in pprof_check.samples(p))
        assert abs(got - mib * MIB) < MIB / 2, (column, got / MIB, run.err)
    target.assert_unharmed()


def test_only_what_is_mapped_by_so_much_at_a_time(start, tmp_path):
    """300 times 1 MiB are left out, 50 times 8 MiB are not."""
    script = ("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, "
              "[signal.SIGUSR1, signal.SIGTERM])\n" + MAPS.replace(
                  "print('DONE'", "big = [mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE "
                  "| mmap.MAP_ANONYMOUS) for i in range(50)]\nprint('DONE'"))
    target = start("/usr/bin/python3", "-c", script)
    _, p = record(target, tmp_path, "--heap-large=4M")
    for column in ("alloc_space", "inuse_space"):
        got = sum(s["values"][column] for s in pprof_check.samples(p))
        assert abs(got - 400 * MIB) < 0.001 * 400 * MIB, (column, got)


def test_an_allocator_whose_malloc_would_be_left_out_is_refused(start):
    """The kernel executes what mimalloc's malloc, calloc and realloc begin with one step
    at a time; other functions of it have cheap probes."""
    env = {**os.environ, "LD_PRELOAD": str(LIBRARIES / "libmimalloc.so.2")}
    target = start("heap", "20", env=env)
    run = wallprof("-p", target.pid, "--profile", "heap", "-d", 1)
    assert run.status == 2, run.err
    assert "each probe on the allocator of libmimalloc.so.2" in run.err, run.err
    assert "--heap-anyway" in run.err, run.err
    target.assert_unharmed()


@each_tier
def test_too_dear_probes_are_refused(start, tier):
    """A program that does nothing but allocate is told from others in 20 ms, or when it
    gets the CPU that others have then."""
    target = start("/usr/bin/perl", "-e",
                   "$| = 1; print 'READY pid=', $$, \"\\n\"; "
                   "while (1) { my @x = map { [$_] } 1..1000 }")
    run = wallprof("-p", target.pid, "--profile", "heap", "-d", "5",
                   "--heap-probe", tier)
    assert run.status in (1, 2), run.err
    said = run.err + run.out
    assert "would take" in said and "--heap-anyway" in said, run.err
    assert "--heap-large[=BYTES]" in said and "--heap-census" in said, run.err
    target.assert_unharmed()


@each_tier
def test_probes_that_become_too_dear_go_at_once(start, tmp_path, tier):
    """A program that does nothing but allocate after it was judged has its probes for as
    long as these take 5 % of a second: some 70,000 calls of a million, or 7,000 where a
    probe takes 7 us."""
    target = start("/usr/bin/perl", "-e",
                   "$SIG{USR1} = sub { $on = 1 }; $| = 1; print 'READY pid=', $$, "
                   "\"\\n\"; sleep 1 until $on; while (1) { my @x = map { [$_] } 1..1000 }",
                   env=with_its_own_library(tmp_path))
    library = str(tmp_path / "libc.so.6")
    before = text_of(target.pid, library)

    def busy():
        assert text_of(target.pid, library) != before
        target.proc.send_signal(signal.SIGUSR1)
        return lambda: text_of(target.pid, library) == before
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-probe", tier,
                   output=tmp_path / "p.pb.gz", until=busy).check(1)
    assert "ended before the recording: probes on the allocator would" in run.err
    calls = sum(map(int, re.search(
        r"heap: (\d+) calls that allocate, (\d+) that free", run.err).groups()))
    assert 2000 < calls < 250000, run.err
    target.assert_unharmed()


def text_of(pid, library):
    """The code of LIBRARY as PID has it."""
    with open(f"/proc/{pid}/maps") as maps:
        line = next(line for line in maps
                    if line.rstrip().endswith(library) and " r-xp " in line)
    begin, end = (int(x, 16) for x in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(begin)
        return memory.read(end - begin)


@each_tier
def test_a_killed_recording_leaves_no_probe(start, tmp_path, tier):
    """The kernel takes the breakpoints out when wallprof's descriptors are closed."""
    target = start("heap", "1")
    library = os.path.realpath(LIBRARIES / "libc.so.6")
    before = text_of(target.pid, library)
    for _ in range(5):
        with subprocess.Popen([WALLPROF, "-p", str(target.pid), "--profile",
                               "heap,wall", "--heap-anyway", "--heap-probe",
                               tier, "-o", tmp_path / "p.pb.gz"],
                              stderr=subprocess.PIPE) as tool:
            wait_until_sampling(tool)
            assert text_of(target.pid, library) != before
            tool.kill()
        wait_until(lambda: text_of(target.pid, library) == before)
    work(target)
    target.assert_unharmed()


HEADLESS = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
static void *allocate(void *set) {
    int sig;
    sigwait(set, &sig);
    for (int i = 0; i < 50000; i++)
        kept = malloc(1000);
    puts("DONE");
    fflush(stdout);
    for (;;) pause();
}
int main(void) {
    static sigset_t set;
    pthread_t thread;
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, allocate, &set);
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    pthread_exit(NULL);
}
"""


def test_a_process_whose_first_thread_has_ended(start, tmp_path):
    """50 MB by another thread, all kept; probes that would not be hit are refused."""
    target = start(compiled(tmp_path, HEADLESS))
    wait_until(lambda: "State:\tZ" in pathlib.Path(
        f"/proc/{target.pid}/status").read_text())
    _, p = record(target, tmp_path)
    for column in ("alloc_space", "inuse_space"):
        got = sum(s["values"][column] for s in pprof_check.samples(p))
        assert abs(got - 5e7) <= allowed(5e7), (column, got)
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-probe",
                   "session", "-d", 1)
    assert run.status == 2 and "first thread has ended" in run.err, run.err


def test_probes_that_end_with_the_first_thread_are_said(start, tmp_path):
    wait = tmp_path / "wait"
    wait.touch()
    # So few that they do not take half of the time, if a probe takes 50 us.
    program = HEADLESS.replace("int main(void) {", "int main(int n, char **v) {").replace(
        "50000", "5000").replace(
        "    pthread_exit", "    while (n == 2 && !access(v[1], F_OK)) usleep(1000);\n"
        "    pthread_exit")
    target = start(compiled(tmp_path, program), wait)

    def end_first_thread():
        wait.unlink()
        return lambda: "State:\tZ" in pathlib.Path(
            f"/proc/{target.pid}/status").read_text()
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-anyway",
                   "--heap-probe", "perf", output=tmp_path / "p.pb.gz",
                   until=end_first_thread)
    assert run.status == 1 and "events has ended" in run.err, run.err
    assert "written over" not in run.err
    target.assert_unharmed()


OVERWRITES = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    unsigned char own[64], *code = (unsigned char *)(void *)malloc;
    unsigned long page = (unsigned long)code & -4096ul;
    memcpy(own, code, sizeof(own));
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    for (int probed = 0;; usleep(1000)) {
        void *volatile p = malloc(1000);
        free(p);
        if (memcmp(code, own, sizeof(own)) && ++probed == 300) {
            mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
            memcpy(code, own, sizeof(own));
            puts("WRITTEN");
            fflush(stdout);
        }
    }
}
"""


def compiled(tmp_path, text):
    subprocess.run(["gcc", "-xc", "-", "-o", tmp_path / "program"],
                   input=text.encode(), check=True)
    return tmp_path / "program"


def test_a_probe_that_the_program_writes_over_is_said(start, tmp_path):
    """malloc's own bytes, written back over the kernel's breakpoint, end its calls."""
    target = start(compiled(tmp_path, OVERWRITES))

    def written():
        target.read_line("WRITTEN")
        return lambda: True
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-anyway",
                   output=tmp_path / "p.pb.gz", until=written).check((1,))
    assert "has written over 1 of " in run.err, run.err
    assert "exit status 1: the process has written over" in run.err, run.err
    target.assert_unharmed()


RESERVES = """
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    for (;; usleep(1000))
        mmap(NULL, 1ul << 47, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
"""


def test_memory_that_there_is_not_is_not_counted(start, tmp_path):
    """More than an address space has: each mmap fails."""
    target = start(compiled(tmp_path, RESERVES))
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-large",
                   "--heap-anyway", "-d", 1, output=tmp_path / "p.pb.gz")
    assert re.search(r"and [1-9]\d+ of mmap", run.err), run.err
    assert " 0 objects of 0 B allocated" in run.err, run.err
    # No rate: none is sampled at a tick.
    assert re.search(r"^wallprof: [\d.]+ s on the clock$", run.err, re.M), run.err
    target.assert_unharmed()


EXECUTES = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc < 3) {
        printf("READY pid=%d\\n", getpid());
        fflush(stdout);
    }
    for (int i = 0; i < atoi(argv[1]); i++) {
        void *volatile p = malloc(1000);
        free(p);
        usleep(100);
    }
    execl("/proc/self/exe", argv[0], argv[1], "again", NULL);
}
"""


@pytest.mark.parametrize("calls", [0, 100])
def test_a_program_that_executes_itself_for_ever(start, tmp_path, calls):
    """Its allocator is found where there is time to, else that there is none is not
    said."""
    target = start(compiled(tmp_path, EXECUTES), calls)
    run = wallprof("-p", target.pid, "--profile", "heap", "--heap-anyway",
                   "-d", 1, output=tmp_path / "p.pb.gz").check((0, 1))
    assert "No such file" not in run.err, run.err
    assert "no malloc is found" not in run.err, run.err
    assert "written over" not in run.err, run.err
    if calls:
        assert not re.search(r"heap: \d{,2} calls that allocate", run.err), (
            run.err)
    target.assert_unharmed()


@pytest.mark.soak
def test_a_thousand_kills_leave_no_probe(start, tmp_path):
    """At any moment from wallprof's start on."""
    target = start("heap", "1")
    library = os.path.realpath(LIBRARIES / "libc.so.6")
    before = text_of(target.pid, library)
    armed = 0
    for _ in range(1000):
        with subprocess.Popen([WALLPROF, "-p", str(target.pid), "--profile",
                               "heap,wall", "--heap-anyway", "-o",
                               tmp_path / "p.pb.gz"],
                              stderr=subprocess.DEVNULL) as tool:
            time.sleep(random.uniform(0, 0.3))
            armed += text_of(target.pid, library) != before
            tool.kill()
        wait_until(lambda: text_of(target.pid, library) == before, seconds=1)
    # Many were killed while there were probes.
    assert armed > 100
    work(target)
    target.assert_unharmed()


def test_two_recordings_of_one_program(start, tmp_path):
    """Each has probes of its own in the same functions."""
    target = start("heap", "20")
    other = subprocess.Popen(
        [WALLPROF, "-p", str(target.pid), "--profile", "heap,wall",
         "--heap-rate", str(RATE), "--heap-anyway", "-o",
         tmp_path / "other.pb.gz"], stderr=subprocess.PIPE)
    try:
        wait_until_sampling(other)
        _, p = record(target, tmp_path)
    finally:
        other.send_signal(signal.SIGINT)
        other.communicate(timeout=100)
    assert other.returncode in (0, 1)
    truth = target.truth()
    compare(truth, p)
    compare(truth, pprof_check.load(str(tmp_path / "other.heap.pb.gz")))


def test_a_program_without_malloc_is_said():
    """busybox is static and has no symbols."""
    with subprocess.Popen(["/bin/busybox", "sleep", "100"]) as target:
        run = wallprof("-p", target.pid, "--profile", "heap", "-d", "1")
        large = wallprof("-p", target.pid, "--profile", "heap", "-d", "1",
                         "--heap-large")
        target.kill()
    assert run.status == 2 and "no malloc is found" in run.err, run.err
    assert large.status == 2 and "no mmap is found" in large.err, large.err


def test_the_report_is_of_bytes(start, tmp_path):
    target = start("heap", "5")
    run = wallprof("-p", target.pid, "--profile", "heap,wall", "--heap-anyway",
                   "--heap-rate", "16K", until=lambda: work(target)).check((0, 1))
    line = next(li for li in run.out.splitlines() if "site_malloc_200k (" in li)
    # 40 objects, of which every eighth is kept: 1,000,000 bytes.
    size, unit = line.split()[:2]
    assert unit == "KiB" and abs(float(size) * 1024 - 1e6) < 1e5, line
    assert "in use at the end" in run.out


def test_a_go_program_is_asked_for_its_own_books(start, tmp_path):
    """Its runtime has a heap profile."""
    target = start("books", tmp_path)
    run = wallprof("-p", target.pid, "--profile", "heap", "-d", "0.5",
                   output=tmp_path / "p.pb.gz").check((0, 1))
    assert "Go's own" in run.err, run.err


# Its two rounds are to be in the two halves of the time.
@pytest.mark.alone
def test_leaks_are_what_is_old_and_not_freed(start):
    """The fixture keeps so many bytes of what it allocates before the recording's
    half, and more after it."""
    target = start("heap", "20")

    def grow():
        work(target)
        begun = time.monotonic()
        # What is allocated later is none, though it is not freed.
        half = lambda: time.monotonic() > begun + 2  # noqa: E731
        return lambda: half() and work(target)()

    run = wallprof("leaks", target.pid, "--heap-anyway", "--heap-rate", "16K",
                   until=grow).check((0, 1))
    truth = target.truth()
    lines = run.out[run.out.index("\nLeaks:"):].split("\n\n")[0].splitlines()
    row = next(li for li in lines if "site_malloc_200k (" in li)
    # Half of what the two rounds kept.
    kept = truth["site_malloc_200k"][3] / 2
    size, unit = row.split()[:2]
    got = float(size) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit]
    assert abs(got - kept) <= allowed(kept) / 2, (row, kept)
    assert "/s ±" in row
    assert not any("site_malloc_1m (" in li for li in lines), lines


def test_leaks_of_a_part_of_the_recording_say_so(start, tmp_path):
    """The probes end in its first half: what is younger then than half of their time is none,
    whatever became of it.  So few calls take less than the 2 s before them, be a probe slow."""
    wait = tmp_path / "wait"
    wait.touch()
    program = HEADLESS.replace("int main(void) {", "int main(int n, char **v) {").replace(
        "    pthread_exit", "    while (n == 2 && !access(v[1], F_OK)) usleep(1000);\n"
        "    pthread_exit").replace("i < 50000", "i < 5000")
    assert "i < 5000;" in program
    target = start(compiled(tmp_path, program), wait)

    def part():
        begun = time.monotonic()
        time.sleep(2)
        work(target)
        wait.unlink()
        end = begun + 3.5 * (time.monotonic() - begun)
        return lambda: time.monotonic() > end
    run = wallprof("leaks", target.pid, "--heap-anyway", "--heap-probe", "perf",
                   "--heap-rate", "16K", until=part).check(1)
    assert "first half of the time that the probes stood" in run.out, run.out
    target.assert_unharmed()


LEAKY = {"c": (("gcc", "-O2", "-g"), """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *kept[1 << 20];
static void serve(unsigned i)
{
	char *body = strdup("");  // not this one
	free(body);
	body = malloc(4000);  // the leak
	memset(body, 'x', 4000);
	if (i % 4 == 0)
		kept[i / 4 % (1 << 20)] = body;
	else
		free(body);
}
int main(void)
{
	printf("READY pid=%d\\n", getpid());
	fflush(stdout);
	for (unsigned i = 0;; i++, usleep(300))
		serve(i);
}
"""), "cc": (("g++", "-O2", "-g"), """
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>
static std::vector<std::string> kept;
static void serve(int i)
{
	std::string body(4000, 'x'), answer(3000, 'y');  // the leak
	if (i % 4 == 0)
		kept.push_back(std::move(body));
}
int main()
{
	std::printf("READY pid=%d\\n", getpid());
	std::fflush(stdout);
	for (int i = 0;; i++, usleep(300))
		serve(i);
}
"""), "rs": (("rustc", "-O", "-g"), """
use std::{hint::black_box, thread::sleep, time::Duration};
fn serve(i: usize, kept: &mut Vec<Vec<u8>>) {
    let body = black_box(vec![b'x'; 4000]); // the leak
    black_box(vec![b'y'; 3000]);
    if i % 4 == 0 {
        kept.push(body);
    }
}
fn main() {
    let mut kept = Vec::new();
    println!("READY pid={}", std::process::id());
    for i in 0.. {
        serve(i, &mut kept);
        sleep(Duration::from_micros(300));
    }
}
""")}


@pytest.mark.parametrize("language", LEAKY)
def test_a_leak_is_found_by_its_line(start, tmp_path, language):
    """It is the first that is told, by the program's own function: the library's, which
    allocate, are the same for all.  Of strings and vectors one in four is kept."""
    compiler, text = LEAKY[language]
    if not shutil.which(compiler[0]):
        pytest.skip(f"no {compiler[0]}")
    source = tmp_path / f"leak.{language}"
    source.write_text(text)
    subprocess.run([*compiler, source, "-o", tmp_path / "leak"], check=True,
                   timeout=100, stderr=subprocess.DEVNULL)
    target = start(str(tmp_path / "leak"))

    def served():
        """3 s, in which a busy machine may let it serve too few."""
        end, enough = time.monotonic() + 3, has_slept(target.pid, 1000)
        return lambda: time.monotonic() > end and enough()
    run = wallprof("leaks", target.pid, "--heap-anyway", "--heap-rate", "16K",
                   until=served).check((0, 1))
    lines = run.out[run.out.index("\nLeaks:"):].split("\n\n")[0].splitlines()
    line = next(i for i, text in enumerate(text.splitlines(), 1)
                if "the leak" in text)
    assert f"serve (leak.{language}:{line})" in lines[3], lines
