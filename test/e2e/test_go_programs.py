# SPDX-License-Identifier: Apache-2.0
"""Programs built by Go that others have packed, stripped, at rest: every goroutine
is whole, in a dump and in a recording."""
import json
import os
import subprocess

import pprof_check
import pytest

import go_releases
import npm
from conftest import free_port, wait_until, wallprof

pytestmark = pytest.mark.soak
TSGO = ("@typescript/native-preview-linux-x64", "7.0.0-dev.20260707.2")
PROMETHEUS = "global:\n  scrape_interval: 1s\nscrape_configs:\n" \
    "- job_name: self\n  static_configs:\n  - targets: ['127.0.0.1:%d']\n"


def caddy(program, tmp_path):
    return [program, "respond", "--listen", f"127.0.0.1:{free_port()}"]


def prometheus(program, tmp_path):
    port = free_port()
    (tmp_path / "config").write_text(PROMETHEUS % port)
    return [program, f"--config.file={tmp_path / 'config'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}"]


def containerd(program, tmp_path):
    (tmp_path / "config").write_text(
        'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    return [program, "--config", tmp_path / "config", "--root",
            tmp_path / "root", "--state", tmp_path / "state", "--address",
            tmp_path / "sock"]


def restic(program, tmp_path):
    """A backup of what is still to come."""
    where = ["-r", tmp_path / "repo"]
    subprocess.run([program, *where, "init"], check=True, capture_output=True,
                   env={**os.environ, "RESTIC_PASSWORD": "x"}, timeout=100)
    return [program, *where, "backup", "--stdin", "--no-cache"]


def tsgo(program, tmp_path):
    return [program, "--lsp", "--stdio"]


DEBIAN = {caddy: "usr/bin/caddy", prometheus: "usr/bin/prometheus",
          containerd: "usr/bin/containerd", restic: "usr/bin/restic"}


def at_rest(pid):
    """The process in a dump of it, if its main goroutine waits and none is to
    run."""
    run = wallprof("dump", "-f", "json", pid).check((0, 1))
    process = json.loads(run.out)["processes"][0]
    states = {g["id"]: g["state"] for g in process["goroutines"]}
    waits = states.get(1) in ("waiting", "syscall")
    return process if waits and len(states) > 5 and \
        "runnable" not in states.values() else None


@pytest.mark.parametrize("begin", [*DEBIAN, tsgo], ids=lambda f: f.__name__)
def test_every_goroutine_is_whole(begin, start, profile, tmp_path):
    if begin in DEBIAN:
        program = go_releases.program(begin.__name__, DEBIAN[begin])
    else:
        program = npm.program(*TSGO, "lib/tsgo")
    os.mkfifo(tmp_path / "in")
    # Its standard input stays open, and nothing comes.
    target = start("/bin/sh", "-c", 'exec "$0" "$@" 0<>in >log 2>&1',
                   *begin(program, tmp_path), cwd=tmp_path, ready=False,
                   env={**os.environ, "RESTIC_PASSWORD": "x"})
    wait_until(lambda: b"/sh" not in os.readlink(
        f"/proc/{target.pid}/exe").encode())
    process = wait_until(lambda: at_rest(target.pid))
    assert process["go_error"] == "" and process["lost_goroutines"] == 0
    for g in process["goroutines"]:
        if g["state"] == "running":
            continue
        names = [f["function"] for f in g["frames"]]
        assert names and names[-1] == "runtime.goexit", g
        assert not g["truncated"] and not any("+0x" in n for n in names), g
    run, p = profile(target.pid, "-d", 2)
    assert any(c.startswith("wall: goroutines of ")
               for c in pprof_check.comments(p)), run.err
    all_ns = whole = 0
    for s in pprof_check.samples(p):
        all_ns += s["values"]["wall"]
        if s["frames"][-1]["name"] == "runtime.goexit":
            whole += s["values"]["wall"]
    assert whole > 0.999 * all_ns, pprof_check.described(p)
    target.assert_unharmed()
