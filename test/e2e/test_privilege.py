# SPDX-License-Identifier: Apache-2.0
"""Least privilege: who names addresses can do nothing else; who may look at
whom is the kernel's to say; what is written is its owner's."""
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest

import pprof_check
from conftest import (FIXTURES, WALLPROF, Run, Target, children_of, is_sampling,
                      status_of, wait_until, wait_until_sampling, wallprof)

LOST = re.compile(r"wallprof: \d+ addresses have no better name than module "
                  r"and offset: (.*)")
INTERRUPT = 1 << signal.SIGINT - 1
PLAIN = re.compile(r"[\w.\[\]-]+\+0x[0-9a-f]+|0x[0-9a-f]+")


class Watched:
    """A wallprof whose process that names stops when it asks for its first debug
    file, by recvmsg(2)."""

    def __init__(self, tmp_path, *args):
        self.trace = tmp_path / "trace"
        self.tool = None
        self.proc = subprocess.Popen(
            ["strace", "-f", "-o", str(self.trace), "-e", "trace=recvmsg",
             "-e", "inject=recvmsg:signal=SIGSTOP:when=1", str(WALLPROF),
             *(str(a) for a in args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={
                # LeakSanitizer cannot work below strace.
                **os.environ, "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0"})

    def next_child(self, done=()):
        """The child, stopped; None once wallprof has ended."""
        while self.proc.poll() is None:
            for tool in children_of(self.proc.pid):
                for child in (c for w in children_of(tool)
                              for c in children_of(w)):
                    if child not in done and self.has_stopped(child):
                        self.tool = tool
                        return child
            time.sleep(0.001)
        return None

    def has_stopped(self, pid):
        return re.search(rf"^{pid} +--- stopped by SIGSTOP",
                         self.trace.read_text(), re.M)

    def finish(self):
        out, err = self.proc.communicate(timeout=100)
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
    fds = {os.readlink(f"/proc/{child}/fd/{fd}"): fd
           for fd in os.listdir(f"/proc/{child}/fd")}
    # A sanitizer's build tells on stderr.
    assert [name for name in fds if name.startswith("socket:")], fds
    assert len(fds) <= (3 if "asan" in str(WALLPROF) else 2), fds
    # The file that it is at, or its debug file, which it can but read.
    for name in (n for n in fds if n.startswith("/")):
        assert "/.build-id/" in name or name in pathlib.Path(
            f"/proc/{target.pid}/maps").read_text()
        info = pathlib.Path(f"/proc/{child}/fdinfo/{fds[name]}").read_text()
        flags = int(re.search(r"flags:\s+(\d+)", info).group(1), 8)
        assert flags & os.O_ACCMODE == os.O_RDONLY, info
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
            if sig == signal.SIGKILL:
                continue
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
    rc, out, err = watched.proc.wait(300), *watched.finish()[1:]
    assert rc == 1, err
    assert LOST.search(err).group(1).startswith(
        "the symboliser gave no answer for 60 s"), err
    assert 59 < time.monotonic() - began < 200
    assert "libc.so.6+0x" in out


def test_a_second_interrupt_ends_it_at_once(start, watch, tmp_path):
    target = start("waiters", 2)
    out = tmp_path / "x.pb.gz"
    watched = watch("-p", target.pid, "-d", 0.3, "-o", out)
    assert watched.next_child()
    os.kill(watched.tool, signal.SIGINT)
    # Two that are pending are one.
    while int(status_of(watched.tool)["ShdPnd"], 16) & INTERRUPT:
        time.sleep(0.001)
    os.kill(watched.tool, signal.SIGINT)
    done = subprocess.CompletedProcess([], *map(
        lambda x: x.encode() if isinstance(x, str) else x, watched.finish()))
    run = Run(["wallprof"], done, out).check()
    assert not LOST.search(run.err), run.err
    assert pprof_check.load(str(out)).sample


@pytest.mark.parametrize("what", ["--threads", "--check"])
def test_the_first_interrupt_ends_a_dump(start, watch, what):
    target = start("waiters", 2)
    watched = watch(what, "-p", target.pid)
    assert watched.next_child()
    os.kill(watched.tool, signal.SIGINT)
    assert watched.finish() == (-signal.SIGINT, "", "")
    target.assert_unharmed()


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


# Two users without rights: any numbers will do.
ALICE, BOB = 61001, 61002
CAP_SYS_PTRACE, CAP_PERFMON = 1 << 19, 1 << 38

# In a mount namespace: what the kernel says of itself, but for Yama's scope.
YAMA = """
mount --make-rprivate /
mkdir $1/kernel && cp -r /proc/sys/kernel/perf_event_* $1/kernel
mkdir -p $1/kernel/yama && echo 1 >$1/kernel/yama/ptrace_scope
chmod -R a+rX $1/kernel && mount --bind $1/kernel /proc/sys/kernel
uid=$2; shift 2
exec setpriv --reuid=$uid --regid=$uid --clear-groups "$@"
"""


class Installed:
    """wallprof as README says, in a place that all may reach."""

    def __init__(self, directory, yama):
        self.directory = pathlib.Path(directory)
        os.chmod(directory, 0o755)
        self.yama = yama
        self.tool = self.copy(WALLPROF, "wallprof")
        self.waiters = self.copy(FIXTURES / "waiters", "waiters")
        done = subprocess.run(
            ["setcap", "cap_sys_ptrace,cap_perfmon+ep", str(self.tool)],
            capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"setcap: {done.stderr.decode()}")
        self.targets = []

    def copy(self, source, name):
        shutil.copy(source, self.directory / name)
        return self.directory / name

    def home(self, uid):
        path = self.directory / str(uid)
        if not path.exists():
            path.mkdir(mode=0o700)
            os.chown(path, uid, uid)
        return path

    def argv(self, uid, argv):
        argv = [str(a) for a in argv]
        if self.yama:
            subprocess.run(["rm", "-rf", self.directory / "kernel"],
                           check=True)
            return ["unshare", "-m", "sh", "-ec", YAMA, "sh",
                    str(self.directory), str(uid), *argv]
        return ["setpriv", f"--reuid={uid}", f"--regid={uid}",
                "--clear-groups", *argv]

    def start(self, uid, *argv, **kwargs):
        self.targets.append(Target(self.argv(uid, argv or [self.waiters, 2]),
                                   **kwargs))
        return self.targets[-1]

    def start_tool(self, uid, *args):
        """Once it has opened its file and heeds signals."""
        tool = self.start(uid, self.tool, *args, ready=False)
        while not (list(self.home(uid).iterdir()) and
                   int(status_of(tool.pid)["SigCgt"], 16) & INTERRUPT):
            assert tool.is_running(), tool.proc.stderr.read()
        return tool

    def run(self, uid, *args):
        argv = self.argv(uid, [self.tool, *args])
        done = subprocess.run(argv, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        return Run(argv, done, None)


# In a PID namespace: a process of Alice's, and who $3... makes of wallprof.
HIDEPID = """
mount -t proc -o hidepid=$1 proc /proc
cd $2
setpriv --reuid=61001 --regid=61001 --clear-groups ./waiters 1 >ready &
until grep -q READY ready; do kill -0 $!; done
shift 2
case $1 in name) what=waiters ;; *) what=$! ;; esac
shift
setpriv "$@" --clear-groups --bounding-set=-sys_ptrace ./wallprof dump $what
exit $?
"""


def hidden(hidepid, uid, what):
    """wallprof of UID in that namespace, which looks at WHAT: "pid" or "name"."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        for program in WALLPROF, FIXTURES / "waiters":
            shutil.copy(program, directory)
        return subprocess.run(
            ["unshare", "-pfm", "--kill-child", "sh", "-ec", HIDEPID, "sh",
             str(hidepid), directory, what, f"--reuid={uid}", f"--regid={uid}"],
            capture_output=True, timeout=60, check=False, text=True)


@pytest.mark.parametrize("hidepid", [0, 1, 2])
@pytest.mark.parametrize("uid,reason", [
    (ALICE, None), (0, "this root has no CAP_SYS_PTRACE"),
    (BOB, "belongs to .* and you are uid")])
def test_a_process_that_proc_hides(hidepid, uid, reason):
    done = hidden(hidepid, uid, "pid")
    if not reason:
        assert done.returncode == 0 and "thread " in done.stdout, done
        return
    if hidepid and uid == BOB:
        reason = "is hidden from you: /proc is mounted with hidepid"
    assert done.returncode == 2 and re.search(reason, done.stderr), done


@pytest.mark.parametrize("hidepid", [1, 2])
def test_of_a_name_that_proc_hides_the_cause_is_said(hidepid):
    done = hidden(hidepid, BOB, "name")
    assert done.returncode == 2
    assert ('no process of yours is called "waiters", and others are hidden from you: '
            "/proc is mounted with hidepid" in done.stderr), done


@pytest.fixture(params=[False, True], ids=["", "yama"])
def installed(request):
    with tempfile.TemporaryDirectory() as directory:
        it = Installed(directory, request.param)
        yield it
        for target in it.targets:
            target.end()


@pytest.mark.parametrize("me,other", [(ALICE, BOB), (BOB, ALICE)])
def test_capabilities_of_the_file_show_nobody_elses_processes(
        installed, me, other):
    mine, others = installed.start(me), installed.start(other)
    out = installed.home(me) / "x.txt"
    for args in (("-d", 0.2, "-o", out), ("--threads", "-o", out),
                 ("--check", "--interval", 0.1, "-o", out)):
        run = installed.run(me, "-p", mine.pid, *args).check()
        assert "wait_for_ever" in out.read_text()
        assert out.stat().st_uid == me
        assert stat.S_IMODE(out.stat().st_mode) == 0o600
        out.unlink()
        for pid, uid in (others.pid, other), (os.getpid(), 0):
            run = installed.run(me, "-p", pid, *args).check(2)
            assert f"(uid {uid}) and you are uid {me}" in run.err, run.err
            assert "makes no difference" in run.err
            assert not run.out and not list(installed.home(me).iterdir())
    others.assert_unharmed()


def test_what_capabilities_it_keeps(installed):
    target = installed.start(ALICE)
    tool = installed.start_tool(ALICE, "-p", target.pid, "-o",
                                installed.home(ALICE) / "x.folded")
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    yama = installed.yama or (scope.exists() and
                              scope.read_text().strip() in "12")
    caps = status_of(tool.pid)
    assert (int(caps["CapPrm"], 16) == int(caps["CapEff"], 16) ==
            CAP_PERFMON + (CAP_SYS_PTRACE if yama else 0))
    os.kill(tool.pid, signal.SIGINT)
    # By the signal if it had no sample yet.
    assert tool.proc.wait(100) in (0, 1, -signal.SIGINT)


def test_it_does_not_run_set_user_id(installed):
    mine = installed.start(ALICE)
    os.chmod(installed.tool, 0o4755)
    run = installed.run(ALICE, "--threads", "-p", mine.pid).check(2)
    assert "set-user-ID" in run.err and not run.out


def holds_threads_of(tool, pid):
    """Does TOOL keep a file of a thread of PID open?"""
    for worker in children_of(tool.pid) or [tool.pid]:
        for fd in os.scandir(f"/proc/{worker}/fd"):
            try:
                if os.readlink(fd.path).startswith(f"/proc/{pid}/task"):
                    return True
            except OSError:
                continue
    return False


def become_set_user_id(installed):
    """A target that executes one when its fifo is written to."""
    sleeper = installed.copy("/bin/sleep", "sleep")
    os.chmod(sleeper, 0o4755)
    fifo = installed.directory / "fifo"
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    target = installed.start(
        ALICE, "/bin/sh", "-c",
        f"echo READY pid=$$; read x < {fifo}; exec {sleeper} 60")
    return target, fifo


def test_a_set_user_id_program_ends_the_recording(installed):
    """Rights from the file end where the user's do."""
    target, fifo = become_set_user_id(installed)
    tool = installed.start_tool(ALICE, "-p", target.pid, "-o",
                                installed.home(ALICE) / "x.folded")
    wait_until(lambda: is_sampling(tool.proc))
    fifo.write_text("go\n")
    assert tool.proc.wait(100) == 2
    assert b"executed a set-user-ID program" in tool.proc.stderr.read()
    assert not list(installed.home(ALICE).iterdir())
    assert target.is_running(), (target.proc.returncode,
                                 target.proc.stderr.read())


def execs_of(pid):
    """What fault_exec, PID, has as its argument: how many execs are left."""
    args = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    # It has none for a moment.
    return int(args[1]) if len(args) > 2 else None


def test_a_stop_costs_no_program_the_rights_of_its_file():
    """By a user's wallprof, which has no CAP_SYS_PTRACE."""
    as_alice = ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}",
                "--clear-groups"]
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        directory = pathlib.Path(name)
        for source, to in ((FIXTURES / "fault_exec", "fault_exec"),
                           (FIXTURES / "fault_exec", "set-user-id"),
                           (WALLPROF, "wallprof")):
            shutil.copy(source, directory / to)
        os.chmod(directory / "set-user-id", 0o4755)
        target = Target([*as_alice, directory / "fault_exec", 1000000, 0,
                         directory / "set-user-id"])
        tool = subprocess.Popen([*as_alice, directory / "wallprof", "-p",
                                 str(target.pid), "-r", "1000", "-d", "280",
                                 "--max-stopped=0", "-o", "/dev/stdout"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            wait_until_sampling(tool)
            target.proc.send_signal(signal.SIGUSR1)
            # One of 200 stops came in the midst of such an execve.
            wait_until(lambda: (execs_of(target.pid) or 1000000) < 996000, 240)
            target.proc.send_signal(signal.SIGUSR2)
            line = target.read_line("TRUTH")
        finally:
            target.end()
            err = tool.communicate(timeout=100)[1].decode()
    assert json.loads(line[len("TRUTH"):])["account"]["wrong"] == 0, err
    assert "no rights of its file" not in err, err


def test_a_set_user_id_program_costs_its_own_samples_only(installed):
    target, fifo = become_set_user_id(installed)
    other = installed.start(ALICE)
    out = installed.home(ALICE) / "x.folded"
    tool = installed.start_tool(ALICE, "-p", f"{other.pid},{target.pid}", "-v",
                                "-o", out)
    wait_until(lambda: is_sampling(tool.proc))
    fifo.write_text("go\n")
    wait_until(lambda: "sleep" in status_of(target.pid)["Name"])
    # Some ticks.
    wait_until(lambda: not holds_threads_of(tool.proc, target.pid))
    os.kill(tool.pid, signal.SIGINT)
    assert tool.proc.wait(100) in (0, 1)
    err = tool.proc.stderr.read().decode()
    assert "executed a set-user-ID program" in err, err
    assert "1 processes could not be looked at" in err, err
    lines = out.read_text().splitlines()
    assert lines and all(line.startswith("waiters;") for line in lines), lines
    assert target.is_running()
    other.assert_unharmed()
