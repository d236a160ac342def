# SPDX-License-Identifier: Apache-2.0
"""i386 programs on a 64-bit kernel: what is true of 64-bit ones is of these."""
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import pprof_check
import test_hang
import test_hang_files
import test_harm
import test_stacks
import test_weights
from conftest import FIXTURES, is_executed, tids_of, wait_until, wallprof
from hangs import Dump, check

pytestmark = pytest.mark.skipif(
    not is_executed(FIXTURES / "i386-shares"),
    reason="no i386 programs (libc6-dev-i386, ia32_emulation=on)")

# Not "robust": what waits for an inconsistent mutex is a local function of the C
# library, whose name is known by its debug file alone.
HANGS = [
    *(("i386-hang", "abba", kind) for kind in
      ("normal", "recursive", "errorcheck", "adaptive", "robust")),
    *(("i386-hang", mode) for mode in
      ("cycle5", "self", "join", "timed", "gone", "chain", "pi",
       "rwlock", "rwlock-readers", "condvar", "livelock", "pool", "fullpipe",
       "tworead", "socketpair", "flock", "ofd", "fcntl", "forked", "vfork")),
]


@pytest.mark.parametrize("case", HANGS, ids="-".join)
def test_dump(hang, case):
    """Frames, waits, locks and their holders."""
    test_hang.test_dump(hang, case)


@pytest.mark.parametrize("case", [c for c in HANGS if c[1] in (
    "abba", "cycle5", "join", "rwlock", "pool")], ids="-".join)
def test_verdict(hang, case):
    test_hang.test_verdict(hang, case)


@pytest.mark.parametrize("stop", ["auto", "all"])
def test_no_call_fails_with_eintr(start, tmp_path, stop):
    def begin(name):
        return start(f"i386-{name}")
    test_harm.test_no_call_fails_with_eintr(begin, tmp_path, stop, 3)


def test_frames_are_those_of_eu_stack(start, profile):
    target = start("i386-waiters", 10)
    # It ends at main, whose CFA is in memory; nothing is cut here.
    assert test_stacks.compare_with_eu_stack(target.pid, profile, False) == 11
    assert "[truncated" not in wallprof("--threads", "-p", target.pid).out


@pytest.mark.parametrize("sleeps", [False, True])
def test_out_of_a_signal_handler(start, profile, sleeps):
    """By the unwind info of the vDSO, which is in memory only."""
    def begin(name, *args):
        return start(f"i386-{name}", *args)
    test_stacks.test_handler_on_an_alternate_stack(begin, profile, sleeps)


@pytest.mark.parametrize("scan", ["proc", "bpf"])
def test_shares_are_those_of_the_fixture(start, profile, scan):
    def begin(name):
        return start(f"i386-{name}")
    test_weights.record_shares(begin, profile, "--scan", scan)


def test_block_profile(start, tmp_path):
    """Waits by the kernel's records have the call of their stack."""
    target = start("i386-shares")
    out = tmp_path / "x.txt"
    run = wallprof("-p", target.pid, "-d", 3, "--profile", "wall,block",
                   output=out)
    assert run.status in (0, 1), run.err
    text = (tmp_path / "x.block.txt").read_text()
    for site, wait in (("nap", "sleep"), ("do_read", "pipe"),
                       ("do_lock", "lock")):
        assert re.search(rf"{wait}\s+{site} \(shares\.c", text), text


def test_timeout_of_a_hang(tmp_path):
    run = wallprof("--timeout", 2, "--", FIXTURES / "i386-hang", "abba")
    assert run.status == 124, run.err
    assert "DEADLOCK: 2 threads wait for each other" in run.err + run.out


def test_healthy(start):
    assert check(start("i386-shares").pid).verdict == "healthy"


# Two threads wait for bytes 0 to 9 and 100 to 109 of argv[1], by command argv[2].
FCNTL64 = 221
WAITS_FOR_BYTES = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static char **args;
static void *wait_for(void *start)
{
	int fd = open(args[1], O_RDWR), cmd = atoi(args[2]);
	struct flock narrow = { F_WRLCK, SEEK_SET, (long)start, 10, 0 };
	struct flock64 wide = { F_WRLCK, SEEK_SET, (long)start, 10, 0 };
	syscall(SYS_fcntl64, fd, cmd, cmd == 7 ? (void *)&narrow : (void *)&wide);
	return start;
}
int main(int argc, char **argv)
{
	pthread_t first;
	args = argv;
	pthread_create(&first, 0, wait_for, 0);
	wait_for((void *)100);
	return argc;
}
"""


@pytest.mark.parametrize("holds, waits", [
    ("SETLK", 7), ("SETLK", 14), ("OFD_SETLK", 38)],
    ids=["F_SETLKW", "F_SETLKW64", "F_OFD_SETLKW"])
def test_locks_of_bytes(tmp_path, build, holds, waits):
    """Each thread waits for who has its bytes."""
    prog = build(tmp_path, "gcc", "-m32", "-D_GNU_SOURCE", "-pthread", "-idirafter",
                 "/usr/include/x86_64-linux-gnu", source=WAITS_FOR_BYTES, suffix=".c")
    path = tmp_path / "file"
    path.touch()
    holders = subprocess.Popen(
        [sys.executable, "-c", test_hang_files.OPEN_FILES +
         f"process('one', lock({holds}, WRITE, 0, 10))\n"
         f"process('two', lock({holds}, WRITE, 100, 10))\ntime.sleep(3600)", path],
        stdout=subprocess.PIPE, start_new_session=True, text=True)
    waiter = None
    try:
        pids = dict(holders.stdout.readline().split() for _ in range(2))
        waiter = subprocess.Popen([prog, path, str(waits)])
        wait_until(lambda: [
            pathlib.Path(f"/proc/{tid}/syscall").read_text().split()[0]
            for tid in tids_of(waiter.pid)] == [str(FCNTL64)] * 2)
        dump = Dump(waiter.pid)
        first, = set(tids_of(waiter.pid)) - {waiter.pid}
        assert ({e["from_tid"]: e["to_pid"] for e in dump.edges} ==
                {first: int(pids["one"]), waiter.pid: int(pids["two"])}), dump.edges
    finally:
        os.killpg(holders.pid, signal.SIGKILL)
        holders.wait()
        if waiter:
            waiter.kill()
            waiter.wait()


COPIES = r"""
#include <string.h>
static char from[4096], to[4096];
__attribute__((noinline)) void copies(unsigned n, unsigned shift)
{
	memcpy(to + shift, from, n);
	__asm__ volatile("" ::: "memory");
}
int main(void)
{
	for (unsigned i = 0;; i++)
		copies(i * 7919 % 600, i * 31 % 64);
}
"""


def test_out_of_what_glibc_has_written_by_hand(start, tmp_path, build, profile):
    """Whose unwind info is wrong, or there is none: each copy has who makes it."""
    prog = build(tmp_path, "gcc", "-m32", "-fno-builtin", source=COPIES, suffix=".c")
    target = start(prog, ready=False)
    run, p = profile(target.pid, "-r", 997, "--profile", "cpu", cpu=1, status=(0, 1))
    stacks = collections.Counter()
    for s in pprof_check.samples(p):
        names = [f["name"] for f in s["frames"]]
        by = "copies" if "copies" in names else "main" if "main" in names else "nobody"
        stacks[names[-1] if names[-1].startswith("[") else by] += s["values"]["cpu"]
    # What main does itself is a few instructions.
    assert stacks["copies"] > 0.5 * stacks.total(), stacks
    assert stacks["copies"] + stacks["main"] > 0.99 * stacks.total(), (stacks, run.err)
