# SPDX-License-Identifier: Apache-2.0
"""Programs that hang, each in its own way: dumps and verdicts.

A fixture says which thread is stuck in which function and whom it waits for
(fixtures/hang.h); what wallprof says is compared with that.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest

from conftest import (FIXTURES, ROOT, SLOW, favour, status_of, tids_of,
                      wait_until, wallprof)

SCHEMA = ROOT / "test" / "data" / "dump.schema.json"
STATUS = {"healthy": 0, "deadlock": 3, "no progress": 4}
INTERVAL = ("--interval", "300ms")

# Edges that are of another kind than a lock.
KINDS = {
    "fullpipe": {"parent": "child", "child": "pipe"},
    "tworead": {"parent": "pipe", "child": "pipe"},
    "socketpair": {"parent": "socket", "child": "socket"},
    "flock": {"parent": "file lock", "child": "file lock"},
    "ofd": {"parent": "file lock", "child": "file lock"},
    "fcntl": {"parent": "file lock"},
    "forked": {"parent": "child"},
    "vfork": {"parent": "child"},
    "join": {"rock": "join", "paper": "join", "scissors": "join"},
    "rwlock-readers": {"reader": "join"},
}
TYPES = {"recursive": "recursive", "errorcheck": "error-checking",
         "adaptive": "adaptive", "robust": "robust", "pi": "PI"}

CASES = [
    *(("hang", "abba", kind) for kind in
      ("normal", "recursive", "errorcheck", "adaptive", "robust")),
    *(("hang", mode) for mode in
      ("cycle5", "self", "join", "timed", "robust", "gone", "chain", "pi",
       "rwlock", "rwlock-readers", "condvar", "livelock", "pool",
       "fullpipe", "tworead", "socketpair", "flock", "ofd", "fcntl",
       "forked", "vfork")),
    ("hang", "idle", "sigwait"), ("hang", "idle", "join"),
    ("hang", "chain", "recursive"),
    ("hang_cxx", "abba"), ("hang_cxx", "condvar"),
    ("hang-musl", "abba", "recursive"), ("hang-musl", "abba", "errorcheck"),
    ("hang-musl", "abba", "robust"), ("hang-musl", "abba", "normal"),
    ("hang-musl", "idle"), ("hang-musl", "pool"), ("hang-musl", "livelock"),
    ("hang_rust",),
]


class Hang:
    """A hanging program and its own account of it."""

    def __init__(self, start, tmp_path, program, mode="", argument=""):
        if program == "hang_rust" and not (FIXTURES / program).exists():
            pytest.skip("no rustc")
        if mode in ("flock", "ofd", "fcntl"):
            argument = str(tmp_path)
        self.program, self.argument = program, argument
        self.target = start(program, *filter(None, (mode, argument)))
        self.pid = self.target.pid
        self.__dict__.update(json.loads(self.target.ready.split(" ", 2)[2]))
        if (program, mode, argument) == ("hang-musl", "abba", "normal"):
            # Its normal mutex says that it is locked, not by whom.
            self.verdict, self.cycle = "no progress", []

    def knows_owner(self, name):
        """Does what NAME waits for say who has it?"""
        if self.program == "hang_rust":
            return False
        if self.program == "hang-musl":
            # A join neither: the word is in the thread, not its number.
            return name != "main" and self.argument in TYPES
        return (self.mode, name) != ("rwlock-readers", "writer")

    def kind(self, name):
        default = "join" if name == "main" else "lock"
        return KINDS.get(self.mode, {}).get(name, default)

    def followers(self, name):
        """Threads that wait for NAME, directly or through others."""
        found, todo = set(), [name]
        while todo:
            at = todo.pop()
            more = {n for n, w in self.waits_for.items() if w == at} - found
            found |= more
            todo += more
        return found - {name}

    def assert_unharmed(self):
        assert self.target.is_running()
        for pid in set(self.pids.values()):
            for tid in tids_of(pid):
                status = status_of(pid, tid)
                assert status["TracerPid"] == "0", status
                assert status["State"][0] not in "TtZX", status


@pytest.fixture
def hang(start, tmp_path):
    return lambda *case: Hang(start, tmp_path, *case)


def validate(dump):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(dump, schema)


class Dump:
    """A dump as JSON, made sure to be what the schema says."""

    def __init__(self, pid, *args, statuses=(0,)):
        run = wallprof("--threads", "-f", "json", "-p", pid, *args)
        assert run.status in statuses, (run.status, run.err, run.out)
        self.status, self.err = run.status, run.err
        self.json = json.loads(run.out)
        validate(self.json)
        self.processes = {p["pid"]: p for p in self.json["processes"]}
        self.threads = {t["tid"]: t for p in self.json["processes"]
                        for t in p["threads"]}
        self.edges = self.json["edges"]
        self.cycles = [[self.edges[i] for i in cycle]
                       for cycle in self.json["deadlocks"]]

    def functions(self, tid):
        return [f["function"] for f in self.threads[tid]["frames"]]

    def site(self, tid):
        t = self.threads[tid]
        return (t["frames"][t["site"]]["function"] if t["site"] is not None
                else None)


def has_function(names, name):
    """Rust's and C++'s names are longer."""
    return any(re.search(rf"(^|[: ]){name}($|\()", n) for n in names)


def assert_places(dump, hang):
    """Every thread is there, with its name, process and function."""
    for name, tid in hang.threads.items():
        t = dump.threads[tid]
        assert t["name"] == name
        assert tid in {x["tid"] for x in
                       dump.processes[hang.pids[name]]["threads"]}
        if hang.mode == "livelock" and name != "main":
            continue
        if hang.program == "hang-musl":
            # No unwind info in its libc: what is found is guessed.
            continue
        assert has_function(dump.functions(tid), hang.functions[name]), t
        assert has_function([dump.site(tid)], hang.functions[name]), t
        assert t["state"] == "waiting", t


def may_lose(hang):
    """musl's libc has no unwind info: its stacks are not whole."""
    return (0, 1) if hang.program == "hang-musl" else (0,)


def assert_edges(dump, hang):
    """Each waits for whom it should, and for nobody else."""
    for name, tid in hang.threads.items():
        mine = [e for e in dump.edges if e["from_tid"] == tid]
        other = hang.waits_for[name]
        if hang.mode == "fcntl" and name == "parent":
            other = "child"
        if not other or not hang.knows_owner(name):
            # Whatever is not known is not made up.
            assert mine == [], (name, mine)
            continue
        assert len(mine) == 1, (name, mine)
        assert mine[0]["kind"] == hang.kind(name), (name, mine)
        assert mine[0]["to_pid"] == hang.pids[other], (name, mine)
        if mine[0]["kind"] in ("lock", "join"):
            assert mine[0]["to_tid"] == hang.threads[other], (name, mine)


def assert_locks(dump, hang):
    """Kind, type, address and holder of every lock waited for."""
    for name, tid in hang.threads.items():
        lock = dump.threads[tid]["lock"]
        other = hang.waits_for[name]
        if hang.mode in ("gone", "forked") and not other:
            if hang.functions[name] == "sleep_for_an_hour":
                continue
            assert dump.threads[tid]["wait"] == "lock"
            assert lock["kind"] == "mutex" and lock["holder"] == "gone", lock
            assert lock["owner_tid"] == hang.gone, lock
        elif (hang.mode, name) == ("rwlock-readers", "writer"):
            assert lock["kind"] == "rwlock" and lock["access"] == "write"
            assert lock["holder"] == "readers" and lock["readers"] == 1, lock
            assert lock["owner_tid"] is None, lock
        elif other and hang.kind(name) == "lock":
            if not hang.knows_owner(name):
                assert lock["holder"] == "not recorded", lock
                assert lock["owner_tid"] is None, lock
                continue
            assert dump.threads[tid]["wait"] == "lock", dump.threads[tid]
            kind = "rwlock" if hang.mode == "rwlock" else "mutex"
            assert lock["kind"] == kind, lock
            assert lock["type"] == TYPES.get(hang.argument or hang.mode, "")
            assert lock["address"] == hang.objects[name], lock
            assert lock["holder"] == "thread", lock
            assert lock["owner_tid"] == hang.threads[other], lock
            assert dump.threads[tid]["timed"] == (hang.mode == "timed")


def assert_cycles(dump, hang):
    if not hang.cycle:
        # A cycle that ends by a time-out is none.
        assert dump.cycles == []
        return
    assert len(dump.cycles) == 1, dump.cycles
    assert (sorted(e["from_tid"] for e in dump.cycles[0]) ==
            sorted(hang.threads[n] for n in hang.cycle))
    for name in hang.cycle:
        assert dump.threads[hang.threads[name]]["stuck"], name
    # In order: each goes on where the one before it led.
    for before, edge in zip(dump.cycles[0], dump.cycles[0][1:]):
        name = next(n for n, t in hang.threads.items()
                    if t == before["from_tid"])
        assert edge["from_tid"] == hang.threads[hang.waits_for[name]]


def assert_roots(dump, hang):
    if not hang.root or hang.program == "hang-musl":
        return
    roots = dump.json["roots"]
    assert roots[0]["tid"] == hang.threads[hang.root], roots
    assert roots[0]["waiters"] == len(hang.followers(hang.root)), roots


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_dump(hang, case):
    target = hang(*case)
    dump = Dump(target.pid, "--follow-processes",
                statuses=may_lose(target))
    assert_places(dump, target)
    assert_edges(dump, target)
    assert_locks(dump, target)
    assert_cycles(dump, target)
    assert_roots(dump, target)
    target.assert_unharmed()


def check(pid, *args):
    """Run --check; its verdict, the reason, and the dump that follows."""
    run = wallprof("--check", *INTERVAL, "-p", pid, *args)
    found = re.match(r"(deadlock|no progress|healthy): (.+)\n", run.out)
    assert found, (run.status, run.out, run.err)
    run.verdict, run.why = found.groups()
    run.dump = run.out[found.end():]
    return run.check(STATUS[run.verdict])


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_verdict(hang, case):
    target = hang(*case)
    run = check(target.pid)
    if target.verdict:
        assert run.verdict == target.verdict, run.out
    else:
        assert run.verdict != "deadlock", run.out
    if run.verdict == "healthy":
        # One line, for a script that reads it.
        assert run.dump == "", run.dump
    else:
        assert f"process {target.pid} " in run.dump
    if run.verdict == "deadlock":
        section = run.dump[run.dump.index("DEADLOCK: "):].split("\n\n")[0]
        for name in target.cycle:
            assert f'thread {target.threads[name]} "{name}"' in section
            if target.program != "hang-musl":
                assert target.functions[name] in section
    if target.root and run.verdict != "healthy":
        line = re.search("^ROOT: .*", run.dump, re.M).group(0)
        assert (f'thread {target.threads[target.root]} "{target.root}"'
                in line), line
        assert target.functions[target.root] in line, line
    target.assert_unharmed()


@pytest.mark.parametrize("mode, who, verdict", [
    ("fullpipe", "child", "deadlock"), ("tworead", "child", "deadlock"),
    ("flock", "child", "deadlock"), ("ofd", "child", "deadlock"),
    ("forked", "child", "no progress"),
])
def test_verdict_from_the_other_side(hang, mode, who, verdict):
    target = hang("hang", mode)
    assert check(target.pids[who]).verdict == verdict
    target.assert_unharmed()


FCNTL, FLOCK = (72, 73) if os.uname().machine == "x86_64" else (25, 32)

# Processes that have locks on argv[1], or wait for one; each says who it is.
# One goes on when the one before it has its lock.
OPEN_FILES = r"""
import fcntl, os, signal, struct, sys, threading, time
SETLK, SETLKW, OFD_SETLK, OFD_SETLKW = 6, 7, 37, 38
READ, WRITE = fcntl.F_RDLCK, fcntl.F_WRLCK
said, has_said = os.pipe()
def say(name):
    os.write(1, f"{name} {os.getpid()}\n".encode())
    os.write(has_said, b"x")
def process(name, work):
    if os.fork() == 0:
        try:
            work(name)
        except BaseException:
            os.killpg(0, signal.SIGKILL)
        time.sleep(3600)
    os.read(said, 1)
def waiter(work):
    process("waiter", work)
def lock(cmd, kind, start=0, n=0, fd=None):
    def work(name):
        at = os.open(sys.argv[1], os.O_RDWR) if fd is None else fd
        if cmd in (SETLKW, OFD_SETLKW):
            say(name)
        fcntl.fcntl(at, cmd, struct.pack("hhqqi4x", kind, 0, start, n, 0))
        if cmd in (SETLK, OFD_SETLK):
            say(name)
    return work
def heir(name):
    fd = os.open(sys.argv[1], os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    say(name)
    time.sleep(3600)
def errand(name):
    fd = os.open(sys.argv[1], os.O_RDWR)
    pid = os.fork()
    if pid == 0:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os._exit(0)
    os.waitpid(pid, 0)
    say(name)
def flock(name):
    fd = os.open(sys.argv[1], os.O_RDWR)
    say(name)
    fcntl.flock(fd, fcntl.LOCK_EX)
"""

# What is run, one word after the other is said; who waits for whom.
OPEN_FILE_CASES = {
    "ranges": ("""
process("far", lock(OFD_SETLK, WRITE, 100, 10))
process("near", lock(OFD_SETLK, WRITE, 5, 10))
process("reader", lock(OFD_SETLK, READ, 0, 5))
waiter( lock(OFD_SETLKW, WRITE, 0, 10))
""", ["far", "near", "reader"], ["near", "reader"]),
    "readers": ("""
process("reader", lock(OFD_SETLK, READ, 0, 90))
process("writer", lock(OFD_SETLK, WRITE, 100, 10))
waiter( lock(OFD_SETLKW, READ, 50))
""", ["reader", "writer"], ["writer"]),
    "posix holder": ("""
process("holder", lock(SETLK, WRITE))
waiter( lock(OFD_SETLKW, WRITE))
""", ["holder"], ["holder"]),
    "posix waiter": ("""
process("holder", lock(OFD_SETLK, WRITE))
waiter( lock(SETLKW, WRITE))
""", ["holder"], ["holder"]),
    "shared": ("""
own = os.open(sys.argv[1], os.O_RDWR)
process("holder", lock(OFD_SETLK, READ))
process("sharer", lock(OFD_SETLK, READ, 0, 5, fd=own))
waiter( lock(OFD_SETLKW, WRITE, 0, 10, fd=own))
""", ["holder", "sharer"], ["holder"]),
    "threads": ("""
def two(name):
    lock(OFD_SETLK, WRITE)(name)
    threading.Thread(target=lock(OFD_SETLKW, WRITE), args=("waiter",)).start()
process("holder", two)
""", ["holder"], ["holder"]),
    # As flock(1) does on a descriptor of a shell's.
    "errand": ("""
process("holder", errand)
waiter(flock)
""", ["holder"], ["holder"]),
    "heir": ("""
process("holder", heir)
waiter( flock)
""", ["holder"], ["holder"]),
}


def is_in(pid, *numbers):
    """Does a thread of PID sleep in one of these calls?"""
    for tid in tids_of(pid):
        call = pathlib.Path(f"/proc/{pid}/task/{tid}/syscall").read_text()
        if call.split()[0] in map(str, numbers):
            return True
    return False


@pytest.mark.parametrize("case", OPEN_FILE_CASES)
def test_locks_of_open_files(tmp_path, case):
    """/proc/locks does not say who has them."""
    program, names, holders = OPEN_FILE_CASES[case]
    path = tmp_path / "file"
    path.write_bytes(bytes(1000))
    proc = subprocess.Popen(
        [sys.executable, "-c", OPEN_FILES + program + "time.sleep(3600)",
         path], stdout=subprocess.PIPE, start_new_session=True, text=True)
    try:
        pids = {}
        while set(pids) != {*names, "waiter"}:
            name, pid = proc.stdout.readline().split()
            pids[name] = int(pid)
        wait_until(lambda: is_in(pids["waiter"], FCNTL, FLOCK))
        dump = Dump(pids["waiter"], "--follow-processes")
        edges = [e for e in dump.edges if e["kind"] == "file lock"]
        assert (sorted(e["to_pid"] for e in edges) ==
                sorted(pids[h] for h in holders)), (edges, pids)
        assert all(str(path) in e["what"] for e in edges), edges
    finally:
        os.killpg(proc.pid, signal.SIGKILL)
        proc.wait()


def test_a_deadlock_beside_work_is_found(start, hang):
    """Two processes asked for at once: the worse one decides."""
    busy, stuck = start("spinner", 1), hang("hang", "abba")
    run = wallprof("--check", *INTERVAL, "-p", busy.pid, "-p", stuck.pid)
    if run.status == 64:
        pytest.skip("one process at a time")
    run.check(3)


def test_text(hang):
    target = hang("hang", "abba")
    text = wallprof("--threads", "-p", target.pid).check().out
    cook, baker = target.threads["cook"], target.threads["baker"]
    assert text.startswith("DEADLOCK: 2 threads wait for each other\n")
    assert re.search(
        rf'^thread {cook} "cook" \[waiting: lock mutex '
        rf'{target.objects["cook"]} held by thread {baker} "baker"'
        r".*\] cpu \d+, at cook_takes_pan hang\.c:\d+$", text, re.M), text
    assert re.search(r"^  #\d+ +cook_takes_pan hang\.c:\d+ ", text, re.M)
    assert re.search(rf"^process {target.pid} .*\n3 threads, none stopped",
                     text, re.M), text
    # "dump" may be said, and the kernel's stacks may be asked for.
    for args in (("--threads", "dump", "-p", target.pid),
                 ("--threads", "-k", "-p", target.pid)):
        assert f'thread {cook} "cook" [' in wallprof(*args).check().out
    target.assert_unharmed()


def test_group(hang):
    target = hang("hang", "chain")
    text = wallprof("--threads", "--group", "-p", target.pid).check().out
    # Ten threads: main, the holder, and eight that are alike.
    assert text.count("wait_for_first hang.c") - text.count("ROOT") <= 2
    for name, tid in target.threads.items():
        assert name in text and str(tid) in text, name
    assert re.search(r"\b8 threads\b", text), text


def test_follow_processes(hang):
    target = hang("hang", "fullpipe")
    child = target.pids["child"]
    text = wallprof("--threads", "-p", target.pid).check().out
    assert f"process {child} " in text
    assert "--follow-processes prints it" in text
    header = re.search(rf"^process {target.pid} ", text, re.M)
    assert "write_too_much" not in text[header.start():], text
    text = wallprof("--threads", "--follow-processes", "-p",
                    target.pid).check().out
    assert re.search(r"^  #\d+ +write_too_much ", text, re.M), text


def test_profiles_of_threads(hang, tmp_path):
    import pprof_check
    target = hang("hang", "chain")
    out = tmp_path / "threads.pb.gz"
    wallprof("--threads", "-f", "pprof", "-p", target.pid,
             output=out).check()
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    tids = [s["labels"]["tid"] for s in pprof_check.samples(p)]
    assert sorted(tids) == sorted(target.threads.values())
    folded = wallprof("--threads", "-f", "folded", "-p",
                      target.pid).check().out
    assert sum(int(line.rsplit(" ", 1)[1])
               for line in folded.splitlines()) == 10
    assert folded.count(";wait_for_first;") == 8, folded


def no_such_pid():
    pid = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text()) - 1
    while pathlib.Path(f"/proc/{pid}").exists():
        pid -= 1
    return pid


@pytest.mark.parametrize("args", [("--threads",), ("--check",)])
def test_a_failed_look_is_2_and_says_why(args, tmp_path):
    run = wallprof(*args, "-p", no_such_pid(), output=tmp_path / "x.txt")
    run.check(2)
    assert "no process" in run.err and "healthy" not in run.out
    assert list(tmp_path.iterdir()) == []
    if pathlib.Path("/proc/2/stat").exists():
        run = wallprof(*args, "-p", 2).check(2)
        assert "kernel thread" in run.err and "healthy" not in run.out


@pytest.mark.parametrize("args", [
    ("--check",), ("--threads",), ("--check", "--interval", "x", "-p", "1"),
    ("--threads", "nonsense", "-p", "1"),
    ("--threads", "-f", "svg", "-p", "1"),
    ("--check", "--threads", "-p", "1"),
    ("--group", "-p", "1"),
])
def test_wrong_usage_is_64(args):
    run = wallprof(*args).check(64)
    assert run.err.startswith("wallprof: ") and run.err.count("\n") == 1


# Targets are guests.

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


def states_of(pid):
    return {status_of(pid, t)["State"][0] for t in tids_of(pid)}


def test_a_stopped_process_is_dumped_and_stays_stopped(hang):
    target = hang("hang", "abba")
    os.kill(target.pid, signal.SIGSTOP)
    wait_until(lambda: states_of(target.pid) == {"T"})
    dump = Dump(target.pid)
    for name, tid in target.threads.items():
        assert dump.threads[tid]["state"] == "stopped"
        assert target.functions[name] in dump.functions(tid), name
    assert wallprof("--check", *INTERVAL, "-p", target.pid).status in (0, 3)
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
        # gdb holds all of them, those included that were on their way there.
        if tracer == "gdb":
            wait_until(lambda: states_of(target.pid) == {"t"})
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
    assert time.monotonic() - begin < (30 if SLOW else 3)
    parent = dump.threads[target.threads["parent"]]
    assert parent["wait"] == "child" and parent["state"] == "waiting"
    assert "start_with_vfork" in dump.functions(parent["tid"])
    target.assert_unharmed()


def dump_with_all(pid, *args):
    """A dump in which every thread has frames.  One that gets no CPU in the
    20 ms that a stop has is left out, and status 1 says so."""
    for _ in range(20):
        dump = Dump(pid, *args, statuses=(0, 1))
        seen = all(t["frames"] for t in dump.threads.values())
        assert dump.status == (0 if seen else 1)
        if seen:
            return dump
    raise AssertionError("it was never stopped in time")


@pytest.mark.parametrize("frames, more", [(500, ()), (5, ("big",)),
                                          (20, ("big",))])
def test_deep_stacks_of_running_threads_are_whole(start, frames, more):
    """24 KB, 9 MiB and 30 MiB: more than the first copy of a stack holds."""
    target = start("deep", frames, "spin", *more, start_new_session=True)
    favour(target.pid)
    for args in ((), ("--stop", "all")):
        dump = dump_with_all(target.pid, *args)
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
