# SPDX-License-Identifier: Apache-2.0
"""Faults on wallprof's own side: signals, full disks, no memory, no rights.

No thread is left stopped or traced, nothing partial stands under the final
name, and wallprof ends with a right profile or a clear error.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import pprof_check
import pytest

from conftest import (FIXTURES, SLOW, WALLPROF, children_of, is_clean, status_of,
                      wait_until, wait_until_sampling, wallprof, worker_of)
from fault_records import (DENY_PERF, MODES, begin, check_account, check_end,
                           check_stacks, check_whole_time, load, log,
                           mode_args, quiet_account, record, wall)

SIGNALS = {name: getattr(signal, "SIG" + name)
           for name in ("INT", "TERM", "HUP", "PIPE", "KILL")}
TRIALS = int(os.environ.get("FAULT_TRIALS", "8"))
SOAK_TRIALS = int(os.environ.get("FAULT_SOAK_TRIALS", "200"))
STRIDE = int(os.environ.get("FAULT_STRIDE", "900"))
# Each of 6,700 allocations in four ways would take an hour and a half; most are
# made in loops, so that neighbours come from the same place.
SOAK_STRIDE = int(os.environ.get("FAULT_SOAK_STRIDE", "5"))
LONG_SECONDS = float(os.environ.get("FAULT_LONG_SECONDS", "3600"))
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0,
                               reason="mounts and capabilities need root")


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_at_any_moment(start, tmp_path, name):
    run_signals(start, tmp_path, name, TRIALS)


@pytest.mark.soak
@pytest.mark.parametrize("name", SIGNALS)
def test_signals_at_any_moment(start, tmp_path, name):
    run_signals(start, tmp_path, name, SOAK_TRIALS)


def run_signals(start, tmp_path, name, trials):
    # Told each time, so that a failure can be had again.
    seed = int(os.environ.get("FAULT_SEED", "0")) or random.randrange(1 << 30)
    dice = random.Random(seed)
    target = start("fault", "plain")
    written = 0
    for trial in range(trials):
        mode = MODES[trial % len(MODES)]
        written += one_signal(tmp_path, target, name, mode,
                              dice.uniform(0, 0.15), f"seed {seed}")
    # A stop that a dead profiler held is undone by the kernel, which knows
    # nothing of EINTR: after SIGKILL there may be one, and it is counted.
    if name == "KILL":
        account = target.truth()["account"]
        assert account["wrong"] == account["lost"] == 0
        log(f"test_signals_at_any_moment[{name}]", "", trials=trials,
            eintrs=account["eintrs"])
        return
    check_account(target, "fault", "plain")
    log(f"test_signals_at_any_moment[{name}]", "", trials=trials,
        written=written)
    assert written > 0


def one_signal(tmp_path, target, name, mode, delay, what):
    """1 if a profile was written."""
    out = tmp_path / "x.pb.gz"
    tool = begin(mode, "-p", target.pid, "-o", out)
    # Some at the start, most while it samples.
    if delay > 0.03:
        wait_until_sampling(tool)
    time.sleep(delay)
    tool.send_signal(SIGNALS[name])
    if name == "PIPE":
        time.sleep(0.01)
        tool.send_signal(signal.SIGINT)
    err = tool.communicate(timeout=100)[1].decode()
    wait_until(lambda: is_clean(target.pid), 20)
    what = f"{what}, {mode}, {delay}: {tool.returncode} {err}"
    left = [f.name for f in tmp_path.iterdir()]
    if name == "KILL":
        assert tool.returncode == -signal.SIGKILL, what
        assert "x.pb.gz" not in left, what
        for f in tmp_path.iterdir():
            f.unlink(missing_ok=True)
        return 0
    if tool.returncode in (0, 1):
        assert left == ["x.pb.gz"], what
        load(out)
        out.unlink()
        return 1
    # Before its handlers were in place or its first sample was taken.
    assert tool.returncode < 0 or (tool.returncode == 2 and err), what
    assert "x.pb.gz" not in left and delay <= 0.03, what
    for f in tmp_path.iterdir():
        f.unlink(missing_ok=True)
    return 0


def check_orphan(tool, pid):
    """The command goes on, nobody holds it, and its account is as without."""
    wait_until(lambda: is_clean(pid), 20)
    os.kill(pid, signal.SIGTERM)
    line = tool.stdout.readline().decode()
    account = json.loads(line[len("TRUTH"):])["account"]
    # As in run_signals: a stop that a dead profiler held may be an EINTR.
    if tool.returncode == -signal.SIGKILL:
        account["eintrs"] = 0
    assert account == quiet_account("fault", "plain")


@pytest.mark.parametrize("name, mode", [
    *((name, mode) for name in ("INT", "TERM", "HUP", "KILL")
      for mode in MODES), ("KILL", "timeout")])
def test_a_command_outlives_who_started_it(tmp_path, name, mode):
    """Signals to wallprof alone; with --timeout they are handed on, but for
    SIGKILL (test_timeout.py has the others)."""
    out = tmp_path / "x.pb.gz"
    command = ("--", FIXTURES / "fault", "plain")
    tool = (begin(mode, "-o", out, *command) if mode != "timeout" else
            subprocess.Popen([WALLPROF, "--timeout", "60", *command],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE))
    pid = int(tool.stdout.readline().split(b"pid=")[1])
    try:
        if mode != "timeout":
            wait_until_sampling(tool)
        tool.send_signal(SIGNALS[name])
        tool.wait(100)
        check_orphan(tool, pid)
        log(f"test_a_command_outlives_who_started_it[{name}-{mode}]", mode,
            status=tool.returncode)
        if name == "KILL":
            assert tool.returncode == -signal.SIGKILL and not out.exists()
        else:
            check_end(tool.returncode, tool.stderr.read().decode())
            load(out)
    finally:
        if tool.poll() is None:
            tool.kill()
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def assert_error(run, *words):
    """Exit status 2 and one line that says WORDS."""
    assert run.status == 2, (run.status, run.err)
    lines = run.err.splitlines()
    assert lines and lines[-1].startswith("wallprof: "), run.err
    assert len(lines[-1]) > len("wallprof: "), run.err
    for word in words:
        assert word in run.err, run.err


@pytest.mark.parametrize("limit", ["fsize", "tmpfs", "/dev/full"])
def test_a_full_disk(start, tmp_path, limit):
    target = start("fault", "plain")
    args = ["-p", target.pid, "-d", "0.3", "--full"]
    if limit == "fsize":
        run = wallprof(*args, output=tmp_path / "x.txt", prefix=(
            "sh", "-c", 'ulimit -f 1; exec "$@"', "sh"))
        assert list(tmp_path.iterdir()) == []
    elif limit == "tmpfs":
        if os.geteuid():
            pytest.skip("a small tmpfs needs root")
        run = wallprof(*args, output=tmp_path / "x.txt", prefix=(
            "unshare", "--mount", "sh", "-c",
            f"mount -t tmpfs -o size=4k none {tmp_path} || exit 77; "
            f'dd if=/dev/zero of={tmp_path}/full bs=3k count=1 2>&-; '
            f'"$@"; s=$?; ls -A {tmp_path}; exit $s', "sh"))
        if run.status == 77:
            pytest.skip("a tmpfs may not be mounted here")
        assert run.out.split() == ["full"]
    else:
        run = wallprof(*args, "-f", "text", output="/dev/full")
    assert_error(run, "cannot write")
    check_account(target, "fault", "plain")
    log(f"test_a_full_disk[{limit}]", "", run)


def test_the_output_directory_goes_away(start, tmp_path):
    target = start("fault", "plain")
    place = tmp_path / "place"
    place.mkdir()
    tool = begin("auto", "-p", target.pid, "-o", place / "x.pb.gz")
    wait_until_sampling(tool)
    shutil.rmtree(place)
    tool.send_signal(signal.SIGINT)
    err = tool.communicate(timeout=100)[1].decode()
    assert tool.returncode == 2 and "cannot write" in err, err
    assert list(tmp_path.iterdir()) == []
    check_account(target, "fault", "plain")
    log("test_the_output_directory_goes_away", "", status=2)


def fail_alloc(target, tmp_path, action, n, more):
    """Run with allocation N (and all after it) failing: (Run, how many)."""
    count = tmp_path / "count"
    count.unlink(missing_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(FIXTURES / "fault_alloc.so"),
           "FAIL_ALLOC": str(n), "FAIL_ALLOC_MORE": str(int(more)),
           "FAIL_ALLOC_COUNT": str(count)}
    if action == "record":
        run = wallprof("-p", target.pid, "-d", "0.03", "-r", "200",
                       output=tmp_path / "x.pb.gz", env=env)
    else:
        run = wallprof("--threads", "-p", target.pid, env=env)
    data = count.read_bytes() if count.exists() else b""
    return run, struct.unpack("I", data)[0] if len(data) == 4 else 0


def run_allocations(start, tmp_path, action, more, first, stride):
    if SLOW:
        pytest.skip("a sanitizer has an allocator of its own")
    target = start("fault", "plain")
    run, total = fail_alloc(target, tmp_path, action, 0, False)
    check_end(run.status, run.err)
    assert total > 500
    statuses, in_glibc = {}, 0
    # The first are the ones of the start, each of which is of its own kind.
    points = [*range(1, first), *range(first + 4, total, stride)]
    for n in points:
        (tmp_path / "x.pb.gz").unlink(missing_ok=True)
        run, _ = fail_alloc(target, tmp_path, action, n, more)
        what = f"allocation {n} of {total}: {run.status} {run.err}"
        if run.status == -signal.SIGSEGV and action == "dump" and not more:
            # Within glibc's getpwuid_r, which does not survive it (2.36).
            in_glibc += 1
            assert in_glibc <= 16, what
            target.assert_unharmed()
            continue
        assert run.status in (0, 1, 2), what
        statuses[run.status] = statuses.get(run.status, 0) + 1
        left = sorted(f.name for f in tmp_path.iterdir() if f.name != "count")
        if run.status == 2:
            assert run.err.strip() not in ("", "wallprof:"), what
            assert left == [], what
        elif action == "record":
            assert left == ["x.pb.gz"], what
            load(tmp_path / "x.pb.gz")
        target.assert_unharmed()
    check_account(target, "fault", "plain")
    log(f"test_allocations_fail[{action}-{'all' if more else 'one'}]",
        "", trials=len(points), statuses=statuses, total=total,
        in_glibc=in_glibc)


@pytest.mark.parametrize("more", [False, True], ids=["one", "all-after"])
@pytest.mark.parametrize("action", ["record", "dump"])
def test_allocations_fail(start, tmp_path, action, more):
    run_allocations(start, tmp_path, action, more, 16, STRIDE)


@pytest.mark.soak
@pytest.mark.parametrize("more", [False, True], ids=["one", "all-after"])
@pytest.mark.parametrize("action", ["record", "dump"])
def test_every_kind_of_allocation_fails(start, tmp_path, action, more):
    run_allocations(start, tmp_path, action, more, 200, SOAK_STRIDE)


@ROOT_ONLY
@pytest.mark.skipif(SLOW, reason="LeakSanitizer wants /proc itself")
def test_no_proc(start, tmp_path):
    target = start("fault", "plain")
    hide = ("unshare", "--mount", "sh", "-c",
            'umount -l /proc || exit 77; exec "$@"', "sh")
    for args in (("-p", target.pid, "-d", "0.2"), ("--threads", "-p",
                                                   target.pid)):
        run = wallprof(*args, prefix=hide)
        if run.status == 77:
            pytest.skip("/proc may not be unmounted here")
        assert_error(run, "/proc")
    check_account(target, "fault", "plain")
    log("test_no_proc", "", run)


# What a container's filter may forbid: the calls, the error they fail with, and
# whether running threads have stacks still (CPU samples or stops do it).
DENIED = {
    "perf": ("298", 1, ["auto", "all"]),
    "perf-enosys": ("298", 38, ["auto", "all"]),
    "ptrace": ("101", 1, ["auto", "never"]),
    "ptrace-enosys": ("101", 38, ["auto", "never"]),
    "pidfd_open": ("434", 38, MODES[:3]),
    "ptrace,perf": ("101,298", 1, []),
    "process_vm_readv": ("310", 1, []),
    "process_vm_readv-enosys": ("310", 38, []),
    "all-of-them": ("101,298,310,434", 1, []),
}


@pytest.mark.parametrize("mode", MODES[:3])
@pytest.mark.parametrize("what", DENIED)
def test_calls_that_are_denied(start, tmp_path, what, mode):
    numbers, error, whole = DENIED[what]
    target = start("fault", "plain")
    out = tmp_path / "x.pb.gz"
    run = wallprof(*mode_args(mode), "-p", target.pid, "-d", "0.3", output=out,
                   prefix=(str(FIXTURES / "fault_deny"), numbers, str(error)))
    check_account(target, "fault", "plain")
    log(f"test_calls_that_are_denied[{what}-{mode}]", mode, run)
    if mode not in whole and run.status == 2:
        assert_error(run)
        assert list(tmp_path.iterdir()) == []
        return
    check_end(run.status, run.err)
    p = load(out)
    check_whole_time(p, "worker", "sleeper")
    if mode in whole:
        check_stacks(p, run, "worker", "work_round")
    else:
        # No wrong stack: what could not be seen is said to be unknown.  Between two
        # rounds is run_worker alone.
        named = wall(p, "worker", lambda s: s["frames"][0]["name"] != "run_worker" and
                     not any(f["name"].startswith("[") or f["name"] == "work_round"
                             for f in s["frames"]))
        assert named < 0.02 * p.duration_nanos, (run.err, pprof_check.described(p))


def test_stacks_that_cannot_be_read_are_losses(start, tmp_path):
    """Each is looked at once and then found unchanged: all are bad."""
    target = start("waiters", 20)
    out = tmp_path / "x.pb.gz"
    run = wallprof("--stop", "never", "-p", target.pid, "-d", 1, output=out,
                   prefix=(str(FIXTURES / "fault_deny"), "101,298,310", "1"))
    target.assert_unharmed()
    assert run.counter("% of wall time without") == 100, run.err
    assert "memory not readable: 100 %" in run.err
    assert run.status == 1, run.err
    # Without a filter it is whole.
    run = wallprof("--stop", "never", "-p", target.pid, "-d", 1, output=out)
    assert run.status == 0, run.err


def test_denied_perf_events_are_called_so(start, tmp_path):
    target = start("spinner", 1)
    run = wallprof("-p", target.pid, "-d", "0.2", output=tmp_path / "x.pb.gz",
                   prefix=DENY_PERF)
    assert "forbids perf_event_open" in run.err, run.err
    assert "process_vm_readv" not in run.err, run.err


@pytest.mark.alone
@pytest.mark.parametrize("scope", [1, 2])
def test_yama(scope):
    path = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if not path.exists():
        pytest.skip("this kernel has no yama")
    if not os.access(path, os.W_OK):
        pytest.skip("kernel.yama.ptrace_scope may not be set")
    before = path.read_text().strip()
    if before == "3":
        pytest.skip("kernel.yama.ptrace_scope is 3 until a reboot")
    # Not a child of wallprof, and of the same user, who has no capability.
    user = ("setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all")
    sleeper = subprocess.Popen([*user, "sleep", "60"])
    try:
        path.write_text(str(scope))
        run = wallprof("-p", sleeper.pid, "-d", "0.2", prefix=user)
        assert_error(run, f"ptrace_scope is {scope}")
    finally:
        path.write_text(before)
        sleeper.kill()
        sleeper.wait()


CAPS = [line.split("_", 1)[1] for line in (
    "cap_sys_ptrace cap_perfmon cap_sys_admin cap_dac_read_search "
    "cap_dac_override cap_sys_nice cap_kill cap_checkpoint_restore "
    "cap_syslog cap_ipc_lock").split()]


@ROOT_ONLY
@pytest.mark.parametrize("cap", CAPS)
def test_a_capability_less(start, tmp_path, cap):
    """The target has it, so only CAP_SYS_PTRACE would let it be seen."""
    target = start("fault", "plain")
    out = tmp_path / "x.pb.gz"
    run = wallprof("-r", 1000, "-p", target.pid, "-d", "0.2", output=out,
                   prefix=("setpriv", f"--bounding-set=-{cap}",
                           f"--inh-caps=-{cap}"))
    if "unknown capability" in run.err:
        pytest.skip(f"setpriv does not know {cap}")
    check_account(target, "fault", "plain")
    log(f"test_a_capability_less[{cap}]", "", run)
    if cap == "sys_ptrace":
        assert_error(run, "CAP_SYS_PTRACE")
        assert list(tmp_path.iterdir()) == []
        return
    check_end(run.status, run.err)
    p = load(out)
    check_whole_time(p, "worker", "sleeper")
    check_stacks(p, run, "worker", "work_round")


NAMESPACES = ("unshare", "--user", "--map-root-user", "--pid", "--mount",
              "--fork", "--kill-child", "--mount-proc")


def in_namespaces():
    return subprocess.run([*NAMESPACES, "true"], stderr=subprocess.PIPE)


@pytest.mark.parametrize("mode", MODES[:3])
def test_inside_namespaces(tmp_path, mode):
    """User, PID and mount namespaces of its own, target and wallprof in it."""
    if in_namespaces().returncode:
        pytest.skip("user namespaces may not be made here")
    out = tmp_path / "x.pb.gz"
    script = ('"$1" plain >"$2" & pid=$!; until grep -q READY "$2"; do '
              'sleep 0.01; done; shift 2; "$@" -p $pid; status=$?; '
              'kill $pid; wait $pid; exit $status')
    truth = tmp_path / "truth"
    argv = [*NAMESPACES, "sh", "-c", script, "sh", FIXTURES / "fault", truth,
            WALLPROF, *mode_args(mode), "-d", "2", "-o", out]
    done = subprocess.run([str(a) for a in argv], stderr=subprocess.PIPE,
                          timeout=100)
    err = done.stderr.decode()
    check_end(done.returncode, err)
    p = load(out)
    check_whole_time(p, "worker", "sleeper")
    account = json.loads(truth.read_text().split("TRUTH")[1])["account"]
    assert account["wrong"] == account["eintrs"] == account["lost"] == 0
    log(f"test_inside_namespaces[{mode}]", mode, status=done.returncode)
    assert wall(p, "sleeper", lambda s: s["labels"].get("wait") == "poll") > 0


@pytest.mark.parametrize("ahead", [864000, -100])
def test_inside_a_time_namespace(start, profile, tmp_path, ahead):
    """Perf events and BPF programs tell times by the kernel's clock."""
    within = ("unshare", "--time", "--monotonic", str(ahead), "--fork",
              "--kill-child")
    if (time.monotonic() < 200
            or subprocess.run([*within, "true"], stderr=subprocess.PIPE).returncode):
        pytest.skip("no time namespace may be made here")
    target = start("waiters", 60)
    _, p = profile(target.pid, "-d", 1, prefix=within)
    sums = pprof_check.by_label(p, "tid")
    assert len(sums) == 61
    assert max(sums.values()) < 1.05 * p.duration_nanos, sums
    target = start("churn")
    run = wallprof("-p", target.pid, "-d", 3, "--profile", "block,threadcreate",
                   output=tmp_path / "y.pb.gz", prefix=within).check((0, 1))
    assert run.counter("threads created") > 50, run.err
    assert run.counter("waits, ") > 200, run.err
    lost, records = map(int, re.search(r"(\d+) of (\d+) records lost",
                                       run.err).groups())
    assert lost < records / 10, run.err


@pytest.mark.parametrize("mode", MODES[:3])
def test_from_the_host_into_namespaces(start, tmp_path, mode):
    if in_namespaces().returncode:
        pytest.skip("user namespaces may not be made here")
    outer = start(*("/usr/bin/unshare", *NAMESPACES[1:]),
                  FIXTURES / "fault", "plain")
    child = children_of(outer.proc.pid)[0]
    run = record(mode, "-p", child, "-d", "0.4", output=tmp_path / "x.pb.gz")
    check_end(run.status, run.err)
    p = load(tmp_path / "x.pb.gz")
    check_whole_time(p, "worker", "sleeper")
    check_stacks(p, run, "worker", "work_round")
    os.kill(child, signal.SIGTERM)
    account = json.loads(outer.read_line("TRUTH")[len("TRUTH"):])["account"]
    assert account["wrong"] == account["eintrs"] == account["lost"] == 0
    log(f"test_from_the_host_into_namespaces[{mode}]", mode, run)


def rss_kb(pid):
    return int(status_of(pid)["VmRSS"].split()[0])


def run_long(start, tmp_path, seconds):
    """-d 0 on threads that come and go: flat, and the weights add up."""
    target = start("fault", "churn")
    out = tmp_path / "x.pb.gz"
    started = time.monotonic()
    tool = begin("auto", "-p", target.pid, "-d", 0, "-o", out)
    wait_until_sampling(tool)
    begun = time.monotonic()
    rss, fds = [], []
    while time.monotonic() - begun < seconds:
        time.sleep(min(1, seconds / 10))
        assert tool.poll() is None, (tool.returncode, tool.communicate())
        rss.append(rss_kb(worker_of(tool)))
        fds.append(len(os.listdir(f"/proc/{worker_of(tool)}/fd")))
    tool.send_signal(signal.SIGINT)
    elapsed = time.monotonic() - begun
    err = tool.communicate(timeout=120)[1].decode()
    check_end(tool.returncode, err)
    work = check_account(target, "fault", "churn")
    p = load(out)
    check_whole_time(p, "worker", "sleeper")
    assert (0.98 * elapsed - 0.5 < p.duration_nanos / 1e9 <
            1.02 * elapsed + 0.5 + begun - started)
    threads = len({s["labels"]["tid"] for s in pprof_check.samples(p)})
    log("test_a_long_run", "auto", seconds=round(elapsed), rss_first=rss[0],
        rss_last=rss[-1], fds_max=max(fds), threads=threads,
        born=work["faults"])
    # 512 bytes for each thread's name, number and samples; 2 MiB for new stacks.
    grown = rss[-1] - rss[len(rss) // 5]
    # A sanitizer keeps what was freed; descriptors of what has gone are closed.
    assert SLOW or grown < 2048 + threads / 2, (rss, threads)
    assert max(fds[len(fds) // 2:]) < max(fds[:len(fds) // 2]) + 40, fds


def test_a_long_run(start, tmp_path):
    run_long(start, tmp_path, 6)


@pytest.mark.soak
def test_an_hour(start, tmp_path):
    run_long(start, tmp_path, LONG_SECONDS)
