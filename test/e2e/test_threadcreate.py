# SPDX-License-Identifier: Apache-2.0
"""--profile threadcreate: who created threads, how many, how long they lived.

The truth is the account of fixtures/profiles.c, mode churn."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import pprof_check
from conftest import FIXTURES, WALLPROF, Run, wallprof, worker_of

PATHS = ("create_often", "create_rarely")
# x86-64: rt_sigtimedwait, in which wallprof sleeps between two ticks.
SLEEPS_IN = "128"
PERF_EVENT_OPEN = "298"
EACCES = "13"


def by_path(p, value):
    """{path: sum of VALUE}; "" is what no path is in.  The lifetime is a mean,
    and a label."""
    sums = dict.fromkeys((*PATHS, ""), 0)
    for s in pprof_check.samples(p):
        names = {f["name"] for f in s["frames"]}
        path = next((n for n in PATHS if n in names), "")
        count = s["values"]["threadcreate"]
        sums[path] += count * (s["labels"]["lifetime"]
                               if value == "lifetime" else 1)
    return sums


def wait_until_it_records(tool):
    """It has been asleep between two ticks: what it records is on."""
    while tool.poll() is None:
        with open(f"/proc/{worker_of(tool)}/syscall") as f:
            if f.read().split()[0] == SLEEPS_IN:
                return
        time.sleep(0.005)
    raise AssertionError(tool.stderr.read().decode())


def made_by(target):
    target.proc.send_signal(signal.SIGUSR1)
    return json.loads(target.read_line("MARK")[len("MARK"):])["made"]


def late(truth):
    """How long a thread was made before it ran, which the kernel counts from
    somewhere in between; and it has not gone when it says that it goes."""
    return 2 * truth["late_ns"] / truth["made"]


def lives_in(p, truth, path):
    """Begin and end, in the recording P, of threads of PATH that began in it."""
    begin, end = p.time_nanos, p.time_nanos + p.duration_nanos
    return [(b, min(e, end)) for what, b, e in truth["lives"]
            if what == path and begin <= b < end]


def lost(err):
    """Records, on a machine that is too busy to read them all in time."""
    return int(re.search(r"(\d+) records of perf events lost", err).group(1))


def record_all(target, out, *args, asleep=0, some_cut=False):
    """From before the first of so many threads until after the last; ASLEEP:
    the tool is stopped for the first so many, both of its processes.  SOME_CUT:
    so many stacks are cut that this may be what status 1 is for."""
    tool = subprocess.Popen(
        [str(WALLPROF), "--profile", "threadcreate", "-p", str(target.pid),
         "-o", str(out), *args], stderr=subprocess.PIPE)
    wait_until_it_records(tool)
    worker = worker_of(tool)
    if asleep:
        # The other would set it going again.
        tool.send_signal(signal.SIGSTOP)
        os.kill(worker, signal.SIGSTOP)
    os.kill(target.pid, signal.SIGUSR2)
    while asleep and made_by(target) < asleep:
        time.sleep(0.02)
    os.kill(worker, signal.SIGCONT)
    tool.send_signal(signal.SIGCONT)
    target.read_line("DONE")
    tool.send_signal(signal.SIGINT)
    err = tool.communicate(timeout=100)[1].decode()
    assert tool.returncode == 0 or tool.returncode == 1 and (
        lost(err) or some_cut), err
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    return err, p


def check_lost(err, counts, made):
    """Of whom the records were is not known; nobody is told twice, and nobody
    is missing without being said to be."""
    told = sum(counts.values())
    assert told <= made <= told + lost(err)


@pytest.mark.parametrize("rate, args", [(200, ()), (2000, ("-r", "1"))])
def test_every_thread_is_told_with_its_creator(start, tmp_path, rate, args):
    target = start("profiles", "churn", rate, 4 * rate)
    err, p = record_all(target, tmp_path / "x.pb.gz", *args)
    truth = target.truth()
    counts = by_path(p, "threadcreate")
    lives = by_path(p, "lifetime")
    if lost(err):
        check_lost(err, counts, 4 * rate)
        return
    for path in PATHS:
        assert counts[path] == truth["paths"][path]["count"] > rate / 2
        want = truth["paths"][path]["ns"]
        bound = 0.02 * want + late(truth) * counts[path]
        assert abs(lives[path] - want) < bound, (path, lives, want, bound)
    assert counts[""] == 0
    for s in pprof_check.samples(p):
        assert s["labels"]["thread"] == "maker"
        names = [f["name"] for f in s["frames"]]
        assert "spawn" in names and "make_threads" in names, names
        assert not names[-1].startswith("["), names


def test_what_is_lost_is_told(start, tmp_path):
    """8 KiB a thread is more than two rings of 4 MiB take."""
    target = start("profiles", "churn", 1000, 3000)
    err, p = record_all(target, tmp_path / "x.pb.gz", asleep=2500)
    counts = by_path(p, "threadcreate")
    assert lost(err) > 1000
    whole = counts["create_often"] + counts["create_rarely"]
    assert 400 < whole <= sum(counts.values()) < 3000


def test_deep_stacks_are_copied_whole(start, tmp_path):
    """40 KiB of them, after the first have been cut."""
    target = start("profiles", "churn", 200, 400, 40)
    err, p = record_all(target, tmp_path / "x.pb.gz", some_cut=True)
    truth = target.truth()["paths"]
    counts = by_path(p, "threadcreate")
    if lost(err):
        check_lost(err, counts, 400)
        return
    assert counts == {**{path: truth[path]["count"] for path in PATHS}, "": 0}
    cut = sum(s["values"]["threadcreate"] for s in pprof_check.samples(p)
              if s["frames"][-1]["name"].startswith("[truncated: stack deeper"))
    # One tick's and the next's, and those of ticks for which there was no CPU.
    missed = pprof_check.counter(p, "missed")
    assert 2 <= cut < 40 + 2 * missed, (cut, err)


def test_shares_of_a_part_of_a_longer_life(start, profile):
    """Some live already, and some live on."""
    target = start("profiles", "churn", 200)
    run, p = profile(target.pid, "--profile", "threadcreate", "-d", 3)
    target.assert_unharmed()
    truth = target.truth()
    counts, lives = by_path(p, "threadcreate"), by_path(p, "lifetime")
    for path in PATHS:
        mine = lives_in(p, truth, path)
        # The events are open a little later than the clock starts.
        assert 0.95 * len(mine) - 2 <= counts[path] <= len(mine) + 2, (
            path, counts, len(mine))
        share = counts[path] / sum(counts.values())
        assert abs(share - (0.75 if path == PATHS[0] else 0.25)) < 0.02
        life = lives[path] / counts[path]
        want = sum(e - b for b, e in mine) / len(mine)
        assert abs(life - want) < 0.02 * want + late(truth), (path, life, want)


def test_it_goes_with_the_other_profiles(start, tmp_path):
    target = start("profiles", "churn", 200)
    wallprof("-p", target.pid, "-d", 2, "--profile", "wall,cpu,threadcreate",
             output=tmp_path / "x.pb.gz").check()
    target.assert_unharmed()
    truth = target.truth()
    wall = pprof_check.load(str(tmp_path / "x.pb.gz"))
    thread_starts = pprof_check.load(str(tmp_path / "x.threadcreate.pb.gz"))
    pprof_check.validate(wall)
    pprof_check.validate(thread_starts)
    assert "maker" in pprof_check.by_label(wall, "thread")
    counts = by_path(thread_starts, "threadcreate")
    for path in PATHS:
        mine = len(lives_in(thread_starts, truth, path))
        assert 0 < 0.95 * mine - 2 <= counts[path] <= mine + 2, (counts, mine)


# Five threads, before main has begun.
EARLY = """
#include <pthread.h>
#include <unistd.h>

static void *nap(void *arg)
{
	usleep(2000000);
	return arg;
}

__attribute__((constructor, noinline)) void make_early(void)
{
	pthread_t t;

	for (int i = 0; i < 5; i++)
		pthread_create(&t, NULL, nap, NULL);
}

int main(void)
{
	usleep(2100000);
	return 0;
}
"""


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    path = tmp_path_factory.mktemp("early") / "early"
    subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-o", path, "-"],
                   input=EARLY.encode(), check=True)
    return path


@pytest.mark.parametrize("without_events", [False, True])
def test_threads_that_a_command_makes_at_once_are_told(early, tmp_path,
                                                       without_events):
    """The command is held until the events are open; without events, the first
    list of threads has them."""
    deny = (str(FIXTURES / "fault_deny"), PERF_EVENT_OPEN, EACCES)
    run = wallprof("--profile", "threadcreate", "--", early,
                   output=tmp_path / "x.pb.gz",
                   prefix=deny if without_events else ())
    assert run.status in (0, 1), run.err
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    pprof_check.validate(p)
    assert "5 threads created" in run.err
    names = [f["name"] for s in pprof_check.samples(p)
             for f in s["frames"]
             for _ in range(s["values"]["threadcreate"])]
    if without_events:
        assert len(names) == 5 and "what created the thread" in names[0]
    else:
        assert names.count("make_early") == 5, names
        assert run.status == 0 or run.lacked_cpu(), run.err


def test_processes_are_no_threads(start, profile):
    """vfork(2) is the tracepoint's business too."""
    target = start("fault", "forks")
    run, p = profile(target.pid, "--profile", "threadcreate", "-d", "0.5")
    assert not p.sample
    assert "0 threads created" in run.err


def test_creators_are_chosen_by_name(start, profile):
    target = start("profiles", "churn", 200)
    _, p = profile(target.pid, "--profile", "threadcreate", "-d", 1,
                   "-t", "nobody*")
    assert not p.sample
    _, p = profile(target.pid, "--profile", "threadcreate", "-d", 1,
                   "-t", "make*")
    truth = target.truth()
    for path, count in by_path(p, "threadcreate").items():
        mine = len(lives_in(p, truth, path))
        assert 0.95 * mine - 2 <= count <= mine + 2, (path, count, mine)


def check_without_stacks(run, p):
    """Over a tenth has no whole stack: status 1, and a frame says why."""
    run.check(1)
    pprof_check.validate(p)
    for s in pprof_check.samples(p):
        assert [f["name"] for f in s["frames"]] == [
            "[no stack: what created the thread was not recorded]"]
    return by_path(p, "threadcreate")[""], by_path(p, "lifetime")[""]


def mean_of(truth):
    """How many there were, and how long each lived, in nanoseconds."""
    paths = truth["paths"].values()
    count = sum(path["count"] for path in paths)
    return truth["made"], sum(path["ns"] for path in paths) / count


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_who_may_not_see_the_kernel_counts(start, tmp_path):
    with open("/proc/sys/kernel/perf_event_paranoid") as f:
        if int(f.read()) < 2:
            pytest.skip("everybody may see the kernel")
    target = start("profiles", "churn", 200, user=65534, group=65534,
                   extra_groups=[])
    # Not into a directory that is root's.
    out = tmp_path / "x.pb.gz"
    done = subprocess.run(
        [str(WALLPROF), "-p", str(target.pid), "-d", "2", "--profile",
         "threadcreate", "-f", "pprof", "-o", "-"], user=65534, group=65534,
        extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=100)
    out.write_bytes(done.stdout)
    run = Run(done.args, done, out)
    target.assert_unharmed()
    count, ns = check_without_stacks(
        run, pprof_check.load(str(tmp_path / "x.pb.gz")))
    assert "no stacks: kernel.perf_event_paranoid" in run.err
    truth = target.truth()
    want, life = mean_of(truth)
    assert 200 < count <= want
    # Those that start before the end are cut short.
    assert abs(ns / count - life) < 0.05 * life + late(truth)


def test_lists_of_threads_count_those_that_live_long(start, tmp_path):
    """No perf events at all: those are missing that no tick saw."""
    target = start("profiles", "churn", 200)
    run = wallprof("-p", target.pid, "-d", 3, "--profile", "threadcreate",
                   output=tmp_path / "x.pb.gz",
                   prefix=(str(FIXTURES / "fault_deny"), PERF_EVENT_OPEN,
                           EACCES))
    target.assert_unharmed()
    count, ns = check_without_stacks(
        run, pprof_check.load(str(tmp_path / "x.pb.gz")))
    assert "told by lists of threads" in run.err
    want, life = mean_of(target.truth())
    # Two or four ticks in each life.
    assert 200 < count <= want
    assert abs(ns / count / life - 1) < 0.4
