# SPDX-License-Identifier: Apache-2.0
"""Programs that hang, each in its own way: dumps and verdicts.

A fixture says which thread is stuck in which function and whom it waits for
(fixtures/hang.h); what wallprof says is compared with that.
"""
import pathlib
import re

import pytest

from conftest import NO_PID, wallprof
from hangs import TYPES, Dump, check

CASES = [
    *(("hang", "abba", kind) for kind in
      ("normal", "recursive", "errorcheck", "adaptive", "robust")),
    *(("hang", mode) for mode in
      ("deep", "unmapped", "cycle5", "self", "join", "timed", "robust", "gone",
       "chain", "pi", "rwlock", "rwlock-readers", "condvar", "livelock", "pool",
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
    """Statuses of a dump.  musl's libc has no unwind info: its stacks are not whole."""
    if hang.mode == "unmapped":
        return (1,)
    return (0, 1) if hang.program == "hang-musl" else (0,)


def assert_edges(dump, hang):
    """Each waits for whom it should, and for nobody else."""
    for name, tid in hang.threads.items():
        mine = [e for e in dump.edges if e["from_tid"] == tid]
        other = hang.waits_for[name]
        if hang.mode == "fcntl" and name == "parent":
            other = "child"
        if hang.mode == "livelock" and name != "main":
            # Each tries the other's lock, and may lose its CPU while it has it.
            assert {(e["kind"], e["to_tid"]) for e in mine} <= {
                ("lock", tid) for n, tid in hang.threads.items()
                if n not in (name, "main")}, (name, mine)
            continue
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


def test_text(hang):
    target = hang("hang", "abba")
    text = wallprof("--threads", "-p", target.pid).check().out
    cook, baker = target.threads["cook"], target.threads["baker"]
    assert text.startswith("DEADLOCK: 2 threads wait for each other\n")
    assert re.search(
        rf'^thread {cook} "cook" \[waiting: lock mutex '
        rf'{target.objects["cook"]} <second> held by thread {baker} "baker"'
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


@pytest.mark.parametrize("args", [("--threads",), ("--check",)])
def test_a_failed_look_is_2_and_says_why(args, tmp_path):
    run = wallprof(*args, "-p", NO_PID, output=tmp_path / "x.txt")
    run.check(2)
    assert "no process" in run.err and "healthy" not in run.out
    assert list(tmp_path.iterdir()) == []
    if pathlib.Path("/proc/2/stat").exists():
        run = wallprof(*args, "-p", 2).check(2)
        assert "kernel thread" in run.err and "healthy" not in run.out


@pytest.mark.parametrize("args", [
    ("--check",), ("--threads",), ("--check", "--interval", "x", "-p", "1"),
    ("--threads", "nonsense", "-p", "1"),
    ("--threads", "-f", "nonsense", "-p", "1"),
    ("--check", "--threads", "-p", "1"),
    ("--group", "-p", "1"),
])
def test_wrong_usage_is_64(args):
    run = wallprof(*args).check(64)
    assert run.err.startswith("wallprof: ") and run.err.count("\n") == 1
