# SPDX-License-Identifier: Apache-2.0
"""--profile heap of several processes at once: what each of them allocates."""
import contextlib
import glob
import os
import pathlib
import re
import signal
import subprocess
import time

import pprof_check
import pytest

from conftest import WALLPROF, children_of, wait_until, wallprof
from test_heap import KERNEL, RATE, TIERS, allowed, compare, work


def record(pids, tmp_path, *args, until):
    run = wallprof("-p", ",".join(map(str, pids)), "--profile", "heap",
                   "--heap-rate", RATE, *args, output=tmp_path / "p.pb.gz",
                   until=until).check((0, 1))
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    pprof_check.validate(p)
    return run, p


def sums(p, value):
    return pprof_check.by_label(p, "pid", value)


@pytest.mark.parametrize("tier", [
    pytest.param(tier, marks=pytest.mark.skipif(
        KERNEL < TIERS[tier], reason=f"Linux {KERNEL} has no {tier} probes"))
    for tier in ("multi", "perf")])
def test_values_of_each_are_those_of_its_own_books(start, tmp_path, tier):
    """Two of a program and one with another allocator, each of another size."""
    targets = [start("heap", "20"), start("heap", "5"),
               start("heap-musl-static", "10")]

    def all_work():
        for target in targets:
            work(target)
        return lambda: True
    run, p = record([t.pid for t in targets], tmp_path, "--heap-anyway",
                    "--heap-probe", tier, until=all_work)
    assert ", 0 of them lost" in run.err, run.err
    assert "of 3 processes; one sample" in run.err, run.err
    for target in targets:
        target.assert_unharmed()
        compare(target.truth(), p, target.pid)
    assert set(sums(p, "alloc_space")) == {t.pid for t in targets}


def test_those_that_cannot_be_probed_are_said_and_others_are(start, tmp_path):
    """busybox is static and has no symbols; Go has books of its own."""
    target = start("heap", "20")
    go = start("books", tmp_path)
    with subprocess.Popen(["/bin/busybox", "sleep", "100"]) as box:
        run, p = record([box.pid, target.pid, go.pid], tmp_path,
                        "--heap-anyway", until=lambda: work(target))
        box.kill()
    target.assert_unharmed()
    compare(target.truth(), p, target.pid)
    assert run.status == 1 and "of 2 of 3 processes it is not whole" in run.err, (
        run.err)
    assert re.search(r"as of (busybox|books) \(\d+\): (no malloc is found|a Go "
                     "program)", run.err), run.err
    assert "exit status 1: the heap profile is not whole of each" in run.err


PERL = "$| = 1; print 'READY pid=', $$, \"\\n\"; "
ALLOCATES = PERL + "while (1) { my @x = map { [$_] } 1..1000 }"


def test_the_dearest_is_left_out(start, tmp_path):
    """All have one bound together: a process that does nothing but allocate is not
    probed, another that hardly does is."""
    dear = start("/usr/bin/perl", "-e", ALLOCATES)
    cheap = start("/usr/bin/perl", "-e", PERL +
                  "while (1) { $x = 'x' x 1e6; undef $x; select undef, undef, undef, 0.02 }")
    run, p = record([dear.pid, cheap.pid], tmp_path, "-d", 3, until=None)
    for target in (dear, cheap):
        target.assert_unharmed()
    assert run.status == 1 and re.search(
        rf"of 1 of 2 processes it is not whole, as of perl \({dear.pid}\): "
        "probes on the allocator would take", run.err), run.err
    assert "written over" not in run.err
    got = sums(p, "alloc_space")
    assert got[cheap.pid] > 20e6 and dear.pid not in got, got


FORKS = PERL + """
sub await { open my $f, '<', "$ARGV[0]/$_[0]"; <$f> }
sub child {
    my ($name, $n) = @_;
    my $pid = fork;
    return $pid if $pid;
    await($name);
    my @kept = map { 'x' x 20000 } 1..$n;
    print "DONE\\n";
    await('end');
    exit;
}
await('begin');
my $first = child('first', 1000);
waitpid $first, 0;
child('second', 2000);
await('never');
"""


@pytest.mark.skipif(KERNEL < (6, 17), reason="links do not tell their process")
def test_children_that_begin_meanwhile_are_probed(start, tmp_path):
    """What one of them had that has ended is not in use, what the other has is."""
    for name in ("begin", "first", "second", "end", "never"):
        os.mkfifo(tmp_path / name)
    target = start("/usr/bin/perl", "-e", FORKS, tmp_path)
    tool = subprocess.Popen(
        [WALLPROF, "-p", str(target.pid), "--profile", "heap", "--heap-rate",
         str(RATE), "--heap-anyway", "--children", "-o",
         tmp_path / "p.pb.gz"], stderr=subprocess.PIPE)

    def is_probed(pid):
        """By a link of wallprof, or of the process that works for it."""
        infos = []
        for owner in (tool.pid, *children_of(tool.pid)):
            for path in glob.glob(f"/proc/{owner}/fdinfo/*"):
                with contextlib.suppress(OSError):
                    infos.append(pathlib.Path(path).read_text())
        return any("\tuprobe_multi\n" in info and f"pid:\t{pid}\n" in info
                   for info in infos)

    def child():
        """The child that there is, when it is probed."""
        pid, = wait_until(lambda: children_of(target.pid))
        wait_until(lambda: is_probed(pid))
        return pid

    def go(name):
        (tmp_path / name).write_text("\n")

    try:
        wait_until(lambda: is_probed(target.pid))
        go("begin")
        first = child()
        go("first")
        target.read_line("DONE")
        go("end")
        wait_until(lambda: first not in children_of(target.pid))
        second = child()
        go("second")
        target.read_line("DONE")
        # It is let go of while the second goes on.
        wait_until(lambda: not is_probed(first))
    finally:
        tool.send_signal(signal.SIGINT)
        _, err = tool.communicate(timeout=100)
        for pid in children_of(target.pid):
            os.kill(pid, signal.SIGKILL)
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    allocated, in_use = sums(p, "alloc_space"), sums(p, "inuse_space")
    for pid, bytes_ in ((first, 2e7), (second, 4e7)):
        assert allocated[pid] >= bytes_ - allowed(bytes_), (pid, allocated, err)
    assert in_use[first] == 0
    assert abs(in_use[second] - 4e7) <= allowed(4e7), (in_use, err)


def test_whose_leak_it_is_is_said(start):
    """What is allocated is a leak if that is in the recording's first half."""
    targets = [start("heap", "5"), start("heap", "5")]
    begun = time.monotonic()

    def grow():
        for target in targets:
            work(target)
        end = begun + 2 * (time.monotonic() - begun)
        return lambda: time.monotonic() > end
    run = wallprof("leaks", "-p", f"{targets[0].pid},{targets[1].pid}",
                   "--heap-anyway", "--heap-rate", "16K", until=grow).check((0, 1))
    assert re.search(r"\nProcesses\n +bytes    share  program\n.* heap: 2 processes\n",
                     run.out), run.out
    for target in targets:
        kept = target.truth()["site_malloc_200k"][3]
        size, = re.findall(rf"([\d.]+) KiB .* heap \(pid {target.pid}\): "
                           "site_malloc_200k ", run.out)
        assert abs(float(size) * 1024 - kept) < 0.01 * kept, run.out


def test_a_leak_of_processes_that_were_forked_is_one(start):
    """They have one stack, as they have the same addresses."""
    target = start("/usr/bin/perl", "-e", "$| = 1; print 'READY pid=', $$, \"\\n\"; fork; "
                   "while (1) { push @kept, 'x' x 20000; select undef, undef, undef, 0.01 }")
    child, = wait_until(lambda: children_of(target.pid))
    try:
        run = wallprof("leaks", "--tree", target.pid, "-d", 3, "--heap-rate",
                       "16K").check((0, 1))
    finally:
        os.kill(child, signal.SIGKILL)
    assert re.search(r" several processes: Perl_\w+", run.out), run.out


def test_no_more_are_probed_than_are_bounded(start, tmp_path):
    """Each has rings and tables: of 18, 16 are."""
    targets = [start("heap", "1") for _ in range(18)]

    def all_work():
        for target in targets:
            work(target)
        return lambda: True
    run, p = record([t.pid for t in targets], tmp_path, "--heap-anyway",
                    until=all_work)
    assert "of 16 processes; one sample" in run.err, run.err
    assert "of 2 of 18 processes it is not whole" in run.err, run.err
    assert "no more than 16 processes" in run.err, run.err
    assert len(sums(p, "alloc_space")) == 16
    for target in targets:
        target.assert_unharmed()
