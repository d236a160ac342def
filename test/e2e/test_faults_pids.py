# SPDX-License-Identifier: Apache-2.0
"""Numbers of processes and threads that mean another program than before: by
exec, or given again."""
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

from conftest import (FIXTURES, WALLPROF, children_of, has_run, is_executed, wait_until,
                      wait_until_sampling, worker_of)
from fault_records import (DENY_PERF, MODES, begin, check_end, finish,
                           has_frame, load, log, mode_args, quiet_account,
                           wall)


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
        if not is_executed(path):
            pytest.skip("no 32-bit programs (gcc -m32, ia32_emulation=on)")
        return path, "-"
    if kind == "set-user-id":
        if os.geteuid():
            pytest.skip("only root can give a file to another user")
        path = suid_copy(tmp_path)
        if not path:
            pytest.skip("no file system that honours set-user-id bits")
        return path, "65534"
    return FIXTURES / "fault_exec", "-"


def slices_of(pid):
    """How often PID has been on a CPU."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[2])


EXECS = 1000000


def execs_of(pid):
    """How often fault_exec, PID, has executed: it has what is left as an argument."""
    args = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    # It has none for a moment.
    return EXECS - int(args[1]) if len(args) > 2 else 0


def has_looked(tool, pid, begin_s):
    """A condition: TOOL has been on a CPU 300 times since now, PID has executed
    60 times and run for longer than shows that its CPU samples have ended, and
    more than twice the time from BEGIN_S to now has passed."""
    worker, now = worker_of(tool), time.monotonic()
    before, ran = slices_of(worker), has_run(pid, 0.3)
    return lambda: (slices_of(worker) > before + 300 and execs_of(pid) > 60 and
                    ran() and time.monotonic() - now > 2 * (now - begin_s))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["own", "32-bit", "set-user-id"])
def test_programs_that_execute_each_other(start, tmp_path, kind, mode):
    path, user = other_program(kind, tmp_path)
    out = tmp_path / "x.pb.gz"
    try:
        target = start("fault_exec", EXECS, user, path)
        tool = begin(mode, "-p", target.pid, "-o", out)
        begin_s = time.monotonic()
        wait_until_sampling(tool)
        target.proc.send_signal(signal.SIGUSR1)
        wait_until(has_looked(tool, target.pid, begin_s))
        target.proc.send_signal(signal.SIGUSR2)
        run = finish(tool)
        check_end(run.status, run.err)
        line = target.read_line("TRUTH")
        assert target.proc.wait(100) == 3
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
    if (kind == "set-user-id" and mode == "never" and
            "perf events of each CPU" not in run.err):
        # Such an exec ends the CPU samples, all that this mode has: the time
        # after it is nobody's, not that of the last stack.
        assert known < 0.5 * p.duration_nanos, pprof_check.described(p)
        return
    assert run.counter("x exec") > 10, run.err
    assert known > 0.1 * p.duration_nanos


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
        assert proc.wait(100) == 77 or err.startswith("unshare: "), (proc.args, err)
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
            err = tool.communicate(timeout=100)[1].decode()
            check_end(tool.returncode, err)
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
        words(proc, "TURNS")
        os.kill(children_of(tool.pid)[0], signal.SIGINT)
        err = tool.communicate(timeout=100)[1].decode()
        go_on(proc)
        _, times = words(proc, "NEW")
        check_end(tool.returncode, err)
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
    assert right > 0, (times, right, wrong, err)
    assert wrong < 0.02 * right, (times, right, wrong, err)
