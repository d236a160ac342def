# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve`: what questions leave behind, and those that cannot be answered."""
import http.client
import os
import resource
import signal
import socket
import time

import pprof_check
from conftest import children_of, status_of, wait_until
from test_serve import serve  # noqa: F401  pylint: disable=unused-import


def recorder_of(server):
    """Its process that records."""
    return next(pid for pid in children_of(server.tool.pid)
                if status_of(pid)["Name"] == "wp-recorder")


def test_answers_after_the_end_leave_no_zombie(start, serve):  # noqa: F811
    target = start("hang", "abba")
    server = serve(target.pid).ready(1)
    target.proc.kill()
    target.proc.wait()
    wait_until(lambda: server.metric("wallprof_up{") == 0, pause=0.1)
    recorder = recorder_of(server)
    for _ in range(5):
        server.get("/debug/pprof/wall?seconds=1&ago=2")
    wait_until(lambda: not children_of(recorder), seconds=20)
    assert server.metric("wallprof_up{") == 0


def begin_to_ask(server, *paths):
    """Sockets of clients that have asked for PATHS, in two seconds or so for each
    32: more do not begin in one."""
    ret = []
    for i, path in enumerate(paths):
        s = socket.socket(socket.AF_UNIX)
        s.connect(server.path)
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        ret.append(s)
        if i % 16 == 15:
            time.sleep(1)
    return ret


def hours(n):
    """Each has a time of its own."""
    return [f"/debug/pprof/wall?seconds={3500 - i}" for i in range(n)]


def test_questions_that_are_given_up_leave_room(start, serve):  # noqa: F811
    target = start("hang", "abba")
    server = serve("--keep", "1h", target.pid).ready()
    clients = begin_to_ask(server, *hours(70))
    status, _, body = server.ask("/debug/pprof/wall?seconds=1")
    assert status == 503 and b"too many recordings" in body, body
    for client in clients:
        client.close()
    begun = time.monotonic()
    wait_until(lambda: server.ask("/debug/pprof/wall?seconds=1")[0] == 200,
               seconds=20, pause=0.5)
    assert time.monotonic() - begun < 20
    target.assert_unharmed()


def begin_recordings(start, serve, tmp_path):  # noqa: F811
    """Of goroutines, by a process for each: four at once, two wait for them."""
    target = start("parked", 5, tmp_path / "truth")
    server = serve("--keep", "1h", target.pid).ready()
    recorder = recorder_of(server)
    clients = begin_to_ask(server, *(f"/debug/fgprof?seconds={3000 + i}"
                                     for i in range(6)))
    wait_until(lambda: len(children_of(recorder)) >= 4)
    return target, server, recorder, clients


def test_a_recording_that_is_given_up_ends(
        start, serve, tmp_path):  # noqa: F811
    target, server, recorder, clients = begin_recordings(start, serve, tmp_path)
    for client in clients:
        client.close()
    wait_until(lambda: not children_of(recorder), seconds=20)
    assert server.get("/debug/fgprof?seconds=1")
    target.assert_unharmed()


def test_a_recording_that_has_not_begun_when_its_process_ends(
        start, serve, tmp_path):  # noqa: F811
    target, server, _, clients = begin_recordings(start, serve, tmp_path)
    # It has come to what was asked before, too.
    assert server.get("/debug/pprof/wall?seconds=1")
    target.proc.kill()
    target.proc.wait()
    refused = []
    for client in clients:
        client.settimeout(100)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        if answer.status == 404:
            refused.append(answer.read())
        client.close()
    assert len(refused) == 2, refused
    assert all(b"the process has ended: its last" in why for why in refused)


def test_a_delta_that_is_refused_comes_with_the_next(
        start, serve, tmp_path):  # noqa: F811
    target = start("hang", "abba")
    server = serve("--keep", "1h", target.pid).ready()
    assert server.get("/debug/pprof/delta_block")
    begun = time.monotonic()
    clients = begin_to_ask(server, *hours(64))
    assert server.ask("/debug/pprof/delta_block")[0] == 503
    refused = time.monotonic()
    for client in clients:
        client.close()
    wait_until(lambda: server.ask("/debug/pprof/wall?seconds=1")[0] == 200,
               pause=0.5)
    path = tmp_path / "delta.pb.gz"
    asked = time.monotonic()
    path.write_bytes(server.get("/debug/pprof/delta_block"))
    told_s = pprof_check.load(str(path)).duration_nanos / 1e9
    assert told_s > asked - begun - 0.5 > refused - begun


def test_a_delta_that_cannot_be_made_comes_with_the_next(
        start, serve, tmp_path):  # noqa: F811
    """No descriptor is left for who writes the answer."""
    target = start("hang", "abba")
    server = serve(target.pid).ready()
    assert server.get("/debug/pprof/delta_block")
    begun = time.monotonic()
    before = server.metric("wallprof_history_seconds{")
    wait_until(lambda: server.metric("wallprof_history_seconds{") > before + 2)
    recorder = recorder_of(server)
    limits = resource.prlimit(recorder, resource.RLIMIT_NOFILE)
    resource.prlimit(recorder, resource.RLIMIT_NOFILE, (1, limits[1]))
    status, _, body = server.ask("/debug/pprof/delta_block")
    resource.prlimit(recorder, resource.RLIMIT_NOFILE, limits)
    assert status == 503 and b"no memory or process" in body, body
    refused = time.monotonic()
    path = tmp_path / "delta.pb.gz"
    path.write_bytes(server.get("/debug/pprof/delta_block"))
    told_s = pprof_check.load(str(path)).duration_nanos / 1e9
    assert told_s > refused - begun - 0.2 > 1
    target.assert_unharmed()


def test_what_is_not_kept_is_not_promised(start, serve):  # noqa: F811
    target = start("hang", "abba")
    server = serve("--keep", "2500ms", target.pid).ready()
    assert server.get("/debug/pprof/wall?seconds=2")
    for path in ("wall?seconds=3", "delta_mutex?seconds=3", "profile",
                 "wall?seconds=3&ago=2"):
        status, _, body = server.ask(f"/debug/pprof/{path}")
        assert status == 400 and b"the last 2.5 s are kept (--keep)" in body
    # The past is as long as it is, and what is of now has no time.
    assert server.get("/debug/pprof/wall?seconds=3&ago=3")
    assert server.get("/debug/pprof/wall?seconds=3&ago=4")
    assert server.get("/debug/pprof/wall?seconds=2&ago=1")
    assert server.get("/debug/pprof/block")
    assert server.get("/debug/pprof/goroutine?debug=2")
    target.assert_unharmed()


def start_http_again(server):
    """End what parses HTTP; return when another does."""
    recorder, before = recorder_of(server), set(children_of(server.tool.pid))
    for pid in before - {recorder}:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: set(children_of(server.tool.pid)) - before)


def test_an_answer_to_one_who_has_gone_is_not_given_to_the_next(
        start, serve, tmp_path):  # noqa: F811
    """Of two processes that parse HTTP each has a first question."""
    target = start("parked", 5, tmp_path / "truth")
    server = serve(target.pid).ready()
    recorder = recorder_of(server)
    start_http_again(server)
    clients = begin_to_ask(server, "/debug/fgprof?seconds=4")
    wait_until(lambda: children_of(recorder))
    start_http_again(server)
    begun = time.monotonic()
    assert server.get("/debug/fgprof?seconds=6")
    assert time.monotonic() - begun > 5.9
    # Nor is it still made for nobody.
    wait_until(lambda: not children_of(recorder), seconds=20)
    for client in clients:
        client.close()
    target.assert_unharmed()
