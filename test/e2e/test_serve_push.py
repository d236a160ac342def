# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve --push`: a collector gets every second once, also those of a time
in which it was away; what sends them has no rights over others."""
import base64
import contextlib
import os
import pathlib
import re
import subprocess
import time

import pytest

import pprof_check
from conftest import BUILD, WALLPROF, family, wait_until, wallprof
from ingest import Ingest
from test_serve import serve  # noqa: F401  pylint: disable=unused-import


@pytest.fixture
def ingest():
    servers = []

    def begin(port=0):
        servers.append(Ingest(port))
        return servers[-1]
    yield begin
    for server in servers:
        server.end()


def begin_push(serve, target, port, *words, path=""):  # noqa: F811
    return serve("--push", f"http://127.0.0.1:{port}{path}", "--push-interval", "1s",
                 *words, target.pid).ready()


def load(profile, tmp_path):
    path = tmp_path / "pushed.pb.gz"
    path.write_bytes(profile)
    done = subprocess.run(["go", "tool", "pprof", "-raw", path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "PPROF_TMPDIR": str(tmp_path)},
                          timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return pprof_check.load(str(path)), done.stdout.decode()


def labels_of(profile, key):
    return {profile.string_table[label.str] for sample in profile.sample
            for label in sample.label
            if profile.string_table[label.key] == key}


def wall_ns(profile):
    names = [profile.string_table[t.type] for t in profile.sample_type]
    return sum(s.value[names.index("wall")] for s in profile.sample)


def test_a_collector_gets_each_second_once(
        start, serve, ingest, tmp_path):  # noqa: F811
    target = start("hang", "abba")
    collector = ingest()
    server = begin_push(serve, target, collector.port)
    wait_until(lambda: len(collector.taken) >= 4, pause=0.05)
    spans, sum_ns = [], 0
    for query, data in collector.taken[1:4]:
        profile, text = load(data, tmp_path)
        assert "pthread_mutex_lock" in text and "wall" in text
        assert query["name"].startswith("main{host=")
        assert f"pid={target.pid}" in query["name"]
        spans.append((int(query["from"]), int(query["until"])))
        sum_ns += wall_ns(profile)
        # No value of a label for each thread.
        assert labels_of(profile, "state") <= {"running", "runnable",
                                               "waiting"}
    assert all(a[1] == b[0] for a, b in zip(spans, spans[1:])), spans
    assert abs(spans[-1][1] - time.time()) < 60
    tids = os.listdir(f"/proc/{target.pid}/task")
    # Marks that straddle are whole in one of both.
    seconds = sum_ns / 1e9 / len(tids)
    assert abs(seconds - (spans[-1][1] - spans[0][0])) < 3, (seconds, spans)
    sent = server.metric("wallprof_push_sent_total ")
    assert sent >= 3 and server.metric("wallprof_push_dropped_total ") == 0
    server.end()
    target.assert_unharmed()


@pytest.mark.parametrize("path", ["/", "/ingest", "/ingest/"])
def test_the_path_of_the_url_is_not_doubled(
        start, serve, ingest, path):  # noqa: F811
    target, collector = start("hang", "abba"), ingest()
    begin_push(serve, target, collector.port, path=path)
    wait_until(lambda: collector.taken, pause=0.05)
    target.assert_unharmed()


def test_names_of_threads_are_few(
        start, serve, ingest, tmp_path):  # noqa: F811
    target = start("variety", 5000)
    collector = ingest()
    begin_push(serve, target, collector.port)
    wait_until(lambda: len(collector.taken) >= 3, pause=0.05)
    profile, _ = load(collector.taken[2][1], tmp_path)
    assert "v-*" in labels_of(profile, "thread")
    assert len(labels_of(profile, "thread")) < 5
    assert len(profile.sample) > 20


def test_a_collector_that_is_away(
        start, serve, ingest, tmp_path):  # noqa: F811
    target = start("hang", "abba")
    collector = ingest()
    port = collector.port
    collector.end()
    server = begin_push(serve, target, port)
    wait_until(lambda: server.metric("wallprof_push_queue_length ") >= 2 and
               server.metric("wallprof_push_retries_total ") >= 1, pause=0.1)
    ticks = server.metric("wallprof_ticks_total{")
    # Sampling and answers go on.
    assert server.get("/debug/pprof/wall?seconds=1")
    assert server.metric("wallprof_ticks_total{") > ticks
    back = ingest(port)
    # Busy at first, then it takes all in their order.
    back.statuses = [503]
    wait_until(lambda: len(back.taken) >= 3, pause=0.1)
    begins = [int(query["from"]) for query, _ in back.taken]
    assert begins == sorted(begins)
    assert server.metric("wallprof_push_dropped_total ") == 0
    assert server.metric("wallprof_push_rejected_total ") == 0
    # What it refuses for good is not sent again.
    back.statuses = [422]
    wait_until(lambda: server.metric("wallprof_push_rejected_total ") == 1,
               pause=0.1)
    server.end()
    target.assert_unharmed()


@pytest.mark.parametrize("is_away", [False, True])
def test_what_was_begun_is_pushed_when_serve_ends(
        start, serve, ingest, tmp_path, monkeypatch, is_away):  # noqa: F811
    """Long before its interval is over; or what was not sent is said."""
    target = start("hang", "abba")
    # Recorders have two seconds at the end: names are known by then.
    monkeypatch.setenv("WALLPROF_CACHE", str(tmp_path / "names"))
    wallprof("dump", target.pid)
    collector = ingest()
    if is_away:
        collector.end()
    server = serve("--push", f"http://127.0.0.1:{collector.port}",
                   # A thread has time from its first tick on.
                   "--push-interval", "100s", target.pid).ready(2.5)
    threads = len(os.listdir(f"/proc/{target.pid}/task"))
    assert not collector.asked
    begin = time.monotonic()
    server.end()
    # Two seconds for the recorders, as much for the collector.
    assert server.tool.returncode == 0 and time.monotonic() - begin < 20
    said = server.said.decode()
    if is_away:
        assert "that were not sent: 1, of which the collector did not take 1" in said
    else:
        assert "not sent" not in said, said
        (_, data), = collector.taken
        assert wall_ns(load(data, tmp_path)[0]) / threads >= 2e9
    target.assert_unharmed()


def test_what_pushes_has_no_rights_and_is_started_again(
        start, serve, ingest):  # noqa: F811
    target = start("hang", "abba")
    collector = ingest()
    server = begin_push(serve, target, collector.port)

    def pusher():
        for pid in family(server.tool.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read() == "wp-push\n":
                        return pid
            except (FileNotFoundError, ProcessLookupError):
                pass
        return None
    wait_until(lambda: collector.taken, pause=0.05)
    pid = pusher()
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f)
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    if os.geteuid() == 0:
        assert status["Uid"].split() == ["65534"] * 4
    os.kill(pid, 9)
    wait_until(lambda: pusher() not in (None, pid), pause=0.1)
    before = len(collector.taken)
    wait_until(lambda: len(collector.taken) > before, pause=0.05)
    server.tool.terminate()
    assert server.tool.wait(60) == 0
    target.assert_unharmed()


def test_only_serve_needs_the_libraries_of_http(tmp_path, start):
    """Files of their names that are no libraries: the rest works without."""
    names = re.findall(r'\\"(lib[^"\\]*)', (BUILD / "serve/sonames").read_text())
    assert len(names) == 2
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    target = start("waiters", 1)
    for name in reversed(names):
        (tmp_path / name).write_bytes(b"")

    def run(*words):
        return subprocess.run([WALLPROF, *words], env=env, timeout=60,
                              capture_output=True, text=True)

    done = run("dump", "-p", str(target.pid))
    assert done.returncode == 0 and "wait_for_ever" in done.stdout
    assert "without serve: no libmicrohttpd" in run("--version").stdout
    done = run("serve", "-p", str(target.pid))
    assert done.returncode == 2 and "serve needs libmicrohttpd" in done.stderr
    (tmp_path / names[0]).unlink()
    assert "no libcurl" in run("--version").stdout
    done = run("serve", "--listen", f"unix:{tmp_path / 'socket'}", "-p",
               str(target.pid), "--push", "http://127.0.0.1:1")
    assert done.returncode == 2 and "--push needs libcurl" in done.stderr


def readable_memory(pid):
    """All that a process may write to."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
            open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            begin, end, access = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if not access.startswith("rw"):
                continue
            mem.seek(int(begin, 16))
            try:
                yield mem.read(int(end, 16) - int(begin, 16))
            except OSError:
                pass


def knows(pid, secret):
    """Where it is seen."""
    seen = []
    for name in ("cmdline", "environ"):
        with open(f"/proc/{pid}/{name}", "rb") as f:
            if secret in f.read():
                seen.append(name)
    return seen + ["memory" for part in readable_memory(pid)
                   if secret in part][:1]


@pytest.mark.parametrize("line", ["4711:pass:word-of-the-push",
                                  "glc_bearer.token_of-the-push=" * 40],
                         ids=["basic", "bearer"])
def test_credentials_reach_the_collector_and_nobody_else(
        start, serve, ingest, tmp_path, line):  # noqa: F811
    target, collector = start("hang", "abba"), ingest()
    (tmp_path / "auth").write_text(line + "\nwhat is below is no part of it\n")
    (tmp_path / "auth").chmod(0o600)
    server = begin_push(serve, target, collector.port, "--push-auth",
                        tmp_path / "auth")
    wait_until(lambda: collector.taken, pause=0.05)
    assert set(collector.authorizations) == {
        "Basic " + base64.b64encode(line.encode()).decode() if ":" in line
        else "Bearer " + line}

    def named():
        names = {}
        for pid in family(server.tool.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
                names.setdefault(name, []).append(pid)
        # The one that was started keeps it, its first child parses HTTP.  A child of the
        # recorder that writes what is to be pushed is not there for long.
        others = names["wallprof"][1:] + names.get("wp-recorder", [])
        return (names, others) if len(others) == 2 else None
    names, others = wait_until(named)
    for pid in others:
        assert not knows(pid, b"of-the-push"), (pid, names)
    assert not set(knows(server.tool.pid, b"of-the-push")) & {"cmdline",
                                                              "environ"}
    # The one that is to know it shows that this finds it.
    assert knows(names["wp-push"][0], b"of-the-push") == ["memory"]
    server.end()
    target.assert_unharmed()


@pytest.mark.parametrize("text, mode, why", [
    ("a:secret", 0o640, "others may read it"), ("", 0o600, "its line has 1 to"),
    (None, 0, "No such file"), ("x" * 9000, 0o600, "its line has 1 to")])
def test_a_file_of_credentials_that_is_not_right_is_said(
        tmp_path, text, mode, why):
    path = tmp_path / "auth"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    done = subprocess.run(
        [WALLPROF, "serve", "--push", "http://127.0.0.1:9", "--push-auth", path,
         "--listen", f"unix:{tmp_path}/s", str(os.getpid())], timeout=100,
        stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and why in done.stderr.decode(), done.stderr


@pytest.mark.parametrize("status, says", [
    (422, "HTTP status 422; they are dropped"),
    (401, "HTTP status 401 (it wants other credentials: --push-auth); "
          "they are dropped"),
    (302, "not followed: http://elsewhere.example/x; they are dropped"),
    (503, "HTTP status 503; they are kept")])
def test_what_an_answer_means_is_said(
        start, serve, ingest, status, says):  # noqa: F811
    target, collector = start("hang", "abba"), ingest()
    collector.statuses = [status] * 1000
    collector.location = "http://elsewhere.example/x" if status == 302 else None
    server = begin_push(serve, target, collector.port)
    wait_until(lambda: collector.asked >= 2, pause=0.05)
    wait_until(lambda: server.metric("wallprof_push_rejected_total ") >= 1
               if status != 503 else
               server.metric("wallprof_push_retries_total ") >= 1, pause=0.05)
    assert not collector.taken
    server.tool.terminate()
    assert server.tool.wait(60) == 0
    err = server.tool.stderr.read().decode()
    assert err.count("does not take profiles") == 1 and says in err, err
    target.assert_unharmed()


@pytest.mark.parametrize("status, counter", [(200, "sent"), (404, "rejected")])
def test_a_long_answer_has_a_status_too(
        start, serve, ingest, status, counter):  # noqa: F811
    """Of an answer no more than 64 KiB are taken; its status comes before."""
    target, collector = start("hang", "abba"), ingest()
    collector.statuses = [status] * 1000
    collector.text = b"<p>sorry</p>" * 100000
    server = begin_push(serve, target, collector.port)
    wait_until(lambda: server.metric(f"wallprof_push_{counter}_total ") >= 2 or
               server.metric("wallprof_push_retries_total ") >= 1, pause=0.05)
    assert server.metric("wallprof_push_retries_total ") == 0
    assert server.metric(f"wallprof_push_{counter}_total ") >= 2
    server.end()
    target.assert_unharmed()
