# SPDX-License-Identifier: Apache-2.0
"""--timeout: like timeout(1), but a hang leaves a diagnosis."""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import FIXTURES, ROOT, WALLPROF, is_alive, wallprof

HANG = FIXTURES / "hang"
# What a run may take longer than its time-out, where others want the CPUs too.
SLACK = 50


def end_group(tool):
    try:
        os.killpg(tool.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    tool.wait()


class Timed:
    """What a run with a time limit gave, and how long it took."""

    def __init__(self, *args, stdin=subprocess.DEVNULL, keep=False):
        """What it leaves of its process group is ended, unless KEEP."""
        begin = time.monotonic()
        tool = subprocess.Popen([str(WALLPROF), *map(str, args)], stdin=stdin,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                start_new_session=True)
        try:
            out, err = tool.communicate(timeout=60 + SLACK)
        finally:
            if not keep:
                end_group(tool)
        self.seconds = time.monotonic() - begin
        self.args = args
        self.status = tool.returncode
        self.out = out.decode(errors="replace")
        self.err = err.decode(errors="replace")

    def check(self, status, least=0, most=60):
        assert self.status == status, (self.args, self.status, self.err)
        assert least <= self.seconds < most + SLACK, (self.args, self.seconds)
        return self

    def truth(self):
        """What the hanging program said of itself."""
        return json.loads(re.search(r"^READY pid=\d+ (.*)$", self.out,
                                    re.M).group(1))


def assert_gone(*pids):
    """A process that was sent a signal may need a moment to end."""
    deadline = time.monotonic() + 20
    while any(is_alive(p) for p in pids):
        assert time.monotonic() < deadline, [p for p in pids if is_alive(p)]
        time.sleep(0.01)


def assert_dumped(text, truth, *names):
    for name in names or truth["threads"]:
        assert re.search(rf'thread {truth["threads"][name]} "{name}" \[', text)
        assert truth["functions"][name] in text, text


@pytest.mark.parametrize("command, status", [
    ("exit 0", 0), ("exit 7", 7), ("exit 124", 124), ("exit 255", 255),
    ("kill -KILL $$", 128 + signal.SIGKILL),
    ("kill -TERM $$", 128 + signal.SIGTERM),
    ("kill -SEGV $$", 128 + signal.SIGSEGV),
])
def test_the_status_is_the_commands_own(command, status):
    Timed("--timeout", 30, "--", "sh", "-c", command).check(status, most=5)


def test_a_command_that_does_not_exist():
    run = Timed("--timeout", 30, "--", "/no/such/command")
    # As timeout(1), and as a shell.
    run.check(127)
    assert "/no/such/command" in run.err
    run = Timed("--timeout", 30, "--", "/etc/passwd").check(126)
    assert "/etc/passwd" in run.err


def test_its_streams_are_the_commands_own():
    data = bytes(range(256)) * 4096
    done = subprocess.run(
        [str(WALLPROF), "--timeout", "30", "--", "sh", "-c",
         "cat; echo to stderr >&2"], input=data, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=100)
    assert done.stdout == data
    # Nothing of wallprof's own where nothing happened.
    assert done.stderr == b"to stderr\n"


def test_the_command_has_no_descriptor_of_wallprof():
    run = Timed("--timeout", 30, "--", "/bin/ls", "-l", "/proc/self/fd").check(0)
    fds = re.findall(r" (\d+) -> ", run.out)
    # 3 is the directory that ls itself reads.
    assert [int(fd) for fd in fds] == [0, 1, 2, 3], run.out


def test_the_command_has_its_signals():
    """As they were: none blocked, none ignored."""
    run = Timed("--timeout", 30, "--", "grep", "-E", "Sig(Blk|Ign)",
                "/proc/self/status").check(0)
    plain = subprocess.run(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"],
                           stdout=subprocess.PIPE)
    assert run.out == plain.stdout.decode()


@pytest.mark.parametrize("which", ["-S", "-H"])
@pytest.mark.parametrize("files", [4, 6, 8, 12, 18, 19, 32])
def test_few_descriptors_change_nothing_for_the_command(which, files):
    """It has as many as under timeout(1), and ends as there; a dump is made, or why there
    is none is said.  Of a soft limit there is one always."""
    limit = f'ulimit -S -n {files}; ulimit {which} -n {files}; exec "$@"'

    def run(*words):
        return subprocess.run(["sh", "-c", limit, "sh", *words], timeout=100,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
    for command in ("ulimit -n; ulimit -H -n; exit 7", "exec /nonexistent",
                    "trap '' TERM; kill -STOP $$", "exec sleep 60"):
        theirs, ours = (run(*tool, "sh", "-c", command) for tool in (
            ("timeout", "-k", "1", "1"),
            (WALLPROF, "run", "1", "--kill-after", "1", "--")))
        assert ours.returncode == theirs.returncode, (command, ours, theirs)
        assert ours.stdout == theirs.stdout, command
        if "is up" not in ours.stderr:
            assert ours.stderr == theirs.stderr, command
    has_dump = "nanosleep" in ours.stderr
    assert has_dump == (which == "-S" or files >= 19), ours.stderr
    assert has_dump != ("no dump" in ours.stderr and "(ulimit -n)" in ours.stderr)


def test_a_time_out_leaves_a_dump_of_what_hung():
    """The stuck program is a shell's child, as everywhere in CI."""
    run = Timed("--timeout", 3, "--", "sh", "-c", f"{HANG} abba; exit 0")
    run.check(124, least=3, most=3)
    truth = run.truth()
    assert_dumped(run.err, truth)
    assert "DEADLOCK: " in run.err
    # The shell is a process of its own in the dump, and waits for its child.
    assert len(re.findall(r"^process \d+ ", run.err, re.M)) == 2, run.err
    assert f"process {truth['pids']['main']} " in run.err
    # Standard output is the command's alone.
    assert run.out.startswith("READY") and run.out.count("\n") == 1
    assert_gone(*truth["pids"].values())


def test_the_dump_goes_to_a_file(tmp_path):
    out = tmp_path / "dump.txt"
    run = Timed("--timeout", 3, "-o", out, "--", HANG, "chain")
    run.check(124, least=3, most=3)
    assert_dumped(out.read_text(), run.truth())
    assert "ROOT: " in out.read_text()
    assert "wait_for_first" not in run.err
    assert [f.name for f in tmp_path.iterdir()] == ["dump.txt"]
    # A command that ends in time leaves no file.
    Timed("--timeout", 30, "-o", tmp_path / "none.txt", "--", "true").check(0)
    assert [f.name for f in tmp_path.iterdir()] == ["dump.txt"]


def test_the_dump_as_json(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    out = tmp_path / "dump.json"
    run = Timed("--timeout", 3, "-f", "json", "-o", out, "--", "sh", "-c",
                f"{HANG} fullpipe; exit 0").check(124, least=3, most=3)
    truth = run.truth()
    dump = json.loads(out.read_text())
    schema = ROOT / "test" / "data" / "dump.schema.json"
    jsonschema.validate(dump, json.loads(schema.read_text()))
    # The shell, the parent, its child.
    pids = [p["pid"] for p in dump["processes"]]
    assert len(pids) == 3 and set(truth["pids"].values()) < set(pids)


def test_sigkill_follows_for_who_ignores_sigterm():
    """Both the shell and its child ignore SIGTERM."""
    run = Timed("--timeout", 3, "--kill-after", 1, "--", "sh", "-c",
                f"trap '' TERM; {HANG} idle; exit 0")
    run.check(137, least=4, most=4)
    truth = run.truth()
    assert_dumped(run.err, truth)
    assert_gone(*truth["pids"].values())


def test_sigterm_comes_first(tmp_path):
    """A command that ends well on SIGTERM has the time to."""
    said = tmp_path / "said"
    run = Timed("--timeout", 1, "--kill-after", 30, "--", "sh", "-c",
                f"trap 'echo clean > {said}; exit 0' TERM; echo up;"
                " while :; do sleep 0.05; done")
    run.check(124, least=1, most=1)
    assert said.read_text() == "clean\n"


@pytest.mark.parametrize("command", [
    f"exec {HANG} abba",
    # In a descendant.
    f"{HANG} cycle5; exit 0",
    # Of two processes.
    f"{HANG} fullpipe; exit 0",
])
def test_a_deadlock_ends_it_early(command):
    run = Timed("--timeout", 60, "--on-deadlock=exit", "--", "sh", "-c",
                command)
    run.check(124, most=9)
    assert "DEADLOCK: " in run.err, run.err
    truth = run.truth()
    assert_dumped(run.err, truth, *truth["cycle"])
    assert_gone(*truth["pids"].values())


@pytest.mark.parametrize("mode", ["idle", "pool", "chain", "livelock"])
def test_what_is_no_deadlock_is_not_ended_early(mode):
    run = Timed("--timeout", 3, "--on-deadlock=exit", "--", HANG, mode)
    run.check(124, least=3, most=3)
    assert "DEADLOCK: " not in run.err
    assert_dumped(run.err, run.truth())


def test_a_command_that_ends_is_not_ended_early():
    run = Timed("--timeout", 30, "--on-deadlock=exit", "--", "sh", "-c",
                "sleep 2; exit 5").check(5, least=2, most=2)
    assert run.err == ""


@pytest.fixture
def background():
    """background(ARGS...) starts wallprof; its group ends with the test."""
    tools = []

    def begin(*args):
        tools.append(subprocess.Popen([str(WALLPROF), *map(str, args)],
                                      stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE,
                                      start_new_session=True))
        return tools[-1]

    yield begin
    for tool in tools:
        end_group(tool)
        tool.stdout.close()
        tool.stderr.close()


def pid_said(tool):
    """The process id in a fixture's first line."""
    return int(re.search(rb"pid=(\d+)", tool.stdout.readline()).group(1))


def least_fds(pid, seconds):
    """How many it has open at its least: a look holds some for a moment."""
    end, least = time.monotonic() + seconds, 1 << 20
    while time.monotonic() < end:
        least = min(least, len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.005)
    return least


def test_looks_leave_no_descriptor_behind(background):
    """Every new thread that stands still is looked at, and there are many."""
    tool = background(
        "--timeout", 60, "--on-deadlock=exit", "--", "sh", "-c",
        "while :; do"
        f" {FIXTURES}/waiters 2 & sleep 1.1; kill $!; wait; done")
    for _ in range(2):
        pid_said(tool)
    before = least_fds(tool.pid, 1)
    for _ in range(5):
        pid = pid_said(tool)
        # Of the command, too.
        assert len(os.listdir(f"/proc/{pid}/fd")) == 3
    # libunwind opens a pipe when it is first needed.
    assert least_fds(tool.pid, 1) <= before + 2


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT,
                                 signal.SIGHUP])
def test_signals_reach_the_command(background, sig):
    name = sig.name.removeprefix("SIG")
    tool = background("--timeout", 30, "--", "sh", "-c",
                      f"trap 'echo got {name}; exit 9' {name}; echo up;"
                      " while :; do sleep 0.05; done")
    assert tool.stdout.readline() == b"up\n"
    tool.send_signal(sig)
    out, err = tool.communicate(timeout=100)
    assert out == f"got {name}\n".encode()
    # The shell may say of its sleep what ended it.
    assert tool.returncode == 9, err


def test_a_signal_may_come_at_once(background):
    """The command's first act is to have wallprof sent one."""
    for _ in range(40):
        tool = background("--timeout", 20, "--", "sh", "-c",
                          "trap 'exit 9' TERM; kill -TERM $PPID;"
                          " while :; do sleep 0.01; done")
        assert tool.wait(100) == 9
        end_group(tool)


def test_a_signal_that_kills_the_command_is_its_status(background):
    tool = background("--timeout", 30, "--", HANG, "idle")
    pid = pid_said(tool)
    tool.send_signal(signal.SIGTERM)
    assert tool.wait(100) == 128 + signal.SIGTERM
    assert_gone(pid)


def test_a_signal_reaches_what_the_command_started(background):
    """As with timeout(1): a shell's death alone would leave the rest."""
    tool = background("--timeout", 30, "--", "sh", "-c",
                      f"{HANG} idle; exit 0")
    pid = pid_said(tool)
    tool.send_signal(signal.SIGTERM)
    tool.wait(100)
    assert_gone(pid)


def test_orphaned_grandchildren_are_dumped_and_ended():
    """Their parent ended long ago, as with a daemon that a test started."""
    run = Timed("--timeout", 3, "--", "sh", "-c",
                f"({HANG} condvar &); sleep 100")
    run.check(124, least=3, most=3)
    truth = run.truth()
    assert_dumped(run.err, truth)
    assert re.search(r'^process \d+ "sleep 100"', run.err, re.M), run.err
    assert_gone(*truth["pids"].values())


def test_what_the_command_leaves_behind_is_left():
    """A command that ends in time has a right to its daemons."""
    run = Timed("--timeout", 30, "--", "sh", "-c",
                "sleep 30 </dev/null >/dev/null 2>&1 & echo $!", keep=True)
    run.check(0, most=5)
    pid = int(run.out)
    try:
        assert is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_zombies_of_others_are_reaped():
    """Orphans that end while it waits do not pile up."""
    script = ("for i in 1 2 3 4 5; do (true &); done; sleep 1;"
              " ps -o stat= --ppid $PPID")
    run = Timed("--timeout", 30, "--", "sh", "-c", script).check(0)
    assert "Z" not in run.out, run.out


@pytest.mark.parametrize("args", [
    ("--timeout", "2", "-p", str(os.getpid())),
    ("--timeout", "2"),
    ("--timeout", "abc", "--", "true"),
    ("--timeout", "-1", "--", "true"),
    ("--timeout", "2", "--kill-after", "x", "--", "true"),
    ("--timeout", "2", "--on-deadlock=maybe", "--", "true"),
    ("--kill-after", "2", "--", "true"),
    ("--on-deadlock=exit", "--", "true"),
    ("--timeout", "2", "--threads", "--", "true"),
    ("--timeout", "2", "--check", "--", "true"),
])
def test_wrong_usage_is_64(args):
    run = wallprof(*args).check(64)
    assert run.err.startswith("wallprof: ") and run.err.count("\n") == 1


def test_a_shell_pipeline_is_one_command():
    """Two of them run in a pipeline as two; quoting is the shell's."""
    command = (f"{shlex.quote(str(WALLPROF))} --timeout 30 -- echo out | "
               f"{shlex.quote(str(WALLPROF))} --timeout 30 -- cat")
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE,
                          timeout=100)
    assert done.stdout == b"out\n" and done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_a_command_that_may_not_be_looked_at():
    """Who may run a program but not read it may not look at its process."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program = pathlib.Path(directory, "sleep")
        shutil.copy(shutil.which("sleep"), program)
        program.chmod(0o111)
        out = pathlib.Path(directory, "out")
        out.mkdir()
        out.chmod(0o777)
        run = wallprof("--timeout", 1, "--", program, 60, output=out / "x.txt",
                       prefix=("setpriv", "--reuid=65534", "--regid=65534",
                               "--clear-groups"))
        # Nor is anything left of the file.
        assert not list(out.iterdir())
    assert run.status == 124, run.err
    assert re.search(r"nothing to dump: process \d+ does not let itself be "
                     r"looked at .*as root \(sudo\)", run.err), run.err


def test_its_own_failure_has_a_status_of_its_own(tmp_path):
    """As timeout(1)'s: no status of the command's."""
    done = tmp_path / "done"
    run = wallprof("run", "-o", tmp_path / "no/such/x.txt", "--", "touch", done)
    assert run.status == 125 and not done.exists(), run.err
