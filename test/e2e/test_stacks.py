# SPDX-License-Identifier: Apache-2.0
"""Stacks: the frames that are there, by name, and as eu-stack sees them."""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

import pprof_check
import pytest

from conftest import (FIXTURES, CpuClock, has_slept, in_window, schedstat, stack_variants,
                      tolerance, wait_until, wallprof)

VARIANTS = stack_variants()
# The first of a thread, as libc has it there.
FIRST_FUNCTION = "thread_start" if platform.machine() == "aarch64" else "clone"
CHAIN = ["leaf", "alloca_frame", "tail_target", "odd", "even", "odd", "even",
         "odd", "even", "in_qsort", "run", "main"]


def subsequence(want, names):
    """The first of WANT that is not in NAMES in order; None if all are."""
    it = iter(names)
    for name in want:
        if name not in it:
            return name
    return None


def share_whole(p):
    """Share of samples whose stack reached the thread's root."""
    whole = total = 0
    for s in pprof_check.samples(p):
        total += s["values"]["samples"]
        if not s["frames"][-1]["name"].startswith("["):
            whole += s["values"]["samples"]
    return whole / total


def test_there_are_variants():
    assert len(VARIANTS) >= 14


@pytest.mark.parametrize("mode", ["spin", "wait"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_chain_is_whole(start, profile, variant, mode):
    target = start(variant, mode)
    run, p = profile(target.pid, "-r", 500, "--max-stopped", 0,
                     **({"cpu": 0.3} if mode == "spin" else
                        {"until": lambda: has_slept(target.pid, 300)}))
    target.assert_unharmed()
    deep = 0
    for s in pprof_check.samples(p):
        names = [f["name"] for f in s["frames"]]
        if "leaf" not in names:
            continue
        deep += s["values"]["samples"]
        # Below: hardly any of its time.
        if names[-1].startswith("[truncated: a register was not known"):
            continue
        # The compiler may inline or turn calls into jumps; what is left must
        # be in order.
        kept = [n for n in CHAIN if n in ("leaf", "in_qsort", "run", "main")]
        assert subsequence(kept, names) is None, names
        if "O0" in variant:
            assert subsequence(CHAIN, names) is None, names
    # It is in there nearly all the time, however few samples a busy machine has.
    samples = sum(s["values"]["samples"] for s in pprof_check.samples(p))
    assert deep > 0.5 * samples > 2, (deep, run.err)
    assert share_whole(p) >= 0.99, run.err


@pytest.mark.parametrize("variant", VARIANTS)
def test_functions_that_return_at_once(start, profile, variant):
    """Many of the CPU samples are in an epilogue, which has popped registers
    from where CFI still says they are: below sp, which no sample has."""
    target = start(variant, "return")
    _, p = profile(target.pid, "-r", 1000, "--stop", "never", "--profile",
                   "cpu", cpu=2)
    target.assert_unharmed()
    inner = 0
    for s in pprof_check.samples(p):
        names = [f["name"] for f in s["frames"]]
        if names[0] == "save_and_return":
            inner += s["values"]["cpu"] // p.period
            assert subsequence(["call_it", "leaf", "in_qsort", "run", "main"],
                               names) is None, names
            assert not names[-1].startswith("["), names
    assert inner > 30


@pytest.mark.parametrize("backend", ["rows", "libunwind"])
def test_back_ends_agree(start, profile, backend):
    target = start("stack-gcc-O0", "wait")
    run, p = profile(target.pid, "-d", 1, "--unwinder", backend)
    assert share_whole(p) >= 0.99, run.err


@pytest.mark.parametrize("mode", ["sleep", "spin"])
def test_deep_recursion(start, profile, mode):
    target = start("deep", 5000, mode)
    run, p = profile(target.pid, "-d", 1, "--max-depth", 6000)
    target.assert_unharmed()
    samples = pprof_check.samples(p)
    depth = max(len(s["frames"]) for s in samples)
    assert 5001 < depth < 5020
    assert max(samples, key=lambda s: s["values"]["wall"])[
        "frames"][-1]["name"] == "_start"


@pytest.mark.parametrize("frames", [5, 20])
@pytest.mark.parametrize("mode", ["sleep", "spin"])
def test_frames_of_megabytes(start, profile, mode, frames):
    """9 and 30 MiB of stack, of which a copy holds 8."""
    target = start("deep", frames, mode, "big")
    args = ("--profile", "wall", "--max-stopped", 0)
    if mode == "spin":
        _, p = profile(target.pid, *args, cpu=0.3)
    else:
        _, p = profile(target.pid, *args, "-d", 0.5)
    target.assert_unharmed()
    deep = [[f["name"] for f in s["frames"]] for s in pprof_check.samples(p)
            if "bottom" in (f["name"] for f in s["frames"])]
    assert deep
    for names in deep:
        assert names.count("down_big") == frames + 1, names
        assert names[-1].startswith(FIRST_FUNCTION), names


def test_pages_of_a_stack_that_were_never_touched(start, profile):
    """A CPU sample's copy ends at the first of them."""
    target = start("deep", 5, "spin", "gap")
    run, p = profile(target.pid, "-r", 500, "--max-stopped", 0, cpu=0.5)
    target.assert_unharmed()
    samples = pprof_check.samples(p)
    assert sum(s["values"]["samples"] for s in samples) > 100
    for s in samples:
        names = [f["name"] for f in s["frames"]]
        assert names.count("down") == 6, names
        assert subsequence(["down_past_gap", "main", "_start"], names) is None
        assert names[-1] == "_start", run.err


def test_a_cut_at_the_depth_limit_is_said(start, profile):
    target = start("deep", 5000)
    _, p = profile(target.pid, "-d", 1)
    for s in pprof_check.samples(p):
        # The few milliseconds that it ran may have had no CPU sample.
        if s["frames"][-1]["name"] == "[no stack: no look met the thread in it]":
            assert s["labels"]["state"] == "running"
            continue
        assert s["frames"][-1]["name"] == "[truncated: depth limit]"
        assert len(s["frames"]) == 513


def test_the_depth_limit_is_no_loss_of_a_dump(start):
    """It is the user's, as in a recording."""
    target = start("deep", 5000)
    run = wallprof("--threads", "dump", "-p", target.pid)
    assert run.status == 0, run.err
    assert "[truncated: depth limit]" in run.out


@pytest.mark.parametrize("sleeps", [False, True])
def test_handler_on_an_alternate_stack(start, profile, sleeps):
    target = start("altstack", *(["sleep"] if sleeps else []))
    run, p = profile(target.pid, "-d", 1)
    target.assert_unharmed()
    chain = ["in_handler", "handler", "interrupted", "main", "_start"]
    for s in pprof_check.samples(p):
        names = [f["name"] for f in s["frames"]]
        # Between its naps it runs, 5 ms of a second, which no look may meet.
        if (sleeps and names[0].startswith("[no stack: no look met") and
                s["values"]["wall"] < 0.02 * p.duration_nanos):
            continue
        assert subsequence(chain, names) is None, (names, s["values"])


@pytest.mark.parametrize("args", [["altstack"], ["deep", 5000, "spin"]])
def test_cpu_samples_alone_have_whole_stacks(start, profile, args):
    """Where a sample has not got all of it, the frames above have not changed, or a
    stop has it, and the time is not given to another stack."""
    target = start(*args)
    with CpuClock(target.pid) as clock:
        run, p = profile(target.pid, "-r", 200, "--profile", "cpu",
                         "--max-depth", 6000, "--max-stopped", 0, cpu=0.7)
    target.assert_unharmed()
    samples = pprof_check.samples(p)
    ran, not_sure = clock.spent(p)
    assert (sum(s["values"]["cpu"] for s in samples) >
            0.95 * ran - not_sure), run.err
    assert args[0] == "deep" or run.counter("made") > 20
    for s in samples:
        assert s["frames"][-1]["name"] == "_start", s["frames"][-1]


def test_functions_on_another_stack_have_their_share(start, profile):
    """A sample of one is cut where the stack changes.  Its time is that of stops that
    find it there, not of the next stack that comes."""
    target = start("altstack", "calls")
    run, p = profile(target.pid, "-r", 500, "--max-stopped", 0, cpu=1)
    target.assert_unharmed()
    for kind in ("cpu", "wall"):
        time = dict.fromkeys(("here", "there"), 0)
        for s in pprof_check.samples(p):
            names = [f["name"] for f in s["frames"]]
            if s["labels"]["state"] == "running" and names[0] == "compute":
                time[names[1]] += s["values"][kind]
                chain = (["call_on"] * (names[1] == "there") +
                         ["call_by_turns", "main", "_start"])
                assert subsequence(chain, names) is None, names
        share = time["there"] / sum(time.values())
        assert 0.42 < share < 0.58, (kind, time, run.err)


def share_of_calls(target, profile, stop, status=(0, 1)):
    """The share that a system call has of the CPU time of TARGET, a fixture that is
    driven by calls; the share of whole stacks in it; how it was recorded."""
    run, p = profile(target.pid, "-r", 500, "--max-depth", 6000, "--stop", stop,
                     cpu=1, status=status)
    samples = [s for s in pprof_check.samples(p) if s["values"]["cpu"]]
    for s in samples if stop == "auto" else []:
        names = [f["name"] for f in s["frames"]]
        if "leaf_of_odd" in names:
            assert "even" not in names
        if "leaf_of_even" in names:
            assert "odd" not in names
    cpu = sum(s["values"]["cpu"] for s in samples)
    return (sum(s["values"]["cpu"] for s in samples
                if s["frames"][0]["name"] == "syscall") / cpu,
            sum(s["values"]["cpu"] for s in samples
                if s["frames"][-1]["name"] == "_start") / cpu, run)


@pytest.mark.alone
@pytest.mark.parametrize("swing", [[], ["swing"]])
def test_shares_of_deep_stacks_are_those_of_cpu_samples(start, profile, swing):
    """Stops find a thread that calls every few microseconds at its calls: a
    stack that is too deep for a sample's copy does not take its time there."""
    target = start("deep", 4000, *swing, "calls")
    before, _, _ = share_of_calls(target, profile, "never")
    share, whole, run = share_of_calls(target, profile, "auto",
                                       status=(0, 1) if swing else 0)
    after, _, _ = share_of_calls(target, profile, "never")
    target.assert_unharmed()
    truth = (before + after) / 2
    # Of stops nearly all would be at calls.
    assert truth < 0.6
    assert abs(share - truth) < 0.1, run.err
    # What has been left since is not made up, and said.
    assert swing or whole > 0.99, run.err
    assert ("stack deeper than the copy" in run.err) == (whole < 1)


def test_libraries_that_come_and_go(start, profile):
    """Time goes to the library that was there, though the next takes its
    place in memory."""
    target = start("dlopen")
    queued = -schedstat(target.pid, target.pid)[1]
    _, p = profile(target.pid, "-r", 250, cpu=2)
    queued += schedstat(target.pid, target.pid)[1]
    target.assert_unharmed()
    spans = target.truth()["spans"]
    truth = in_window(spans, p)
    ns = {"work_a": 0, "work_b": 0}
    for s in pprof_check.samples(p):
        names = {f["name"] for f in s["frames"]}
        for name in ns:
            if name in names:
                ns[name] += s["values"]["wall"]
                assert any("plugin_" + name[-1] in f["mapping"]
                           for f in s["frames"] if f["name"] == name), s
    for name in ns:
        changes = 2 * sum(what == name for what, _, _ in spans)
        share, want = (n[name] / p.duration_nanos for n in (ns, truth))
        # Where it waits for a CPU for long is told once it runs.
        bound = 0.01 + tolerance(p, changes) + queued / p.duration_nanos / 4
        assert abs(share - want) < bound, (ns, truth, queued)
    assert sum(ns.values()) > 0.95 * sum(truth.values()) - queued / 4, (ns, truth, queued)


def test_a_deleted_program_has_names(start, profile, tmp_path):
    copy = tmp_path / "spinner-copy"
    shutil.copy(FIXTURES / "spinner", copy)
    target = start(copy, 1)
    copy.unlink()
    _, p = profile(target.pid, "-d", 1)
    assert any(f["name"] == "spin" and f["file"].endswith("spinner.c")
               for s in pprof_check.samples(p) for f in s["frames"])


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot be another user")
def test_deleted_files_of_who_is_not_root(start):
    """Only the privileged reach a deleted library; the program is reached by all."""
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name)
        where.chmod(0o755)
        maps = pathlib.Path("/proc/self/maps").read_text()
        libc = re.search(r"/\S+/libc\.so\.6$", maps, re.M).group()
        shutil.copy(libc, where)
        shutil.copy(FIXTURES / "waiters", where)
        target = start(where / "waiters", 3, user=65534, group=65534,
                       extra_groups=[],
                       env={**os.environ, "LD_LIBRARY_PATH": name})
    said = r"wallprof: no names of 1 mapped file that could not be opened"
    for args in ("--threads",), ("-d", 0.5):
        run = wallprof(*args, "-p", target.pid, prefix=NOBODY).check()
        assert re.search(r"\bwait_for_ever\b", run.out), run.out
        assert re.search(r"\blibc\.so\.6\+0x", run.out), run.out
        assert re.search(said, run.err), run.err
        run = wallprof(*args, "-p", target.pid).check()
        assert not re.search(r"\blibc\.so\.6\+0x", run.out), run.out
        assert not re.search(said, run.err), run.err
    target.assert_unharmed()


def test_cxx_names_and_sites(start, profile):
    target = start("cxx")
    run, p = profile(target.pid, "-d", 1)
    waits = {}
    for s in pprof_check.samples(p):
        for f in s["frames"]:
            waits.setdefault(f["name"], s["labels"].get("wait"))
    assert waits["shop::Counter<int>::queue_up"] == "lock", waits
    assert waits["shop::Counter<int>::wait_for_goods"] == "condvar", waits
    text = wallprof("-p", target.pid, "-d", 1).check().out
    assert re.search(r"lock\s.*shop::Counter<int>::queue_up", text), text


def eu_stack(pid):
    """tid -> addresses, innermost first, as eu-stack prints them."""
    out = subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)], check=False,
                         stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout.decode()
    stacks, tid = {}, None
    for line in out.splitlines():
        if line.startswith("TID"):
            tid = int(re.search(r"\d+", line).group())
            stacks[tid] = []
        elif line.startswith("#"):
            stacks[tid].append(int(line.split()[1], 16))
    return stacks


def sleeping_stacks(p):
    """tid -> addresses of threads that had one stack all through."""
    stacks = {}
    for s in pprof_check.samples(p):
        if s["labels"]["state"] != "waiting":
            continue
        addresses = []
        for f in s["frames"]:
            if not addresses or addresses[-1] != f["address"]:
                addresses.append(f["address"])
        stacks.setdefault(s["labels"]["tid"], []).append(addresses)
    return {tid: v[0] for tid, v in stacks.items() if len(v) == 1}


def same(a, b):
    return a if a == b else None


def compare_with_eu_stack(pid, profile, is_whole=True):
    """How many threads were compared; every address must agree.  IS_WHOLE: eu-stack
    comes to the end of each stack."""
    # Its threads may be on the way to where they wait.
    theirs = wait_until(lambda: same(eu_stack(pid), eu_stack(pid)))
    run, p = profile(pid, "-d", 1)
    ours = sleeping_stacks(p)
    compared = 0
    for tid, addresses in ours.items():
        if tid not in theirs or theirs[tid] == []:
            continue
        # A return address is looked up one byte before.
        want = [a if i == 0 else a - 1 for i, a in enumerate(theirs[tid])]
        have = addresses if is_whole else addresses[:len(want)]
        # It stops threads, which are before their call then on aarch64.
        if platform.machine() == "aarch64" and have[0] - want[0] == 4:
            want[0] += 4
        assert have == want, (tid, [hex(a) for a in addresses],
                                   [hex(a) for a in want])
        compared += 1
    return compared


def test_frames_are_those_of_eu_stack(start, profile):
    target = start("waiters", 10)
    assert compare_with_eu_stack(target.pid, profile) == 11
    target = start("cxx")
    assert compare_with_eu_stack(target.pid, profile) == 4
    target = start("hostile")
    assert compare_with_eu_stack(target.pid, profile) == 3


PYTHON = r"""
import hashlib, os, queue, socket, threading, time
q, lock = queue.Queue(), threading.Lock()
def spin():
    while True: hashlib.sha256(b'x' * 100000).digest()
def nap():
    while True: time.sleep(0.01)
def hold():
    while True:
        with lock: time.sleep(0.005)
def pull(): q.get()
def read():
    a, b = socket.socketpair(); a.recv(1)
for i, f in enumerate([spin, spin, nap, nap, hold, hold, hold, pull, read, read]):
    threading.Thread(target=f, name=f'w{i}', daemon=True).start()
print('READY pid=%d' % os.getpid(), flush=True)
time.sleep(1000)
"""


PYTHON_IDLE = r"""
import os, queue, socket, threading, time
def pull(): queue.Queue().get()
def read():
    a, b = socket.socketpair(); a.recv(1)
def nap(): time.sleep(1000)
for f in [pull, read, nap]:
    threading.Thread(target=f, daemon=True).start()
print('READY pid=%d' % os.getpid(), flush=True)
nap()
"""


def test_idle_redis_nginx_python_as_eu_stack(redis, nginx, start, profile):
    server, _ = redis
    assert compare_with_eu_stack(server.pid, profile) >= 4
    master, worker, _ = nginx
    assert compare_with_eu_stack(master.pid, profile) == 1
    assert compare_with_eu_stack(worker, profile) == 1
    python = start("/usr/bin/python3", "-c", PYTHON_IDLE)
    assert compare_with_eu_stack(python.pid, profile) == 4
    for target in (server, master, python):
        target.assert_unharmed()


def load(argv, target, pid, profile):
    """Record PID under the load of ARGV."""
    driver = subprocess.Popen(argv, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        run, p = profile(pid, cpu=0.3)
    finally:
        driver.kill()
        driver.wait()
    target.assert_unharmed()
    states = {s["labels"]["state"] for s in pprof_check.samples(p)}
    assert "running" in states, run.err
    assert share_whole(p) >= 0.99, run.err
    return p


def test_redis_under_load(redis, profile):
    server, sock = redis
    p = load(["redis-benchmark", "-s", str(sock), "-n", "100000000", "-q"],
             server, server.pid, profile)
    names = {f["name"] for s in pprof_check.samples(p) for f in s["frames"]}
    assert "main" in names or "__libc_start_main" in " ".join(names)


def test_nginx_under_load(nginx, profile):
    master, worker, port = nginx
    load(["wrk", "-t1", "-c8", "-d600", f"http://127.0.0.1:{port}/"], master,
         worker, profile)


def test_python_with_ten_threads(start, profile):
    target = start("/usr/bin/python3", "-c", PYTHON)
    run, p = profile(target.pid, cpu=2)
    target.assert_unharmed()
    assert share_whole(p) >= 0.99, run.err
    assert len({s["labels"]["tid"] for s in pprof_check.samples(p)}) == 11


def test_who_asks_the_vdso_for_the_time(start, profile):
    """It is in no file, and on aarch64 its return address is in a register only."""
    target = start("vdso")
    run, p = profile(target.pid, "--max-stopped", 0, cpu=0.2)
    target.assert_unharmed()
    vdso = total = 0
    for s in pprof_check.samples(p):
        names = [f["name"] for f in s["frames"]]
        total += s["values"]["samples"]
        if s["frames"][0]["mapping"] == "[vdso]":
            vdso += s["values"]["samples"]
            assert "ask" in names and names.index("main") == names.index("ask") + 1, names
    assert vdso > 0.2 * total, (vdso, total, run.err)
    assert share_whole(p) >= 0.98, run.err


@pytest.mark.alone
def test_code_that_has_its_cfa_in_the_red_zone(start, profile, monkeypatch):
    """OpenSSL's SHA-256 by AVX2, which is not for CPUs with instructions of its
    own; of a CPU without AVX2, some other code."""
    monkeypatch.setenv("OPENSSL_ia32cap", ":~0x20000000")
    target = start("/usr/bin/python3", "-c", """if True:
        import hashlib, os
        print('READY pid=%d' % os.getpid(), flush=True)
        while True: hashlib.sha256(b'x' * 100000).digest()""")
    run, p = profile(target.pid, "--max-stopped", 0, cpu=0.5)
    target.assert_unharmed()
    assert share_whole(p) >= 0.9, run.err
