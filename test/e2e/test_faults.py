# SPDX-License-Identifier: Apache-2.0
"""Targets that make trouble: each is recorded at 1,000 Hz in every mode.

After each the target's own account (checksums, EINTRs, what was lost, its exit
status) is what it is without a profiler, and wallprof has ended with a right
profile or a clear error.  With FAULTS_LOG=FILE in the environment the figures
of each trial are added to FILE, a line of JSON each: FAULTS.md has them.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pprof_check
import pytest

from conftest import (FIXTURES, ROOT, SLOW, WALLPROF, Run, Target, children_of,
                      has_run, status_of, ticks, wait_until,
                      wait_until_sampling, wallprof)

# "stops": perf events denied, so that every look at a running thread stops it.
MODES = ["auto", "all", "never", "stops"]
SECONDS = float(os.environ.get("FAULT_SECONDS", "0.5"))
SOAK_SECONDS = float(os.environ.get("FAULT_SOAK_SECONDS", "20"))
SYS_PERF_EVENT_OPEN = 298
DENY_PERF = (str(FIXTURES / "fault_deny"), str(SYS_PERF_EVENT_OPEN), "1")
FAULTS = {
    "plain": ["plain"],
    "storm": ["storm"],
    "forks": ["forks"],
    "churn": ["churn"],
    "leader": ["leader", 300],
    "undumpable": ["undumpable"],
    "limited": ["limited"],
    "noelf": ["noelf"],
    "maps": ["maps", 65000],
    "code-maps": ["maps", 20000, "x"],
    "threads": ["threads", 4000],
    "deep": ["deep"],
}
# Those take seconds to start: all modes of them are in soak.
SOAK_FAULTS = {**FAULTS, "many": ["threads", 20000],
               "code-maps": ["maps", 60000, "x"]}


def log(test, mode, run=None, **figures):
    """One trial for the table of FAULTS.md."""
    if run is not None:
        figures.update(status=run.status, stops=run.counter("made"),
                       repaired=run.counter("EINTR repaired"))
    if os.environ.get("FAULTS_LOG"):
        with open(os.environ["FAULTS_LOG"], "a") as f:
            f.write(json.dumps({"test": test, "mode": mode, **figures}) + "\n")


def mode_args(mode):
    return ("--stop", "auto" if mode == "stops" else mode, "-r", 1000,
            "--max-stopped", 0)


def record(mode, *args, prefix=(), **kwargs):
    if mode == "stops":
        prefix = (*prefix, *DENY_PERF)
    return wallprof(*mode_args(mode), *args, prefix=prefix, **kwargs)


def begin(mode, *args, **kwargs):
    """The same, running on."""
    argv = [*(DENY_PERF if mode == "stops" else ()), str(WALLPROF),
            *(str(a) for a in (*mode_args(mode), *args))]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **kwargs)


def finish(tool):
    """What it gave, once it has ended."""
    out, err = tool.communicate(timeout=60)
    return Run(tool.args, subprocess.CompletedProcess(
        tool.args, tool.returncode, out or b"", err), None)


def load(path):
    p = pprof_check.load(str(path))
    pprof_check.validate(p)
    return p


@functools.lru_cache(maxsize=None)
def quiet_account(*argv):
    """What a fixture says of itself when nobody looks."""
    target = Target([FIXTURES / argv[0], *argv[1:]])
    try:
        # It ends once each kind of work has been done.
        return target.truth()["account"]
    finally:
        target.end()


def check_account(target, *argv):
    """It is unharmed, and says the same as without wallprof."""
    if argv[0] == "fault":
        target.assert_unharmed()
    truth = target.truth()
    want = quiet_account(*argv)
    assert truth["account"] == want, (truth, want)
    assert want["wrong"] == want["eintrs"] == want["lost"] == 0
    assert truth["work"]["rounds"] > 0 and truth["work"]["faults"] > 0
    return truth["work"]


def wall(p, thread, is_part=lambda s: True):
    """The wall time of the samples of the threads of that name."""
    return sum(s["values"]["wall"] for s in pprof_check.samples(p)
               if s["labels"]["thread"] == thread and is_part(s))


def has_frame(name):
    return lambda s: any(f["name"] == name for f in s["frames"])


def has_wait(wait):
    return lambda s: s["labels"].get("wait") == wait


def check_whole_time(p, *threads):
    """Threads that were there all the time have all of it."""
    tolerance = 0.05 * p.duration_nanos + 3 * p.duration_nanos / ticks(p)
    for thread in threads:
        ns = wall(p, thread)
        assert abs(ns - p.duration_nanos) <= tolerance, (thread, ns,
                                                         p.duration_nanos)


def check_stacks(p, run, thread, frame, others=()):
    """What THREAD runs is FRAME, or it is said that its stack is not known: on
    a machine with much other work a thread that waits for a CPU cannot be
    stopped in time, and where stops are refused has no CPU sample either."""
    right = wall(p, thread, has_frame(frame))
    unknown = wall(p, thread, lambda s: not has_frame(frame)(s) and any(
        f["name"].startswith("[") for f in s["frames"]))
    whole = wall(p, thread)
    assert right + unknown > 0.8 * whole, (right, unknown, whole)
    lost = run.counter("not in time") + run.counter("refused by the kernel")
    # Nor has one that did not run meanwhile: its stack is told by CPU samples.
    ran = wall(p, thread, lambda s: s["labels"]["state"] == "running")
    if not lost and ticks(p) > 99 and ran > 0.05 * p.duration_nanos:
        assert right > 0.8 * whole, (right, unknown, whole, run.err)


def check_threads(p, run, has_sleeper=True):
    """The two that every fixture has are seen for what they are."""
    check_whole_time(p, "worker")
    check_stacks(p, run, "worker", "work_round")
    if has_sleeper:
        check_whole_time(p, "sleeper")
    # So many that two looks may find it on its way out.
    if has_sleeper and ticks(p) > 99:
        assert wall(p, "sleeper", has_wait("poll")) > 0.1 * p.duration_nanos


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_target_in_trouble(start, tmp_path, fault, mode):
    run_fault(start, tmp_path, fault, FAULTS[fault], mode, SECONDS)


def test_many_threads(start, tmp_path):
    run_fault(start, tmp_path, "many", SOAK_FAULTS["many"], "auto", SECONDS)


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", SOAK_FAULTS)
def test_a_target_in_trouble_for_long(start, tmp_path, fault, mode):
    run_fault(start, tmp_path, fault, SOAK_FAULTS[fault], mode, SOAK_SECONDS)


def run_fault(start, tmp_path, fault, args, mode, seconds):
    argv = ["fault", *args]
    begun = time.monotonic()
    target = start(*argv)
    out = tmp_path / "x.pb.gz"
    run = record(mode, "-p", target.pid, "-d", seconds, output=out)
    assert run.status in (0, 1), run.err
    p = load(out)
    elapsed = time.monotonic() - begun
    work = check_account(target, *argv)
    log(f"test_a_target_in_trouble[{fault}-{mode}]", mode, run,
        faults=work["faults"], rate=round(work["faults"] / elapsed),
        seconds=round(elapsed, 2))
    check_threads(p, run, has_sleeper=fault != "storm")
    if mode == "never":
        assert run.counter("made") == 0
    elif (mode in ("all", "stops") and fault not in ("threads", "many") and
          not run.lacked_cpu()):
        # It did stop threads, or nothing would have been shown.
        assert run.counter("made") > 10 * seconds, run.err
    if fault in PARTICULARS and not SLOW:
        PARTICULARS[fault](p, run, work["faults"] / elapsed)
    if fault in ("threads", "many"):
        check_many_threads(p, work["faults"])


# How often a second is what a machine with other work has left for it; that
# it happened at all must be seen.
def check_storm(p, run, rate):
    assert rate > 1000
    check_whole_time(p, "stormed", "taker", "storm")
    check_stacks(p, run, "storm", "run_storm")


def check_forks(p, run, rate):
    assert rate > 5
    check_whole_time(p, "forker", "vforker", "spawner")


def check_churn(p, run, rate):
    # 2,000 a second where there are CPUs for it; each computes for 150 us.
    assert rate > 10
    assert wall(p, "mayfly") > 0
    assert run.counter("seen") > 5, run.err


def check_leader(p, run, rate):
    """No stack is lost when the first thread goes."""
    assert run.counter("x memory map read") < 10, run.err
    assert run.counter("ended early (address in no module)") < 10, run.err
    assert "exiting" in pprof_check.by_label(p, "state")


def check_noelf(p, run, rate):
    check_stacks(p, run, "worker", "run_worker")


def check_many_threads(p, threads):
    """Main, the worker and the sleeper are there too; main waits as well."""
    assert len(pprof_check.threads(p)) == threads + 3
    waiting = sum(s["values"]["wall"] for s in pprof_check.samples(p)
                  if has_wait("signal")(s))
    assert abs(waiting / p.duration_nanos / (threads + 1) - 1) < 0.05


def check_deep(p, run, rate):
    """512 frames and the reason why there are no more."""
    deep = [s for s in pprof_check.samples(p) if has_frame("down")(s)]
    assert deep and all(s["frames"][-1]["name"].startswith("[truncated") for s in deep)


PARTICULARS = {"storm": check_storm, "forks": check_forks,
               "churn": check_churn, "leader": check_leader,
               "noelf": check_noelf, "deep": check_deep}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["signals", "attach"])
def test_stops_of_others_still_stop(start, tmp_path, how, mode):
    """SIGSTOP and SIGCONT, or a debugger that comes and goes, all the time.

    The fixture sees to it that while it holds the target nothing is done.
    """
    argv = ["fault_toggle", how]
    parent = start(*argv)
    out = tmp_path / "x.pb.gz"
    # The child is what is recorded, the parent what is asked.
    child, parent.pid = parent.pid, parent.proc.pid
    run = record(mode, "-p", child, "-d", SECONDS, output=out)
    assert run.status in (0, 1), run.err
    p = load(out)
    work = check_account(parent, *argv)
    log(f"test_stops_of_others_still_stop[{how}-{mode}]", mode, run,
        faults=work["faults"])
    assert work["faults"] > 5
    check_whole_time(p, "worker", "sleeper")
    stopped = wall(p, "worker", lambda s: s["labels"]["state"] == "stopped")
    assert stopped > 0


def suid_copy(directory):
    """fault_exec as another user's program; pytest's own directory is 0700 and
    may be on a file system without set-user-id."""
    for place in (directory, pathlib.Path("/var/tmp")):
        flags = os.statvfs(place).f_flag
        if not flags & os.ST_NOSUID:
            path = place / f"fault_suid_{os.getpid()}"
            shutil.copy(FIXTURES / "fault_exec", path)
            os.chown(path, 65534, -1)
            path.chmod(0o4755)
            return path
    return None


def other_program(kind, tmp_path):
    """What is executed, and the user it must run as."""
    if kind == "32-bit":
        path = FIXTURES / "fault_exec32"
        if not path.exists():
            pytest.skip("the compiler makes no 32-bit code (gcc -m32)")
        return path, "-"
    if kind == "set-user-id":
        if os.geteuid():
            pytest.skip("only root can give a file to another user")
        path = suid_copy(tmp_path)
        if not path:
            pytest.skip("no file system that honours set-user-id bits")
        return path, "65534"
    return FIXTURES / "fault_exec", "-"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["own", "32-bit", "set-user-id"])
def test_programs_that_execute_each_other(start, tmp_path, kind, mode):
    path, user = other_program(kind, tmp_path)
    out = tmp_path / "x.pb.gz"
    try:
        target = start("fault_exec", 60, user, path)
        tool = begin(mode, "-p", target.pid, "-o", out)
        wait_until_sampling(tool)
        # Had wallprof come when the 32-bit one was there, that were an error.
        target.proc.send_signal(signal.SIGUSR1)
        run = finish(tool)
        assert run.status in (0, 1), run.err
        line = target.read_line("TRUTH")
        assert target.proc.wait(20) == 3
    finally:
        if kind == "set-user-id":
            path.unlink()
    account = json.loads(line[len("TRUTH"):])["account"]
    assert account == quiet_account("fault", "plain")
    p = load(out)
    log(f"test_programs_that_execute_each_other[{kind}-{mode}]", mode, run,
        execs=run.counter("x exec"))
    assert "exited while being recorded" in run.err
    whole = sum(pprof_check.threads(p).values())
    assert abs(whole - p.duration_nanos) < 0.1 * p.duration_nanos
    samples = pprof_check.samples(p)
    known = sum(s["values"]["wall"] for s in samples
                if not s["frames"][0]["name"].startswith("["))
    if kind == "set-user-id" and mode == "never":
        # Such an exec ends the CPU samples, all that this mode has: the time
        # after it is nobody's, not that of the last stack.
        assert known < 0.5 * p.duration_nanos
        return
    assert run.counter("x exec") > 10, run.err
    assert known > 0.1 * p.duration_nanos


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_the_end_of_all_threads(start, tmp_path, end, mode):
    target = (start("fault", "exits", 40, 7) if end == "exit" else
              start("fault", "churn"))
    out = tmp_path / "x.pb.gz"
    tool = begin(mode, "-p", target.pid, "-o", out)
    wait_until_sampling(tool)
    wait_until(has_run(target.pid, 0.1))
    target.proc.send_signal(signal.SIGTERM if end == "exit" else
                            signal.SIGKILL)
    err = tool.communicate(timeout=30)[1].decode()
    assert tool.returncode in (0, 1), err
    assert "exited while being recorded" in err
    assert target.proc.wait(20) == (7 if end == "exit" else -signal.SIGKILL)
    p = load(out)
    log(f"test_the_end_of_all_threads[{end}-{mode}]", mode,
        status=tool.returncode)
    assert any(has_frame("work_round")(s) for s in pprof_check.samples(p))


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_that_forbids_restart_syscall(start, tmp_path, mode):
    target = start("seccomp")
    run = record(mode, "-p", target.pid, "-d", SECONDS,
                 output=tmp_path / "x.pb.gz")
    assert run.status in (0, 1), run.err
    target.assert_unharmed()
    truth = target.truth()
    log(f"test_a_filter_that_forbids_restart_syscall[{mode}]", mode, run)
    assert truth["polls"] > 5 and truth["naps"] > 50


def trace(pid, tool, tmp_path):
    """A debugger attaches and leaves."""
    if tool == "gdb":
        argv = ["gdb", "-q", "-nx", "-batch", "-iex",
                "set debuginfod enabled off", "-iex",
                "set auto-solib-add off", "-p", str(pid), "-ex", "detach"]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    tracer = subprocess.Popen(["strace", "-f", "-o", str(tmp_path / "trace"),
                               "-p", str(pid)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: tracer.poll() is not None or
                   status_of(pid)["TracerPid"] == str(tracer.pid))
        # Its first lines say that it has traced; it may not have been let
        # trace who makes calls.
        end = time.monotonic() + 1
        while time.monotonic() < end and tracer.poll() is None and not (
                tmp_path / "trace").stat().st_size:
            time.sleep(0.01)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
    return tracer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tool", ["gdb", "strace"])
def test_a_debugger_that_comes_and_goes(start, tmp_path, tool, mode):
    """It may be refused a thread that is held at that moment, not more."""
    target = start("fault", "plain")
    out = tmp_path / "x.pb.gz"
    run = begin(mode, "-p", target.pid, "-d", 60, "-o", out)
    wait_until_sampling(run)
    attached = 0
    for _ in range(2):
        done = trace(target.pid, tool, tmp_path)
        attached += (b"detached" in done.stdout.lower() if tool == "gdb" else
                     (tmp_path / "trace").stat().st_size > 0)
    assert target.is_running()
    run.send_signal(signal.SIGINT)
    err = run.communicate(timeout=30)[1].decode()
    assert run.returncode in (0, 1), err
    log(f"test_a_debugger_that_comes_and_goes[{tool}-{mode}]", mode,
        status=run.returncode, attached=attached)
    p = load(out)
    # gdb's attach is one of SIGSTOP, which ends a call that does not restart,
    # with or without wallprof: EINTRs are no part of this account.
    truth = target.truth()
    account = truth["account"]
    assert account["wrong"] == account["lost"] == 0
    assert account["checksum"] == quiet_account("fault", "plain")["checksum"]
    check_whole_time(p, "worker", "sleeper")
    assert attached or mode in ("all", "stops")


def reuse_namespace(*args):
    """fault_reuse in a PID namespace of its own."""
    argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
            str(FIXTURES / "fault_reuse"), *args]
    return subprocess.Popen(argv, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def begin_inside(proc, mode, *args):
    """wallprof where numbers are given again."""
    inner = str(children_of(proc.pid)[0])
    return subprocess.Popen(
        ["nsenter", "--pid", "--mount", "-t", inner,
         *(DENY_PERF if mode == "stops" else ()), WALLPROF,
         *map(str, (*mode_args(mode), *args))], stderr=subprocess.PIPE)


def words(proc, first):
    line = proc.stdout.readline().decode().split()
    if not line:
        err = proc.stderr.read().decode().strip()
        pytest.skip(f"no PID namespace with ns_last_pid: {err}")
    assert line[0] == first, line
    return [int(w) for w in line[1:]]


def kernel():
    return tuple(int(n) for n in
                 re.match(r"(\d+)\.(\d+)", os.uname().release).groups())


def go_on(proc):
    proc.stdin.write(b"\n")
    proc.stdin.flush()


def run_reuse(tmp_path, mode, kind, trials):
    if kind == "pid_max" and kernel() < (6, 14):
        pytest.skip("kernel.pid_max is one for all before Linux 6.14")
    proc = reuse_namespace(str(trials), kind)
    try:
        for trial in range(trials):
            out = tmp_path / f"x{trial}.pb.gz"
            pid, number = words(proc, "OLD")
            old = children_of(children_of(proc.pid)[0])[0]
            tool = begin_inside(proc, mode, "-p", pid, "-o", out)
            wait_until_sampling(tool)
            wait_until(has_run(old, 0.1))
            go_on(proc)
            again, gap_us = words(proc, "NEW")
            assert again == number
            if kind == "thread":
                # The old process lives on; the new one is there to be taken
                # for its thread.
                new = children_of(children_of(proc.pid)[0])[-1]
                wait_until(has_run(new, 0.1))
                os.kill(children_of(tool.pid)[0], signal.SIGINT)
            err = tool.communicate(timeout=30)[1].decode()
            assert tool.returncode in (0, 1), err
            check_reuse(load(out), kind, err)
            log(f"test_a_number_given_again[{kind}-{mode}]", mode,
                gap_us=gap_us)
            go_on(proc)
    finally:
        proc.kill()
        proc.wait()


def check_reuse(p, kind, err):
    samples = pprof_check.samples(p)
    assert any(has_frame("old_work")(s) or has_frame("old_thread")(s)
               for s in samples), err
    assert not any(has_frame("new_work")(s) or s["labels"]["thread"] == "new"
                   for s in samples), err
    if kind != "thread":
        assert "exited while being recorded" in err, err


REUSES = ["process", "set_tid", "pid_max", "thread"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", REUSES)
def test_a_number_given_again(tmp_path, kind, mode):
    if os.geteuid():
        pytest.skip("a PID namespace whose numbers can be chosen needs root")
    run_reuse(tmp_path, mode, kind, 1)


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", REUSES)
def test_numbers_given_again(tmp_path, kind, mode):
    run_reuse(tmp_path, mode, kind, 50)


def take_turns(tmp_path):
    """How often the number was given, and the time of each colour's stacks
    under its own name and under the other's, and what was said."""
    proc = reuse_namespace("1", "threads")
    try:
        out = tmp_path / "x.pb.gz"
        pid, _ = words(proc, "OLD")
        tool = begin_inside(proc, "stops", "-p", pid, "-o", out)
        wait_until_sampling(tool)
        go_on(proc)
        wait_until(has_run(children_of(proc.pid)[0], 2 * SECONDS), 100)
        os.kill(children_of(tool.pid)[0], signal.SIGINT)
        err = tool.communicate(timeout=30)[1].decode()
        go_on(proc)
        _, times = words(proc, "NEW")
        assert tool.returncode in (0, 1), err
    finally:
        proc.kill()
        proc.wait()
    p = load(out)
    right, wrong = (sum(wall(p, thread, has_frame(work))
                        for thread, work in pairs)
                    for pairs in ((("red", "red_work"), ("blue", "blue_work")),
                                  (("red", "blue_work"), ("blue", "red_work"))))
    return times, right, wrong, err


def test_threads_that_take_turns_at_a_number(tmp_path):
    """Hardly one that is stopped has the stack of the one before or after it:
    its name is read by its number, a few microseconds from its stack.  CPU
    samples, which the other modes have, go by number: see FAULTS.md."""
    if os.geteuid():
        pytest.skip("a PID namespace whose numbers can be chosen needs root")
    times, right, wrong, err = take_turns(tmp_path)
    log("test_threads_that_take_turns_at_a_number", "stops", times=times,
        right_us=right // 1000, wrong_us=wrong // 1000)
    assert times > 50 and right > 0, (times, right, wrong, err)
    assert wrong < 0.02 * right, (times, right, wrong, err)


def ask_beside_silence(server, *args):
    """Run wallprof; one that hangs cannot even be killed while SERVER lives."""
    run = subprocess.Popen([WALLPROF, *map(str, args)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = run.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        server.kill()
        run.kill()
        run.wait()
        raise
    assert run.returncode == 0, err
    return out


def test_a_file_server_that_never_answers(tmp_path):
    """The target waits for it; what wallprof asks of the file must not."""
    if os.geteuid() or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root and fuse")
    mnt, out = tmp_path / "mnt", tmp_path / "x.pb.gz"
    mnt.mkdir()
    server = subprocess.Popen(
        ["/usr/bin/python3", ROOT / "test" / "e2e" / "silent_files.py", mnt],
        stdout=subprocess.PIPE, text=True)
    try:
        word, pid = server.stdout.readline().split()
        assert word == "READING"
        text = ask_beside_silence(server, "--threads", "-p", pid)
        # The path is that in the target's mount namespace, or what is left
        # of it outside.
        assert re.search(r"\[waiting: file.*\n  in read fd \d+ file /.*x\n",
                         text), text
        text = ask_beside_silence(server, "--check", "--interval", "300ms",
                                  "-p", pid)
        assert text.startswith("healthy: "), text
        ask_beside_silence(server, "-p", pid, "-d", 0.5, "-o", out)
        assert wall(load(out), "python3",
                    lambda s: s["labels"]["wait"] == "file") > 400_000_000
    finally:
        server.kill()
        server.wait()


class Freezer:
    """A cgroup that stops whole processes, of version 2 or 1."""

    def __init__(self, pid):
        self.dir = None
        for root, name, on, off in (
                ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
                ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
                ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN",
                 "THAWED")):
            path = pathlib.Path(root) / f"wallprof_test_{os.getpid()}"
            if not (path.parent / "cgroup.procs").exists():
                continue
            try:
                path.mkdir()
                (path / "cgroup.procs").write_text(str(pid))
            except OSError:
                if path.is_dir():
                    path.rmdir()
                continue
            self.dir, self.file = path, path / name
            self.on, self.off = on, off
            return

    def set(self, frozen):
        self.file.write_text(self.on if frozen else self.off)
        deadline = time.monotonic() + 10
        while not self.is_set(frozen):
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def is_set(self, frozen):
        if self.file.name == "freezer.state":
            return self.file.read_text().strip() == (self.on if frozen
                                                     else self.off)
        events = (self.dir / "cgroup.events").read_text()
        return f"frozen {int(frozen)}" in events

    def remove(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                self.dir.rmdir()
                return
            except OSError:
                time.sleep(0.01)


@pytest.mark.parametrize("mode", MODES)
def test_a_frozen_cgroup(start, tmp_path, mode):
    """Frozen before and thawed during a recording, and the other way round."""
    target = start("fault", "plain")
    freezer = Freezer(target.pid)
    if not freezer.dir:
        pytest.skip("no cgroup freezer that may be written to")
    try:
        for first in (True, False):
            out = tmp_path / f"{first}.pb.gz"
            freezer.set(first)
            tool = begin(mode, "-p", target.pid, "-o", out)
            wait_until_sampling(tool)
            # So long that a tenth of it is many ticks, frozen and not.
            time.sleep(0.4)
            freezer.set(not first)
            time.sleep(0.4)
            tool.send_signal(signal.SIGINT)
            err = tool.communicate(timeout=30)[1].decode()
            assert tool.returncode in (0, 1), err
            p = load(out)
            check_whole_time(p, "worker", "sleeper")
            freezer.set(False)
            target.assert_unharmed()
        log(f"test_a_frozen_cgroup[{mode}]", mode, status=tool.returncode,
            version=2 if freezer.file.name == "cgroup.freeze" else 1)
        # The freezer itself ends the calls that do not restart, as a signal
        # would; that is counted without wallprof as well.
        account = target.truth()["account"]
        assert account["wrong"] == account["lost"] == 0
    finally:
        freezer.set(False)
        target.end()
        freezer.remove()


@pytest.mark.parametrize("mode", MODES)
def test_a_limit_of_descriptors(start, tmp_path, mode):
    """64 of them, for a target with 200 threads."""
    argv = ["fault", "threads", 200]
    target = start(*argv)
    out = tmp_path / "x.pb.gz"
    run = record(mode, "-p", target.pid, "-d", SECONDS, output=out,
                 prefix=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    assert run.status in (0, 1), run.err
    check_account(target, *argv)
    log(f"test_a_limit_of_descriptors[{mode}]", mode, run)
    p = load(out)
    assert len(pprof_check.threads(p)) == 203, run.err
    check_threads(p, run)
