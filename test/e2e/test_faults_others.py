# SPDX-License-Identifier: Apache-2.0
"""Others who stop the target too, or whom it waits for: debuggers, a freezer, a
file server that is silent."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import (ROOT, WALLPROF, missed_ticks, status_of, wait_until,
                      wait_until_sampling)
from fault_records import (MODES, SECONDS, begin, check_account, check_end,
                           check_whole_time, load, log, quiet_account, record,
                           wall)
from freezer import Freezer


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
    check_end(run.status, run.err)
    p = load(out)
    work = check_account(parent, *argv)
    log(f"test_stops_of_others_still_stop[{how}-{mode}]", mode, run,
        faults=work["faults"])
    assert work["faults"] > 5
    check_whole_time(p, "worker", "sleeper")
    stopped = wall(p, "worker", lambda s: s["labels"]["state"] == "stopped")
    assert stopped > 0
    if how == "attach" and mode in ("all", "stops") and not run.lacked_cpu():
        assert run.counter("refused by the kernel") > 0, run.err


def trace(pid, tool, tmp_path, seconds):
    """A debugger attaches and leaves; SECONDS: what it may take to show that."""
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
        end = time.monotonic() + seconds
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
        done = trace(target.pid, tool, tmp_path, 1 if mode in ("all", "stops") else 20)
        attached += (b"detached" in done.stdout.lower() if tool == "gdb" else
                     (tmp_path / "trace").stat().st_size > 0)
    assert target.is_running()
    run.send_signal(signal.SIGINT)
    err = run.communicate(timeout=100)[1].decode()
    check_end(run.returncode, err)
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


@pytest.mark.parametrize("what", [("-d", 1, "--stop=all", "-o", "x.pb.gz"), ("--threads",)])
def test_its_own_tracer(tmp_path, what):
    """strace that traces wallprof is not held, or neither would go on."""
    trace = tmp_path / "trace"
    # No other test starts a strace of this name.
    name = f"strace-{os.getpid()}"
    shutil.copy(shutil.which("strace"), tmp_path / name)
    run = subprocess.run(
        [tmp_path / name, "-f", "-o", str(trace), "-e", "trace=ptrace", WALLPROF,
         "--name", name, *map(str, what)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2, (run.returncode, run.stderr)
    assert "traces wallprof" in run.stderr, run.stderr
    assert "PTRACE_SEIZE" not in trace.read_text()


def ask_beside_silence(server, *args):
    """Run wallprof; one that hangs cannot even be killed while SERVER lives."""
    run = subprocess.Popen([WALLPROF, *map(str, args)], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = run.communicate(timeout=100)
    except subprocess.TimeoutExpired:
        server.kill()
        run.kill()
        run.wait()
        raise
    assert run.returncode == 0 or missed_ticks(err), err
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
            err = tool.communicate(timeout=100)[1].decode()
            check_end(tool.returncode, err)
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
