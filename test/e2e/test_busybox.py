# SPDX-License-Identifier: Apache-2.0
"""A static, stripped program whose own code has no unwind table, no frame pointers
and functions that are not aligned: what its code proves is all that there is."""
import re
import shutil
import subprocess

import pprof_check
import pytest

from call_edges import Edges
from conftest import wait_until, wallprof

LOOP = 'while :; do i=$((i+1)); x="${x#y}z$i"; [ ${#x} -gt 99 ] && x=; done'


@pytest.fixture
def busybox():
    path = shutil.which("busybox")
    if not path or b".interp" in open(path, "rb").read():
        pytest.skip("no static busybox")
    return path


def is_in(pid, name):
    with open(f"/proc/{pid}/syscall") as f:
        call = f.read().split()[0]
    return call == {"read": "0", "clock_nanosleep": "230"}[name]


@pytest.mark.parametrize("argv, call", [
    (["sleep", "1000"], "clock_nanosleep"), (["sort"], "read")])
def test_waiting(busybox, argv, call):
    with subprocess.Popen([busybox, *argv], stdin=subprocess.PIPE) as program:
        try:
            wait_until(lambda: is_in(program.pid, call))
            run = wallprof("--threads", "-p", program.pid).check()
            assert program.poll() is None
        finally:
            program.kill()
    rows = re.findall(r"^  #\d+ +busybox\+0x", run.out, re.M)
    assert len(rows) > 5 and "truncated" not in run.out, run.out


def test_busy(busybox, start, profile):
    target = start(busybox, "sh", "-c", LOOP, ready=False)
    _, p = profile(target.pid, "-r", 300, cpu=0.7)
    target.assert_unharmed()
    total = whole = 0
    for s in pprof_check.samples(p):
        total += s["values"]["cpu"]
        whole += s["values"]["cpu"] * (
            not s["frames"][-1]["name"].startswith("["))
    assert whole >= 0.99 * total > 0
    edges = Edges()
    edges.add(p)
    assert edges.edges > 50 and not edges.wrong, edges.wrong
