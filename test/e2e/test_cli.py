# SPDX-License-Identifier: Apache-2.0
"""The command line, and every error a user can make."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import pprof_check
import pytest

from conftest import (BUILD, FIXTURES, NO_PID, ROOT, WALLPROF, Target,
                      sampler_of, ticks, tids_of, wait_until, wait_until_sampling,
                      wallprof)


def test_help_and_version():
    text = wallprof("--help").check().out
    for option in ("--pid", "--duration", "--output", "--rate", "--interval",
                   "--thread", "--stop", "--max-stopped", "--max-depth"):
        assert option in text
    assert re.fullmatch(r"wallprof \d+\.\d+\.\d+\n",
                        wallprof("--version").check().out)


@pytest.mark.parametrize("args, says", [
    (["-q"], "nothing to record"),
    (["-p", "abc"], "process id"),
    (["-p", "1", "-r", "5000"], "1 to 1000"),
    (["-p", "1", "-o", "x.bmp"], "-f"),
    (["-p", "1", "--nonsense"], "--nonsense"),
    (["--threads"], "PID"),
    (["--timeout", "5", "-p", "1"], "--timeout"),
    (["-p", "1", "--", "true"], "not both"),
])
def test_wrong_usage_is_64(args, says):
    run = wallprof(*args).check(64)
    assert says in run.err
    assert run.err.count("\n") == 1


def assert_error(run, *says, status=2):
    run.check(status)
    lines = run.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("wallprof: "), run.err
    for word in says:
        assert word in lines[0], run.err
    return run


def test_no_such_process(tmp_path):
    out = tmp_path / "x.pb.gz"
    assert_error(wallprof("-p", NO_PID, output=out), "no process")
    assert list(tmp_path.iterdir()) == []


def test_a_zombie(start):
    child = subprocess.Popen(["true"])
    while pathlib.Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "Z":
        time.sleep(0.01)
    assert_error(wallprof("-p", child.pid), "zombie", str(os.getpid()))
    child.wait()


def test_a_kernel_thread():
    if not pathlib.Path("/proc/2/stat").exists():
        pytest.skip("kernel threads are not visible here")
    assert_error(wallprof("-p", 2), "kernel thread")


def as_nobody(*args):
    """Run wallprof as another user, from where that user can read it."""
    return wallprof(*args, prefix=("setpriv", "--reuid=65534",
                                   "--regid=65534", "--clear-groups"))


@pytest.fixture
def public(monkeypatch):
    """A copy of wallprof that any user can execute."""
    with tempfile.TemporaryDirectory(prefix="wallprof-test-") as directory:
        place = pathlib.Path(directory)
        place.chmod(0o755)
        copy = place / "wallprof"
        shutil.copy(WALLPROF, copy)
        copy.chmod(0o755)
        monkeypatch.setattr("conftest.WALLPROF", copy)
        yield place


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be two users")
def test_a_process_of_another_user(start, public):
    target = start("spinner", 1)
    run = assert_error(as_nobody("-p", target.pid), "belongs to root",
                       "uid 65534", "sudo")
    assert "ptrace_scope" not in run.err
    target.assert_unharmed()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be two users")
def test_a_process_of_the_same_user_needs_no_root(public):
    shutil.copy(FIXTURES / "spinner", public / "spinner")
    target = subprocess.Popen(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         str(public / "spinner"), "1"], stdout=subprocess.PIPE)
    try:
        assert b"READY" in target.stdout.readline()
        scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
        run = as_nobody("-p", target.pid, "-d", "1")
        if scope.exists() and scope.read_text() != "0\n":
            assert_error(run, "ptrace_scope")
        else:
            assert "spin" in run.check().out
    finally:
        target.kill()
        target.wait()


def test_without_the_capability(start):
    """As in a container: root, but not allowed to look at others."""
    target = start("spinner", 1)
    run = wallprof("-p", target.pid, prefix=(
        "setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"))
    # Where bounding alone changes nothing for this root, nothing is shown.
    if run.status == 2:
        assert_error(run, "CAP_SYS_PTRACE")
    target.assert_unharmed()


@pytest.mark.parametrize("where, says", [
    ("/dev/full", "No space left"),
    ("/nonexistent/x.pb.gz", "No such file"),
    ("/", "irectory"),
    ("/proc/x.pb.gz", "cannot write"),
])
def test_output_that_cannot_be_written(start, where, says):
    target = start("spinner", 1)
    run = wallprof("-p", target.pid, "-d", "0.3", "-f", "pprof", output=where)
    assert_error(run, "cannot write", says)
    target.assert_unharmed()


def test_a_full_disk_leaves_no_partial_file(start, tmp_path):
    target = start("waiters", 300)
    limit = 'ulimit -f 1; trap "" XFSZ; exec "$@"'
    run = wallprof("-p", target.pid, "-d", "0.5", "--full",
                   output=tmp_path / "x.txt", prefix=("sh", "-c", limit, "sh"))
    assert_error(run, "cannot write")
    assert list(tmp_path.iterdir()) == []


def test_standard_output_that_is_full(start):
    target = start("spinner", 1)
    with open("/dev/full", "w") as full:
        done = subprocess.run([WALLPROF, "-p", str(target.pid), "-d", "0.3"],
                              stdout=full, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 2
    assert b"No space left" in done.stderr


def test_the_file_is_private_and_replaces_the_old(start, tmp_path):
    target = start("spinner", 1)
    out = tmp_path / "x.pb.gz"
    out.write_text("old")
    wallprof("-p", target.pid, "-d", "0.3", output=out).check()
    assert out.stat().st_mode & 0o777 == 0o600
    pprof_check.validate(pprof_check.load(str(out)))
    assert [p.name for p in tmp_path.iterdir()] == ["x.pb.gz"]


def test_target_that_exits_while_recorded(start, tmp_path):
    target = start("exits", 3000, 5)
    out = tmp_path / "x.pb.gz"
    run = wallprof("-p", target.pid, output=out).check()
    assert "exited" in run.err
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    assert p.duration_nanos > 0.5e9


def test_target_that_execs(start, tmp_path):
    target = start("execs", 6, 300)
    out = tmp_path / "x.pb.gz"
    run = wallprof("-p", target.pid, output=out)
    # 1 is stops that the kernel refuses for as long as an exec takes.
    run.check((0, 1) if run.counter("refused by the kernel") else 0)
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    assert "exec" in run.err
    assert target.proc.wait(100) == 3
    assert p.duration_nanos > 1e9
    assert any(f["name"] == "main" for s in pprof_check.samples(p)
               for f in s["frames"])


def test_a_thread_that_execs_has_run_once(tmp_path):
    """It takes over the first thread's number, with its own books."""
    out = tmp_path / "x.pb.gz"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wallprof("-o", out, "--", FIXTURES / "execs", 2, 100, 1000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    states = pprof_check.by_label(pprof_check.load(str(out)), "state")
    # The first thread waited for it.
    assert states["waiting"] > 0.8e9, states
    assert states["running"] < 1e9 * (after.ru_utime - before.ru_utime +
                                      after.ru_stime - before.ru_stime)


def test_a_stale_map_does_not_stick(tmp_path):
    """The map is read, then the program changes and sleeps for good."""
    shell = subprocess.Popen(["sh", "-c", "read x; exec sleep 100"],
                             stdin=subprocess.PIPE)
    out = tmp_path / "x.pb.gz"
    tool = subprocess.Popen([WALLPROF, "-q", "-p", str(shell.pid), "-d", "2",
                             "-o", str(out)])
    wait_until_sampling(tool)
    shell.stdin.write(b"x\n")
    shell.stdin.close()
    # 1: on a busy machine it missed more ticks than it made.
    assert tool.wait(100) in (0, 1)
    shell.kill()
    shell.wait()
    lost = sum(s["values"]["wall"]
               for s in pprof_check.samples(pprof_check.load(str(out)))
               if s["frames"][-1]["name"].startswith("["))
    assert lost < 0.5e9


def test_a_command_is_recorded_until_it_ends(tmp_path):
    out = tmp_path / "x.pb.gz"
    run = wallprof("--", FIXTURES / "exits", 2000, 7, output=out).check()
    assert "status 7" in run.err
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    assert 0.5e9 < p.duration_nanos < 7e9
    assert any("exits" in c for c in pprof_check.comments(p))


# So many threads that they are read by BPF; it ends while that is being loaded.
SHORT = """
import os, threading, time
for _ in range(60):
    threading.Thread(target=time.sleep, args=(9,)).start()
time.sleep(0.05)
os._exit(3)
"""


def test_the_status_of_a_short_command_is_told(tmp_path):
    for _ in range(5):
        run = wallprof("--", sys.executable, "-c", SHORT, output=tmp_path / "x.pb.gz")
        assert "exited with status 3" in run.err, run.err


def test_the_status_of_a_command_without_a_sample_is_told(tmp_path):
    """Whether there was time for a sample or not."""
    for _ in range(5):
        run = wallprof("--", "false", output=tmp_path / "x.pb.gz")
        assert "exited with status 1" in run.err, run.err


def test_the_status_of_a_command_that_outlives_its_recording_is_told(tmp_path):
    tool = subprocess.Popen([WALLPROF, "-d", "0.1", "-o", tmp_path / "x.pb.gz", "--",
                             "sh", "-c", "read line; exit 3"], text=True,
                            stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    said = ""
    while "goes on; waiting for it to end" not in said:
        line = tool.stderr.readline()
        assert line, said
        said += line
    assert tool.communicate("line\n", timeout=100)[1] == (
        "wallprof: the command exited with status 3\n")


def test_a_command_keeps_its_streams_and_limits(tmp_path):
    run = wallprof("--", "sh", "-c",
                   "cat; ulimit -n; nice; echo err >&2; sleep 0.2",
                   output=tmp_path / "x.pb.gz")
    plain = subprocess.run(["sh", "-c", "cat; ulimit -n; nice"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert run.out == plain.stdout.decode()
    assert run.err.startswith("err\n")


def slice_of(pid):
    """For how long the scheduler gives PID a CPU at a time, in nanoseconds; None where
    it does not say, or one cannot ask for another (before Linux 6.12)."""
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12):
        return None
    with open(f"/proc/{pid}/sched") as f:
        found = re.search(r"^se\.slice +: +(\d+)", f.read(), re.M)
    return int(found[1]) if found else None


def test_its_slices_are_short_while_it_samples(tmp_path):
    """So that it gets the CPU of a busy target at a tick.  A command has what others
    have."""
    plain = slice_of(os.getpid())
    tool = subprocess.Popen([WALLPROF, "-q", "-o",
                             tmp_path / "x.pb.gz", "--", "sh", "-c",
                             "echo $$; read line"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    command = int(tool.stdout.readline())
    worker = wait_until(lambda: sampler_of(tool))
    if plain is not None:
        wait_until(lambda: slice_of(worker) == 100000)
        assert slice_of(command) == plain
    tool.communicate("end\n", timeout=20)
    # 1: on a busy machine it missed more ticks than it made.
    assert tool.returncode in (0, 1)


def test_a_command_that_does_not_exist(tmp_path):
    assert_error(wallprof("--", "/nonexistent/x", output=tmp_path / "x.pb.gz"),
                 "cannot run", "No such file")
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_outlives_its_recording(tmp_path):
    begin = time.monotonic()
    run = wallprof("-d", "0.5", "--", "sleep", "2",
                   output=tmp_path / "x.pb.gz").check()
    assert time.monotonic() - begin >= 1.9
    assert "goes on" in run.err


def test_threads_are_chosen_by_name(start, profile):
    target = start("shares")
    _, p = profile(target.pid, "-d", 1, "-t", "worker-*")
    assert {s["labels"]["thread"] for s in pprof_check.samples(p)} == {
        "worker-0", "worker-1", "worker-2"}
    assert_error(wallprof("-p", target.pid, "-d", "0.3", "-t", "nobody"), "-t")


def test_threads_that_a_dump_leaves_out_are_not_lost(start, tmp_path):
    target = start("shares")
    n = len(tids_of(target.pid))
    run = wallprof("dump", target.pid, "-t", "worker-1").check(0)
    assert f", {n - 1} not chosen by -t\n" in run.out, run.out
    assert "unread" not in run.out
    wallprof("dump", target.pid, "-t", "worker-1",
             output=tmp_path / "x.pb.gz").check(0)


@pytest.mark.parametrize("args, hz", [
    (["-r", "50"], 50), (["-i", "20ms"], 50), (["-r", "1000"], 1000),
    (["-i", "100ms"], 10),
])
def test_rates(start, profile, args, hz):
    target = start("waiters", 2)
    run, p = profile(target.pid, "-d", 1.5, *args)
    assert abs(p.period - 1e9 / hz) < 1e9 / hz * 0.01
    assert abs(run.counter("Hz asked") - hz) < 0.1, run.err
    # Each tick is made, or said to have been missed; there is one at the start
    # and one at the end, which may be late.
    made, missed = ticks(p), run.counter("missed")
    seconds = p.duration_nanos / 1e9
    assert 0.95 * 1.5 * hz - 4 < made + missed < 1.05 * seconds * hz + 4, run.err
    assert abs(run.counter("Hz achieved") - made / seconds) < (
        0.05 * hz + 2 / seconds), run.err


def test_formats_follow_the_ending(start, tmp_path):
    target = start("shares")
    for name in ("a.folded", "a.txt", "a.pb.gz"):
        wallprof("-p", target.pid, "-d", "0.5", output=tmp_path / name).check()
    folded = (tmp_path / "a.folded").read_text().splitlines()
    assert all(re.fullmatch(r"[^;]+(;[^;]+)+ \d+", line) for line in folded)
    assert any(line.startswith("worker-0;clone3;start_thread;run")
               for line in folded), folded[:3]
    assert "Thread time by state" in (tmp_path / "a.txt").read_text()
    out = subprocess.run([WALLPROF, "-p", str(target.pid), "-d", "0.3", "-o",
                          "-", "-q"], stdout=subprocess.PIPE).stdout
    assert out[:2] == b"\x1f\x8b"


def test_report_beside_a_file(start, tmp_path):
    target = start("shares")
    run = wallprof("-p", target.pid, "-d", "0.5", "--report",
                   output=tmp_path / "x.pb.gz").check()
    assert "Thread time by state" in run.out
    assert (tmp_path / "x.pb.gz").exists()


def test_quiet_is_quiet(start, tmp_path):
    target = start("spinner", 1)
    run = wallprof("-q", "-p", target.pid, "-d", "0.3",
                   output=tmp_path / "x.pb.gz").check()
    assert run.out == ""
    assert re.fullmatch("(wallprof: exit status 1: more ticks .*\n)?", run.err), run.err


def test_kernel_stacks(start, profile):
    target = start("waiters", 1)
    if not pathlib.Path(f"/proc/{target.pid}/stack").exists():
        pytest.skip("no /proc/PID/stack in this kernel")
    _, p = profile(target.pid, "-d", "0.5", "-k")
    names = {f["name"] for s in pprof_check.samples(p) for f in s["frames"]}
    assert any("futex" in n and "do" in n for n in names), names
    # On top of its own, in a dump too.
    out = wallprof("--threads", "dump", "-k", "-p", target.pid).check()
    assert re.search(r"\n  in futex .*\n(  #\d+ +[\w.]+ \[kernel\]\n)*"
                     r"  #\d+ +\w*futex\w* \[kernel\]\n"
                     r"(  #\d+ +[\w.]+ \[kernel\]\n)*"
                     r"  #\d+ +\w+ .*libc", out.out), out.out
    assert not out.err
    assert "[kernel]" not in wallprof("dump", target.pid).check().out


def test_kernel_stacks_that_may_not_be_read(start, tmp_path):
    target = start("waiters", 3)
    if not pathlib.Path(f"/proc/{target.pid}/stack").exists():
        pytest.skip("no /proc/PID/stack in this kernel")
    # Once, however many threads there are.
    said = ("wallprof: no stacks of the kernel's (-k): they may be read with "
            "CAP_SYS_ADMIN only, as root has it\n")
    path = tmp_path / "x.pb.gz"
    for args in (("dump", "-k", target.pid),
                 ("-k", "-d", "0.3", "-q", "-o", path, target.pid)):
        run = wallprof(*args, prefix=(
            "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"))
        assert run.check().err.count(said) == 1, run.err
        assert "[kernel]" not in run.out
    assert pprof_check.counter(pprof_check.load(str(path)),
                               "stacks of the kernel's may not be read") >= 4


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """A recording of fixtures/shares.c."""
    out = tmp_path_factory.mktemp("shares") / "x.pb.gz"
    target = Target([FIXTURES / "shares"])
    try:
        wallprof("-p", target.pid, "-d", "1", output=out).check()
        target.assert_unharmed()
    finally:
        target.end()
    return str(out)


@pytest.mark.parametrize("args", [
    ["-raw"], ["-top"], ["-tagroot=thread", "-top"], ["-traces"],
    ["-tagfocus=state=waiting", "-top"], ["-tags"], ["-comments"],
    ["-sample_index=samples", "-top"],
])
def test_go_tool_pprof_reads_it(shares, tmp_path, args):
    done = subprocess.run(["go", "tool", "pprof", *args, shares],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "PPROF_TMPDIR": str(tmp_path)})
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    want = {"-tags": "worker-0", "-comments": "ticks",
            "-tagroot=thread": "worker-0"}.get(args[0], "do_sleep")
    if args[0] == "-tagroot=thread":
        assert "helper-0" in text
    assert want in text, text[:2000]


def test_install(tmp_path):
    # -o: others run it, so it is not made anew here, whatever its age.
    subprocess.run(["make", "-s", "-o", str(BUILD / "wallprof"), "-o",
                    str(BUILD / "option_docs"), "install",
                    f"O={BUILD}", "PREFIX=/usr",
                    f"DESTDIR={tmp_path}"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    assert os.access(tmp_path / "usr/bin/wallprof", os.X_OK)
    man = tmp_path / "usr/share/man/man1/wallprof.1"
    assert "\n.TH WALLPROF 1 " in man.read_text()
    share = tmp_path / "usr/share"
    for name in ("bash-completion/completions/wallprof",
                 "zsh/vendor-completions/_wallprof",
                 "fish/vendor_completions.d/wallprof.fish"):
        assert "--max-stopped" in (share / name).read_text().replace(
            "-l ", "--")


def test_every_option_is_in_help_and_man_page():
    source = (ROOT / "src/cmd/option_table.c").read_text()
    names = re.findall(r"\{ (?:'.'|WP_OPT_\w+), \"([a-z-]+)\"", source)
    text = wallprof("--help").out
    page = (BUILD / "docs/wallprof.1").read_text().replace("\\-", "-")
    assert len(names) > 30
    for name in names:
        assert f"--{name}" in text, name
        assert f"--{name}" in page, name


def test_the_man_page_is_well_formed():
    done = subprocess.run(["man", "--warnings", "-l", "-E", "UTF-8",
                           str(BUILD / "docs/wallprof.1")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
    # What stands for parts of the table of options.
    assert not re.search(rb"@[a-z]+-", done.stdout)
