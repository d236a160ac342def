# SPDX-License-Identifier: Apache-2.0
"""What whoever starts wallprof leaves it: closed descriptors, blocked and
ignored signals, descriptors to write to."""
import json
import os
import re
import signal
import stat
import subprocess
import time

import pprof_check
import pytest

from conftest import WALLPROF, missed_ticks, wait_until_sampling, wallprof

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
# A /dev of one's own, as the system's, in a mount namespace.
OWN_DEV = """
mount -t tmpfs -o mode=755 none {place} && cd {place} || exit 77
mknod null c 1 3 && mknod full c 1 7 && ln -s /proc/self/fd fd || exit 77
for i in 0 1 2; do ln -s /proc/self/fd/$i fd$i; done
mv fd0 stdin; mv fd1 stdout; mv fd2 stderr
mount --move {place} /dev; cd /
"$@"; status=$?
ls -l /dev | sed '1d; s/.*:[0-9]* //' | sort | tr '\\n' ' ' > {place}-is
exit $status
"""
LINKS = ("fd -> /proc/self/fd full null stderr -> /proc/self/fd/2 "
         "stdin -> /proc/self/fd/0 stdout -> /proc/self/fd/1")


def shell(script, *args, **kwargs):
    """Run SCRIPT with wallprof and ARGS as "$@"."""
    return subprocess.run(["sh", "-c", script, "sh", WALLPROF, *map(str, args)],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=100, **kwargs)


@ROOT_ONLY
@pytest.mark.parametrize("path, fd", [
    ("/dev/stdout", 1), ("/dev/stderr", 2), ("/dev/fd/7", 7),
    ("/proc/self/fd/7", 7), ("/proc/thread-self/fd/7", 7),
    ("/dev/../dev/fd/7", 7), ("{tmp}/link", 7), ("{tmp}/to-stdout", 1)])
@pytest.mark.parametrize("behind", ["file", "pipe"])
def test_a_descriptor_is_written_through(start, tmp_path, path, fd, behind):
    """At the place where it is, and no link is replaced."""
    target = start("waiters", 2)
    (tmp_path / "dev").mkdir()
    (tmp_path / "link").symlink_to("fds/7")
    (tmp_path / "fds").symlink_to("/dev/fd")
    (tmp_path / "to-stdout").symlink_to("/dev/stdout")
    out = tmp_path / "out"
    to = out if behind == "file" else "/dev/stdout"
    where = ("", "", "2>&1 >/dev/null")[fd] if fd < 3 else f"{fd}>&1"
    script = (f'"$@" {where}' if behind == "pipe" else
              f'{{ echo before; "$@"; echo behind; }} {fd}>{to}')
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c",
         OWN_DEV.format(place=tmp_path / "dev").replace('"$@"', script), "sh",
         WALLPROF, "--threads", "-q", "-f", "json", "-p", str(target.pid),
         "-o", path.format(tmp=tmp_path)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, timeout=100)
    if done.returncode == 77:
        pytest.skip("nothing may be mounted here")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "dev-is").read_text().split() == LINKS.split()
    text = done.stdout.decode() if behind == "pipe" else out.read_text()
    if behind == "file" and fd == 1:
        text = re.fullmatch("before\n(.*)behind\n", text, re.S).group(1)
    assert "processes" in json.loads(text)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["dev", "dev-is", "fds", "link", "to-stdout"] +
        (["out"] if behind == "file" else []))


@pytest.mark.parametrize("what", [("--threads",), ("-d", "0.1")])
def test_a_descriptor_by_the_number_that_a_shell_knows(start, tmp_path, what):
    """sh -c 'exec wallprof -o /proc/$$/fd/1 >> log'."""
    target = start("waiters", 1)
    log = tmp_path / "log"
    log.write_text("before\n" * 10000)
    done = shell(f'exec "$@" -o /proc/$$/fd/1 >> {log}', *what, "-q", "-f",
                 "text", "-p", target.pid)
    assert done.returncode == 0 or missed_ticks(done.stderr.decode()), done
    text = log.read_text()
    assert text.startswith("before\n" * 10000) and "wait_for_ever" in text


@ROOT_ONLY
def test_links_of_the_system_are_not_replaced_and_of_others_not_followed(
        start, tmp_path):
    """In /dev a link leads to what is not there, or is not to be written; in
    /dev/shm it is anybody's, as what is behind /proc/PID/cwd."""
    target = start("waiters", 1)
    (tmp_path / "dev").mkdir()
    disk, victim = tmp_path / "disk", tmp_path / "victim"
    os.mkfifo(disk)
    victim.write_text("kept")
    os.chmod(tmp_path, 0o755)
    script = f"""
ln -s /proc/version /dev/core; ln -s /nowhere/log /dev/log
mkdir -m 1777 /dev/shm; ln -s {disk} /dev/shm/x; chown -h 65534 /dev/shm/x
for path in /dev/core /dev/log; do "$@" -o $path && exit 3; done
(cd /dev && "$@" -o core) && exit 4
timeout 60 "$@" -o /dev/shm/x || exit 5
grep -q wait_for_ever /dev/shm/x && ! [ -L /dev/shm/x ] || exit 6
rm -r /dev/shm; readlink /dev/core /dev/log; rm /dev/core /dev/log
ln -s {victim} {tmp_path}/trap
cd {tmp_path}; sleep 100 & "$@" -o /proc/$!/cwd/trap || exit 7; kill $!"""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c",
         OWN_DEV.format(place=tmp_path / "dev").replace('"$@"; st',
                                                        script + "; st"), "sh",
         WALLPROF, "--threads", "-q", "-f", "text", "-p", str(target.pid)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=100)
    if done.returncode == 77:
        pytest.skip("nothing may be mounted here")
    assert done.returncode == 0, done
    assert done.stdout.split() == ["/proc/version", "/nowhere/log"]
    assert (tmp_path / "dev-is").read_text().split() == LINKS.split()
    assert victim.read_text() == "kept"
    assert "wait_for_ever" in (tmp_path / "trap").read_text()


@pytest.mark.parametrize("fd", [7, 3])
def test_a_descriptor_that_is_closed(start, fd):
    """Nor one of wallprof's own."""
    target = start("waiters", 1)
    done = shell(f'"$@" {fd}>&-', "-p", target.pid, "-d", "0.1", "-f", "text",
                 "-o", f"/dev/fd/{fd}")
    assert done.returncode == 2
    assert b"cannot write /dev/fd/%d: Bad file desc" % fd in done.stderr
    done = shell('"$@" 7</dev/null', "-p", target.pid, "-d", "0.1", "-f",
                 "text", "-o", "/dev/fd/7")
    assert done.returncode == 2 and b"Bad file desc" in done.stderr


@ROOT_ONLY
def test_a_file_that_is_mounted_is_written(start, tmp_path):
    """As into a container; rename(2) cannot replace it."""
    target = start("waiters", 1)
    inner, outer = tmp_path / "x.json", tmp_path / "outer"
    inner.touch()
    outer.write_text("x" * 100000)
    inode = outer.stat().st_ino
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c",
         f'mount --bind {outer} {inner} || exit 77; exec "$@"', "sh", WALLPROF,
         "--threads", "-p", str(target.pid), "-o", inner],
        stderr=subprocess.PIPE, timeout=100)
    if done.returncode == 77:
        pytest.skip("nothing may be mounted here")
    assert done.returncode == 0, done.stderr
    assert "processes" in json.loads(outer.read_text())
    assert outer.stat().st_ino == inode and inner.read_text() == ""


def test_devices_and_fifos_are_not_replaced(start, tmp_path):
    target = start("waiters", 1)
    fifo, hard = tmp_path / "x.txt", tmp_path / "hard"
    os.mkfifo(fifo)
    os.link(fifo, hard)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as cat:
        wallprof("--threads", "-f", "text", "-p", target.pid, output=hard,
                 timeout=60).check()
        assert b"thread " in cat.communicate(timeout=60)[0]
    assert stat.S_ISFIFO(hard.stat().st_mode)
    if os.geteuid() == 0:
        null = tmp_path / "null"
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.link(null, tmp_path / "n")
        wallprof("--threads", "-p", target.pid, "-f", "text",
                 output=tmp_path / "n").check()
        assert stat.S_ISCHR(null.stat().st_mode)


@pytest.mark.parametrize("kinds, names", [
    ("wall", ["{}.pb.gz"]), ("wall,block", ["{}.pb.gz", "{}.block.pb.gz"])])
def test_a_name_as_long_as_any(start, tmp_path, kinds, names):
    target = start("waiters", 1)
    stem = "n" * (255 - len(names[-1]) + 2)
    wallprof("-p", target.pid, "-d", "0.1", "--profile", kinds,
             output=tmp_path / f"{stem}.pb.gz").check()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        n.format(stem) for n in names)
    # It is said before anything is recorded.
    begin = time.monotonic()
    run = wallprof("-p", target.pid, "-d", "60", "--profile", kinds,
                   output=tmp_path / f"{stem}n.pb.gz")
    assert run.status == 2 and "File name too long" in run.err
    assert time.monotonic() - begin < 50


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-",
                                    "<&-", ">&-"])
@pytest.mark.parametrize("form", ["json", "pb.gz"])
def test_closed_standard_streams(start, tmp_path, closed, form):
    """A message meant for standard error is in no file."""
    target = start("waiters", 2)
    out = tmp_path / f"x.{form}"
    what = ("--threads",) if form == "json" else ("-d", "0.2", "-v")
    done = shell(f'"$@" {closed}', *what, "-p", target.pid, "-o", out)
    # 1: a busy machine's ticks.
    assert done.returncode in (0, 1), done.stderr
    if form == "json":
        json.loads(out.read_text())
    else:
        pprof_check.validate(pprof_check.load(str(out)))


def test_standard_output_that_is_closed_is_no_success(start):
    target = start("waiters", 1)
    done = shell('"$@" >&-', "--threads", "-p", target.pid)
    assert done.returncode == 2 and b"cannot write" in done.stderr


def test_the_command_has_the_streams_that_wallprof_has(tmp_path):
    """What is closed for wallprof is for the command."""
    out = tmp_path / "fds"
    for what in (("--timeout", 30), ("-q", "-o", tmp_path / "x.pb.gz")):
        shell('"$@" 2>&- 0<&-', *what, "--", "sh", "-c",
              f"ls /proc/$$/fd > {out}; sleep 0.2", stdout=subprocess.PIPE)
        fds = out.read_text().split()
        assert "1" in fds and not {"0", "2"} & set(fds), fds


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_were_blocked_end_a_recording(start, tmp_path, sig):
    target = start("spinner", 1)
    out = tmp_path / "x.pb.gz"
    tool = subprocess.Popen(
        [WALLPROF, "-p", str(target.pid), "-o", out], stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}))
    try:
        wait_until_sampling(tool)
        tool.send_signal(sig)
        err = tool.communicate(timeout=30)[1]
    finally:
        tool.kill()
        tool.wait()
    assert tool.returncode in (0, 1), err
    pprof_check.validate(pprof_check.load(str(out)))


def test_a_recording_under_nohup_goes_on(start, tmp_path):
    """SIGHUP that was ignored is, still."""
    target = start("waiters", 1)
    tool = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", WALLPROF, "-p",
         str(target.pid), "-d", "1.5", "-o", tmp_path / "x.pb.gz"],
        stderr=subprocess.PIPE)
    begin = time.monotonic()
    wait_until_sampling(tool)
    tool.send_signal(signal.SIGHUP)
    assert tool.wait(60) in (0, 1), tool.stderr.read()
    assert time.monotonic() - begin >= 1.5


def test_time_in_which_wallprof_was_stopped_is_missed_ticks(start, tmp_path):
    """SIGSTOP for longer than the recording."""
    target = start("waiters", 2)
    out = tmp_path / "x.pb.gz"
    tool = subprocess.Popen([WALLPROF, "-p", str(target.pid), "-d", "3", "-o",
                             out], stderr=subprocess.PIPE)
    wait_until_sampling(tool)
    tool.send_signal(signal.SIGSTOP)
    time.sleep(7)
    tool.send_signal(signal.SIGCONT)
    err = tool.communicate(timeout=60)[1].decode()
    missed = int(re.search(r"(\d+) missed", err).group(1))
    assert missed >= 350, err
    assert tool.returncode == 1, err
    assert pprof_check.load(str(out)).duration_nanos >= 6.5e9


@pytest.mark.parametrize("what", [("--threads",), ("-d", "0.2"),
                                  ("-d", "0.2", "--profile", "cpu")])
def test_a_glob_that_nobody_matches_is_said(start, what):
    target = start("waiters", 1)
    for glob in ("[", "nobody*"):
        run = wallprof(*what, "-t", glob, "-p", target.pid)
        assert run.status == 2
        assert "ended" not in run.err and f'-t "{glob}"' in run.err, run.err
    target.assert_unharmed()


def test_the_smallest_duration_is_not_none(start):
    target = start("waiters", 1)
    begin = time.monotonic()
    run = wallprof("-p", target.pid, "-d", "1e-10", timeout=30)
    assert run.status in (0, 1), run.err
    assert time.monotonic() - begin < 25


@pytest.mark.parametrize("what", ["--threads", "--check", "-q"])
def test_limits_too_small_are_said(start, tmp_path, what):
    """It is the limit, neither a process that has gone nor a crash."""
    target = start("waiters", 2)
    args = ["-p", target.pid, what, *(["-d", "0.1", "-o", tmp_path / "x.html"]
                                      if what == "-q" else [])]
    for n in (5, 8, 16, 31):
        done = shell(f'ulimit -n {n}; exec "$@"', *args, stdout=subprocess.PIPE)
        assert done.returncode == 2, (n, done)
        assert f"{n} files open".encode() in done.stderr, (n, done)
        assert done.stdout == b""
    for kib in (64, 255):
        done = shell(f'ulimit -s {kib}; exec "$@"', *args,
                     stdout=subprocess.PIPE)
        assert done.returncode == 2 and b"ulimit -s 256" in done.stderr, done
    assert list(tmp_path.iterdir()) == []
    target.assert_unharmed()
