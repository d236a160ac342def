# SPDX-License-Identifier: Apache-2.0
"""Recordings over goroutines, against what the programs measure of themselves."""
import collections
import json
import os
import re
import signal
import subprocess
import time

import pytest

import page_data
import pprof_check
from conftest import (FIXTURES, WALLPROF, Target, has_run, run_ns, tolerance,
                      wait_until, wallprof)

# Of fixtures/parked.go.
KINDS_PARKED = 12
KINDS = ["a", "b"]
PARTS = ["spin", "nap", "ask"]


def names_of(sample):
    return [f["name"] for f in sample["frames"]]


def times_of(target):
    target.proc.send_signal(signal.SIGUSR1)
    return json.loads(target.read_line("TIMES")[len("TIMES"):])


def turns_of(target):
    """How far each kind had computed at the call of times_of() before."""
    return json.loads(target.read_line("TURNS")[len("TURNS"):])


def both_ends(read, seconds):
    """A list for what READ() gives as a recording has begun, and SECONDS later, as it
    ends; and what ends it so."""
    found = []

    def until():
        found.append(read())
        end = time.monotonic() + seconds
        return lambda: time.monotonic() > end and not found.append(read())
    return found, until


def is_own(sample):
    return "runtime" not in sample["labels"]


def part_of(sample):
    names = names_of(sample)
    return next((p for p in PARTS if "main." + p in names), None)


@pytest.mark.parametrize("program", ["goroutines", "goroutines-stripped"])
def test_every_goroutine_has_all_of_the_time(start, profile, program):
    target = start(program)
    _, p = profile(target.pid, "-d", 2, "--goroutine-ids")
    target.assert_unharmed()
    assert any("wall: goroutines of go1." in c for c in pprof_check.comments(p))
    all_ns = collections.Counter()
    sites = collections.defaultdict(collections.Counter)
    in_handlers = 0
    for s in pprof_check.samples(p):
        assert "thread" not in s["labels"] and "tid" not in s["labels"]
        if not is_own(s):
            continue
        assert s["labels"]["goroutine"] > 0
        all_ns[s["labels"]["goroutine"]] += s["values"]["wall"]
        site = next((n for n in names_of(s) if n.startswith("main.")), None)
        sites[site][s["labels"]["state"], s["labels"].get("wait")] += \
            s["values"]["wall"]
        # A CPU sample in a signal handler, or where it returns to, has a copy of the
        # handler's stack alone; a stop finds the thread in one rarely.
        if ({"runtime.sigtramp", "runtime.sigreturn"} & set(names_of(s)) and
                names_of(s)[-1] ==
                "[truncated: on another stack than the copy's]"):
            in_handlers += s["values"]["wall"]
            continue
        assert not s["values"]["wall"] or names_of(s)[-1] in (
            "runtime.goexit", "[no stack]"), names_of(s)
    assert in_handlers < 0.05 * p.duration_nanos
    # To the nanosecond, from the first look to the last.
    assert len(all_ns) == 5 and len(set(all_ns.values())) == 1, all_ns
    each = all_ns.popitem()[1]
    assert abs(each / p.duration_nanos - 1) < 0.05 + tolerance(p, 0), each
    assert sites["main.waitInner"]["waiting", "chan receive"] > 0.9 * each
    assert sites["main.readInner"]["waiting", "pipe"] > 1.9 * each
    assert sites["main.sleepInner"]["waiting", "sleep"] > 0.5 * each
    # Of a busy machine it waits for a CPU.
    assert (sites["main.spinInner"]["running", None] +
            sites["main.spinInner"]["runnable", None]) > 0.5 * each


def test_the_runtimes_own_are_folded(start):
    target = start("goroutines")
    run = wallprof("-p", target.pid, "-d", 1).check()
    assert re.search(r"^Idle: \d+ of \d+ goroutines, .*: those of Go's runtime",
                     run.out, re.M), run.out
    assert "gcenable" not in run.out and "Goroutine time by state" in run.out
    full = wallprof("-p", target.pid, "-d", 1, "--full").check().out
    assert "runtime.bgsweep" in full


def test_threads_of_go_are_threads(start, profile):
    target = start("goroutines")
    for args in [["--threads-of-go"], ["-t", "*"], ["--profile", "cpu"],
                 ["--stop", "all"]]:
        _, p = profile(target.pid, "-d", 1, *args)
        assert all("thread" in s["labels"] for s in pprof_check.samples(p))


def test_a_lane_for_each_goroutine(start, tmp_path):
    target = start("goroutines")
    page = tmp_path / "a.html"
    wallprof("-p", target.pid, "-d", 1, output=page).check()
    data = page_data.load(page)
    lanes = {t["name"]: t for t in data["threads"] if t["timed"] and t["rows"]}
    assert {"main.spinOuter", "main.waitOuter", "main.sleepOuter",
            "runtime.main"} <= lanes.keys(), lanes.keys()


def test_lanes_have_labels(start, tmp_path):
    """That their goroutines were met with."""
    target = start("parked", 5, tmp_path / "truth")
    page = tmp_path / "a.html"
    wallprof("-p", target.pid, "-d", 1, output=page).check()
    names = [t["name"] for t in page_data.load(page)["threads"] if t["timed"]]
    for n in (0, 3):
        labelled = [name for name in names if name.startswith("main.begin.") and
                    name.endswith(f" kind=parked, n={n}")]
        assert len(labelled) >= KINDS_PARKED, names
    # The others of the five have none.
    assert len([name for name in names if name.startswith("main.begin.") and
                "=" not in name]) >= 3 * KINDS_PARKED, names


def test_a_page_speaks_of_goroutines(start, tmp_path):
    target = start("goroutines")
    page = tmp_path / "a.html"
    wallprof("-p", target.pid, "-d", 1, output=page).check()
    dom = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path / 'home'}", "--virtual-time-budget=5000",
         page.as_uri()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=100, check=True).stdout.decode()
    main = dom[dom.index("</header>"):dom.index("</main>")]
    text = re.sub("<[^>]*>", " ", main)
    assert re.search(r"of \d+ goroutines", text), text
    for says in ("by goroutine", "hide idle goroutines", "Goroutines"):
        assert says in text, (says, text)
    assert 'placeholder="goroutines by name"' in main
    assert "by thread" not in text and "Threads" not in text, text


def test_a_saved_profile_reads_back(start, tmp_path):
    target = start("goroutines")
    out = tmp_path / "a.pb.gz"
    said = wallprof("-p", target.pid, "-d", 1, output=out).check().err
    text = wallprof("report", out).check().out
    n = re.search(r"(\d+) goroutines", said)[1]
    assert re.search(rf"^{n} goroutines, ", text, re.M), (said, text)
    assert re.search(rf"^Idle: \d+ of {n} goroutines, ", text, re.M), text
    assert "goroutine time" in text and "chan receive" in text
    assert re.search(r"^Idle: ", text, re.M), text


def test_a_command_from_its_begin(tmp_path):
    """Until its runtime has begun there are only threads."""
    out = tmp_path / "a.pb.gz"
    tool = subprocess.Popen([WALLPROF, "-o", out, "--", FIXTURES / "goroutines"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(re.search(rb"pid=(\d+)", tool.stdout.readline()).group(1))
    wait_until(has_run(pid, 0.5))
    os.kill(pid, signal.SIGTERM)
    err = tool.communicate(timeout=60)[1]
    # A busy machine may have let it miss most ticks.
    assert tool.returncode in (0, 1), err
    p = pprof_check.load(out)
    ns = sum(s["values"]["wall"] for s in pprof_check.samples(p)
             if "main.waitInner" in names_of(s))
    assert ns > 0.5 * p.duration_nanos, pprof_check.described(p)


@pytest.mark.alone
@pytest.mark.parametrize("program, args", [
    ("goshares", ["-d", 5, "-r", 200]), ("goshares-stripped", ["-d", 5, "-r", 200]),
    # 8,000 looks at each kind: two points are nearly four of their standard errors.
    ("goshares", ["-d", 20, "-r", 50]),
    ("goshares", ["-d", 5, "-r", 200, "--stop", "never"])],
    ids=lambda v: v if isinstance(v, str) else " ".join(map(str, v)))
def test_shares_and_labels_are_right(start, profile, program, args):
    """By kind, as the labels say; within 2 points of what each measured."""
    target = start(program, 8)
    before, turns = times_of(target), turns_of(target)
    _, p = profile(target.pid, *args)
    after = times_of(target)
    turns = [y - x for x, y in zip(turns, turns_of(target))]
    target.assert_unharmed()
    wall, cpu = collections.Counter(), collections.Counter()
    brief = 0
    for s in pprof_check.samples(p):
        kind = s["labels"].get("kind")
        wall[kind, part_of(s)] += s["values"]["wall"]
        cpu[kind, part_of(s)] += s["values"]["cpu"]
        if "main.brief.func1" in names_of(s):
            brief += s["values"]["wall"]
    for i, kind in enumerate(KINDS):
        truth = [y - x for x, y in zip(before[i], after[i])]
        mine = [wall[kind, part] for part in PARTS]
        for part, want, got in zip(PARTS, truth, mine):
            assert abs(want / sum(truth) - got / sum(mine)) < 0.02, \
                (kind, part, truth, mine)
        # Each of the eight was there all the time.
        assert abs(sum(v for k, v in wall.items() if k[0] == kind)
                   - 8 * p.duration_nanos) < 0.01 * 8 * p.duration_nanos
        # All they do on a CPU is to compute.
        assert cpu[kind, "spin"] > 0.9 * sum(
            v for k, v in cpu.items() if k[0] == kind)
    got = cpu["a", "spin"] / (cpu["a", "spin"] + cpu["b", "spin"])
    assert abs(got - turns[0] / sum(turns)) < 0.05, (got, turns)
    # One at a time of those that nap for a millisecond each; part of what is between two
    # naps is of one that begins or ends.
    naps, between = (after[2][i] - before[2][i] for i in (0, 1))
    assert between < naps and \
        naps / (naps + between) - 0.05 < brief / p.duration_nanos < 1.03, (
            brief, naps, between)


def by_itself(target):
    """What its goroutines measure, and what sampling from inside says."""
    target.proc.send_signal(signal.SIGUSR1)
    times = json.loads(target.read_line("TIMES")[len("TIMES"):])
    sampled = json.loads(target.read_line("FGPROF")[len("FGPROF"):])
    return [sum(kind[i] for kind in times[:2]) for i in range(3)], sampled


def shares(values):
    return [v / sum(values) for v in values]


@pytest.mark.alone
def test_shares_beside_those_of_fgprof(start, profile):
    """Which samples the same program from inside at the same time, with the world
    stopped, and when it gets to run: of what computes it sees less."""
    target = start("goshares", 8, "fgprof")
    before, samples_before = by_itself(target)
    _, p = profile(target.pid, "-d", 10)
    after, samples_after = by_itself(target)
    target.assert_unharmed()
    truth = shares([y - x for x, y in zip(before, after)])
    its = shares([y - x for x, y in zip(samples_before["Parts"],
                                        samples_after["Parts"])])
    wall = collections.Counter()
    for s in pprof_check.samples(p):
        if "kind" in s["labels"]:
            wall[part_of(s)] += s["values"]["wall"]
    mine = shares([wall[part] for part in PARTS])
    far = [max(abs(x - y) for x, y in zip(truth, of)) for of in (mine, its)]
    assert far[0] < 0.02, (truth, mine)
    # Of the same shape, but for what keeps it from running.
    assert far[1] < 0.1, (truth, its)
    assert samples_after["Samples"] - samples_before["Samples"] > 300


def find_mixed(p, least):
    """Stacks with functions of both sides, of so many samples at least."""
    n, mixed = 0, []
    for s in pprof_check.samples(p):
        names = names_of(s)
        sides = {side for side in ("left", "right")
                 if any(n.startswith("main." + side) for n in names)}
        if "main.turn" not in names or not s["values"]["samples"]:
            continue
        n += s["values"]["samples"]
        if len(sides) > 1:
            mixed.append((names, s["labels"]))
        # All of a side, from where it is.
        depth = [int(n[-1]) for n in names if n.startswith(("main.left",
                                                            "main.right"))]
        if depth != list(range(4 - len(depth), 4)):
            mixed.append((names, s["labels"]))
    assert n >= least, n
    return mixed


@pytest.mark.parametrize("pairs", [2, 50])
def test_no_stack_is_of_two_moments(start, profile, pairs):
    """While goroutines wake each other millions of times a second."""
    target = start("gochurn", pairs)
    _, p = profile(target.pid, "-r", 1000, cpu=3)
    target.assert_unharmed()
    assert not find_mixed(p, 1000)


@pytest.mark.soak
def test_no_stack_of_many_is_of_two_moments(start, profile):
    target = start("gochurn", 2)
    _, p = profile(target.pid, "-d", 60, "-r", 1000)
    target.assert_unharmed()
    assert not find_mixed(p, 100000)


@pytest.mark.alone
def test_many_goroutines_are_looked_at_less_often(start, profile, tmp_path):
    """Of 48,000 that wait each has all of the time, however often they are seen."""
    target = start("parked", 4000, tmp_path / "truth")
    # It runs for some ms, of which one CPU sample tells all: status 1 if that is cut.
    _, p = profile(target.pid, "-d", 5, "-r", 1000, status=(0, 1))
    target.assert_unharmed()
    line = next(c for c in pprof_check.comments(p) if c.startswith("wall: "))
    looks = float(re.search(r"looked at ([\d.]+) times", line).group(1))
    assert looks < 300 and "at most a quarter of a CPU" in line, line
    ns = collections.Counter()
    for s in pprof_check.samples(p):
        if "main.deep" in names_of(s):
            ns[s["labels"]["wait"]] += s["values"]["wall"]
    for wait in ("chan receive", "sleep", "sync.Cond.Wait"):
        assert ns[wait] >= 4000 * 0.95 * p.duration_nanos, (wait, ns)
    total = sum(ns.values())
    assert 48000 * 0.95 < total / p.duration_nanos < 48100 * 1.05, total


COLLECTS = """
package main

import (
	"fmt"
	"os"
	"runtime"
)

type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

var kept *node

func main() {
	kept = tree(21)
	fmt.Printf("READY pid=%d\\n", os.Getpid())
	for {
		runtime.GC()
	}
}
"""


def built(tmp_path, source):
    """The program of SOURCE."""
    (tmp_path / "built.go").write_text(source)
    subprocess.run(["go", "build", "-o", tmp_path / "built", tmp_path / "built.go"],
                   check=True, timeout=100, cwd=tmp_path,
                   env=dict(os.environ, CGO_ENABLED="0", GO111MODULE="off", GOFLAGS=""))
    return tmp_path / "built"


def test_workers_of_the_garbage_collector_run(tmp_path):
    """They mark on their threads' own stacks, and say meanwhile that they wait."""
    target = Target([built(tmp_path, COLLECTS)])
    try:
        ran, until = both_ends(lambda: run_ns(target.pid), 3)
        run = wallprof("-p", target.pid, output=tmp_path / "p.pb.gz",
                       until=until).check((0, 1))
        cpu_ns = ran[1] - ran[0]
    finally:
        target.end()
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    running = sum(s["values"]["wall"] for s in pprof_check.samples(p)
                  if s["labels"].get("state") == "running")
    assert running > 0.6 * cpu_ns > 0, (running, cpu_ns, run.err)


FINALIZES = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

type thing struct{ bytes [64]byte }

var entered, never = make(chan int, 1), make(chan int)

//go:noinline
func blocked(*thing) {
	entered <- 1
	<-never
}

//go:noinline
func drop() { runtime.SetFinalizer(&thing{}, blocked) }

func main() {
	drop()
	for len(entered) == 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	fmt.Printf("READY pid=%d\\n", os.Getpid())
	for {
		time.Sleep(time.Second)
	}
}
"""


def test_a_finalizer_that_waits_is_not_idle(tmp_path):
    """It is the program's code, on a goroutine of Go's runtime."""
    target = Target([built(tmp_path, FINALIZES)])
    try:
        wallprof("-p", target.pid, "-d", 2, output=tmp_path / "p.pb.gz").check((0, 1))
    finally:
        target.end()
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    ns = sum(s["values"]["wall"] for s in pprof_check.samples(p)
             if "main.blocked" in names_of(s) and "idle" not in s["labels"])
    assert ns > (0.9 - tolerance(p, 0)) * p.duration_nanos, ns


SPINS = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

var begun sync.WaitGroup

func spin() {
	begun.Done()
	for i := 0; ; i++ {
	}
}

func main() {
	n := 4 * runtime.NumCPU()
	runtime.GOMAXPROCS(n + 1)
	begun.Add(n)
	for i := 0; i < n; i++ {
		go spin()
	}
	begun.Wait()
	fmt.Printf("READY pid=%d n=%d\\n", os.Getpid(), n)
	select {}
}
"""


def ready_ns(pid):
    """How long the threads of PID have run, and waited for a CPU, by the kernel's books."""
    books = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
            books.append([int(n) for n in f.read().split()[:2]])
    return [sum(ns) for ns in zip(*books)]


def test_one_that_runs_may_wait_for_a_cpu(tmp_path):
    """Four times as many spin as there are CPUs: Go says that all run."""
    target = Target([built(tmp_path, SPINS)])
    try:
        ready, until = both_ends(lambda: ready_ns(target.pid), 5)
        run = wallprof("-p", target.pid, "--goroutine-ids",
                       output=tmp_path / "p.pb.gz", until=until).check((0, 1))
        ran, waited = [y - x for x, y in zip(*ready)]
        target.assert_unharmed()
    finally:
        target.end()
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    state, each, cpu = collections.Counter(), collections.Counter(), 0
    for s in pprof_check.samples(p):
        if "main.spin" in names_of(s):
            state[s["labels"]["state"]] += s["values"]["wall"]
        if is_own(s):
            each[s["labels"]["goroutine"]] += s["values"]["wall"]
            cpu += s["values"]["cpu"]
    said = state["running"] / (state["running"] + state["runnable"])
    assert abs(said - ran / (ran + waited)) < 0.03, (
        state, ran, waited, run.err)
    assert abs(state["running"] / cpu - 1) < 0.05, (state, cpu, run.err)
    # Each has all of the time.
    n = int(re.search(r"n=(\d+)", target.ready)[1])
    assert len(each) == n + 1 and len(set(each.values())) == 1, each


def test_one_that_runs_may_wait_for_a_page(start, profile):
    """Three quarters of the time; Go says that it runs."""
    target = start("gofaults")
    times, until = both_ends(lambda: times_of(target), 4)
    _, p = profile(target.pid, until=until)
    took = [y - x for x, y in zip(*times)]
    truth = shares(took)
    target.assert_unharmed()
    ns = collections.Counter()
    for s in pprof_check.samples(p):
        if "main.work" in names_of(s):
            ns["main.touch" in names_of(s), s["labels"].get("wait")] += \
                s["values"]["wall"]
    faults = ns[True, "page-fault"]
    assert abs(sum(ns.values()) / p.duration_nanos - 1) < 0.1, ns
    # One takes 15 ms.
    assert abs(faults / sum(ns.values()) - truth[0]) < \
        tolerance(p, took[0] / 15e6), (ns, truth)
    # It waits for nothing else.
    assert sum(v for (_, wait), v in ns.items() if wait) < 1.02 * faults, ns


def test_an_unknown_version_has_threads(start, profile, tmp_path):
    """And that is said."""
    data = (FIXTURES / "goroutines").read_bytes()
    old = re.search(rb"go1\.\d+\.\d+", data).group()
    new = b"go1.0" + b"0" * (len(old) - 5)
    program = tmp_path / "old"
    program.write_bytes(data.replace(old, new))
    program.chmod(0o755)
    target = Target([program])
    try:
        _, p = profile(target.pid, "-d", 1)
    finally:
        target.end()
    assert any("threads, not goroutines: " in c
               for c in pprof_check.comments(p)), pprof_check.comments(p)
    assert all("thread" in s["labels"] for s in pprof_check.samples(p))
