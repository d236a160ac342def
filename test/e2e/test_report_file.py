# SPDX-License-Identifier: Apache-2.0
"""`report` and `diff`: their file is whole, or there is none."""
import signal
import subprocess

import pytest

from conftest import FIXTURES, WALLPROF, wait_until, wallprof


@pytest.fixture(scope="module")
def profile_path(tmp_path_factory):
    """Of a second, with ever new stacks."""
    path = tmp_path_factory.mktemp("profile") / "x.pb.gz"
    target = subprocess.Popen([FIXTURES / "variety", "2000"],
                              stdout=subprocess.DEVNULL)
    try:
        wallprof("-p", target.pid, "-d", 2, output=path).check((0, 1))
    finally:
        target.kill()
        target.wait()
    return path


def words(command, profile_path):
    return [command] + [str(profile_path)] * (2 if command == "diff" else 1)


@pytest.mark.parametrize("command", ["report", "diff"])
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_part(profile_path, tmp_path, command, sig):
    for _ in range(5):
        tool = subprocess.Popen(
            [WALLPROF, *words(command, profile_path),
             "-o", tmp_path / "x.html"], stderr=subprocess.PIPE)
        wait_until(lambda: any(tmp_path.glob(".wallprof.*")) or
                   tool.poll() is not None, pause=0)
        tool.send_signal(sig)
        assert tool.communicate(timeout=100)[1] == b""
        assert tool.returncode in (0, -sig)
        assert not list(tmp_path.glob(".wallprof.*"))
        assert (tmp_path / "x.html").exists() == (tool.returncode == 0)
        (tmp_path / "x.html").unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["report", "diff"])
def test_a_file_that_grows_too_large_is_said(profile_path, tmp_path, command):
    run = wallprof(*words(command, profile_path), output=tmp_path / "x.html",
                   prefix=("sh", "-c", 'ulimit -f 1; exec "$@"', "sh"))
    assert run.status == 2 and "cannot write" in run.err, run.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["report", "diff"])
def test_a_pipe_that_is_read_no_further_is_quiet(profile_path, command):
    tool = subprocess.Popen([WALLPROF, *words(command, profile_path), "--full"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    tool.stdout.close()
    assert tool.stderr.read() == b""
    tool.stderr.close()
    assert tool.wait(100) in (0, -signal.SIGPIPE)


def test_a_profile_may_come_through_a_pipe(profile_path):
    """By standard input, under each of its names, and by bash's <(...)."""
    whole = wallprof("report", profile_path).check().out
    for script in ("cat $2 | $1 report -", "cat $2 | $1 report /dev/stdin",
                   "$1 report - <$2", "$1 report <(cat $2)"):
        done = subprocess.run(["bash", "-c", script, "bash", WALLPROF, profile_path],
                              capture_output=True, timeout=100, check=False,
                              text=True)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout == whole
    done = subprocess.run(
        ["bash", "-c", "$1 diff <(cat $2) - <$2", "bash", WALLPROF, profile_path],
        capture_output=True, timeout=100, check=False, text=True)
    same = wallprof("diff", profile_path, profile_path).check().out
    assert (done.returncode, done.stderr, done.stdout) == (0, "", same), done


@pytest.mark.parametrize("source, why", [
    ("/dev/null", "cannot read standard input"), ("/", "Is a directory")])
def test_standard_input_that_is_no_profile_is_said(source, why):
    with open("/dev/null") as null:
        run = subprocess.run([WALLPROF, "report", "-" if source != "/" else "/"],
                             stdin=null, capture_output=True, timeout=100,
                             check=False, text=True)
    assert run.returncode == 2 and why in run.stderr, run
