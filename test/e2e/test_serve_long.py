# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve` beside a program that never does the same twice: what it takes
does not grow, and what it tells of the last seconds is whole."""
import os
import subprocess
import time

import pytest

from conftest import WALLPROF, family, tids_of, wait_until
from test_serve import serve  # noqa: F401  pylint: disable=unused-import

# Threads, each with a name and a stack that none had before, every so many us.
EVERY_US = 5000


def descriptors(server):
    """Of all processes of the server while it answers nothing."""
    n = 0
    for pid in family(server.tool.pid):
        try:
            n += len(os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            pass
    return n


def assert_last_seconds_are_told(server, tmp_path):
    path = tmp_path / "last.pb.gz"
    path.write_bytes(server.get("/debug/pprof/wall?seconds=1&ago=2"))
    done = subprocess.run([WALLPROF, "report", "-f", "folded", path],
                          stdout=subprocess.PIPE, check=True, timeout=100)
    stacks = {line.rsplit(" ", 1)[0] for line in
              done.stdout.decode().splitlines() if "go" in line}
    # Each thread has a path of its own.
    assert len(stacks) > 20, stacks


def test_what_has_left_the_ring_is_dropped(start, serve, tmp_path):  # noqa: F811
    target = start("variety", EVERY_US)
    server = serve("--keep", "3s", target.pid).ready(3)
    last, drops = 0, 0

    def has_dropped_twice():
        nonlocal last, drops
        size = server.metric("wallprof_profile_bytes{")
        drops += size < last
        last = size
        return drops == 2
    before = descriptors(server)
    wait_until(has_dropped_twice, pause=0.2)
    assert_last_seconds_are_told(server, tmp_path)
    # A busy machine has more of its threads alive, with some files of each.
    wait_until(lambda: descriptors(server) <=
               before + 8 + 6 * len(tids_of(target.pid)), pause=0.2)
    assert server.metric("wallprof_stacks_dropped_total{") == 0
    assert server.metric("wallprof_threads_shared_total{") == 0
    server.end()
    target.assert_unharmed()


@pytest.mark.soak
def test_an_hour_of_ever_new_stacks(start, serve, tmp_path):  # noqa: F811
    """Memory: the most in each ten minutes, which is within a twentieth."""
    seconds = int(os.environ.get("WALLPROF_SOAK_S", "3600"))
    target = start("variety", EVERY_US)
    server = serve("--keep", "30s", target.pid).ready(3)
    most, files = [0.0] * 6, [0] * 6
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < seconds:
        part = int(passed * 6 / seconds)
        most[part] = max(most[part],
                         server.metric("wallprof_recorder_memory_bytes{"))
        files[part] = max(files[part], descriptors(server))
        assert_last_seconds_are_told(server, tmp_path)
        time.sleep(1)
    print("most memory and descriptors of each sixth:", most, files)
    assert max(most[2:]) <= 1.05 * most[1], most
    assert max(files[2:]) <= files[1] + 8, files
    ticks = server.metric("wallprof_ticks_total{")
    assert server.metric("wallprof_missed_ticks_total{") <= ticks / 100
    assert server.metric("wallprof_stacks_dropped_total{") == 0
    server.end()
    target.assert_unharmed()
