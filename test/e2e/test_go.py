# SPDX-License-Identifier: Apache-2.0
"""Go programs: goroutines' stacks and the runtime's, by .debug_frame, which Go
compresses and which its linker ends without a mark; and by .gopclntab, which is
in stripped programs too."""
import os
import re
import subprocess

import pprof_check
import pytest

from conftest import (BUILD, FIXTURES, has_run, tids_of, wait_until,
                      wallprof)

STRIPPED = "goroutines-stripped"
PROGRAMS = ["goroutines", STRIPPED, "goroutines-pie"]
# Innermost first; what the compiler may inline is left out.
SPIN = ["main.spinInner", "main.spinOuter", "runtime.goexit"]
READ = ["syscall.read", "main.readInner", "main.readOuter", "main.main.func",
        "runtime.goexit"]
MAIN = ["syscall.read", "main.readInner", "main.readOuter", "main.main",
        "runtime.main", "runtime.goexit"]
MONITOR = ["runtime.usleep", "runtime.sysmon", "runtime.mstart1",
           "runtime.mstart0", "runtime.mstart", "runtime.clone"]
ROOTS = ("runtime.goexit", "runtime.clone", "runtime.mcall")


def plain(name):
    """Without what tells ABIs and closures apart."""
    return re.sub(r"(\.abi0|(?<=\.func)\d+)$", "", name)


def follows(want, names):
    it = iter(names)
    return all(name in it for name in want)


def threads_of(dump):
    """The text of each thread of a dump, without those of goroutines behind them."""
    return [t for kind, t in re.findall(
        r"^(thread|goroutine) (.*?)(?=^thread|^goroutine|\Z)", dump, re.M | re.S)
            if kind == "thread"]


def is_in_read(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/syscall") as f:
        return f.read().startswith("0 ")


def settle(pid):
    """Until both readers wait in read()."""
    wait_until(lambda: sum(is_in_read(pid, t) for t in tids_of(pid)) >= 2)


@pytest.fixture
def goroutines(start):
    def begin(name="goroutines"):
        # One goroutine spins: the others need a place to run, also on one CPU.
        target = start(name, env={**os.environ, "GOMAXPROCS": "2"})
        settle(target.pid)
        return target
    return begin


def stacks_of(p):
    """(names, samples) of each."""
    return [([plain(f["name"]) for f in s["frames"]], s["values"]["samples"])
            for s in pprof_check.samples(p)]


def test_the_fixture_is_what_it_is_for():
    out = subprocess.run(["readelf", "-SW", FIXTURES / "goroutines"],
                         capture_output=True, text=True, check=True).stdout
    line = next(l for l in out.splitlines() if ".debug_frame" in l)
    assert re.search(r" 00 +C ", line), line
    assert ".eh_frame" not in out
    for name in PROGRAMS[1:]:
        out = subprocess.run(["readelf", "-SW", FIXTURES / name],
                             capture_output=True, text=True, check=True).stdout
        assert "debug_frame" not in out and ".symtab" not in out
        assert "gopclntab" in out


def rows_of(addresses, *args):
    """{address: where the CFA is} by test/tools/cfi_rows."""
    done = subprocess.run([BUILD / "tools/cfi_rows", *args], text=True,
                          input="".join(f"{a:x}\n" for a in addresses),
                          capture_output=True, check=True, timeout=120)
    return {int(line.split()[0], 16): line.split()[1]
            for line in done.stdout.splitlines()}


def test_both_tables_say_the_same():
    """Of each byte of code, in the program that has both."""
    program = FIXTURES / "goroutines"
    out = subprocess.run(["readelf", "-SW", program], capture_output=True,
                         text=True, check=True).stdout
    start, off, size = (int(n, 16) for n in re.search(
        r" \.text +PROGBITS +(\w+) (\w+) (\w+)", out).groups())
    code = program.read_bytes()[off:off + size]
    by_frame = rows_of(range(start, start + size), program)
    by_table = rows_of(range(start, start + size), "--go", program)
    same = others = 0
    for address, byte in enumerate(code, start):
        want, got = by_frame[address], by_table[address]
        # Between functions.
        if want == "none":
            continue
        # Where stacks end, which the code says, and functions that go to another
        # without a frame; an int3 that ends a function looks like those between
        # two.
        if got in ("root", "elsewhere") or (got == "none" and byte == 0xcc):
            others += 1
            continue
        assert want == got, f"{address:#x}"
        same += 1
    assert same > 0.9 * size
    assert 0 < others < 0.005 * size


@pytest.mark.parametrize("program", PROGRAMS)
def test_stacks_are_whole(goroutines, profile, program):
    target = goroutines(program)
    _, p = profile(target.pid, "--threads-of-go", "--max-stopped", 0, cpu=1)
    target.assert_unharmed()
    stacks = stacks_of(p)
    total = sum(n for _, n in stacks)
    whole = sum(n for names, n in stacks if names[-1] in ROOTS)
    assert whole >= 0.95 * total, [s for s in stacks if s[0][-1] not in ROOTS]
    for want in (SPIN, READ, MAIN, MONITOR):
        found = [names for names, _ in stacks if follows(want, names)]
        assert found, (want, stacks)
        assert all(names[-1] == want[-1] for names in found)
    # Nothing stands below what is outermost.  A thread that is in mcall itself
    # has a stack that cannot be followed.
    for names, _ in stacks:
        frames = [name for name in names if not name.startswith("[")]
        assert not set(frames[:-1]) & set(ROOTS), names


@pytest.mark.parametrize("program", PROGRAMS)
def test_from_the_threads_stack_to_the_goroutines(start, profile, program,
                                                  tmp_path):
    """The vDSO tells the time on the stack of the thread, which no CPU sample
    has beside that of the goroutine."""
    target = start(program, "now")
    _, p = profile(target.pid, "--threads-of-go", "-r", 400,
                   "--max-stopped", 0, cpu=1)
    target.assert_unharmed()
    stacks = [(names, n) for names, n in stacks_of(p)
              if set(names) & {"time.now", "runtime.nanotime1",
                               "main.nowInner"}]
    total = sum(n for _, n in stacks)
    whole = sum(n for names, n in stacks if follows(
        ["main.nowInner", "main.spinOuter", "runtime.goexit"], names))
    # The first and last instructions of a function that goes to another stack
    # are on the one or the other.
    assert total > 100 and whole >= 0.9 * total, stacks
    assert not any(name.startswith("0x") for names, _ in stacks
                   for name in names), stacks
    # Nobody may be stopped: no more is said than is known.
    out = tmp_path / "never.pb.gz"
    wallprof("-p", target.pid, "-r", 400, "--stop", "never", "--profile", "cpu",
             output=out, until=lambda: has_run(target.pid, 0.7))
    for s in pprof_check.samples(pprof_check.load(out)):
        names = [f["name"] for f in s["frames"]]
        assert not any(name.startswith("0x") for name in names), names


@pytest.mark.parametrize("program", PROGRAMS)
def test_through_systemstack_to_who_allocates(start, profile, program):
    """Of who asks for memory, and of the collector's own goroutines."""
    target = start(program, "alloc")
    _, p = profile(target.pid, "--threads-of-go", "-r", 400,
                   "--max-stopped", 0, cpu=1)
    target.assert_unharmed()
    stacks = [(names, n) for names, n in stacks_of(p)
              if "runtime.systemstack" in names]
    total = sum(n for _, n in stacks)
    whole = sum(n for names, n in stacks if names[-1] in ROOTS)
    assert total > 20 and whole >= 0.97 * total, stacks
    for names, _ in stacks:
        below = names[names.index("runtime.systemstack") + 1:]
        if "main.allocInner" in below:
            assert follows(["main.allocInner", "main.spinOuter",
                            "runtime.goexit"], below), names
            assert below[0].startswith("runtime."), names
        else:
            assert all(n.startswith(("runtime.", "[")) for n in below), names
    assert any("main.allocInner" in names for names, _ in stacks), stacks


@pytest.mark.parametrize("program", PROGRAMS)
def test_dump_of_every_thread(goroutines, program):
    target = goroutines(program)
    run = wallprof("--threads", "-p", target.pid)
    texts = threads_of(run.out)
    threads = [[plain(n) for n in re.findall(r"^  #\d+ +(\S+)", t, re.M)]
               for t in texts]
    # The runtime may be making a thread, which has no stack yet: said by status 1.
    cut = [t for t in texts if "[truncated" in t or "#0 " not in t]
    assert all(re.search(r"#0 +runtime\.clone", t) for t in cut), run.out
    run.check(1 if cut else 0)
    target.assert_unharmed()
    for want in (SPIN, READ, MAIN):
        assert any(follows(want, names) for names in threads), run.out
    # What the runtime does to wait is not where the program waits.
    # By the table of Go's runtime, which stripped programs have too.
    assert "at main.readInner goroutines.go:" in run.out


def test_as_elfutils_sees_them(goroutines):
    """Threads that wait in read() are at one place for both."""
    target = goroutines()
    # 1: one that runs may be met where it has no whole stack.
    run = wallprof("--threads", "-p", target.pid).check((0, 1))
    done = subprocess.run(["eu-stack", "-p", str(target.pid)],
                          capture_output=True, text=True, timeout=100)
    theirs = [re.findall(r"^#\d+ +0x\S+ (?:- \d+ )?(\S+)", t, re.M)
              for t in done.stdout.split("TID ")[1:]]
    for want in (["main.main", "runtime.main"], ["main.main.func1"]):
        their = next(n for n in theirs if follows(want, n))
        mine = next(n for n in (
            re.findall(r"^  #\d+ +(\S+)(?!.*\[inlined\])", t, re.M)
            for t in threads_of(run.out)) if follows(want, n))
        # elfutils' names tell ABIs apart, Go's own do not.
        assert [plain(n) for n in mine] == [plain(n) for n in their]
    target.assert_unharmed()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its code is x86-64")
def test_threads_just_made(start, tmp_path):
    """They spin right behind runtime.clone: "cmp $0, %rax; je" leads to itself."""
    prog = tmp_path / "made"
    code = bytearray((FIXTURES / "goroutines").read_bytes())
    at = code.index(bytes.fromhex("0f05 4883f800 7405 89442430 c3")) + 6
    code[at:at + 2] = bytes.fromhex("74fa")
    prog.write_bytes(code)
    prog.chmod(0o755)
    target = start(prog, ready=False)
    wait_until(lambda: len(tids_of(target.pid)) > 2)
    out = wallprof("--threads", "-p", target.pid).check().out
    made = [t for t in threads_of(out) if "#0  runtime.clone " in t]
    assert made and "truncated" not in out, out


COLD = """
package main

import (
	"fmt"
	"os"
	"time"
)

//go:noinline
func cold() {
	for {
		time.Sleep(time.Hour)
	}
}

func main() {
	fmt.Printf("READY pid=%d\\n", os.Getpid())
	cold()
}
"""


def test_a_function_called_cold_keeps_its_name(start, tmp_path):
    """For gcc ".cold" is a part of a function."""
    (tmp_path / "cold.go").write_text(COLD)
    subprocess.run(["go", "build", "-o", tmp_path / "cold",
                    tmp_path / "cold.go"], check=True,
                   env={**os.environ, "GOFLAGS": "", "GO111MODULE": "off"})
    target = start(tmp_path / "cold")
    run = wallprof("-p", target.pid, "-d", 0.3, "-f", "folded").check((0, 1))
    assert ";main.main;main.cold;time.Sleep" in run.out, run.out
