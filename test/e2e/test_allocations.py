# SPDX-License-Identifier: Apache-2.0
"""Sampling takes no memory once all stacks have been met."""
import json
import subprocess

import pytest

from conftest import BUILD, SLOW

ALLOC_COUNT = BUILD / "tools" / "alloc_count"


def count(target, *options, start=200, end=400):
    """What malloc and free were asked between two ticks at 200 Hz."""
    if SLOW:
        pytest.skip("a sanitizer has an allocator of its own")
    done = subprocess.run(
        [ALLOC_COUNT, *options, str(target.pid), str(start), str(end)],
        check=False, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    target.assert_unharmed()
    return json.loads(done.stdout)


def test_the_first_ticks_allocate(start):
    """Or nothing would be found out."""
    counted = count(start("spinner", 1), start=1, end=20)
    assert counted["allocs"] > 0 and counted["new_stacks"] > 0, counted


@pytest.mark.parametrize("options", [[], ["-c"], ["-k"]])
@pytest.mark.parametrize("fixture, kind", [
    # Two threads that run, and one that waits for good.
    ("spinner 2", "running"),
    # A hundred that wait; one that goes back to sleep every 20 ms.
    ("waiters 100", "unchanged"),
    ("deep 300", "no_stop"),
])
def test_steady_state_allocates_nothing(start, fixture, kind, options):
    counted = count(start(*fixture.split()), *options)
    counted["running"] = counted["stopped"] + counted["cpu"]
    assert counted[kind] > 20, counted
    # Where there is little CPU to have, a place may be met late.
    assert counted["new_stacks"] <= 3, counted
    # A thread that is stopped for the first time so late gets room in the tracer,
    # a stack that is met so late perhaps among frames and stacks.
    most = (kind == "no_stop" and counted["running"] > 0) + 2 * (
        counted["new_stacks"] > 0)
    # Others may take its CPU so often that events of CPUs replace those of threads.
    events = 8 * counted["new_events"]
    assert counted["allocs"] <= most + events, counted
    assert counted["frees"] <= events, counted


@pytest.mark.parametrize("options", [[], ["-c"], ["-k"]])
def test_only_new_stacks_allocate(start, options):
    """Threads that run, sleep, wait for locks and read in turn: only arrays
    that must grow for a stack not met before are made larger."""
    counted = count(start("shares"), *options)
    assert counted["stopped"] + counted["cpu"] > 0, counted
    assert counted["no_stop"] > 20 and counted["unchanged"] > 500, counted
    # Frames, stacks, samples and two tables, each once at most.  Where there is
    # little CPU to have, the vDSO may be met so late: its image, where it is
    # mapped, its headers and its rows, in lists that may have to grow.
    assert counted["allocs"] <= 5 + (6 if counted["new_stacks"] else 0), counted
