# SPDX-License-Identifier: Apache-2.0
"""Every line that a person would type, and what it answers."""
import os
import re
import shutil
import subprocess

import pprof_check
import pytest

from conftest import FIXTURES, WALLPROF, Target, status_of, wait_until


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """fixtures/shares.c under a name that no other process has."""
    name = f"shr{os.getpid()}"
    program = tmp_path_factory.mktemp("words") / name
    shutil.copy(FIXTURES / "shares", program)
    target = Target([program])
    target.name = name
    yield target
    target.assert_unharmed()
    target.end()


def typed(line, directory, stdin=None):
    """Run LINE as a shell would, without one; wallprof is found by its path."""
    words = line.split()
    assert words[0] == "wallprof"
    done = subprocess.run([WALLPROF, *words[1:]], cwd=directory, timeout=100,
                          stdin=stdin or subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


REPORT = r"Thread time by state\n(.*\n)+.*do_sleep"

# Line, status, what standard output and standard error hold; files written.
LINES = [
    # A recording: by id, by name, by path, by word, by flag.
    ("wallprof PID -d 1", 0, REPORT, r"^$", []),
    ("wallprof NAME -d 1", 0, REPORT, r"^$", []),
    ("wallprof PATH -d 1", 0, REPORT, r"^$", []),
    ("wallprof record PID -d 1", 0, REPORT, r"^$", []),
    ("wallprof record NAME -d 1 -o a.pb.gz", 0, r"^$", r"a\.pb\.gz",
     ["a.pb.gz"]),
    ("wallprof -p PID -d 1 -o b.pb.gz", 0, r"^$", r"b\.pb\.gz", ["b.pb.gz"]),
    ("wallprof -d 1 -F 50 PID", 0, r", 50 Hz asked", r"^$", []),
    ("wallprof -- true", None, r"", r"", []),
    # A tenth of its time without a whole stack would be status 1: on a busy machine it
    # may take 40 ms to end, and as much to begin.
    ("wallprof -q -o c.html -- sleep 3", 0, r"^$", r"^$", ["c.html"]),
    # A dump.
    ("wallprof dump PID", 0, r"\nthread \d+ \"worker-0\" \[", r"^$", []),
    ("wallprof dump NAME --group", 0, r"worker-2", r"^$", []),
    ("wallprof --threads dump -p PID", 0, r"\"worker-0\"", r"^$", []),
    ("wallprof --threads -p PID", 0, r"\"worker-0\"", r"^$", []),
    # A check.
    ("wallprof check PID -i 100ms", 0, r"^healthy", r"^$", []),
    ("wallprof --check -p PID -i 100ms", 0, r"^healthy", r"^$", []),
    # A command with a limit.
    ("wallprof run 60 echo hello", 0, r"^hello\n$", r"^$", []),
    ("wallprof run -- sh -c true", 0, r"^$", r"^$", []),
    ("wallprof run 2 sleep 60", 124, r"^$", r"nanosleep", []),
    ("wallprof --timeout 2 -- sleep 60", 124, r"^$", r"nanosleep", []),
    ("wallprof top PID", 2, r"^$", r"^wallprof: top wants a terminal", []),
    # Saved profiles; a.pb.gz and b.pb.gz are from above.
    ("wallprof report a.pb.gz", 0, REPORT, r"^$", []),
    ("wallprof report a.pb.gz -o d.html", 0, r"^$", r"", ["d.html"]),
    ("wallprof diff a.pb.gz b.pb.gz", 0, r"^per second of recording$", r"^$", []),
    ("wallprof diff a.pb.gz b.pb.gz -o e.html", 0, r"^$", r"", ["e.html"]),
    # Threads by name.
    ("wallprof PID -d 1 -t worker-0 -t worker-1", 0, r"^2 threads", r"^$", []),
    ("wallprof PID -d 1 -t worker-* -t !*-0", 0, r"^2 threads", r"^$", []),
    ("wallprof PID -d 1 -t nobody", 2, r"^$",
     r"^wallprof: .* -t .nobody. chooses; there are: .*worker-0, .*\n$", []),
    ("wallprof dump PID -t nobody", 2, r"^$",
     r"^wallprof: .* -t .nobody. chooses; there are: .*worker-0, .*\n$", []),
    # Help.
    ("wallprof -V", 0, r"^wallprof \d+\.\d+\.\d+\n$", r"^$", []),
    ("wallprof --help", 0, r"\n  dump .*(.*\n)*.*--max-stopped", r"^$", []),
    ("wallprof help dump", 0, r"usage: wallprof dump (.*\n)*.*--group", r"^$", []),
    # Slips.
    ("wallprof", 64, r"^$", r"^usage: (.*\n)*  wallprof dump (.*\n)*", []),
    ("wallprof sleep 1", 64, r"^$", r"wallprof -- sleep 1 ", []),
    ("wallprof PID --durration 5", 64, r"^$", r"did you mean --duration\?", []),
    ("wallprof dmup PID", 64, r"^$", r"did you mean dump\?", []),
    ("wallprof top -p PID -p 1", 64, r"^$", r"one process at a time", []),
    ("wallprof PID 1", 64, r"^$", r"one process at a time", []),
    ("wallprof dump PID -d 5", 64, r"^$", r"-d is for record", []),
    ("wallprof no-such-process-here", 2, r"^$",
     r'^wallprof: no process is called "no-such-process-here"\n$', []),
    ("wallprof report nothing.pb.gz", 2, r"^$", r"No such file", []),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory, busy):
    """Where lines are typed, with the files that earlier ones leave."""
    place = tmp_path_factory.mktemp("typed")
    for name in "ab":
        assert typed(f"wallprof {busy.pid} -d 1 -o {name}.pb.gz", place)[0] == 0
    return place


@pytest.mark.parametrize("line, status, out, err, files", LINES,
                         ids=[row[0] for row in LINES])
def test_a_line_as_it_is_typed(busy, directory, line, status, out, err, files):
    line = line.replace("PID", str(busy.pid)).replace("NAME", busy.name)
    got = typed(line.replace("PATH", busy.argv[0]), directory)
    assert status is None or got[0] == status, got
    assert re.search(out, got[1], re.MULTILINE), got
    assert re.search(err, got[2], re.MULTILINE), got
    assert all((directory / name).stat().st_size for name in files)


def test_usage_is_ten_lines():
    lines = typed("wallprof", "/")[2].splitlines()
    assert len(lines) <= 10
    assert all(len(line) <= 80 for line in lines), lines


@pytest.mark.parametrize("command", [
    "record", "dump", "check", "run", "top", "report", "diff"])
def test_each_command_has_its_help(command):
    status, out, err = typed(f"wallprof {command} --help", "/")
    assert (status, err) == (0, "")
    assert f"usage: wallprof {command} " in out
    assert out == typed(f"wallprof help {command}", "/")[1]
    assert max(map(len, out.splitlines())) <= 80
    assert ("--block-rate" in out) == (command == "record")


def test_of_two_processes_of_one_name_none_is_taken(busy, directory):
    second = Target([busy.argv[0]])
    try:
        status, out, err = typed(f"wallprof {busy.name}", directory)
        assert (status, out) == (2, "")
        for pid in (busy.pid, second.pid):
            assert re.search(rf"^ +{pid}  {busy.argv[0]}$", err, re.MULTILINE)
        assert f'2 processes are called "{busy.name}"' in err
        second.assert_unharmed()
    finally:
        second.end()


def test_a_name_that_only_a_command_line_has_is_a_candidate(busy, directory):
    word = f"only-here-{os.getpid()}"
    script = subprocess.Popen(["sh", "-c", "sleep 100; :", word])
    try:
        status, _, err = typed(f"wallprof {word}", directory)
        assert status == 2
        assert re.search(rf"^ +{script.pid}  sh .*{word}$", err, re.MULTILINE)
        assert "command line" in err
    finally:
        script.kill()
        script.wait()


def test_of_a_long_name_all_counts(directory, tmp_path):
    """The kernel keeps 15 characters of it; a script's is in its command line."""
    shutil.copy("/bin/sleep", tmp_path / "wp-long-long-name-1")
    (tmp_path / "wp-long-long-name-2").write_text("#!/bin/sh\nread line\n")
    (tmp_path / "wp-long-long-name-2").chmod(0o755)
    (tmp_path / "wp-long-long-name-3").symlink_to("wp-long-long-name-1")
    started = []
    try:
        for n in "123":
            name = f"wp-long-long-name-{n}"
            for unknown in range(int(n), 5):
                status, _, err = typed(f"wallprof dump wp-long-long-name-{unknown}",
                                       directory)
                assert status == 2 and "no process is called" in err, err
            proc = subprocess.Popen([tmp_path / name, "1000"],
                                    stdin=subprocess.PIPE)
            started.append(proc)
            wait_until(lambda p=proc: status_of(p.pid)["Name"] == "wp-long-long-na")
        for n, proc in enumerate(started[1:], 2):
            status, out, err = typed(f"wallprof dump wp-long-long-name-{n}", directory)
            assert status in (0, 1) and f"process {proc.pid} " in out, (out, err)
    finally:
        for proc in started:
            proc.kill()
            proc.communicate()


def test_a_program_that_was_deleted_is_chosen_by_its_name(directory, tmp_path):
    path = tmp_path / "wp-deleted-program-x"
    shutil.copy("/bin/sleep", path)
    proc = subprocess.Popen([path, "1000"])
    try:
        wait_until(lambda: status_of(proc.pid)["Name"] == "wp-deleted-prog")
        path.unlink()
        status, out, err = typed("wallprof dump --name wp-deleted-*-x", directory)
        assert status in (0, 1) and f"process {proc.pid} " in out, (out, err)
    finally:
        proc.kill()
        proc.wait()


def test_who_starts_wallprof_is_no_candidate():
    """Such as sudo, whose command line has the name as well."""
    done = subprocess.run(["env", "sh", "-c", 'timeout 60 "$@"; exit $?', "sh",
                           WALLPROF, "no-such-process-there"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (
        2, b"", 'wallprof: no process is called "no-such-process-there"\n')


def test_words_and_flags_record_the_same(busy, directory):
    """Labels, columns and threads are those of the old form."""
    seen = []
    for line in (f"wallprof -p {busy.pid} -d 0.5 -o old.pb.gz -q",
                 f"wallprof {busy.name} -q -d 0.5 -o new.pb.gz"):
        assert typed(line, directory)[0] == 0
        p = pprof_check.load(str(directory / line.split("-o ")[1].split()[0]))
        pprof_check.validate(p)
        seen.append(({s["labels"]["thread"] for s in pprof_check.samples(p)},
                     [p.string_table[t.type] for t in p.sample_type]))
    assert seen[0] == seen[1]
