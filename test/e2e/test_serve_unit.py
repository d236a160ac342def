# SPDX-License-Identifier: Apache-2.0
"""The systemd unit: it is sound, grants the capabilities that `serve` needs and no
others, and allows every system call that it makes."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from conftest import WALLPROF, missed_ticks, wait_until
from test_serve import serve, Server  # noqa: F401  pylint: disable=unused-import

UNIT = pathlib.Path("src/cmd/wallprof@.service")
ANALYZE = shutil.which("systemd-analyze")
USER = 4242

needs_systemd = pytest.mark.skipif(not ANALYZE, reason="no systemd-analyze")


def settings(name):
    """All words that the unit sets NAME to."""
    return [word for line in UNIT.read_text().splitlines()
            if line.startswith(name + "=")
            for word in line.split("=", 1)[1].split()]


@needs_systemd
def test_the_unit_is_sound(tmp_path):
    unit = tmp_path / "wallprof@.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/wallprof",
                                             str(WALLPROF)))
    one = tmp_path / "wallprof@redis.service"
    one.write_text(unit.read_text())
    done = subprocess.run([ANALYZE, "verify", "--man=no", one], check=False,
                          stderr=subprocess.PIPE, timeout=100)
    said = [line for line in done.stderr.decode().splitlines()
            if "wallprof@" in line]
    assert done.returncode == 0 and not said, done.stderr.decode()
    done = subprocess.run([ANALYZE, "security", "--offline=true",
                           "--threshold=30", one], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=100)
    assert done.returncode == 0, done.stdout.decode()[-200:]


def with_just(caps):
    """What a command follows that has CAPS, and is not root's."""
    words = ",".join(["-all"] + ["+" + c[4:].lower() for c in caps])
    return ["setpriv", "--reuid", str(USER), "--regid", str(USER),
            "--clear-groups", "--inh-caps", words, "--ambient-caps", words,
            "--bounding-set", words, "--"]


def record(pid, place, caps):
    """What a recording with just CAPS, not as root, says of itself."""
    tool, out = place / "tool", place / "o.pb.gz"
    done = subprocess.run(
        [*with_just(caps), tool, "-p", str(pid), "-d", "3",
         "--scan", "bpf", "--profile", "wall,block", "-v", "-o", out],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        timeout=100)
    return done.returncode, done.stdout.decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives capabilities")
def test_each_capability_is_needed(start):
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o777)
        shutil.copy(WALLPROF, place / "tool")
        check_capabilities(start("shares"), place)


def check_capabilities(target, place):
    caps = settings("CapabilityBoundingSet")
    assert caps == settings("AmbientCapabilities")
    status, said = record(target.pid, place, caps)
    assert status == 0 or missed_ticks(said), said
    assert "context switches from perf events" in said, said
    assert not re.search(r"not permitted, so|no BPF|not scanned", said), said
    lacks, paranoid = {}, pathlib.Path(
        "/proc/sys/kernel/perf_event_paranoid").read_text()
    for cap in caps:
        status, text = record(target.pid, place,
                              [c for c in caps if c != cap])
        lacks[cap] = (status, text)
    assert lacks["CAP_SYS_PTRACE"][0] == 2, lacks
    assert lacks["CAP_DAC_READ_SEARCH"][0] == 2, lacks
    # Where the kernel shows all to everybody it is needed for nothing.
    assert int(paranoid) < 2 or \
        "estimate from wall-clock samples" in lacks["CAP_PERFMON"][1], lacks
    assert lacks["CAP_BPF"][1] != said and "BPF" in lacks["CAP_BPF"][1], lacks
    target.assert_unharmed()


def answer(server, headers):
    """The status of an answer on the port; None: nobody listens yet."""
    try:
        with urllib.request.urlopen(urllib.request.Request(
                server.url("/metrics"), headers=headers), timeout=100) as r:
            return r.status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError:
        return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives capabilities")
def test_a_token_of_roots_is_read(start):
    """As the first lines of the unit say."""
    target = start("hang", "abba")
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        place.chmod(0o777)
        token = place / "token"
        token.write_text("correct-horse-battery\n")
        token.chmod(0o600)
        server = Server(place, "--token-file", token, target.pid, tcp=True,
                        under=with_just(settings("AmbientCapabilities")))
        try:
            wait_until(lambda: answer(server, {}) == 401, pause=0.1)
            assert answer(server, {"Authorization":
                                   "Bearer correct-horse-battery"}) == 200
        finally:
            server.end()
    target.assert_unharmed()


def allowed():
    """The system calls that the unit's filter lets through."""
    calls = set()
    todo = settings("SystemCallFilter")
    while todo:
        word = todo.pop()
        if not word.startswith("@"):
            calls.add(word)
            continue
        done = subprocess.run([ANALYZE, "syscall-filter", word], check=True,
                              stdout=subprocess.PIPE, timeout=100)
        todo += [line.strip() for line in done.stdout.decode().splitlines()[1:]
                 if line.startswith("  ") and not line.strip().startswith("#")]
    return calls


@needs_systemd
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_every_system_call_is_allowed(start, tmp_path):
    target = start("hang", "abba")
    log = tmp_path / "log"
    os.makedirs(tmp_path / "hangs")
    server = Server(tmp_path, "--on-hang", tmp_path / "hangs", "--push",
                    "http://127.0.0.1:1", "--push-interval", "1s", target.pid,
                    under=["strace", "-D", "-f", "-q", "-o", log])
    try:
        server.ready(3)
        for path in ("/debug/pprof/goroutine?debug=2", "/check", "/",
                     "/debug/pprof/wall?seconds=1", "/timeline.html?ago=2"):
            server.get(path)
    finally:
        server.end()
    # What strace does not show, it has not written yet.
    wait_until(lambda: re.search(
        rf"^{server.tool.pid} +\+\+\+ exited", log.read_text(),
        re.MULTILINE), pause=0.1)
    made = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)",
                          log.read_text(), re.MULTILINE))
    assert "process_vm_readv" in made and "perf_event_open" in made
    # The kernel's own; of tracefs, which takes CAP_SYS_ADMIN in any case.
    assert made - allowed() - {"restart_syscall", "fsopen", "fsconfig",
                               "fsmount"} == set()
    target.assert_unharmed()


def test_prometheus_takes_the_configuration_of_the_readme(tmp_path):
    lines = pathlib.Path("README.md").read_text().splitlines()
    at = lines.index("Prometheus (`prometheus.yml`):") + 2
    block = []
    while lines[at].startswith("    "):
        block.append(lines[at][4:])
        at += 1
    config = tmp_path / "prometheus.yml"
    config.write_text("\n".join(block) + "\n")
    done = subprocess.run(["promtool", "check", "config", config], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=100)
    assert done.returncode == 0, done.stdout.decode()
