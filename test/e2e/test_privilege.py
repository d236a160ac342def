"""Least privilege: who names addresses can do nothing else; who may look at
whom is the kernel's to say; what is written is its owner's."""
import os
import pathlib
import re
import signal
import stat
import subprocess
import time

import pytest

import pprof_check
from conftest import WALLPROF, status_of, wallprof

LOST = re.compile(r"wallprof: \d+ addresses have no better name than module "
                  r"and offset: (.*)")
PLAIN = re.compile(r"[\w.\[\]-]+\+0x[0-9a-f]+|0x[0-9a-f]+")


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


class Watched:
    """A wallprof whose child stops when it asks for its first debug file: it
    is the only one that calls recvmsg(2)."""

    def __init__(self, tmp_path, *args):
        self.trace = tmp_path / "trace"
        self.tool = None
        self.proc = subprocess.Popen(
            ["strace", "-f", "-o", str(self.trace), "-e", "trace=recvmsg",
             "-e", "inject=recvmsg:signal=SIGSTOP:when=1", str(WALLPROF),
             *(str(a) for a in args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def next_child(self, done=()):
        """The child, stopped; None once wallprof has ended."""
        while self.proc.poll() is None:
            for tool in children_of(self.proc.pid):
                for child in children_of(tool):
                    if child not in done and self.has_stopped(child):
                        self.tool = tool
                        return child
            time.sleep(0.001)
        return None

    def has_stopped(self, pid):
        return re.search(rf"^{pid} +--- stopped by SIGSTOP",
                         self.trace.read_text(), re.M)

    def finish(self):
        out, err = self.proc.communicate(timeout=60)
        return self.proc.returncode, out.decode(), err.decode()


@pytest.fixture
def watch(tmp_path):
    started = []

    def begin(*args):
        started.append(Watched(tmp_path, *args))
        return started[-1]

    yield begin
    for watched in started:
        if watched.proc.poll() is None:
            watched.proc.kill()
            watched.proc.wait()


def test_who_names_addresses_can_do_nothing_else(start, watch):
    target = start("waiters", 2)
    watched = watch("--threads", "-p", target.pid)
    child = watched.next_child()
    assert child, watched.finish()
    status = status_of(child)
    for caps in "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
        assert int(status[caps], 16) == 0, status
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    fds = {os.readlink(f"/proc/{child}/fd/{fd}")
           for fd in os.listdir(f"/proc/{child}/fd")}
    # The files are mapped by now; a sanitizer's build tells on stderr.
    assert [fd for fd in fds if fd.startswith("socket:")], fds
    assert len(fds) == 1 or "asan" in str(WALLPROF) and len(fds) == 2, fds
    limits = pathlib.Path(f"/proc/{child}/limits").read_text()
    for name in "cpu time", "address space", "core file size", "processes":
        assert re.search(rf"Max {name} +\d+", limits), limits
    os.kill(child, signal.SIGCONT)
    rc, out, err = watched.finish()
    assert rc == 0 and "wait_for_ever" in out, err
    target.assert_unharmed()


# Each child that is started after another's death, too; or only the first.
@pytest.mark.parametrize("sig,all_of_them", [
    (signal.SIGKILL, True), (signal.SIGSEGV, True), (signal.SIGSEGV, False)])
def test_what_names_addresses_dies_and_the_profile_is_written(
        start, watch, tmp_path, sig, all_of_them):
    target = start("waiters", 2)
    out = tmp_path / "x.pb.gz"
    watched = watch("-p", target.pid, "-d", 0.3, "-q", "-o", out)
    dead = []
    while child := watched.next_child(dead):
        dead.append(child)
        if all_of_them or len(dead) == 1:
            os.kill(child, sig)
        os.kill(child, signal.SIGCONT)
    rc, _, err = watched.finish()
    assert dead and rc == 1, err
    assert LOST.search(err).group(1).startswith(
        f"the symboliser was killed by signal {int(sig)} ("), err
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    names = {p.string_table[f.name] for f in p.function}
    plain = {n for n in names if PLAIN.fullmatch(n)}
    assert any(n.startswith("libc.so.6+0x") for n in plain), names
    # The program's own file was done before, or by the next child.
    assert "wait_for_ever" in names, names
    comments = [p.string_table[c] for c in p.comment]
    assert any("names of" in c and "symboliser" in c for c in comments)
    target.assert_unharmed()


def test_a_dump_says_that_names_are_missing(start, watch):
    target = start("waiters", 2)
    watched = watch("--threads", "-p", target.pid)
    child = watched.next_child()
    os.kill(child, signal.SIGKILL)
    rc, out, err = watched.finish()
    assert rc == 1 and LOST.search(err), err
    assert re.search(r"#\d+  libc\.so\.6\+0x[0-9a-f]+", out), out
    assert out.count("thread ") >= 3


def test_a_check_without_names_gives_no_verdict(start, watch):
    """It is healthy as far as is seen, which is not far."""
    target = start("spinner", 1)
    watched = watch("--check", "-p", target.pid)
    done = []
    while child := watched.next_child(done):
        done.append(child)
        os.kill(child, signal.SIGKILL)
    rc, out, err = watched.finish()
    assert rc == 2 and "no verdict" in err, (rc, out, err)


@pytest.mark.soak
def test_what_names_addresses_hangs_and_is_ended(start, watch):
    target = start("waiters", 2)
    watched = watch("--threads", "-p", target.pid)
    began = time.monotonic()
    # Each is left as it is, stopped.
    rc, out, err = watched.proc.wait(120), *watched.finish()[1:]
    assert rc == 1, err
    assert LOST.search(err).group(1).startswith(
        "the symboliser gave no answer for 20 s"), err
    assert 19 < time.monotonic() - began < 100
    assert "libc.so.6+0x" in out


def test_a_second_interrupt_ends_it_at_once(start, watch, tmp_path):
    target = start("waiters", 2)
    out = tmp_path / "x.pb.gz"
    watched = watch("-p", target.pid, "-d", 0.3, "-o", out)
    assert watched.next_child()
    os.kill(watched.tool, signal.SIGINT)
    # Two that are pending are one.
    while int(status_of(watched.tool)["ShdPnd"], 16) & 1 << signal.SIGINT - 1:
        time.sleep(0.001)
    os.kill(watched.tool, signal.SIGINT)
    rc, _, err = watched.finish()
    assert rc == 0 and not LOST.search(err), err
    assert pprof_check.load(str(out)).sample


def test_output_is_its_owners_and_through_no_link(start, tmp_path):
    target = start("waiters", 1)
    victim, out = tmp_path / "victim", tmp_path / "x.pb.gz"
    victim.write_text("precious")
    out.symlink_to(victim)
    old = os.umask(0)
    try:
        wallprof("-p", target.pid, "-d", 0.2, output=out).check()
    finally:
        os.umask(old)
    assert victim.read_text() == "precious"
    assert not out.is_symlink()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    pprof_check.load(str(out))
    # Nor to what is no file, unless that is what was asked for.
    out.unlink()
    out.symlink_to("/dev/null")
    wallprof("-p", target.pid, "-d", 0.2, output=out).check()
    assert not out.is_symlink() and pprof_check.load(str(out)).sample
    run = wallprof("-p", target.pid, "-d", 0.2, "-f", "folded",
                   output="/dev/stdout").check()
    assert "wait_for_ever" in run.out


def test_nothing_unfinished_has_the_final_name(start, tmp_path):
    """A profile that cannot be written whole is not there."""
    target = start("waiters", 1)
    out = tmp_path / "x.pb.gz"
    out.write_text("the last one")
    seen = set()
    tool = subprocess.Popen(["prlimit", "--fsize=512", str(WALLPROF), "-p",
                             str(target.pid), "-d", "0.5", "-o", str(out)],
                            stderr=subprocess.PIPE)
    while tool.poll() is None:
        seen.add(out.read_bytes())
    err = tool.communicate()[1].decode()
    assert seen == {b"the last one"}, err
    assert tool.returncode != 0
    assert out.read_text() == "the last one"
