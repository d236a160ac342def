# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve`: what Go's tools and Prometheus read, what happened before
somebody looked, and who may not ask."""
import collections
import concurrent.futures
import http.client
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

import go_books
import pprof_check
from conftest import FIXTURES, WALLPROF, tids_of, wait_until

TOKEN = "correct-horse-battery"


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=100)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """wallprof serve on a unix socket and, if asked for, a port."""

    def __init__(self, tmp_path, *words, tcp=False, under=(),
                 **kwargs):
        self.path = str(tmp_path / "socket")
        self.port, self.said = None, b""
        listen = ["--listen", f"unix:{self.path}"]
        if tcp:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                self.port = s.getsockname()[1]
            listen += ["--listen", f"127.0.0.1:{self.port}"]
        self.tool = subprocess.Popen(
            [*under, WALLPROF, "serve", *listen, *(str(w) for w in words)],
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **kwargs)

    def ask(self, path, method="GET", headers=None):
        """Status, headers, body."""
        client = Unix(self.path)
        client.request(method, path, headers=headers or {})
        answer = client.getresponse()
        ret = answer.status, dict(answer.getheaders()), answer.read()
        client.close()
        return ret

    def get(self, path):
        status, _, body = self.ask(path)
        assert status == 200, (path, status, body[:500])
        return body

    def metric(self, name):
        return self.metrics(name)[0]

    def metrics(self, *names):
        """The sum of each metric over its labels, of one answer; NaN: none yet."""
        assert self.tool.poll() is None, self.tool.stderr.read()
        try:
            status, _, text = self.ask("/metrics")
        except (OSError, http.client.HTTPException):
            status = 503
        # Clients that have left are not seen to have left yet.
        if status == 503:
            return [math.nan] * len(names)
        assert status == 200, (status, text[:500])
        return [sum(float(line.rsplit(" ", 1)[1])
                    for line in text.decode().splitlines()
                    if line.startswith(name)) for name in names]

    def ready(self, seconds=0):
        """Wait until it samples, and has for SECONDS."""
        wait_until(lambda: self.metric("wallprof_ticks_total") > 0 and
                   self.metric("wallprof_history_seconds") >= seconds,
                   pause=0.05)
        return self

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def end(self):
        if self.tool.poll() is None:
            self.tool.send_signal(signal.SIGTERM)
            try:
                self.tool.wait(60)
            except subprocess.TimeoutExpired:
                self.tool.kill()
                self.tool.wait()
        if not self.tool.stderr.closed:
            self.said = self.tool.stderr.read()
        self.tool.stderr.close()


@pytest.fixture
def serve(tmp_path):
    servers = []

    def begin(*words, **kwargs):
        servers.append(Server(tmp_path, *words, **kwargs))
        return servers[-1]
    yield begin
    for server in servers:
        server.end()


PROFILES = {
    "/debug/pprof/profile?seconds=1": "cpu",
    "/debug/pprof/wall?seconds=1": "wall",
    "/debug/fgprof?seconds=1": "wall",
    "/debug/pprof/block": "delay",
    "/debug/pprof/block?seconds=1": "delay",
    "/debug/pprof/mutex": "delay",
    "/debug/pprof/delta_mutex": "delay",
    "/debug/pprof/delta_block": "delay",
    "/debug/pprof/threadcreate": "threadcreate",
    "/debug/pprof/goroutine": "thread",
}


def test_go_tool_pprof_reads_every_profile(start, serve, tmp_path):
    target = start("hang", "abba")
    server = serve(target.pid, tcp=True).ready()

    def read(path):
        return subprocess.run(
            ["go", "tool", "pprof", "-raw", server.url(path)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100,
            env={**os.environ, "PPROF_TMPDIR": str(tmp_path)}, check=False)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = dict(zip(PROFILES, pool.map(read, PROFILES)))
    for path, kind in PROFILES.items():
        out = done[path].stdout.decode()
        assert done[path].returncode == 0, (path, done[path].stderr)
        assert kind in out.split("Samples:")[1].splitlines()[1], path
    assert "pthread_mutex_lock" in done["/debug/pprof/block"].stdout.decode()
    failed = read("/debug/pprof/heap").stderr.decode()
    assert "404" in failed and "not a Go program" in failed
    server.end()
    target.assert_unharmed()


def test_the_rest_is_as_go_has_it(start, serve):
    target = start("hang", "abba")
    server = serve(target.pid).ready(1)
    assert server.get("/debug/pprof/cmdline").decode().split("\0") == \
        target.argv
    dump = server.get("/debug/pprof/goroutine?debug=2").decode()
    assert "DEADLOCK" in dump and "pthread_mutex_lock" in dump
    grouped = server.get("/debug/pprof/goroutine?debug=1").decode()
    assert "DEADLOCK" in grouped
    assert server.get("/check").decode().startswith("deadlock")
    for path, status, says in (
            ("/debug/pprof/block?seconds=1&debug=1", 400, "incompatible"),
            ("/debug/pprof/goroutine?seconds=1", 400, "not supported"),
            ("/debug/pprof/profile?seconds=x", 400, "invalid value"),
            ("/debug/pprof/nothing", 404, "Unknown profile"),
            ("/debug/pprof/wall?seconds=1&pid=1", 404, "no such process"),
            ("/debug/pprof/wall?seconds=1&ago=80000", 404, "goes back")):
        got, headers, body = server.ask(path)
        assert got == status and says in body.decode(), (path, got, body)
        assert headers["X-Go-Pprof"] == "1"
        assert headers["Content-Type"].startswith("text/plain")
    for path in ("/", "/debug/pprof/"):
        assert b"<html" in server.get(path)
    _, headers, index = server.ask("/debug/pprof/?debug=1")
    assert headers["Content-Type"].startswith("text/plain")
    assert {line.split("?")[0].split("\t")[0]
            for line in index.decode().splitlines()} >= {
                f"pid={target.pid}", "/debug/fgprof",
                *("/debug/pprof/" + name for name in (
                    "profile", "wall", "block", "mutex", "threadcreate",
                    "goroutine", "heap", "allocs", "cmdline"))}, index
    page = server.get("/timeline.html?ago=5")
    assert b"</html>" in page or b"<script" in page
    assert str(target.pid) in server.get("/").decode()


def test_a_go_programs_fgprof_is_of_goroutines(start, serve, tmp_path):
    """Recorded when asked for, several at once."""
    target = start("parked", 5, tmp_path / "truth")
    server = serve(target.pid).ready(1)
    path = tmp_path / "served.pb.gz"

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        recordings = [pool.submit(server.get, f"/debug/fgprof?seconds={n}")
                      for n in (1, 1, 2, 2, 3)]
        assert b"main.receive" in server.get(
            "/debug/pprof/goroutine?debug=2")
    for seconds, done in zip((1, 1, 2, 2, 3), recordings):
        path.write_bytes(done.result())
        p = pprof_check.load(str(path))
        pprof_check.validate(p)
        assert pprof_check.is_of_goroutines(p)
        assert seconds <= p.duration_nanos / 1e9 < seconds + 5
        waits = collections.Counter()
        for s in pprof_check.samples(p):
            for name in {f["name"] for f in s["frames"]}:
                waits[name] += s["values"]["wall"]
        # Five wait there, and four others, from the first look to the last.
        assert 4 * waits["main.receive"] == 5 * waits["main.lockedThread"]
        assert 0.5 < waits["main.receive"] / (5 * p.duration_nanos) < 1.1
    # What goes on all the time is of threads.
    path.write_bytes(server.get("/debug/fgprof?seconds=1&ago=1"))
    assert not pprof_check.is_of_goroutines(pprof_check.load(str(path)))
    server.end()
    target.assert_unharmed()


def test_what_a_go_program_keeps_itself(start, serve, tmp_path):
    target = start("books", tmp_path)
    server = serve(target.pid).ready()
    path = tmp_path / "served.pb.gz"

    def kinds(endpoint):
        path.write_bytes(server.get(f"/debug/pprof/{endpoint}"))
        p = pprof_check.load(str(path))
        assert p.sample, endpoint
        return ([p.string_table[t.type] for t in p.sample_type],
                p.string_table[p.default_sample_type])
    heap = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    assert kinds("heap") == (heap, "inuse_space")
    assert kinds("allocs") == (heap, "alloc_space")
    assert kinds("goroutine")[0] == ["goroutine"]
    stacks = server.get("/debug/pprof/goroutine?debug=2").decode()
    assert re.match(r"goroutine \d+ .*\[.*\]:\n", stacks), stacks[:300]
    assert "main.main(" in stacks
    assert "main.main" in server.get("/debug/pprof/goroutine?debug=1").decode()
    # It writes the same of itself.
    path.write_bytes(server.get("/debug/pprof/heap"))
    target.proc.send_signal(signal.SIGUSR1)
    target.read_line("done")
    mine, truth = go_books.stacks_of(path), go_books.stacks_of(
        tmp_path / "heap")
    want = {k: v for k, v in truth.items() if any(v.values())}
    assert mine.keys() == want.keys()
    assert all(go_books.is_near(mine[k], want[k]) for k in want)
    server.end()
    target.assert_unharmed()


@pytest.mark.parametrize("kind", ["block", "mutex"])
def test_waits_only_grow(start, serve, tmp_path, kind):
    """A scraper subtracts: no stack may have less than it had."""
    target = start("shares")
    server = serve(target.pid).ready(1)
    before, path = {}, tmp_path / "waits.pb.gz"
    for part in range(4):
        server.ready(1 + 2 * part)
        path.write_bytes(server.get(f"/debug/pprof/{kind}"))
        now = {}
        for sample in pprof_check.samples(pprof_check.load(str(path))):
            key = (tuple((f["address"], f["name"]) for f in sample["frames"]),
                   tuple(sorted(sample["labels"].items())))
            was = now.get(key, (0, 0))
            now[key] = tuple(a + b for a, b in zip(
                was, sample["values"].values()))
        for key, values in before.items():
            assert all(a >= b for a, b in zip(now.get(key, (0, 0)), values)), \
                (part, key, values, now.get(key))
        assert sum(v[1] for v in now.values()) > sum(
            v[1] for v in before.values())
        before = now
    server.end()
    target.assert_unharmed()


def test_clients_share_one_recording(start, serve):
    target = start("hang", "abba")
    server = serve(target.pid).ready()
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        asks = [pool.submit(server.ask, "/debug/pprof/wall?seconds=2")
                for _ in range(50)]
        answers = [ask.result() for ask in asks]
    assert {status for status, _, _ in answers} == {200}
    assert len({body for _, _, body in answers}) < 25
    # One tracer, whatever the number of clients.
    tids = os.listdir(f"/proc/{target.pid}/task")
    assert server.metric("wallprof_threads{") == len(tids)
    server.end()
    target.assert_unharmed()


def test_what_happened_before_somebody_looked(start, serve, tmp_path):
    target = start("hang", "abba")
    server = serve(target.pid).ready(6)
    path = tmp_path / "before.pb.gz"
    path.write_bytes(server.get("/debug/pprof/wall?seconds=3&ago=5"))
    done = subprocess.run([WALLPROF, "report", path], stdout=subprocess.PIPE,
                          check=True, timeout=100)
    report = done.stdout.decode()
    assert "pthread_mutex_lock" in report and "lock" in report, report
    target.proc.kill()
    target.proc.wait()
    wait_until(lambda: server.metric("wallprof_up{") == 0, pause=0.1)
    assert server.get("/debug/pprof/wall?seconds=2&ago=4")
    status, _, body = server.ask("/debug/pprof/goroutine")
    assert status == 404 and b"has ended" in body


def raw(server, data, unix=True):
    """The first line of the answer to bytes as they are."""
    s = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    s.settimeout(100)
    s.connect(server.path if unix else ("127.0.0.1", server.port))
    with s:
        s.sendall(data)
        return s.makefile("rb").readline().decode()


def test_who_may_not_ask_is_refused(start, serve):
    target = start("hang", "abba")
    server = serve(target.pid, tcp=True).ready()
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.nip.io"):
        line = raw(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(),
                   unix=False)
        assert " 403 " in line, (host, line)
    # A page of another site has a browser ask.
    assert server.ask("/metrics", headers={
        "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors",
        "Sec-Fetch-Dest": "image"})[0] == 403
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = server.ask("/metrics", method=method)
        assert status == 405
        assert not any(h.startswith("Access-Control") for h in headers)
    for path in ("/../../etc/passwd", "/debug/pprof/%2e%2e/%2e%2e/etc/passwd",
                 "/debug/pprof/profile/", "//metrics", "/debug/pprof/\\..",
                 "/metrics%00", "/debug/pprof/wall%3fseconds=1"):
        assert server.ask(path)[0] in (400, 404), path
    big = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 70000
    assert re.search(r" (413|431|400) ", raw(server, big + b"\r\n\r\n"))
    assert re.search(r" (414|431|413|400) ",
                     raw(server, b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n"))
    # Another user, even where the socket lets him connect.
    assert os.stat(server.path).st_mode & 0o777 == 0o600
    os.chmod(server.path, 0o666)
    os.chmod(os.path.dirname(server.path), 0o755)
    if os.geteuid() == 0:
        code = ("import socket,sys; s=socket.socket(socket.AF_UNIX); "
                f"s.connect('./socket'); "
                "print(s.makefile().readline())")
        done = subprocess.run(["/usr/bin/python3", "-c", code], user=65534,
                              group=65534, cwd=os.path.dirname(server.path),
                              stdout=subprocess.PIPE, check=True, timeout=100)
        assert b" 403 " in done.stdout
    assert server.metric("wallprof_processes ") == 1


def test_clients_that_hold_on_do_not_keep_others_out(start, serve):
    target = start("hang", "abba")
    server = serve("--keep", "1h", target.pid).ready()
    held = []
    for _ in range(1000):
        s = socket.socket(socket.AF_UNIX)
        s.connect(server.path)
        held.append(s)
    # Past the limit they are told so at once.
    for s in held[128:]:
        s.settimeout(100)
        assert b" 503 " in s.recv(100)
    for s in held:
        s.close()
    wait_until(lambda: server.metric("wallprof_processes ") == 1)
    slow = []
    for _ in range(60):
        s = socket.socket(socket.AF_UNIX)
        s.connect(server.path)
        s.sendall(b"GET / HTTP/1.1\r\nHost: l")
        slow.append(s)
    # Clients that leave before their answer.
    for _ in range(200):
        s = socket.socket(socket.AF_UNIX)
        s.connect(server.path)
        s.sendall(b"GET /debug/pprof/wall?seconds=3600 HTTP/1.1\r\n"
                  b"Host: localhost\r\n\r\n")
        s.close()
    wait_until(lambda: server.metric("wallprof_processes ") == 1)
    assert server.ask("/debug/pprof/cmdline")[0] in (200, 503)
    for s in slow:
        s.close()
    server.end()
    target.assert_unharmed()


@pytest.mark.parametrize("is_pipe", [False, True])
def test_a_token_is_not_guessed(start, serve, tmp_path, is_pipe):
    target = start("hang", "abba")
    token = tmp_path / "token"
    if is_pipe:
        os.mkfifo(token)
    else:
        token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    right = {"Authorization": f"Bearer {TOKEN}"}
    server = serve(target.pid, "--token-file", token)
    if is_pipe:
        token.write_text(TOKEN + "\n")

    def answers():
        try:
            return server.ask("/metrics", headers=right)[0] == 200
        except OSError:
            return False
    wait_until(answers, pause=0.05)
    assert server.ask("/metrics")[0] == 401
    seen = {server.ask("/metrics", headers={
        "Authorization": f"Bearer {TOKEN[:-1]}{i}"})[0] for i in range(10)}
    assert seen <= {401, 429} and 401 in seen
    wait_until(answers, pause=0.05)


def test_never_holds_for_answers_of_now_too(start, serve):
    server = serve("--stop=never", start("deep", "200", "spin").pid).ready()
    for _ in range(3):
        text = server.get("/debug/pprof/goroutine?debug=2")
        assert b"none stopped" in text, text


def test_what_cannot_be_served_is_said(start, tmp_path):
    target = start("hang", "abba")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o644)
    for words, says in (
            (["--listen", "0.0.0.0:0"], "wants --token-file"),
            (["--listen", "nonsense"], "unix:PATH or HOST:PORT"),
            (["--token-file", token], "chmod 600"),
            (["--token-file", tmp_path / "none"], "No such file")):
        done = subprocess.run([WALLPROF, "serve", *words, str(target.pid)],
                              stderr=subprocess.PIPE, timeout=100, check=False)
        assert done.returncode == 2 and says in done.stderr.decode(), done
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for place, says in (
                (f"unix:{tmp_path}/file", "is no socket"),
                (f"127.0.0.1:{port}", "give another place by --listen"),
                ("[::]:0", "--listen [::]:0: not an address of this")):
            done = subprocess.run(
                [WALLPROF, "serve", "--listen", place, str(target.pid)],
                stderr=subprocess.PIPE, timeout=100, check=False)
            assert done.returncode == 2 and says in done.stderr.decode(), done
    assert (tmp_path / "file").exists()
    done = subprocess.run(
        [WALLPROF, "serve", "--listen", f"unix:{tmp_path}/s", "4194303"],
        stderr=subprocess.PIPE, timeout=100, check=False)
    assert done.returncode == 2 and b"no process is left" in done.stderr


def test_it_ends_and_finds_processes_by_name(serve, tmp_path):
    shutil.copy(FIXTURES / "waiters", tmp_path / "wp-by-name")
    server = serve("wp-by-name")
    wait_until(lambda: server.metric("wallprof_processes ") == 0, pause=0.05)
    late = subprocess.Popen([tmp_path / "wp-by-name", "2"],
                            stdout=subprocess.DEVNULL)
    try:
        server.ready()
        assert server.metric("wallprof_up{") == 1
        # Another that cannot have the path leaves it to who has it.
        done = subprocess.run(
            [WALLPROF, "serve", "--listen", f"unix:{server.path}",
             str(late.pid)], stderr=subprocess.PIPE, timeout=100, check=False)
        assert done.returncode == 2 and b"in use" in done.stderr
        assert server.metric("wallprof_up{") == 1
        server.tool.send_signal(signal.SIGHUP)
        said = b"searched again; processes served: 1, new ones: 0"
        assert any(said in line for line in server.tool.stderr)
        assert server.metric("wallprof_up{") == 1
        server.tool.send_signal(signal.SIGTERM)
        assert server.tool.wait(60) == 0
        assert not os.path.exists(server.path)
        assert late.poll() is None
    finally:
        late.kill()
        late.wait()


def test_what_memory_does_not_hold_is_counted(start, serve):
    """Ever new threads: past a limit they share an entry, and /metrics says so."""
    target = start("churn", 5000)
    server = serve("--own-threads", 20, "--keep", "5s", "--max-memory", "32M",
                   target.pid).ready()
    wait_until(lambda: server.metric("wallprof_threads_shared_total{") > 10,
               pause=0.1)
    assert server.metric("wallprof_history_dropped_total{") == 0
    assert server.metric("wallprof_stacks_dropped_total{") == 0
    # Those that have ended are not among those that live.
    wait_until(lambda: server.metric("wallprof_threads_shared_total{") > 500,
               pause=0.1)
    wait_until(lambda: server.metric("wallprof_threads{") < 15, pause=0.1)
    server.end()
    target.assert_unharmed()


def test_the_ring_ends_where_its_memory_does(start, serve):
    """Past it the oldest marks go, before their time."""
    target = start("churn", 5000)
    server = serve("--timeline-size", "64K", "--keep", "1h",
                   target.pid).ready()
    wait_until(lambda: server.metric("wallprof_history_dropped_total{") > 3,
               pause=0.1)
    # Half of it is the ring's; one mark stays, however large.
    marks, size = wait_until(lambda: [n for n in server.metrics(
        "wallprof_history_seconds{", "wallprof_history_bytes{") if n == n])
    assert size <= 32 << 10 or marks < 2, (marks, size)
    pprof = server.get("/debug/pprof/wall?seconds=1")
    assert pprof[:2] == b"\x1f\x8b"
    server.end()
    target.assert_unharmed()


def test_prometheus_scrapes_and_answers(start, serve, tmp_path):
    target = start("hang", "abba")
    server = serve(target.pid, tcp=True).ready()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n- job_name: wallprof\n  static_configs:\n"
        f"  - targets: ['127.0.0.1:{server.port}']\n")
    tool = subprocess.Popen(
        ["prometheus", f"--config.file={config}",
         f"--storage.tsdb.path={tmp_path}/data",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    query = f'sum(wallprof_threads{{state="waiting",pid="{target.pid}"}})'

    def answer():
        url = (f"http://127.0.0.1:{port}/api/v1/query?query=" +
               urllib.request.quote(query))
        try:
            with urllib.request.urlopen(url, timeout=10) as f:
                return json.load(f)["data"]["result"]
        except (urllib.error.URLError, OSError):
            return None
    try:
        result = wait_until(answer, pause=0.2)
        assert float(result[0]["value"][1]) == len(tids_of(target.pid))
    finally:
        tool.kill()
        tool.wait()
