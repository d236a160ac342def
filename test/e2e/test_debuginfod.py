# SPDX-License-Identifier: Apache-2.0
"""Debug files from the servers of DEBUGINFOD_URLS: a server of the test's own, which
has one file, has none, or never answers."""
import ctypes
import http.server
import os
import shutil
import signal
import socket
import subprocess
import threading

import pprof_check
import pytest

from conftest import WALLPROF, missed_ticks, status_of, wait_until
from symbolizers import debug_file_of

# SIGINT, in /proc/PID/status.
PENDING = 1 << (signal.SIGINT - 1)

SOURCE = r"""
#include <unistd.h>
static __attribute__((noinline)) void hidden_function(void) { pause(); }
int main(void) { write(1, "READY\n", 6); for (;;) hidden_function(); }
"""


def build_id_of(prog):
    path = debug_file_of(prog)
    return path.parent.name + path.stem


def has_library():
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_library(),
                                reason="no libdebuginfod.so.1")


@pytest.fixture
def program(tmp_path):
    """(a stripped program that runs, its build-id, its debug file)."""
    source, prog = tmp_path / "prog.c", tmp_path / "prog"
    debug = tmp_path / "elsewhere.debug"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", prog, source],
                   check=True)
    subprocess.run(["objcopy", "--only-keep-debug", prog, debug], check=True)
    subprocess.run(["strip", "-s", prog], check=True)
    proc = subprocess.Popen([prog], stdout=subprocess.PIPE)
    try:
        assert proc.stdout.readline() == b"READY\n"
        yield proc.pid, build_id_of(prog), debug
    finally:
        proc.kill()
        proc.wait()
        proc.stdout.close()


@pytest.fixture
def server():
    """serve({path: bytes}): the server's URL, and the paths that it was asked
    for."""
    servers = []

    def serve(files):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                data = files.get(self.path)
                self.send_response(200 if data else 404)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *_):
                pass

        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=s.serve_forever, daemon=True).start()
        servers.append(s)
        return f"http://127.0.0.1:{s.server_port}", asked

    yield serve
    for s in servers:
        s.shutdown()
        s.server_close()


def record(pid, tmp_path, url, *args):
    """(names of functions, what was said, status)."""
    out = tmp_path / "out.pb.gz"
    env = {**os.environ, "DEBUGINFOD_URLS": url, "HOME": str(tmp_path),
           "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    done = subprocess.run([WALLPROF, "-p", str(pid), "-d", "1", *args, "-o",
                           out], env=env, capture_output=True, text=True,
                          timeout=60)
    names = {f["name"] for s in pprof_check.samples(pprof_check.load(str(out)))
             for f in s["frames"]}
    return names, done.stderr, done.returncode


def test_names_come_from_a_server(program, server, tmp_path):
    pid, build_id, debug = program
    path = f"/buildid/{build_id}/debuginfo"
    url, asked = server({path: debug.read_bytes()})
    names, said, status = record(pid, tmp_path, url, "--debuginfod", "yes")
    assert "hidden_function" in names, (names, said)
    assert status == 0 or missed_ticks(said), said
    assert asked.count(path) == 1
    # It is in the user's cache now.
    assert list((tmp_path / "cache").glob("*/debuginfo"))


def test_nobody_is_asked_unasked(program, server, tmp_path):
    pid, build_id, debug = program
    url, asked = server({f"/buildid/{build_id}/debuginfo": debug.read_bytes()})
    names, _, _ = record(pid, tmp_path, url, "--debuginfod", "no")
    assert "hidden_function" not in names
    if os.geteuid() == 0:
        record(pid, tmp_path, url)
    names, _, _ = record(pid, tmp_path, "", "--debuginfod", "yes")
    assert "hidden_function" not in names
    assert not asked


@pytest.mark.parametrize("what", ["nothing", "nonsense", "another"])
def test_what_is_no_debug_file_of_it_is_not_used(program, server, tmp_path,
                                                 what):
    pid, build_id, _ = program
    ls = shutil.which("ls")
    with open(ls, "rb") as f:
        files = {"nothing": {}, "nonsense": b"\177ELF nonsense",
                 "another": f.read()}[what]
    path = f"/buildid/{build_id}/debuginfo"
    url, asked = server({path: files} if files else {})
    names, said, status = record(pid, tmp_path, url, "--debuginfod", "yes")
    assert path in asked
    assert any(n.startswith("prog+0x") for n in names), (names, said)
    assert status == 0 or missed_ticks(said), said


def test_a_server_that_never_answers_is_not_waited_for(program, tmp_path):
    pid, _, _ = program
    out = tmp_path / "out.pb.gz"
    with socket.create_server(("127.0.0.1", 0)) as s:
        env = {**os.environ, "HOME": str(tmp_path),
               "DEBUGINFOD_URLS": f"http://127.0.0.1:{s.getsockname()[1]}",
               "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
        proc = subprocess.Popen([WALLPROF, "-p", str(pid), "-d", "0.3",
                                 "--debuginfod", "yes", "-o", out], env=env,
                                stderr=subprocess.PIPE, text=True)
        try:
            s.settimeout(60)
            asked, _ = s.accept()
            # The recording is over: the second interrupt ends the naming.
            # Two that come at once are one.
            for _ in range(2):
                proc.send_signal(signal.SIGINT)
                wait_until(lambda: proc.poll() is not None or
                           not any(int(status_of(proc.pid)[name], 16) & PENDING
                                   for name in ("SigPnd", "ShdPnd")))
            said = proc.communicate(timeout=60)[1]
            asked.close()
        finally:
            proc.kill()
            proc.wait()
    assert out.exists()
    names = {f["name"] for s in pprof_check.samples(pprof_check.load(str(out)))
             for f in s["frames"]}
    assert any(n.startswith("prog+0x") for n in names), (names, said)
    assert "DEBUGINFOD_URLS" in said, said
