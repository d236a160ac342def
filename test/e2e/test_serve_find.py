# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve NAME`: what it finds, and when nothing can be started."""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import FIXTURES, children_of, status_of, wait_until, wallprof
from test_serve import serve  # noqa: F401  pylint: disable=unused-import

# Of this process: others run tests of this file at the same time.
NAME = f"wp-name-{os.getpid() % 1000000}"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@pytest.fixture
def named(start, tmp_path):
    """Start a program of that name."""
    shutil.copy(FIXTURES / "hang", tmp_path / NAME)
    return lambda: start(tmp_path / NAME, "abba")


@pytest.fixture
def zombie(tmp_path):
    """One of that name, that nobody asks about."""
    (tmp_path / "zombie").mkdir()
    path = tmp_path / "zombie" / NAME
    shutil.copy("/bin/true", path)
    child = subprocess.Popen([path])
    wait_until(lambda: status_of(child.pid)["State"][0] == "Z")
    yield child.pid
    child.wait()


def test_a_zombie_has_no_name(named, zombie, serve):  # noqa: F811
    run = wallprof("-d", 0.2, NAME)
    assert run.status not in (0, 1) and "no process is called" in run.err
    target = named()
    server = serve(NAME).ready()
    assert wallprof("-d", 0.2, NAME).status in (0, 1)
    time.sleep(3)
    assert server.metric("wallprof_recorders_failed_total") == 0
    assert server.metric("wallprof_up{") == 1
    target.assert_unharmed()


@pytest.fixture
def strangers():
    """Another user's process of that name."""
    if os.geteuid():
        pytest.skip("only root can start a process of another user")
    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o755)
        shutil.copy("/bin/sleep", f"{where}/{NAME}")
        child = subprocess.Popen([f"{where}/{NAME}", "1000"], **NOBODY)
        yield child.pid
        child.kill()
        child.wait()


@pytest.fixture
def scripts(tmp_path):
    """Two, whose names differ past those 15 characters that the kernel keeps."""
    procs = []
    for n in "12":
        path = tmp_path / f"{NAME}-long-name-{n}"
        path.write_text("#!/bin/sh\nread line\n")
        path.chmod(0o755)
        procs.append(subprocess.Popen([path], stdin=subprocess.PIPE))
    for proc in procs:
        wait_until(lambda p=proc: status_of(p.pid)["Name"] == path.name[:15])
    yield [proc.pid for proc in procs]
    for proc in procs:
        proc.communicate()


def served(server):
    """The processes that are up."""
    text = server.get("/metrics").decode()
    return {int(pid) for pid in re.findall(r'wallprof_up\{.*pid="(\d+)".*\} 1', text)}


def test_scripts_of_long_names_are_told_apart(scripts, serve):  # noqa: F811
    server = serve(f"{NAME}-long-name-2").ready()
    # Two searches.
    time.sleep(5)
    assert served(server) == {scripts[1]}
    assert server.metric("wallprof_recorders_failed_total") == 0
    server.end()
    assert server.said.count(b"\n") == 1, server.said
    both = serve(*(f"{NAME}-long-name-{n}" for n in "12")).ready()
    wait_until(lambda: served(both) == set(scripts), pause=0.2)


def test_what_cannot_be_recorded_is_left_for_a_while(
        strangers, serve):  # noqa: F811
    alone = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    if wallprof("-d", 0.2, strangers, prefix=alone).status != 2:
        pytest.skip("this root needs no CAP_SYS_PTRACE")
    server = serve(NAME, under=alone)
    # The metric of a server that does not answer yet is NaN.
    wait_until(lambda: server.metric("wallprof_recorders_failed_total") >= 1)
    time.sleep(5)
    assert server.metric("wallprof_recorders_failed_total") == 1
    # Its user may have changed that.
    server.tool.send_signal(signal.SIGHUP)
    wait_until(lambda: server.metric("wallprof_recorders_failed_total") == 2)


def test_it_goes_on_when_nothing_can_be_started(named, serve):  # noqa: F811
    first = named()
    server = serve(NAME).ready()
    limits = resource.prlimit(server.tool.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.tool.pid, resource.RLIMIT_NOFILE, (1, limits[1]))
    http = next(pid for pid in children_of(server.tool.pid)
                if status_of(pid)["Name"] != "wp-recorder")
    os.kill(http, signal.SIGKILL)
    second = named()
    time.sleep(6)
    assert server.tool.poll() is None
    resource.prlimit(server.tool.pid, resource.RLIMIT_NOFILE, limits)
    wait_until(lambda: server.metric("wallprof_up{") == 2)
    server.end()
    # Not at each of the searches.
    said = server.said.decode()
    assert said.count("Too many open files: it is tried again") == 2, said
    first.assert_unharmed()
    second.assert_unharmed()
