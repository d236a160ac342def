# SPDX-License-Identifier: Apache-2.0
"""CPU profiles: shares and sums are those that the fixture has measured, no
thread is stopped for them, and who may not have them is told so."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest

import pprof_check
from conftest import (FIXTURES, WALLPROF, CpuClock, Run, free_port, has_run,
                      wallprof)

PARTS = ("f1", "f2", "f3")
PERF_EVENT_OPEN = "298"
EACCES = "13"


def mark(target):
    target.proc.send_signal(signal.SIGUSR1)
    return json.loads(target.read_line("MARK")[len("MARK"):])


def between(before, after):
    """{(thread, function): ns} that the fixture spent between two marks."""
    spent = {}
    for a, b in zip(before["threads"], after["threads"]):
        assert a["name"] == b["name"]
        for part in PARTS:
            spent[b["name"], part] = (b["functions"][part]["ns"] -
                                      a["functions"][part]["ns"])
    return spent


def by_part(p):
    """{(thread, function): ns} of the profile; "" is none of the functions."""
    spent = {}
    for s in pprof_check.samples(p):
        names = {f["name"] for f in s["frames"]}
        part = next((n for n in PARTS if n in names), "")
        key = s["labels"]["thread"], part
        spent[key] = spent.get(key, 0) + s["values"]["cpu"]
    return spent


def share(spent, of, index):
    whole = sum(spent.values())
    return sum(v for k, v in spent.items() if k[index] == of) / whole


@pytest.mark.alone
@pytest.mark.parametrize("args", [(3,), (3, "duty")])
def test_shares_of_functions_and_threads(start, profile, args):
    target = start("profiles", "cpu", *args)
    before = mark(target)
    _, p = profile(target.pid, "--profile", "cpu", "-r", 1000, cpu=2)
    truth = between(before, mark(target))
    target.assert_unharmed()
    got = by_part(p)
    # What ran between the marks and not in the recording may be all of one.
    outside = max(0, 1 - sum(got.values()) / sum(truth.values()))
    for index in (0, 1):
        for of in sorted({k[index] for k in truth}):
            have, want = share(got, of, index), share(truth, of, index)
            assert abs(have - want) < 0.02 + outside, (of, have, want, got,
                                                       truth)


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("kinds", ["cpu", "wall,cpu"])
def test_all_of_the_cpu_time_is_told(start, profile, threads, kinds):
    target = start("profiles", "cpu", threads)
    with CpuClock(target.pid) as clock:
        _, p = profile(target.pid, "--profile", kinds, cpu=1.5)
    target.assert_unharmed()
    want, not_sure = clock.spent(p)
    got = sum(s["values"]["cpu"] for s in pprof_check.samples(p))
    assert abs(got - want) < 0.02 * want + not_sure, (got, want, not_sure)


def test_never_stopping_calls_no_ptrace(start, tmp_path):
    """And threads that run have a stack all the same."""
    target = start("profiles", "cpu", 2)
    trace, out = tmp_path / "trace", tmp_path / "x.pb.gz"
    run = wallprof("-p", target.pid, "-d", 1, "--stop", "never", output=out,
                   prefix=("strace", "-f", "-c", "-o", str(trace)))
    # strace slows it so much that it misses ticks, and says so by status 1.
    assert run.status in (0, 1), run.err
    target.assert_unharmed()
    assert "pread64" in trace.read_text()
    assert "ptrace" not in trace.read_text()
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    ran = with_stack = 0
    for s in pprof_check.samples(p):
        if s["labels"]["state"] != "running":
            continue
        ran += s["values"]["wall"]
        if {f["name"] for f in s["frames"]} & set(PARTS):
            with_stack += s["values"]["wall"]
    assert ran > 0
    assert with_stack / ran > 0.9 or run.lacked_cpu(), run.err


# Starts a fixture, records it when it is ready, and ends it.
SCRIPT = """exec 3< <(exec "$1" $2)
p=$!
read -r -u 3 line
shift 2
"$@" -p $p
s=$?
kill $p
exit $s"""


def as_nobody():
    if os.geteuid():
        pytest.skip("only root can become nobody")
    return (), {"user": 65534, "group": 65534, "extra_groups": []}


def without_perf():
    """As where kernel.perf_event_paranoid is 3, or in a container."""
    return (str(FIXTURES / "fault_deny"), PERF_EVENT_OPEN, EACCES), {}


def in_user_namespace():
    return ("unshare", "-Ur"), {}


@pytest.mark.parametrize("kind", ["cpu", "wall,cpu", "block", "mutex",
                                  "threadcreate"])
@pytest.mark.parametrize("mode", ["cpu 1", "hold sleep", "churn 200"])
@pytest.mark.parametrize("how", [as_nobody, without_perf, in_user_namespace])
def test_who_may_not_have_it_is_told_why(how, mode, kind, tmp_path):
    """A file that says how it came about, or words that say why there is none.
    """
    prefix, as_whom = how()
    out = tmp_path / "x.pb.gz"
    done = subprocess.run(
        [*prefix, "bash", "-c", SCRIPT, "bash", str(FIXTURES / "profiles"),
         mode, str(WALLPROF), "--profile", kind, "-d", "0.5", "-f", "pprof",
         "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=100, **as_whom)
    out.write_bytes(done.stdout)
    run = Run(done.args, done, out)
    assert run.status in (0, 1, 2), (run.status, run.err)
    if run.status == 2:
        assert run.out == ""
        assert run.err.startswith("wallprof: "), run.err
        assert len(run.err.splitlines()[0]) > 40, run.err
        return
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    if kind in ("block", "mutex", "threadcreate"):
        assert any(c.startswith(f"{kind}: ") for c in pprof_check.comments(p))


def wait_for_port(target, port):
    while target.is_running():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise AssertionError(target.proc.stderr.read().decode())


def begin_redis(start, tmp_path, port):
    target = start(shutil.which("redis-server"), "--port", port, "--save", "",
                   "--bind", "127.0.0.1", "--dir", tmp_path, ready=False)
    load = [shutil.which("redis-benchmark"), "-p", str(port), "-t", "get",
            "-n", "100000000", "-q"]
    return target, load, "aeMain"


NGINX = """daemon off; master_process off; pid {dir}/nginx.pid;
error_log {dir}/nginx.log;
events {{ }}
http {{ access_log off; server {{ listen 127.0.0.1:{port};
return 200 ok; }} }}
"""


def begin_nginx(start, tmp_path, port):
    conf = tmp_path / "nginx.conf"
    conf.write_text(NGINX.format(dir=tmp_path, port=port))
    target = start(shutil.which("nginx") or "/usr/sbin/nginx", "-p", tmp_path,
                   "-c", conf, ready=False)
    load = [shutil.which("wrk"), "-t1", "-c10", "-d60",
            f"http://127.0.0.1:{port}/"]
    return target, load, "ngx_process_events_and_timers"


@pytest.mark.parametrize("begin", [begin_redis, begin_nginx])
def test_go_tool_pprof_shows_servers_under_load(start, tmp_path, begin):
    port = free_port()
    target, load, known = begin(start, tmp_path, port)
    wait_for_port(target, port)
    client = subprocess.Popen(load, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    out = tmp_path / "x.pb.gz"
    try:
        wallprof("-p", target.pid, output=out,
                 until=lambda: has_run(target.pid, 0.3)).check()
        assert client.poll() is None, "the load ended too soon"
    finally:
        client.kill()
        client.wait()
    target.assert_unharmed()
    for index in ("cpu", "wall"):
        done = subprocess.run(
            ["go", "tool", "pprof", "-top", "-cum", f"-sample_index={index}",
             str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PPROF_TMPDIR": str(tmp_path)})
        text = done.stdout.decode()
        assert done.returncode == 0, done.stderr.decode()
        assert f"Type: {index}" in text, text[:500]
        assert known in text, text[:3000]
    p = pprof_check.load(str(out))
    cpu = sum(s["values"]["cpu"] for s in pprof_check.samples(p))
    assert cpu > 0.2e9


@pytest.mark.parametrize("threads, whose", [(20, "thread"), (2100, "CPU")])
def test_events_are_not_opened_by_the_thousand(start, threads, whose):
    target = start("waiters", threads)
    # 1 is ticks missed where the machine is busy.
    run = wallprof("-p", target.pid, "-d", 0.5, output="/dev/null")
    assert run.status in (0, 1), run.err
    target.assert_unharmed()
    assert f"by perf events of each {whose}" in run.err, run.err
