# SPDX-License-Identifier: Apache-2.0
"""Targets of dumps are guests: stopped, traced, in namespaces, or well."""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from conftest import (FIXTURES, SLOW, WALLPROF, states_of, status_of,
                      tids_of, wait_until, wallprof)
from hangs import Dump, check, validate
from test_hang_pipes import is_blocked


def test_a_hundred_dumps_give_no_eintr(start):
    target = start("eintr")
    tids = set(tids_of(target.pid))
    for i in range(100):
        run = wallprof("--threads", *(("--follow-processes",) if i % 2 else ()),
                       "-p", target.pid)
        assert run.status in (0, 1), run.err
        assert all(f"thread {tid} " in run.out for tid in tids)
    target.assert_unharmed()
    truth = target.truth()
    assert {n: t["eintrs"] for n, t in truth.items() if t["eintrs"]} == {}
    # It was at work all the time.
    assert truth["work-and-epoll"]["wakes"] > 100, truth


def test_no_descriptor_is_left(hang):
    target = hang("hang", "fullpipe")
    fds = {pid: os.listdir(f"/proc/{pid}/fd")
           for pid in target.pids.values()}
    for _ in range(5):
        wallprof("--threads", "-p", target.pid).check()
    check(target.pid)
    for pid, before in fds.items():
        assert os.listdir(f"/proc/{pid}/fd") == before


def test_a_stopped_process_is_dumped_and_stays_stopped(hang):
    target = hang("hang", "abba")
    os.kill(target.pid, signal.SIGSTOP)
    wait_until(lambda: states_of(target.pid) == {"T"})
    dump = Dump(target.pid)
    for name, tid in target.threads.items():
        assert dump.threads[tid]["state"] == "stopped"
        assert target.functions[name] in dump.functions(tid), name
    verdict = check(target.pid)
    assert verdict.verdict == "no progress"
    assert f"process {target.pid} is stopped" in verdict.why
    for tid in tids_of(target.pid):
        status = status_of(target.pid, tid)
        assert status["State"][0] == "T" and status["TracerPid"] == "0"
    os.kill(target.pid, signal.SIGCONT)
    wait_until(lambda: "T" not in states_of(target.pid))
    assert check(target.pid).verdict == "deadlock"
    target.assert_unharmed()


def traced(pid, by):
    """All threads of PID are traced by BY."""
    return all(status_of(pid, t)["TracerPid"] == str(by)
               for t in tids_of(pid))


@pytest.mark.parametrize("tracer", ["gdb", "strace"])
def test_what_another_holds_is_dumped(hang, tracer):
    target = hang("hang", "abba")
    argv = {"gdb": ["gdb", "-nx", "-q", "--batch-silent", "-p",
                    str(target.pid), "-ex", "shell sleep 60"],
            "strace": ["strace", "-f", "-o", "/dev/null", "-p",
                       str(target.pid)]}[tracer]
    if not shutil.which(tracer):
        pytest.skip(f"no {tracer}")
    env = dict(os.environ)
    env.pop("DEBUGINFOD_URLS", None)
    other = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             start_new_session=True)
    try:
        wait_until(lambda: traced(target.pid, other.pid))
        # gdb holds all of them, those included that were on their way there;
        # strace lets them go back into their calls.
        wait_until(lambda: states_of(target.pid) ==
                   {"t" if tracer == "gdb" else "S"})
        run = wallprof("--threads", "-f", "json", "-p", target.pid)
        assert run.status in (0, 1), run.err
        dump = json.loads(run.out)
        validate(dump)
        threads = {t["tid"]: t for t in dump["processes"][0]["threads"]}
        for name, tid in target.threads.items():
            names = [f["function"] for f in threads[tid]["frames"]]
            assert target.functions[name] in names, (name, threads[tid])
        # The debugger lost nothing of its own.
        assert other.poll() is None and traced(target.pid, other.pid)
        if tracer == "strace":
            assert check(target.pid).verdict == "deadlock"
    finally:
        # gdb's own child as well; it lets go of the target when it ends.
        os.killpg(other.pid, signal.SIGTERM if tracer == "gdb"
                  else signal.SIGINT)
        try:
            other.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(other.pid, signal.SIGKILL)
            other.wait()
    assert target.target.is_running()


def test_a_vfork_parent_is_no_trap(hang):
    """It is in D state: no stop reaches it, and none is needed."""
    target = hang("hang", "vfork")
    assert status_of(target.pid)["State"][0] == "D"
    begin = time.monotonic()
    dump = Dump(target.pid)
    assert time.monotonic() - begin < (30 if SLOW else 10)
    parent = dump.threads[target.threads["parent"]]
    assert parent["wait"] == "child" and parent["state"] == "waiting"
    assert "start_with_vfork" in dump.functions(parent["tid"])
    target.assert_unharmed()


@pytest.mark.parametrize("frames, more", [(500, ()), (5, ("big",)),
                                          (20, ("big",))])
def test_deep_stacks_of_running_threads_are_whole(start, frames, more):
    """24 KB, 9 MiB and 30 MiB: more than the first copy of a stack holds."""
    target = start("deep", frames, "spin", *more)
    for args in ((), ("--stop", "all")):
        dump = Dump(target.pid, *args)
        names = max((dump.functions(tid) for tid in dump.threads), key=len)
        down = "down_big" if more else "down"
        assert names.count(down) == frames + 1, (args, names)
        assert names[-1] in ("_start", "clone3", "clone"), (args, names)
    target.assert_unharmed()


def test_owners_in_a_pid_namespace(start, tmp_path):
    """A mutex has its owner's number in there."""
    probe = subprocess.run(["unshare", "-pf", "--mount-proc", "true"],
                           stderr=subprocess.PIPE)
    if probe.returncode:
        pytest.skip(f"unshare: {probe.stderr.decode().strip()}")
    target = start(shutil.which("unshare"), "-pf", "--mount-proc",
                   "--kill-child", FIXTURES / "hang", "abba")
    truth = json.loads(target.ready.split(" ", 2)[2])
    unshare = target.proc.pid
    kids = pathlib.Path(f"/proc/{unshare}/task/{unshare}/children")
    pid = int(kids.read_text().split()[0])
    outside = {int(status_of(pid, t)["NSpid"].split()[-1]): t
               for t in tids_of(pid)}
    # Two numbers for each thread, or this shows nothing.
    assert all(inside != out for inside, out in outside.items())
    tids = {n: outside[t] for n, t in truth["threads"].items()}
    dump = Dump(pid)
    assert set(dump.threads) == set(tids.values())
    for name in ("cook", "baker"):
        lock = dump.threads[tids[name]]["lock"]
        assert lock["holder"] == "thread", lock
        assert lock["owner_tid"] == tids[truth["waits_for"][name]], lock
    join = [e for e in dump.edges if e["from_tid"] == tids["main"]]
    assert [e["to_tid"] for e in join] == [tids["cook"]]
    run = check(pid)
    assert run.verdict == "deadlock"
    assert f'thread {tids["cook"]} "cook"' in run.dump


# The first process of a PID namespace, which has both ends of a pipe or unix socket at
# argv[4:] from outside, or makes them; its child waits for what only it could write.  It
# says the status and the text of `check` there, argv[3] being wallprof.
NAMESPACE = r"""
import os, signal, socket, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
made, kind, wallprof = sys.argv[1:4]
ends = tuple(map(int, sys.argv[4:]))
if made == "inside":
    # Later than the clock ticks in which it started.
    time.sleep(0.1)
    ends = tuple(s.detach() for s in socket.socketpair()) if kind == "socket" else os.pipe()
if kind != "pipe":
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
code = f"import os, signal; signal.signal(2, signal.SIG_DFL); os.read({ends[0]}, 1)"
child = subprocess.Popen([sys.executable, "-c", code], pass_fds=ends)
looks = os.fork() == 0
# What it has made itself, or not used, it does not keep.
if looks or made == "inside" or kind == "pipe":
    for fd in ends:
        os.close(fd)
if not looks:
    os.waitpid(child.pid, 0)
    os._exit(0)
def waits(pid, numbers, argument):
    with open(f"/proc/{pid}/syscall") as f:
        return f.read().startswith(tuple(f"{n} {argument:#x} " for n in numbers))
while not (waits(child.pid, (0, 63), ends[0]) and waits(1, (61, 260), child.pid)):
    time.sleep(0.01)
run = subprocess.run([wallprof, "check", "-i", "300ms", str(child.pid)],
                     stdout=subprocess.PIPE, text=True)
print(run.returncode, run.stdout, flush=True)
os.kill(child.pid, signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["pipe", "used pipe", "socket"])
@pytest.mark.parametrize("made, status", [("outside", 0), ("inside", 3)])
def test_who_is_outside_of_a_pid_namespace_may_write(kind, made, status):
    """To what came in from there, as this test could."""
    unshare = ("unshare", "-pf", "--mount-proc", "--kill-child")
    probe = subprocess.run([*unshare, "true"], stderr=subprocess.PIPE)
    if probe.returncode:
        pytest.skip(f"unshare: {probe.stderr.decode().strip()}")
    ends = (tuple(s.detach() for s in socket.socketpair()) if kind == "socket"
            else os.pipe())
    try:
        run = subprocess.run(
            [*unshare, sys.executable, "-c", NAMESPACE, made, kind,
             WALLPROF, *map(str, ends)],
            stdout=subprocess.PIPE, text=True, pass_fds=ends, timeout=100)
    finally:
        for fd in ends:
            os.close(fd)
    assert run.stdout.startswith(f"{status} "), run.stdout
    assert not status or "waits for its own process" in run.stdout, run.stdout


# Waits for a unix socket's other end; for anybody who connects to it, or sends.
UNIX_PAIR = "a, b = socket.socketpair(); say(); a.recv(1)"
UNIX_LISTENING = ("s = socket.socket(socket.AF_UNIX); s.bind(''); s.listen(); say(); "
                  "s.accept()")
UDP = "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 0)); say(); s.recv(1)"


def in_another_network(work):
    """The command of a program that does WORK there."""
    probe = subprocess.run(["unshare", "-n", "true"], stderr=subprocess.PIPE)
    if probe.returncode:
        pytest.skip(f"unshare: {probe.stderr.decode().strip()}")
    return (shutil.which("unshare"), "-n", "/usr/bin/python3", "-c",
            "import os, socket\ndef say(): "
            f"print(f'READY pid={{os.getpid()}}', flush=True)\n{work}")


@pytest.mark.parametrize("work, is_told", [
    (UNIX_PAIR, True), (UNIX_LISTENING, False), (UDP, False)],
    ids=["pair", "listening", "UDP"])
def test_a_socket_in_another_network_namespace(start, work, is_told):
    """The other end of a unix socket cannot be told, and that is."""
    target = start(*in_another_network(work))
    wait_until(lambda: is_blocked(target.pid, (43, 45, 202, 207, 242, 288)))
    run = wallprof("--threads", "-p", target.pid)
    assert run.status == 0, run.err
    assert ("1 wait on unix sockets whose other end cannot be told: they are in "
            "another network namespace" in run.err) == is_told, run.err
    run = wallprof("check", "-p", target.pid, "-i", "100ms")
    assert run.status == 0, run.out
    assert ("another network namespace" in run.err) == is_told, run.err


def test_a_dump_at_a_time_limit_says_what_it_lacks():
    """As one of a running process does."""
    run = wallprof("--timeout", 8, "--", *in_another_network(UNIX_PAIR))
    assert run.status == 124, run.err
    assert ("1 wait on unix sockets whose other end cannot be told: they are in "
            "another network namespace" in run.err), run.err


# Soak: what is well is never called anything else.

LOOKS = 20 if SLOW else 200


def assert_no_false_alarm(pid):
    for i in range(LOOKS):
        run = wallprof("--check", "--interval", "100ms", "-p", pid)
        assert run.status == 0, (i, run.status, run.out, run.err)
        assert run.out.startswith("healthy: "), run.out


class Load:
    """Rounds of redis-benchmark, one after the other, until it is ended."""

    ROUND = 20000

    def __init__(self, sock):
        self.sock = sock
        self.rounds = 0
        self.begin()

    def begin(self):
        self.proc = subprocess.Popen(
            ["redis-benchmark", "-s", str(self.sock), "-n", str(self.ROUND),
             "-c", "20", "-t", "set", "--csv"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def finish(self):
        """To the end of a round: no request of it was lost."""
        out, err = self.proc.communicate(timeout=120)
        assert self.proc.returncode == 0, err
        assert b"rror" not in out + err, out + err
        assert b'"SET"' in out, out
        self.rounds += 1

    def go_on(self):
        if self.proc.poll() is not None:
            self.finish()
            self.begin()

    def end(self):
        self.proc.kill()
        self.proc.communicate()


@pytest.fixture
def load(redis):
    driver = Load(redis[1])
    yield driver
    driver.end()


@pytest.mark.soak
@pytest.mark.parametrize("case", [("idle", "sigwait"), ("idle", "join"),
                                  ("pool",)], ids="-".join)
def test_an_idle_server_is_healthy(hang, case):
    target = hang("hang", *case)
    assert_no_false_alarm(target.pid)
    target.assert_unharmed()


@pytest.mark.soak
def test_an_idle_redis_is_healthy(redis):
    assert_no_false_alarm(redis[0].pid)
    redis[0].assert_unharmed()


@pytest.mark.soak
def test_a_busy_redis_is_healthy(redis, load):
    for i in range(LOOKS):
        load.go_on()
        run = wallprof("--check", "--interval", "100ms", "-p", redis[0].pid)
        assert run.status == 0, (i, run.status, run.out, run.err)
    redis[0].assert_unharmed()


@pytest.mark.soak
def test_python_at_a_prompt_is_healthy():
    pid, master = pty.fork()
    if pid == 0:
        os.execv("/usr/bin/python3", ["python3", "-q"])
    try:
        seen = b""
        while b">>> " not in seen:
            assert select.select([master], [], [], 20)[0], seen
            seen += os.read(master, 4096)
        assert_no_false_alarm(pid)
        # It answers as ever.
        os.write(master, b"print(6 * 7)\n")
        while b"42" not in seen:
            assert select.select([master], [], [], 20)[0], seen
            seen += os.read(master, 4096)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


@pytest.mark.soak
def test_twenty_dumps_a_second_cost_no_request(redis, load):
    server, sock = redis
    begin = next_one = time.monotonic()
    dumps = 0
    while time.monotonic() < begin + 60:
        run = wallprof("--threads", "-p", server.pid)
        assert run.status in (0, 1), run.err
        dumps += 1
        load.go_on()
        next_one = max(next_one + 0.05, time.monotonic())
        time.sleep(max(0, next_one - time.monotonic()))
    load.finish()
    stats = subprocess.run(["redis-cli", "-s", str(sock), "info",
                            "commandstats"], stdout=subprocess.PIPE,
                           check=True).stdout.decode()
    calls = int(re.search(r"cmdstat_set:calls=(\d+)", stats).group(1))
    assert calls == load.rounds * load.ROUND
    # Names and lines are looked up anew by each: some 50 ms of a CPU that
    # the server and its clients want as well.
    assert dumps > (20 if SLOW else 1000), dumps
    server.assert_unharmed()
