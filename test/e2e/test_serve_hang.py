# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve --on-hang`: what is kept of a process that comes to hang, and that
nothing is kept of one that does not."""
import contextlib
import math
import os
import signal
import subprocess

import pytest

import pprof_check
from conftest import WALLPROF, children_of, wait_until
from test_serve import serve  # noqa: F401  pylint: disable=unused-import


def kept(directory):
    return sorted(p.name for p in directory.iterdir())


def test_a_deadlock_is_kept_once(start, serve, tmp_path):  # noqa: F811
    place = tmp_path / "hangs"
    place.mkdir()
    target = start("hang", "abba")
    server = serve("--on-hang", place, target.pid).ready()
    wait_until(lambda: server.metric("wallprof_hangs_kept_total{") == 1,
               pause=0.1)
    assert server.metric("wallprof_deadlocks{") == 1
    names = kept(place)
    assert len(names) == 3 and all(
        n.startswith("wallprof-hang-2") and f"-main-{target.pid}." in n
        for n in names), names
    dump, page, profile = (place / next(n for n in names if n.endswith(e))
                           for e in (".txt", ".html", ".pb.gz"))
    text = dump.read_text()
    assert text.startswith("deadlock: 2 threads") and "DEADLOCK" in text
    assert "pthread_mutex_lock" in text
    assert "</html>" in page.read_text() or "<script" in page.read_text()
    assert os.stat(dump).st_mode & 0o777 == 0o600
    pprof_check.load(str(profile))
    report = subprocess.run([WALLPROF, "report", profile], check=True,
                            stdout=subprocess.PIPE, timeout=100).stdout
    assert b"pthread_mutex_lock" in report
    # It is checked again, and is the same hang.
    wait_until(lambda: server.metric("wallprof_checks_total{") >= 2, pause=0.2)
    assert server.metric("wallprof_hangs_kept_total{") == 1
    server.end()
    target.assert_unharmed()


def test_an_end_leaves_no_half_of_a_hang(start, serve, tmp_path):  # noqa: F811
    """SIGTERM, as `systemctl stop` does it, as soon as the first file is there."""
    place = tmp_path / "hangs"
    place.mkdir()
    target = start("hang", "abba")
    server = serve("--on-hang", place, target.pid)
    wait_until(lambda: list(place.iterdir()), pause=0)
    for recorder in children_of(server.tool.pid):
        for writer in children_of(recorder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(writer, signal.SIGTERM)
    server.end()
    # Who writes them ends when its recorder has.
    wait_until(lambda: len(kept(place)) in (0, 3) and
               not any(n.startswith(".") for n in kept(place)), 10)
    for profile in place.glob("*.pb.gz"):
        pprof_check.load(str(profile))
    target.assert_unharmed()


def writers_of(server):
    return [writer for recorder in children_of(server.tool.pid)
            for writer in children_of(recorder)]


def test_a_process_that_has_ended_hangs_no_more(
        start, serve, tmp_path):  # noqa: F811
    """It ends while somebody still writes what is kept of its hang."""
    place = tmp_path / "hangs"
    place.mkdir()
    target = start("hang", "abba")
    server = serve("--on-hang", place, target.pid)
    wait_until(lambda: list(place.iterdir()), pause=0)
    target.proc.kill()
    target.proc.wait()
    # The recorder has it go on whenever it looks.
    begun = math.inf

    def goes_on_recording():
        nonlocal begun
        for writer in writers_of(server):
            with contextlib.suppress(ProcessLookupError):
                os.kill(writer, signal.SIGSTOP)
        if server.metric("wallprof_up{") != 0:
            return False
        now = server.metric("wallprof_history_seconds{")
        begun = min(begun, now)
        return now > begun + 1
    wait_until(goes_on_recording, pause=0)
    wait_until(lambda: server.metric("wallprof_hangs_kept_total{") +
               server.metric("wallprof_hangs_failed_total{") == 1, pause=0.1)
    assert server.metric("wallprof_deadlocks{") == 0
    server.end()
    assert b"deadlock: 2 threads" in server.said, server.said


def test_thresholds(start, serve, tmp_path):  # noqa: F811
    place = tmp_path / "hangs"
    place.mkdir()
    target = start("waiters", 5)
    server = serve("--on-hang", place, "--hang-when", "lock=50%,idle=3s",
                   target.pid).ready()
    wait_until(lambda: server.metric("wallprof_hangs_kept_total{") == 1,
               pause=0.1)
    text = next(place.glob("*.txt")).read_text()
    assert text.startswith("no thread has run for "), text[:200]
    assert f"process {target.pid}" in text
    assert server.metric("wallprof_deadlocks{") == 0
    server.end()
    target.assert_unharmed()


def test_nothing_is_kept_of_a_healthy_process(
        start, serve, tmp_path):  # noqa: F811
    place = tmp_path / "hangs"
    place.mkdir()
    target = start("hang", "livelock")
    server = serve("--on-hang", place, "--hang-when", "idle=60s",
                   target.pid).ready(4)
    assert server.metric("wallprof_hangs_kept_total{") == 0
    assert kept(place) == []
    server.end()
    target.assert_unharmed()


def test_a_full_disk_costs_the_files(start, serve, tmp_path):  # noqa: F811
    place = tmp_path / "full"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none",
                           place], check=False, stderr=subprocess.PIPE)
    if done.returncode:
        pytest.skip("may not mount a file system")
    try:
        target = start("hang", "abba")
        server = serve("--on-hang", place, target.pid).ready()
        wait_until(lambda: server.metric("wallprof_hangs_failed_total{") == 1,
                   pause=0.1)
        assert kept(place) == []
        assert server.get("/debug/pprof/wall?seconds=1")
        assert server.metric("wallprof_up{") == 1
        server.tool.terminate()
        assert server.tool.wait(60) == 0
        assert b"No space left" in server.tool.stderr.read()
    finally:
        subprocess.run(["umount", place], check=True)
    server.end()
    target.assert_unharmed()


def test_a_directory_that_is_not_there_is_said_at_once(start, tmp_path):
    target = start("hang", "abba")
    for words, says, status in (
            (["--on-hang", tmp_path / "none"], "No such file", 2),
            (["--hang-when", "lock=5%"], "wants --on-hang", 64),
            (["--on-hang", tmp_path, "--hang-when", "lock=5"], "lock=N%", 64),
            (["--on-hang", tmp_path, "--hang-when", "lock=100%"], "99", 64)):
        done = subprocess.run(
            [WALLPROF, "serve", "--listen", f"unix:{tmp_path}/s", *words,
             str(target.pid)], stderr=subprocess.PIPE, timeout=100,
            check=False)
        assert done.returncode == status and says in done.stderr.decode(), done


@pytest.mark.soak
def test_a_deadlock_that_began_half_a_minute_ago(
        start, serve, tmp_path):  # noqa: F811
    target = start("hang", "abba")
    server = serve(target.pid).ready(36)
    path = tmp_path / "then.pb.gz"
    path.write_bytes(server.get("/debug/pprof/wall?seconds=5&ago=35"))
    report = subprocess.run([WALLPROF, "report", path], check=True,
                            stdout=subprocess.PIPE, timeout=100).stdout
    assert b"pthread_mutex_lock" in report and b"cook_takes_pan" in report
    # It held then as it does now.
    assert server.get("/check").startswith(b"deadlock")
    server.end()
    target.assert_unharmed()
