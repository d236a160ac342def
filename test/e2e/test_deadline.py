# SPDX-License-Identifier: Apache-2.0
"""--timeout when it matters: the job dies at its time, whatever becomes of the
dump.  Side by side with timeout(1): the same status, and no later than it plus
the time for the dump."""
import contextlib
import ctypes
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor

import fcntl
import pytest

from conftest import (FIXTURES, WALLPROF, children_of, end_of, is_alive,
                      states_of, status_of, wait_until, wait_until_sampling)

HERE = pathlib.Path(__file__).parent
# What a busy machine may add to both.
SLACK = float(os.environ.get("DEADLINE_SLACK", "15"))
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def timed(argv, limit=100, **kwargs):
    """Status, seconds and standard output of what is run, with its group killed
    at the end."""
    begin = time.monotonic()
    tool = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, start_new_session=True,
                            **kwargs)
    try:
        out = tool.communicate(timeout=limit)[0]
        return tool.returncode, time.monotonic() - begin, out.decode()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tool.pid, signal.SIGKILL)
        tool.wait()


def side_by_side(seconds, command, dump_time=0, prefix=(), options=(),
                 slack=SLACK, runs=1, **kwargs):
    """What wallprof prints, of runs by it and timeout(1) that end alike.  What it adds is
    in the fastest of RUNS, too; what the machine adds is not."""
    theirs = timed([*prefix, "timeout", seconds, *command], **kwargs)
    ours = [timed([*prefix, WALLPROF, "--timeout", seconds, "--dump-time",
                   dump_time, *options, "--", *command], **kwargs)
            for _ in range(runs)]
    assert {run[0] for run in ours} == {theirs[0]}, (ours, theirs)
    ours = min(ours, key=lambda run: run[1])
    assert ours[1] <= theirs[1] + 0.5 + dump_time + slack, (ours, theirs)
    return ours[2]


def waits_for_a_pipe(pid):
    try:
        return "poll" in pathlib.Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return False


def status_and_time(argv):
    """The status as a shell has it, and when it came."""
    begin = time.monotonic()
    status = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True,
                            timeout=60, check=False).returncode
    return status if status >= 0 else 128 - status, time.monotonic() - begin


@pytest.mark.alone
def test_ends_are_those_of_timeout():
    """Whatever the command does on SIGTERM: the same status as timeout(1)'s, at
    most 0.5 s after it."""
    commands = [
        "sleep 60", "exec sleep 60", "trap 'exit 0' TERM; sleep 60 & wait",
        "trap 'exit 5' TERM; sleep 60 & wait", "trap '' TERM; sleep 60",
        "trap 'kill -KILL $$' TERM; sleep 60 & wait", "kill -STOP $$; exit 3",
        "trap '' TERM; sleep 1.5; exit 4", "exit 3", "kill -TERM $$",
        "kill -KILL $$", "sleep 0.5; kill -SEGV $$", "exec /nonexistent",
        "exec /"]
    tools = (["timeout", "-k", 1, 1],
             [WALLPROF, "--timeout", 1, "--kill-after", 1, "--dump-time", 0, "--"])
    # So few at a time that one's begin is not the others' wait for a CPU.
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(status_and_time, [
            [*tool, "sh", "-c", command] for command in commands for tool in tools]))
    for i, command in enumerate(commands):
        theirs, ours = ends[2 * i], ends[2 * i + 1]
        assert ours[0] == theirs[0], (command, ours, theirs)
        assert ours[1] <= theirs[1] + 0.5, (command, ours, theirs)


@contextlib.contextmanager
def full_pipe():
    """The end to write to of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(65536))
    os.set_blocking(writer, True)
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.alone
@pytest.mark.parametrize("dump_time", [0, 0.01])
def test_a_full_pipe_takes_no_time_of_its_own(dump_time):
    """No writer is waited for beyond the half second."""
    with full_pipe() as writer:
        side_by_side(0.3, ["sleep", 100], dump_time, slack=0, runs=3, stderr=writer)


@pytest.mark.parametrize("form", ["text", "json"])
def test_standard_error_is_a_full_pipe(form):
    with full_pipe() as writer:
        side_by_side(1, [FIXTURES / "waiters", 300], dump_time=3,
                     options=["-f", form], stderr=writer)


def test_sigterm_when_standard_error_is_a_full_pipe():
    """At any time, the dump's included."""
    with full_pipe() as writer:
        tool = subprocess.Popen([WALLPROF, "--timeout", "0.5", "--dump-time",
                                 "60", "--", "sleep", "100"], stderr=writer)
        # What it has to say, a child writes.
        wait_until(lambda: any(waits_for_a_pipe(pid) for pid in children_of(tool.pid)))
        tool.terminate()
        assert tool.wait(30) == 124


def test_121_processes():
    """The dump has what could be looked at in time, and says so."""
    out = side_by_side(1, ["sh", "-c", "for i in $(seq 120); do sleep 100 &"
                           " done; wait"], dump_time=3,
                       stderr=subprocess.STDOUT)
    assert "--dump-time" in out
    assert len(re.findall(r"^process \d+ ", out, re.M)) >= 5, out[-2000:]


def test_no_time_for_a_dump():
    out = side_by_side(1, ["sleep", "100"], stderr=subprocess.STDOUT)
    assert out == "wallprof: sleep: time is up after 1 s\n"


def test_a_dump_that_is_cut_leaves_no_file(tmp_path):
    with full_pipe() as writer:
        side_by_side(0.5, ["sh", "-c", "for i in $(seq 60); do sleep 100 &"
                           " done; wait"], dump_time=0.01,
                     options=["-o", tmp_path / "x.json"], stderr=writer)
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "x.json"])


@pytest.mark.parametrize("command, status", [
    ("exit 3", 3), ("kill -KILL $$", None), ("sleep 0.5; exit 7", 7),
    ("sleep 100", 124)])
def test_sigchld_ignored_by_who_starts_it(command, status):
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if status:
        side_by_side(3, ["sh", "-c", command], stderr=subprocess.DEVNULL,
                     preexec_fn=ignore)
    # timeout(1) dies of the signal itself.
    ours = timed([WALLPROF, "--timeout", 3, "--dump-time", 1, "--", "sh", "-c",
                  command], preexec_fn=ignore)
    assert ours[0] == (status or 128 + signal.SIGKILL)


def test_sigterm_ignored_by_who_starts_it():
    side_by_side(1, ["sleep", "100"], stderr=subprocess.DEVNULL,
                 preexec_fn=lambda: signal.signal(signal.SIGTERM,
                                                  signal.SIG_IGN))


def test_signals_blocked_by_who_starts_it():
    """timeout(1) hangs: the command has SIGTERM blocked, as it was for it."""
    run = timed([WALLPROF, "--timeout", "1", "--kill-after", "1", "--", "sleep",
                 "100"], stderr=subprocess.DEVNULL,
                preexec_fn=lambda: signal.pthread_sigmask(
                    signal.SIG_BLOCK, set(signal.Signals)))
    assert run[0] == 137 and run[1] < 20 + SLACK


@pytest.mark.parametrize("name", ["ALRM", "PIPE", "VTALRM", "RTMIN", "IO"])
def test_a_command_that_signals_its_parent_keeps_its_deadline(name):
    """What is no request to end says nothing, be it the command's first act."""
    for script, status in (("exit 4", 4), ("exec sleep 100", 124)):
        run = timed([WALLPROF, "--timeout", 60 if status == 4 else 1,
                     "--dump-time", 0, "--", "sh",
                     "-c", f"kill -{name} $PPID; sleep 0.2; {script}"],
                    stderr=subprocess.DEVNULL)
        assert run[0] == status and run[1] < 1.5 + SLACK, run


# Of a program that its first thread has left.
LEFT = """
import ctypes, os, sys, threading, time
def work():
    print("READY pid=%d" % os.getpid(), flush=True)
    time.sleep(float(sys.argv[1]))
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(0)
"""


@pytest.mark.parametrize("seconds, status", [("4.5", 124), ("60", 137)])
@pytest.mark.parametrize("under_a_shell", [False, True])
def test_a_first_thread_that_leaves_is_no_end(tmp_path, seconds, status,
                                              under_a_shell):
    """As the kernel shows it, its process is a zombie: it has its time all the same,
    and after SIGTERM another."""
    # Nor may SIGTERM come before it is set to do nothing.
    command = ["sh", "-c", "trap '' TERM; exec \"$@\"", "sh",
               sys.executable, "-c", LEFT, seconds]
    if under_a_shell:
        # Of another process than the command the end is no status.
        command = ["sh", "-c", '"$@" & wait', "sh", *command]
    with open(tmp_path / "out", "wb+") as out:
        begin = time.monotonic()
        tool = subprocess.run([WALLPROF, "--timeout", "3", "--kill-after", "5",
                               "--dump-time", "0", "--", *command], stdout=out,
                              stderr=subprocess.DEVNULL, check=False, timeout=100)
        took = time.monotonic() - begin
        out.seek(0)
        pid = int(re.search(rb"READY pid=(\d+)", out.read()).group(1))
    # /proc/PID/status tells of the first thread alone, which has ended.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        assert not states_of(pid) - {"Z", "X"}
    assert tool.returncode == (124 if under_a_shell else status)
    assert took >= (4.5 if status == 124 else 8)


@pytest.mark.parametrize("dump_time", [0, 2])
def test_what_ignores_sigterm_is_killed_after_its_parent(dump_time):
    """The command ends at once by SIGTERM, its child does not."""
    script = "sh -c \"trap '' TERM; echo \\$\\$; while :; do sleep 0.1; done\" & wait"
    tool = subprocess.Popen([WALLPROF, "--timeout", "2", "--kill-after", "0.5",
                             "--dump-time", str(dump_time), "--", "sh", "-c", script],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            start_new_session=True)
    pid = int(tool.stdout.readline())
    begin = time.monotonic()
    assert tool.wait(60) == 124
    assert time.monotonic() - begin < 3 + dump_time + SLACK
    assert not is_alive(pid)
    tool.stdout.close()


def test_orphans_are_killed_without_a_worker():
    """It may not have so many files open: the command is its own child, and so are those
    whose parents end."""
    script = "sh -c \"trap '' TERM; echo \\$\\$; while :; do sleep 0.1; done\" & wait"
    tool = subprocess.Popen(["sh", "-c", 'ulimit -n 12; exec "$@"', "sh", WALLPROF, "run",
                             "4", "--kill-after", "0.5", "--", "sh", "-c", script],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True)
    pid = int(tool.stdout.readline())
    _, err = tool.communicate(timeout=60)
    assert tool.returncode == 124
    assert b"no dump" in err
    assert not is_alive(pid)


def setuid_copy(where, name):
    """A copy of program NAME in WHERE that anybody may execute as its owner."""
    own = where / name
    shutil.copy(shutil.which(name), own)
    own.chmod(0o4755)
    for place in (where, *where.parents[:-1]):
        place.chmod(place.stat().st_mode | 0o755)
    return own


@ROOT_ONLY
def test_who_may_not_be_signalled_is_not_said_to_be_killed(tmp_path):
    """As of sudo: the command has another user's ids, real ones too."""
    own = setuid_copy(tmp_path, "setpriv")
    tool = subprocess.Popen(
        ["setpriv", "--reuid", "65534", "--clear-groups", WALLPROF, "run", "4",
         "--kill-after", "0.5", "--", own, "--reuid", "0", "sh", "-c",
         "echo $$; exec sleep 100"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(tool.stdout.readline())
    try:
        assert tool.wait(60) == 124
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
    err = tool.communicate()[1].decode()
    assert "processes that do not end, or may not be signalled: 1" in err, err


def ptrace(request, pid):
    assert ctypes.CDLL(None).ptrace(request, pid, None, None) == 0


@ROOT_ONLY
def test_the_status_of_another_users_command_is_its_own(tmp_path):
    """What looks is stuck, so that nobody reaps a command whose status may not be
    read from /proc."""
    own = setuid_copy(tmp_path, "timeout")
    tool = subprocess.Popen(
        ["setpriv", "--reuid", "65534", "--clear-groups", WALLPROF, "--timeout",
         "60", "--", own, "2", "sleep", "60"], stdin=subprocess.DEVNULL,
        start_new_session=True)
    try:
        worker = wait_until(lambda: children_of(tool.pid))[0]
        wait_until(lambda: any(status_of(p)["Name"] == "timeout"
                               for p in children_of(worker)))
        # PTRACE_SEIZE and PTRACE_INTERRUPT.
        ptrace(0x4206, worker)
        ptrace(0x4207, worker)
        assert tool.wait(30) == 124
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tool.pid, signal.SIGKILL)
        tool.wait()


def opens(pid):
    """Does PID wait for the other end of a pipe that it opens (fs/pipe.c)?"""
    with open(f"/proc/{pid}/wchan") as f:
        return f.read() in ("fifo_open", "wait_for_partner")


@pytest.mark.parametrize("sig", ["INT", "TERM", "KILL"])
def test_an_output_that_cannot_be_opened_ends_by_a_signal(tmp_path, sig):
    """A pipe without a reader: the command is not started, then or later."""
    pipe, mark = tmp_path / "pipe.txt", tmp_path / "mark"
    os.mkfifo(pipe)
    tool = subprocess.Popen([WALLPROF, "--timeout", "60", "-o", pipe, "--", "touch",
                             mark], stdin=subprocess.DEVNULL)
    worker = wait_until(lambda: children_of(tool.pid))[0]
    wait_until(lambda: opens(worker))
    begin = time.monotonic()
    tool.send_signal(getattr(signal, "SIG" + sig))
    number = getattr(signal, "SIG" + sig)
    assert tool.wait(30) == (-number if sig == "KILL" else 128 + number)
    assert time.monotonic() - begin < 1 + SLACK
    wait_until(lambda: not is_alive(worker))
    os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
    assert not mark.exists()


def test_a_command_that_kills_its_parent_is_ended_in_time(tmp_path):
    """The parent is wallprof's process that looks; as its first act."""
    for i in range(10):
        run = timed([WALLPROF, "--timeout", "1", "--dump-time", 0, "--", "sh",
                     "-c", f"kill -KILL $PPID; echo $$ > {tmp_path}/pid;"
                     " exec sleep 100"], stderr=subprocess.DEVNULL)
        assert run[0] == 124 and run[1] < 2 + SLACK, (i, run)
        assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("tool", [
    ["timeout", "1"], [str(WALLPROF), "--dump-time", "1", "--timeout", "1"]])
def test_processes_that_others_started_are_left(tool):
    """As where it is a container's entry point: what was there before it."""
    script = "sleep 78 </dev/null >/dev/null 2>&1 & echo $!; exec \"$@\""
    argv = [*tool, *(["--"] if tool[0] != "timeout" else []), "sleep", "50"]
    proc = subprocess.Popen(["sh", "-c", script, "sh", *argv],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            start_new_session=True)
    try:
        other = int(proc.stdout.readline())
        begin = time.monotonic()
        assert proc.wait(60) == 124
        assert time.monotonic() - begin < 1 + 1 + 0.5 + SLACK
        if tool[0] != "timeout":
            assert is_alive(other)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, signal.SIGKILL)
        proc.stdout.close()


def test_only_the_commands_own_are_dumped_and_ended(tmp_path):
    """Orphans of the command are, another child of the same parent is not."""
    script = (f"sleep 78 </dev/null >/dev/null 2>&1 & echo $! > {tmp_path}/a;"
              ' exec "$@"')
    run = timed(["sh", "-c", script, "sh", WALLPROF, "--timeout", "4", "--",
                 "sh", "-c", f"(sleep 79 & echo $! > {tmp_path}/b); sleep 80"],
                stderr=subprocess.STDOUT)
    assert run[0] == 124
    assert '"sleep 79"' in run[2] and '"sleep 78"' not in run[2]
    assert not is_alive(int((tmp_path / "b").read_text()))


def on_terminal(argv):
    """It runs with a terminal of its own: (process, the terminal's master)."""
    master, slave = pty.openpty()

    def take():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    tool = subprocess.Popen([str(a) for a in argv], stdin=slave, stdout=slave,
                            stderr=slave, preexec_fn=take)
    os.close(slave)
    return tool, master


@pytest.mark.parametrize("tool", [
    ["timeout", "--foreground", "30"],
    [WALLPROF, "--timeout", "30", "--"]], ids=["timeout", "wallprof"])
@pytest.mark.parametrize("key, status", [(b"\x03", 130), (b"\x1c", 131)])
def test_a_key_reaches_a_command_in_a_session_of_its_own(tool, key, status):
    proc, master = on_terminal([*tool, "setsid", "-w", "sleep", "40"])
    try:
        def command():
            below = proc.pid
            while children_of(below):
                below = children_of(below)[0]
            return below if pathlib.Path(
                f"/proc/{below}/comm").read_text() == "sleep\n" else None
        pid = wait_until(command)
        os.write(master, key)
        # timeout(1) dies of the signal itself, which a shell says so.
        assert proc.wait(60) in (status, 128 - status)
        wait_until(lambda: not is_alive(pid))
    finally:
        proc.kill()
        proc.wait()
        os.close(master)


@contextlib.contextmanager
def dead_server(tmp_path, command):
    """COMMAND runs where MOUNT/x is a program whose server then dies: what is
    given has its process id, the mount, and a prefix to run more there."""
    place = tmp_path / "mount"
    place.mkdir()
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no FUSE")
    proc = subprocess.Popen(
        [sys.executable, HERE / "dead_server.py", place, FIXTURES / "waiters",
         *map(str, command)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)
    try:
        line = proc.stdout.readline()
        if not line:
            pytest.skip("no FUSE here: " + proc.stderr.read().decode())
        yield proc, place, ["nsenter", "-t", str(proc.pid), "-m"]
    finally:
        # The server's end ends what waits for it.
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()
        proc.stdout.close()
        proc.stderr.close()


def let_die(server):
    """From now on it answers nothing."""
    os.kill(server.pid, signal.SIGUSR1)
    assert server.stdout.readline() == b"DEAD\n"


def pid_ready(proc):
    line = proc.stdout.readline().decode()
    return int(re.search(r"READY pid=(\d+)", line).group(1))


@ROOT_ONLY
@pytest.mark.parametrize("tool", ["timeout", "wallprof", "on-deadlock"])
def test_a_dead_file_server_and_timeout(tmp_path, tool):
    """The command is a program of it."""
    argv = {"timeout": ["timeout", "3"],
            "wallprof": [WALLPROF, "--dump-time", "2", "--timeout", "3", "--"],
            "on-deadlock": [WALLPROF, "--dump-time", "2", "--on-deadlock=exit",
                            "--timeout", "3", "--"]}[tool]
    with dead_server(tmp_path, ["true"]) as (server, place, prefix):
        run = subprocess.Popen(
            [str(a) for a in [*prefix, *argv, place / "x", 3]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begin = time.monotonic()
        pid = pid_ready(run)
        let_die(server)
        # Nobody who is stuck has these open.
        run.communicate(timeout=60)
        assert run.returncode == 124
        assert time.monotonic() - begin < 3 + 2 + 0.5 + SLACK
        assert not is_alive(pid)


@ROOT_ONLY
@pytest.mark.parametrize("what", [
    ["--threads"], ["--check", "-i", "0.2"], ["-d", "1"],
    ["-d", "10", "--stop", "all"], []], ids=" ".join)
def test_a_dead_file_server_and_a_look(tmp_path, what):
    """It costs the frames of its own file: those of the C library are there, soon,
    and nothing is left held."""
    with dead_server(tmp_path, [tmp_path / "mount" / "x", "3"]) as (
            server, _, _):
        pid = pid_ready(server)
        let_die(server)
        tool = subprocess.Popen([WALLPROF, "-p", str(pid), *what],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        begin = time.monotonic()
        if not what or "all" in what:
            wait_until_sampling(tool)
            tool.send_signal(signal.SIGINT)
        out, err = end_of(tool, 60)
        assert time.monotonic() - begin < 3 + SLACK
        # A thread in four stands in a frame that is not known.
        assert tool.returncode == (0 if "--check" in what else 1), err
        if "--check" in what:
            assert out.startswith(b"healthy")
        else:
            assert b"does not answer" in err, err
            assert b"sigwait" in out and re.search(
                rb"\bx\+0x[0-9a-f]{4}\b", out)
        assert status_of(pid)["State"][0] == "S"
        assert status_of(pid)["TracerPid"] == "0"
