# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve` of many processes in one recording: --all, --name, --tree."""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import time

import pprof_check
import pytest

from conftest import (FIXTURES, WALLPROF, children_of, run_ns, wait_until,
                      wallprof)
from test_serve import Server, serve  # noqa: F401  pylint: disable=unused-import

# A host of its own, whose processes are those that LOAD starts and the server.
HOST = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c")
HERD = f"{FIXTURES}/herd 20 3 100000 & "
# So many processes a second: half of them end at once, half live four intervals.
STORM = """(while :; do for i in 1 2 3 4 5 6 7 8 9 10; do
/bin/true; sleep 0.2 & done; sleep %s; done) & """


@pytest.fixture
def serve_host(tmp_path):
    """Begin to serve all processes of a host that has LOAD."""
    servers = []

    def begin(load, *words):
        under = (*HOST, load + 'exec "$@"', "sh")
        servers.append(Server(tmp_path, *words, under=under))
        return servers[-1]
    yield begin
    for server in servers:
        # unshare(1) passes no signal on; it ends with what it has started.
        for pid in own_processes(server)[:1]:
            os.kill(pid, signal.SIGTERM)
        server.tool.wait(60)
        server.tool.stderr.close()


def by_label(server, metric, label="process"):
    """{value of LABEL: sum}."""
    ret = {}
    for line in server.get("/metrics").decode().splitlines():
        if line.startswith(metric + "{"):
            key = line.split(label + '="')[1].split('"')[0]
            ret[key] = ret.get(key, 0) + float(line.rsplit(" ", 1)[1])
    return ret


def samples_of(server, tmp_path, query):
    path = tmp_path / "answer.pb.gz"
    path.write_bytes(server.get(f"/debug/pprof/wall?{query}"))
    return pprof_check.samples(pprof_check.load(path))


def own_processes(server):
    """PIDs of the server's processes, from outside of its namespace."""
    pids, own = [server.tool.pid], []
    for pid in pids:
        pids += children_of(pid)
        try:
            if os.path.samefile(f"/proc/{pid}/exe", WALLPROF):
                own.append(pid)
        except OSError:
            pass
    return own


def recorders(server):
    """PIDs of those that record, without what is forked for answers."""
    ret = []
    for pid in own_processes(server):
        # What is forked may have ended.
        with contextlib.suppress(OSError), \
                open(f"/proc/{pid}/comm", encoding="ascii") as f:
            if f.read() == "wp-recorder\n":
                ret.append(pid)
    return ret


def descriptors(server):
    n = 0
    for pid in own_processes(server):
        try:
            n += len(os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            pass
    return n


def test_all_processes_are_told_by_name_and_pid(serve_host, tmp_path):
    server = serve_host(HERD, "--all").ready(2)
    # Of 20 with 3 threads each, and their parent with one, a child of wallprof's own
    # first process.
    wait_until(lambda: by_label(server, "wallprof_processes_of_name") ==
               {"herd": 21}, pause=0.1)
    # A second in which all of them had time.
    wait_until(lambda: by_label(server, "wallprof_threads") == {"herd": 61},
               pause=0.1)
    begin = time.monotonic()
    before = by_label(server, "wallprof_thread_seconds_total")["herd"]
    samples = samples_of(server, tmp_path, "seconds=1")
    assert {s["labels"]["process"] for s in samples} == {"herd"}
    pids = {s["labels"]["pid"] for s in samples}
    assert len(pids) == 21
    # No second of theirs is told twice; what came late before is told now.
    took = by_label(server, "wallprof_thread_seconds_total")["herd"] - before
    assert 0 < took <= 61 * (time.monotonic() - begin + 2)
    pid = re.findall(r"\d+", str(sorted(pids)[0]))[0]
    one = samples_of(server, tmp_path, f"seconds=1&pid={pid}")
    assert {s["labels"]["pid"] for s in one} == {sorted(pids)[0]}
    assert samples_of(server, tmp_path, "seconds=1&ago=1&process=herd")
    for query in ("seconds=1&name=nobody", "seconds=1&pid=99999"):
        status, _, body = server.ask(f"/debug/pprof/wall?{query}")
        assert (status, body[:15]) == (404, b"no such process"), query
    assert server.ask("/debug/pprof/cmdline")[0] == 400
    status, _, body = server.ask("/debug/pprof/block")
    assert status == 404 and b"--block-rate" in body
    assert b"herd" in server.get(f"/debug/pprof/cmdline?pid={pid}")
    assert server.get("/debug/pprof/goroutine?debug=2").count(b"herd") >= 21
    assert server.get("/check").startswith(b"healthy")
    assert b"21 processes" in server.get("/")
    assert len(server.get("/timeline.html?ago=2&seconds=2")) > 10000


def test_a_storm_leaves_nothing(serve_host):
    """Descriptors, and the memory of what has left the ring, over its length."""
    server = serve_host(HERD + STORM % 0.02, "--keep", "2s", "--all").ready(2)
    before = descriptors(server)
    last = 0

    def has_dropped():
        nonlocal last
        last, was = server.metric("wallprof_profile_bytes{"), last
        return last < was
    wait_until(has_dropped, pause=0.2)
    # Some files of each process that lives now.
    wait_until(lambda: descriptors(server) <= before + 8 +
               8 * server.metric("wallprof_processes "), pause=0.2)
    assert server.metric("wallprof_stacks_dropped_total{") == 0


def files_of(server):
    """What the recorder has open."""
    ret = set()
    for pid in recorders(server):
        for fd in glob.iglob(f"/proc/{pid}/fd/*"):
            with contextlib.suppress(FileNotFoundError):
                ret.add(os.readlink(fd))
    return ret


def test_the_file_system_of_a_program_that_ended_can_be_unmounted(serve_host, tmp_path):
    """While ever new programs come and are removed."""
    mount, new, stop = (tmp_path / name for name in ("mount", "new", "stop"))
    for directory in (mount, new):
        directory.mkdir()
    spinner = f"{FIXTURES}/spinner"
    server = serve_host(
        f"""(mount -t tmpfs none {mount} && cp {spinner} {mount}/once || exit
{mount}/once 1 & until [ -e {stop} ]; do sleep 0.1; done; kill -KILL $!) &
(while :; do i=$((i+1)); cp {spinner} {new}/p$i
timeout -s KILL 0.3 {new}/p$i 1; rm {new}/p$i; done) & """,
        "--keep", "3s", "--all").ready(1)
    wait_until(lambda: any(name.endswith("/once") for name in
                           files_of(server)), pause=0.1)
    there = ["nsenter", "-t", str(recorders(server)[0]), "-m"]
    stop.touch()
    wait_until(lambda: not subprocess.run(
        [*there, "umount", mount], check=False, timeout=100,
        stderr=subprocess.DEVNULL).returncode, pause=0.5)
    for what in "mappings", "files", "names":
        assert server.metric(f"wallprof_{what}_dropped_total{{") == 0


def test_a_tree_with_those_to_come(start, serve, tmp_path):  # noqa: F811
    herd = start("herd", 3, 2, 100000)
    server = serve("--tree", herd.pid).ready(1)
    assert {s["labels"]["process"] for s in
            samples_of(server, tmp_path, "seconds=1")} == {"herd"}
    assert by_label(server, "wallprof_processes_of_name") == {"herd": 4}
    # Each thread of the herd sleeps a tenth of a second, then calls again; the first
    # process waits for signals.
    path = tmp_path / "block.pb.gz"
    path.write_bytes(server.get("/debug/pprof/block?seconds=2"))
    waits = pprof_check.samples(pprof_check.load(path))
    told = {s["labels"]["pid"] for s in waits if s["values"]["delay"]}
    assert told >= set(children_of(herd.pid)), waits
    assert told <= {herd.pid, *children_of(herd.pid)}, waits
    assert server.get("/debug/pprof/threadcreate")
    one = children_of(herd.pid)[0]
    for query in (f"pid={one}", f"seconds=1&pid={one}"):
        path.write_bytes(server.get(f"/debug/pprof/block?{query}"))
        waits = pprof_check.samples(pprof_check.load(path))
        assert {s["labels"]["pid"] for s in waits} == {one}, query


def test_processes_of_a_name_that_come_later(start, serve, tmp_path):  # noqa: F811
    # It is found by its file; as a process it calls itself "main".
    program = tmp_path / "later-one"
    shutil.copy(f"{FIXTURES}/hang", program)
    server = serve("--name", "later-o*")
    wait_until(lambda: server.metric("wallprof_ticks_total") >= 0)
    assert server.metric("wallprof_processes ") == 0
    first = start(str(program), "abba")
    wait_until(lambda: by_label(server, "wallprof_threads").get("main", 0) >= 3,
               pause=0.1)
    assert server.get("/check?name=main").startswith(b"deadlock")
    # What it did is told when it has ended, and others may come.
    first.proc.kill()
    first.proc.wait()
    wait_until(lambda: server.metric("wallprof_processes ") == 0, pause=0.1)
    assert samples_of(server, tmp_path, "seconds=30&ago=30")
    start(str(program), "abba")
    wait_until(lambda: server.metric("wallprof_processes ") == 1, pause=0.1)


def test_more_processes_than_are_looked_at(
        start, serve, tmp_path, monkeypatch):  # noqa: F811
    # Else the C library's functions are looked up for each: a minute.
    monkeypatch.setenv("WALLPROF_CACHE", str(tmp_path / "names"))
    herd = start("herd", 1029, 1, 10 ** 9)
    wallprof("dump", herd.pid).check()
    server = serve("--tree", herd.pid)
    wait_until(lambda: server.metric("wallprof_processes ") == 1030)
    says = b"1000 of 1030 processes were looked at; ?pid= and ?name= choose"
    assert server.get("/check").startswith(
        b"no verdict: those looked at are healthy, but " + says)
    last = children_of(herd.pid)[-1]
    assert server.get(f"/check?pid={last}").startswith(b"healthy: 1 thread")
    assert server.get("/debug/pprof/goroutine?debug=2").startswith(says)
    server.end()
    assert server.said.count(b"1030 processes are recorded: dumps and checks") \
        == 1, server.said
    herd.assert_unharmed()


def test_a_recorder_of_many_that_is_killed(start, serve, tmp_path):  # noqa: F811
    program = tmp_path / "served-herd"
    shutil.copy(f"{FIXTURES}/herd", program)
    herd = start(str(program), 3, 2, 100000)
    server = serve("--name", "served-h*").ready(1)
    before = server.metric("wallprof_thread_seconds_total")
    for pid in recorders(server):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.metric("wallprof_recorders_failed_total") == 1,
               pause=0.1)
    # Another one goes on with the counters.
    server.ready(1)
    wait_until(lambda: by_label(server, "wallprof_processes_of_name") ==
               {"served-herd": 4}, pause=0.1)
    assert server.metric("wallprof_thread_seconds_total") > before
    herd.assert_unharmed()


def test_what_does_not_go_together_is_refused(tmp_path):
    for words, why in ((("--all", "nginx"), "--name nginx"),
                       (("--children", "nginx"), "--name nginx"),
                       (("--children", "--listen", "unix:x"), "wants the PID"),
                       (("--tree", "4194303"), "4194303")):
        done = subprocess.run([WALLPROF, "serve", *words, "--listen",
                               f"unix:{tmp_path}/s"], timeout=100,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode and why in done.stderr.decode(), words


@pytest.mark.soak
def test_a_deadlock_of_one_among_many_that_began_half_a_minute_ago(
        start, serve, tmp_path):  # noqa: F811
    """The seconds before it and those in which it began are told apart, by the ring,
    when it has lasted for 30 s."""
    for name in ("herd", "hang"):
        shutil.copy(f"{FIXTURES}/{name}", tmp_path / f"served-{name}")
    start(str(tmp_path / "served-herd"), 20, 3, 100000)
    server = serve("--name", "served-*").ready(6)
    hung = start(str(tmp_path / "served-hang"), "abba")
    begin = time.monotonic()
    wait_until(lambda: time.monotonic() - begin > 30, pause=0.5)

    def then(first, seconds):
        """Samples of SECONDS that began FIRST after the deadlock."""
        ago = round(time.monotonic() - begin - first)
        return samples_of(server, tmp_path, f"seconds={seconds}&ago={ago}")
    assert {s["labels"]["process"] for s in then(-5, 3)} == {"served-herd"}
    stuck = [s for s in then(2, 4) if s["labels"]["pid"] == hung.pid]
    locks = {f["name"] for s in stuck for f in s["frames"]
             if s["labels"].get("wait") == "lock"}
    assert {"cook_takes_pan", "baker_takes_oven"} <= locks, stuck
    # Each of its three threads all the time.
    assert sum(s["values"]["wall"] for s in stuck) / 1e9 == pytest.approx(
        12, abs=2)
    assert server.get("/check").startswith(b"deadlock")
    dump = server.get("/debug/pprof/goroutine?debug=2").decode()
    assert dump.startswith("DEADLOCK: 2 threads wait for each other"), dump
    assert re.search(r"lock .*, 3\d s, stuck", dump), dump
    hung.assert_unharmed()


@pytest.mark.soak
@pytest.mark.parametrize("limit", [(), ("--max-cpu", "0")],
                         ids=["max-cpu", "all-ticks"])
def test_an_hour_of_all_beside_a_fork_storm(serve_host, tmp_path, limit):
    """Memory: the most in each ten minutes, which is within a twentieth.  Within the
    CPU time that --all may take, without answers, or with all of its ticks."""
    seconds = int(os.environ.get("WALLPROF_SOAK_S", "3600"))
    server = serve_host(HERD + STORM % 0.05, "--keep", "60s", "--all",
                        *limit).ready(3)
    most, files = [0.0] * 6, [0] * 6
    begin = time.monotonic()
    recorder, = recorders(server)
    cpu = run_ns(recorder)
    while (passed := time.monotonic() - begin) < seconds:
        part = int(passed * 6 / seconds)
        most[part] = max(most[part],
                         server.metric("wallprof_recorder_memory_bytes{"))
        files[part] = max(files[part], descriptors(server))
        names = {s["labels"]["process"] for s in
                 samples_of(server, tmp_path, "seconds=3&ago=4")}
        assert {"herd", "sleep"} <= names, names
        time.sleep(1)
    cpu = (run_ns(recorder) - cpu) / 1e9
    ticks = server.metric("wallprof_ticks_total{")
    missed = server.metric("wallprof_missed_ticks_total{")
    spared = server.metric("wallprof_spared_ticks_total{")
    print("most memory and descriptors of each sixth:", most, files,
          "ticks, missed, spared:", ticks, missed, spared,
          "processes lost:", server.metric("wallprof_processes_lost"),
          f"CPU: {100 * cpu / seconds:.2f} %")
    assert max(most[2:]) <= 1.05 * most[1], most
    # Some 6 of each process that lives: two or three more at once are no growth.
    assert max(files[2:]) <= 1.05 * max(files[:2]), files
    assert missed <= ticks / 100
    if limit:
        assert not spared
    else:
        assert cpu <= 0.055 * seconds
    assert server.metric("wallprof_stacks_dropped_total{") == 0


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="userfaultfd(2) wants root")
def test_a_child_that_holds_a_recorder_up_is_left_alone(serve):  # noqa: F811
    """Of a tree of processes the others go on."""
    shell = subprocess.Popen(["sh", "-c", f"{FIXTURES}/unserved & {FIXTURES}/waiters 5; wait"],
                             stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until(lambda: len(children_of(shell.pid)) == 2)
        tree = serve("--tree", shell.pid)
        wait_until(lambda: tree.metric("wallprof_recorders_failed_total") == 1, 100)
        wait_until(lambda: (tree.metric("wallprof_ticks_total") or 0) > 10, 100)
        assert tree.metric("wallprof_threads{") == 7
        tree.end()
        assert " is recorded no more" in tree.said.decode(), tree.said
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="userfaultfd(2) wants root")
def test_a_process_that_holds_a_recorder_up_is_left_alone(start, serve, tmp_path):  # noqa: F811
    """Of several processes the others go on; one that is served by its pid has no other
    recorder."""
    # Of names that nothing else has.
    held, other = (start(shutil.copy(FIXTURES / name, tmp_path / f"own-{name}"), *args)
                   for name, *args in (("unserved",), ("waiters", 5)))
    many = serve("--name", "own-unserved", "--name", "own-waiters")
    (tmp_path / "one").mkdir()
    one = Server(tmp_path / "one", held.pid)
    wait_until(lambda: many.metric("wallprof_recorders_failed_total") == 1, 100)
    wait_until(lambda: (many.metric("wallprof_ticks_total") or 0) > 10, 100)
    assert many.metric("wallprof_processes_of_name{") == 1
    where = (f"(handle_userfault); a file or memory of process {held.pid} cannot be "
             "had, most likely because whoever serves its page faults does not answer")
    assert one.tool.wait(100) == 2
    said = one.tool.stderr.read().decode()
    assert where in said and "no process is left to serve" in said, said
    one.tool.stderr.close()
    many.end()
    said = many.said.decode()
    assert where in said, said
    assert f"process {held.pid} is recorded no more" in said, said
    for target in held, other:
        target.assert_unharmed()
