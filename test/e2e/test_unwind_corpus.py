# SPDX-License-Identifier: Apache-2.0
"""The unwinders agree, frame by frame and instruction by instruction.

tools/corpus stops each thread of a live program and walks it there and after
each of the next instructions, so that prologues, epilogues and stubs are met.
The rows are compared with libunwind (each step with its registers, each walk,
and as perf drives it), with libdw, and with what is guessed where the unwind
info is not looked at.  Whatever differs is an error unless ALLOWED says who is
right; what the fixtures' stacks are is known from their source.
"""
import bisect
import contextlib
import functools
import json
import re
import shutil
import subprocess
import time

import pytest

from conftest import (BUILD, FIXTURES, SLOW, stack_variants, status_of,
                      tids_of)
from test_stacks import CHAIN, PYTHON

CORPUS = BUILD / "tools" / "corpus"
GUESS_CHECK = BUILD / "tools" / "guess_check"
VARIANTS = [name.removeprefix("stack-") for name in stack_variants()]
ROOT = "end: reached the thread's first function"

# What may differ: fixture, from, module, why ours is right, and who says so:
# libdw, or libunwind, finds the same frames there, or the known chain holds.
ALLOWED = [
    (r"gcc-O2-static|musl-.*", "libunwind-cached", r"stack-.*|libc\.so",
     "ld makes no .eh_frame_hdr for them, and perf's search knows no other way "
     "to .eh_frame: libunwind goes by the frame pointer and leaves out frames "
     "that have none", "chain"),
    (r"gcc-O2-debugframe", "libunwind-cached", r"stack-.*",
     "perf's search does not look into .debug_frame", "libdw"),
    (r"gcc-O2-debugframe", "step", r"stack-.*",
     "libunwind as we drive it has no .debug_frame: it says that there is no "
     "info (2), which ours finds", "libdw"),
    (r"gcc-O2-debugframe", "walk", r"stack-.*|libc\.so\.6",
     "the same: the frame is there, marked as guessed", "libdw"),
    (r"musl-.*", "libdw", r"stack-.*|libc\.so",
     "musl's libc has no unwind info: libdw goes by the frame pointer, which "
     "leaves out frames, and has none to end at", "chain"),
    (r"clang-O2-lld", "libdw", r"stack-.*",
     "lld's PLT has no unwind info: libdw goes by the frame pointer and leaves "
     "out the function that made the call", "chain"),
    (r"program|gcc-.*|clang-.*", "libdw", r"ld-linux-x86-64\.so\.2",
     "libdw does not get out of _dl_runtime_resolve, which has its frame by rbx; "
     "libunwind and ours do, to the caller", "libunwind"),
]


class Looked:
    """What corpus printed about one process."""

    def __init__(self, pid, *args):
        done = subprocess.run([CORPUS, *map(str, args), str(pid)], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=600)
        assert done.returncode == 0, done.stderr.decode()
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.differs = [d for d in lines if d["kind"] == "differs"]
        self.walks = [d for d in lines if d["kind"] == "walk"]
        self.all, = (d for d in lines if d["kind"] == "looked")

    def check_whole(self):
        """Nothing was left out, and every stack is whole."""
        assert not self.all["lost"], self.all
        assert self.all.get(ROOT) == self.all["snapshots"], self.all


def looks_at(pid, *args):
    """Whole looks at PID, of which the caller takes what is enough: a step over a wait that
    takes too long, for want of a CPU, is the last of a round."""
    for _ in range(10):
        looked = Looked(pid, *args)
        looked.check_whole()
        yield looked


def text_of(finding):
    return "{from} {what} at {module}+{svma}: {ours} / {theirs}".format(
        **finding)


def find_allowed(variant, finding):
    for i, (where, by, module, _, _) in enumerate(ALLOWED):
        if (by == finding["from"] and re.fullmatch(where, variant)
                and re.fullmatch(module, finding["module"])):
            return i
    return None


def check_differences(variant, looked):
    """The entries of ALLOWED that were needed."""
    used = set()
    against = {"libdw": set(), "libunwind": set()}
    for d in looked.differs:
        by = "libdw" if d["from"] == "libdw" else "libunwind"
        against[by].add((d["module"], d["svma"]))
    for d in looked.differs:
        i = find_allowed(variant, d)
        assert i is not None, text_of(d)
        if ALLOWED[i][4] != "chain":
            by = ALLOWED[i][4]
            assert (d["module"], d["svma"]) not in against[by], text_of(d)
        used.add(i)
    return used


@functools.cache
def symbols_of(path):
    """Addresses and names of PATH's functions, in order."""
    out = subprocess.run(["nm", path], check=True, stdout=subprocess.PIPE)
    fields = [line.split() for line in out.stdout.decode().splitlines()]
    found = sorted((int(f[0], 16), re.sub(r"\..*", "", f[2])) for f in fields
                   if len(f) == 3 and f[1] in "tTwW")
    return [f[0] for f in found], [f[1] for f in found]


def names_of(walk, path):
    """Innermost first; "" for a frame of another file."""
    starts, names = symbols_of(path)
    return [names[bisect.bisect_right(starts, svma) - 1]
            if module == path.name else "" for module, svma, _ in walk["frames"]]


def is_end_of(part, whole):
    return bool(part) and part == whole[-len(part):]


def check_chain(looked, path):
    """Each walk shows the functions that the source has called by then."""
    assert looked.walks
    for walk in looked.walks:
        names = names_of(walk, path)
        assert is_end_of([n for n in names if n in CHAIN], CHAIN), names


def test_there_are_variants_of_each_kind():
    for kind in ("O0", "O2", "O3", "fp", "nofp", "static", "lld", "musl"):
        assert any(kind in v for v in VARIANTS), kind


@pytest.mark.parametrize("mode", ["spin", "wait"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_fixture(start, variant, mode):
    target = start("stack-" + variant, mode)
    snapshots, used = 0, set()
    for looked in looks_at(target.pid, "-dgw", "-n", 6, "-s", 200):
        target.assert_unharmed()
        check_chain(looked, FIXTURES / ("stack-" + variant))
        used |= check_differences(variant, looked)
        snapshots += looked.all["snapshots"]
        if snapshots > 100:
            break
    assert snapshots > 100
    # A libunwind that is driven without .debug_frame must be found out, or
    # nothing would be.
    if variant == "gcc-O2-debugframe":
        assert {"step", "walk"} <= {ALLOWED[i][1] for i in used}, used


# musl's source: what nanosleep and qsort call.
MUSL_SLEEP = re.compile(
    r"(((sccp|__syscall_cp|__syscall_cp_c|__syscall_cp_asm|__cp_\w+) )*"
    r"(clock_nanosleep |__clock_nanosleep )|__syscall_ret )?nanosleep leaf "
    r"|((sccp|__syscall_cp) )*clock_nanosleep leaf ")
MUSL_SORT = ["trinkle", "qsort_r"]


def test_guesses_in_musl_are_what_its_source_calls(start):
    """No frame of libc has unwind info; the static program has its names."""
    path = FIXTURES / "stack-musl-O2-static"
    target = start(path.name, "wait")
    after = CHAIN.index("in_qsort") + 1
    whole = CHAIN[:after] + MUSL_SORT + CHAIN[after:] + [
        "libc_start_main_stage2", "_start"]
    slept = 0
    for looked in looks_at(target.pid, "-w", "-n", 6, "-s", 400):
        for walk in looked.walks:
            names = names_of(walk, path)
            guessed = [g for _, _, g in walk["frames"]]
            if "leaf" in names:
                at = names.index("leaf")
                text = "".join(n + " " for n in names[:at + 1])
                assert text == "leaf " or MUSL_SLEEP.fullmatch(text), names
                slept += text != "leaf "
                names, guessed = names[at:], guessed[at:]
            assert is_end_of(names, whole), names
            # Who is called by libc was found without its unwind info.
            for name in ("run", "_start"):
                assert guessed[names.index(name)], (names, guessed)
        if slept > 10:
            break
    assert slept > 10


@contextlib.contextmanager
def busy(*argv, **kwargs):
    """Run ARGV, which never rests, and wait until it has been at it: it has mapped no code
    for 200 ms of CPU time."""
    if not shutil.which(argv[0]):
        pytest.skip(f"no {argv[0]}")
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    with open("/dev/null", "w") as null, subprocess.Popen(
            argv, stdout=null, stderr=null, **kwargs) as program:
        try:
            deadline = time.monotonic() + 100
            code, begun = None, 0
            while code is None or ticks_of(program.pid) < begun + 20:
                now = code_of(program.pid)
                if now != code:
                    code, begun = now, ticks_of(program.pid)
                assert program.poll() is None, argv
                assert time.monotonic() < deadline, argv
                time.sleep(0.01)
            yield program.pid
            assert program.poll() is None, f"{argv} was harmed"
        finally:
            program.kill()


def code_of(pid):
    """The mappings of PID that can be executed."""
    with open(f"/proc/{pid}/maps") as f:
        return [line for line in f if " r-xp " in line]


def ticks_of(pid):
    """CPU time of PID in ticks of 10 ms."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def check_program(pid, rounds=4, steps=250):
    """Every unwinder says the same, at every instruction that was met."""
    snapshots = right = 0
    for looked in looks_at(pid, "-dg", "-n", rounds, "-s", steps):
        for tid in tids_of(pid):
            assert status_of(pid, tid)["TracerPid"] == "0"
        check_differences("program", looked)
        snapshots += looked.all["snapshots"]
        right += looked.all["guess_right"]
        if snapshots > 10 * rounds:
            break
    assert snapshots > 10 * rounds
    assert right > snapshots


BUSY = {
    "bash": ["bash", "-c", "f() { local i=$1; while ((i)); do x=$((i % 7)); "
             "y=${x//1/2}; let i--; done; }; while :; do f 1000; done"],
    "perl": ["perl", "-e", "while (1) { my @a = map { $_ * 2 } "
             "sort { $a <=> $b } 1..50; my $s = join ',', @a; "
             "$s =~ s/(\\d)/x$1/g; }"],
    "python3": ["python3", "-c", "import re, json\nwhile True: "
                "json.dumps(re.findall('a+b', 'aaab' * 10)); "
                "sorted([3, 1, 2], key=lambda x: -x)"],
    "python3-threads": ["python3", "-c", PYTHON],
    "gdb": ["gdb", "-q", "-nx", "-batch", "-ex", "while 1", "-ex", "p 1 + 2",
            "-ex", "end"],
}


@contextlib.contextmanager
def busy_git(tmp_path):
    """It is asked for the same object for ever."""
    if not shutil.which("git"):
        pytest.skip("no git")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    name = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=tmp_path, check=True,
        input=b"text\n" * 1000, stdout=subprocess.PIPE).stdout.decode()
    with subprocess.Popen(["yes", name.strip()],
                          stdout=subprocess.PIPE) as asks:
        try:
            with busy("git", "cat-file", "--batch", cwd=tmp_path,
                      stdin=asks.stdout) as pid:
                yield pid
        finally:
            asks.kill()


@pytest.mark.parametrize("name", BUSY)
def test_program(name):
    with busy(*BUSY[name]) as pid:
        if len(tids_of(pid)) > 1:
            check_program(pid, 1, 100)
        else:
            check_program(pid)


def test_git(tmp_path):
    with busy_git(tmp_path) as pid:
        check_program(pid)


@contextlib.contextmanager
def driven(*argv):
    """ARGV puts a server under load."""
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as driver:
        try:
            yield
        finally:
            driver.kill()


def load_redis(sock):
    return driven("redis-benchmark", "-s", str(sock), "-n", "100000000", "-q")


def load_nginx(port):
    return driven("wrk", "-t1", "-c8", "-d600", f"http://127.0.0.1:{port}/")


def test_redis(redis):
    server, sock = redis
    with load_redis(sock):
        check_program(server.pid)


def test_nginx(nginx):
    master, worker, port = nginx
    with load_nginx(port):
        check_program(worker)


def check_guesses(pid, rounds):
    """No guess at any frame of any thread differs from the unwind info."""
    done = subprocess.run([GUESS_CHECK, str(pid), str(rounds)], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=600)
    text = done.stdout.decode()
    assert done.returncode == 0, text
    totals = dict(re.findall(r"(\w+)=(\d+)", text))
    assert totals["wrong"] == "0", text
    assert int(totals["right"]) > rounds, text


@pytest.mark.parametrize("name", ["bash", "python3", "python3-threads"])
def test_guesses_of_stops_anywhere(name):
    with busy(*BUSY[name]) as pid:
        check_guesses(pid, 20 if SLOW or len(tids_of(pid)) > 1 else 200)


def test_guesses_in_redis(redis):
    server, sock = redis
    with load_redis(sock):
        check_guesses(server.pid, 30 if SLOW else 200)


@pytest.mark.soak
@pytest.mark.parametrize("name", BUSY)
def test_program_for_long(name):
    with busy(*BUSY[name]) as pid:
        threads = len(tids_of(pid))
        check_program(pid, 1 + 30 // threads, 600)
        check_guesses(pid, 1 + 1000 // threads)


@pytest.mark.soak
def test_git_for_long(tmp_path):
    with busy_git(tmp_path) as pid:
        check_program(pid, 30, 600)
        check_guesses(pid, 1000)


@pytest.mark.soak
def test_redis_for_long(redis):
    server, sock = redis
    with load_redis(sock):
        check_program(server.pid, 12, 600)
        check_guesses(server.pid, 200)


@pytest.mark.soak
def test_nginx_for_long(nginx):
    master, worker, port = nginx
    with load_nginx(port):
        check_program(worker, 30, 600)
        check_guesses(worker, 1000)


@pytest.mark.soak
@pytest.mark.parametrize("fixture", [
    "altstack", "cxx", "shares", "eintr", "waiters 10", "hang condvar"])
def test_other_fixtures_for_long(start, fixture):
    name, *args = fixture.split()
    target = start(name, *args)
    looked = Looked(target.pid, "-dg", "-n", 50, "-s", 500)
    target.assert_unharmed()
    looked.check_whole()
    assert not looked.differs, "\n".join(map(text_of, looked.differs))
