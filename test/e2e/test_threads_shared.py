# SPDX-License-Identifier: Apache-2.0
"""Beyond --own-threads threads share by name: bounded memory, right weights."""
import re
import subprocess
import time

import pprof_check
import pytest

from conftest import WALLPROF, CpuClock, status_of, worker_of
from test_weights import check_mayflies


# Threads that end before they are read have no stack, and are over a tenth of the
# time where CPUs are few.
SHORT = (0, 1)


def tids_by_name(p):
    found = {}
    for s in pprof_check.samples(p):
        found.setdefault(s["labels"]["thread"], set()).add(
            s["labels"].get("tid"))
    return found


def test_threads_of_one_name_are_one_entry(start, profile):
    target = start("churn")
    run, p = profile(target.pid, "-d", 2, "--own-threads", 4, status=SHORT)
    target.assert_unharmed()
    tids = tids_by_name(p)
    # Main, who breeds and two more are told apart.
    assert len(tids["mayfly"]) <= 3 and None in tids["mayfly"], tids
    assert sum(map(len, tids.values())) <= 4 + 2, tids
    seen = run.counter("watched")
    assert seen > 100
    assert run.counter("told by name only") == seen - 4
    assert seen / 2 < run.counter("with a sample") <= seen, run.err
    check_mayflies(p, target)


def test_weights_of_those_who_share_add_up(start, profile):
    """Five threads; those that spin share one entry, whose CPU time is that of
    all."""
    target = start("spinner", 4)
    with CpuClock(target.pid) as clock:
        _, p = profile(target.pid, "--own-threads", 1, cpu=1.5)
    target.assert_unharmed()
    samples = pprof_check.samples(p)
    assert {s["labels"].get("tid") for s in samples} == {target.pid, None}
    wall = sum(s["values"]["wall"] for s in samples)
    assert abs(wall / p.duration_nanos - 5) < 0.2
    want, not_sure = clock.spent(p)
    got = sum(s["values"]["cpu"] for s in samples)
    assert abs(got - want) < 0.02 * want + not_sure, (got, want, not_sure)


def test_so_many_names_share_too(start, profile):
    """Each thread has a name of its own."""
    target = start("churn", 500, "names")
    run, p = profile(target.pid, "-d", 4, "--own-threads", 4, status=SHORT)
    target.assert_unharmed()
    tids = tids_by_name(p)
    assert run.counter("told by name only") > 300
    assert len(tids) <= 4 + 256 + 1, len(tids)
    assert "[other threads]" in tids, tids


@pytest.mark.soak
@pytest.mark.parametrize("kinds", ["wall,cpu",
                                   "wall,block,mutex,threadcreate"])
@pytest.mark.parametrize("names", [[], ["names"]], ids=["one name", "names"])
def test_memory_stays(start, tmp_path, kinds, names):
    """2,000 threads a second: not a byte for each."""
    def rss_kb():
        return int(re.match(r"\d+", status_of(worker_of(tool))["VmRSS"].strip())[0])

    target = start("churn", 300, *names)
    tool = subprocess.Popen(
        [str(WALLPROF), "-p", str(target.pid), "-d", "60", "--profile", kinds,
         "--own-threads", "500", "-q", "-o", str(tmp_path / "p.pb.gz")])
    time.sleep(15)
    early = rss_kb()
    time.sleep(40)
    late = rss_kb()
    assert tool.wait(60) == 0
    target.assert_unharmed()
    threads = target.truth()["threads"]
    assert threads > 20000
    assert late - early < 300, (early, late, threads)
