# SPDX-License-Identifier: Apache-2.0
"""The call that a thread sleeps in, with its arguments, in a dump: a program of
python's, whose threads each sleep in one that it knows."""
import json
import os
import re

import pytest

from conftest import wallprof

PROGRAM = r"""
import json, os, select, subprocess, sys, threading, time

pipes = [os.pipe() for _ in range(5)]
fds = [p[0] for p in pipes]
child = subprocess.Popen(["/bin/sleep", "1000"])
leader = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
pidfd = os.pidfd_open(child.pid)
WAIT = os.WEXITED | os.WNOWAIT

def poll(which, ms=None):
    p = select.poll()
    for fd in which:
        p.register(fd, select.POLLIN)
    p.poll(ms)

def epoll(seconds):
    e = select.epoll()
    for fd in fds[:3]:
        e.register(fd)
    e.poll(seconds)

CALLS = {
    "select": lambda: select.select([fds[0], fds[2]], [], []),
    "select of many": lambda: select.select(fds, [], []),
    "select, limited": lambda: select.select([fds[1]], [], [], 5000),
    "poll of one": lambda: poll(fds[:1]),
    "poll of many": lambda: poll(fds),
    "poll, limited": lambda: poll(fds[:1], 5000000),
    "poll of a process": lambda: poll([pidfd]),
    "epoll": lambda: epoll(-1),
    "epoll, limited": lambda: epoll(5000),
    "waitid of a child": lambda: os.waitid(os.P_PID, child.pid, WAIT),
    "waitid of a group": lambda: os.waitid(os.P_PGID, leader.pid, WAIT),
    "waitid of any": lambda: os.waitid(os.P_ALL, 0, WAIT),
    "waitid of a pidfd": lambda: os.waitid(os.P_PIDFD, pidfd, WAIT),
    "wait4 of a child": lambda: os.waitpid(child.pid, 0),
    "wait4 of a group": lambda: os.waitpid(-leader.pid, 0),
    "sleep": lambda: time.sleep(5000),
}
tids = {}

def run(name):
    tids[name] = threading.get_native_id()
    CALLS[name]()

for name in CALLS:
    threading.Thread(target=run, args=(name,), daemon=True).start()
# pselect6, poll or ppoll, epoll_wait or epoll_pwait, waitid, wait4, clock_nanosleep.
NUMBERS = {"x86_64": (270, 7, 232, 281, 247, 61, 230)}.get(
    os.uname().machine, (72, 73, 22, 95, 260, 115))
for name in CALLS:
    # Asleep, and neither for the interpreter's lock nor for memory.
    while True:
        try:
            text = open(f"/proc/self/task/{tids[name]}/syscall").read()
        except KeyError:
            text = "running"
        if text.split()[0] in map(str, NUMBERS):
            break
        time.sleep(0.01)
print("READY", f"pid={os.getpid()}", json.dumps(
    {"tids": tids, "child": child.pid, "leader": leader.pid, "pidfd": pidfd,
     "fds": fds, "pipes": [os.readlink(f"/proc/self/fd/{fd}") for fd in fds]}),
    flush=True)
time.sleep(5000)
"""


@pytest.fixture
def asleep(start):
    target = start("/usr/bin/python3", "-c", PROGRAM)
    facts = json.loads(target.ready[target.ready.index("{"):])
    yield target, facts
    target.assert_unharmed()
    for pid in facts["child"], facts["leader"]:
        os.kill(pid, 9)


def test_calls_and_what_they_are_asked(asleep):
    target, facts = asleep
    run = wallprof("--threads", "-p", target.pid, "-f", "json")
    assert run.status == 0, run.err
    dump = json.loads(run.out)
    calls = {t["tid"]: t["call"] for p in dump["processes"]
             for t in p["threads"]}
    fd = [f"fd {n} {pipe}" for n, pipe in zip(facts["fds"], facts["pipes"])]
    child = f'pid {facts["child"]} "sleep"'
    pidfd = rf'fd {facts["pidfd"]} \S+ of {child}'
    three = re.escape(", ".join(fd[:3]))
    want = {
        "select": re.escape(f"pselect6 to read {fd[0]}, {fd[2]}"),
        "select of many": rf"pselect6 to read {three}, \.\.\.",
        "select, limited": re.escape(
            f"pselect6 to read {fd[1]}, at most 5000 s"),
        "poll of one": re.escape(f"poll of 1 descriptor: {fd[0]}"),
        "poll of many": rf"poll of 5 descriptors: {three}, \.\.\.",
        "poll, limited": re.escape(
            f"poll of 1 descriptor: {fd[0]}, at most 5000 s"),
        "poll of a process": f"poll of 1 descriptor: {pidfd}",
        "epoll": rf"epoll_wait fd \d+ watching 3 descriptors: {three}",
        "epoll, limited": rf"epoll_wait fd \d+ watching 3 descriptors: {three}"
                          ", at most 5000 s",
        "waitid of a child": f"waitid {child}",
        "waitid of a group": f"waitid any child of group {facts['leader']}",
        "waitid of any": "waitid any child",
        "waitid of a pidfd": f"waitid {pidfd}",
        "wait4 of a child": f"wait4 {child}",
        "wait4 of a group": f"wait4 any child of group {facts['leader']}",
        "sleep": r"clock_nanosleep for (5000|49\d\d) s more",
    }
    assert set(want) == set(facts["tids"])
    for name, pattern in want.items():
        call = calls[facts["tids"][name]]
        assert re.fullmatch(pattern, call), (name, call, pattern)


def test_who_waits_for_a_process_has_an_edge_to_it(asleep):
    target, facts = asleep
    run = wallprof("--threads", "-p", target.pid, "-f", "json")
    assert run.status == 0, run.err
    ends = {}
    for e in json.loads(run.out)["edges"]:
        ends.setdefault(e["from_tid"], []).append(e["to_pid"])
    for name in ("waitid of a child", "waitid of a pidfd", "wait4 of a child"):
        assert ends[facts["tids"][name]] == [facts["child"]], (name, ends)
    assert set(ends[facts["tids"]["waitid of any"]]) == {
        facts["child"], facts["leader"]}
