# SPDX-License-Identifier: Apache-2.0
"""--max-memory: what a target makes grow ends there, however it goes about it.
The largest process of wallprof stays under it, its own 8 MiB aside, the profile is
written, and what it lacks is said."""
import os
import re
import shutil
import signal
import subprocess

import pprof_check
import pytest

from conftest import (FIXTURES, SLOW, WALLPROF, children_of, has_run, wait_until,
                      wallprof)

# MiB that it takes of any process.
OWN = 8
# Sanitizers take memory of their own.
pytestmark = pytest.mark.skipif(SLOW, reason="measures memory")

LIBRARY = """
.text
.globl run
run:
  pushq %rbx
  movq %rdi, %rbx
1:
  call *%rbx
  jmp 1b
.section .debug_frame,"",@progbits
cie:
.long 2f-1f
1:
.long -1
.byte 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1
.balign 8
2:
.rept %ENTRIES%
.long 20
.long 0
.quad 0x1000
.quad 16
.endr
.section .note.GNU-stack,"",@progbits
"""

# FDEs of dropped functions, of two long CIEs in turn.
LONG_CIES = LIBRARY[:LIBRARY.index("cie:")] + """
cies:
.rept 2
.long 4020
.long -1
.byte 1
.ascii "zR"
.fill 4000, 1, 'B'
.byte 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0
.endr
.rept %ENTRIES% / 2
.irp cie, 0, 4024
.long 20
.long \\cie
.quad 0
.quad 16
.endr
.endr
.section .note.GNU-stack,"",@progbits
"""

PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void doze(void) { usleep(1000); }
static void *begin(void *run) { ((void (*)(void (*)(void)))run)(doze);
                                return NULL; }
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        pthread_t t;
        pthread_create(&t, NULL, begin, dlsym(dlopen(argv[i], RTLD_NOW),
                                              "run"));
    }
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    pause();
}
"""

DISTINCT_STACKS = """
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
static uint64_t bits;
static volatile uint64_t sink;
static void a(int left), b(int left);
static void next(int left) {
    if (!left) { for (int i = 0; i < 20000; i++) sink += i; return; }
    if (bits >> (left % 64) & 1) a(left - 1); else b(left - 1);
    sink++;
}
static void a(int left) { next(left); sink++; }
static void b(int left) { next(left); sink--; }
int main(void) {
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    for (;;) { bits = bits * 6364136223846793005u + 1442695040888963407u;
               next(250); }
}
"""

CHURN = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <fcntl.h>
int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDONLY);
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    for (unsigned long i = 0;; i++) {
        char *p = mmap((void *)(0x100000000000 + i % 1000000 * 0x10000), 4096,
                       PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
        for (int j = 0; j < 1000; j++)
            ((void (*)(void (*)(int)))p)((void (*)(int))usleep);
        munmap(p, 4096);
    }
}
"""


NAMES = """
#include <stdio.h>
#include <unistd.h>
static volatile int sink;
%s
int main(void) {
    printf("READY pid=%%d\\n", getpid());
    fflush(stdout);
    f(0);
}
"""
DEEP = 400

RENAMES = """
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
    char name[16];
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    for (unsigned long i = 0;; i++) {
        snprintf(name, sizeof(name), "%lx", i);
        prctl(PR_SET_NAME, name);
    }
}
"""


def compiled(tmp_path, text, *flags, name="program"):
    program = tmp_path / name
    subprocess.run(["gcc", "-xc", "-", "-O1", "-fno-optimize-sibling-calls",
                    "-o", program, *flags, "-pthread", "-ldl"],
                   input=text.encode(), check=True)
    return program


@pytest.fixture
def bombs(tmp_path):
    """bombs(LIBRARY, N): N libraries of under 200 kB with 30 MB of .debug_frame."""
    def begin(library, n):
        files = [tmp_path / f"bomb{i}.so" for i in range(n)]
        subprocess.run(
            ["gcc", "-xassembler", "-", "-shared", "-o", files[0],
             "-Wl,--compress-debug-sections=zlib"],
            input=library.replace("%ENTRIES%", "1290000").encode(),
            check=True)
        assert files[0].stat().st_size < 200000
        for path in files[1:]:
            shutil.copy(files[0], path)
        return files
    return begin


@pytest.fixture
def watched(tmp_path):
    """watched(PID, MiB, options...): status, messages, MiB of the largest process,
    seconds of CPU time, and the profile; with ran=SECONDS it is of so much CPU
    time of PID."""
    out, used = tmp_path / "x.pb.gz", tmp_path / "used"

    def record(pid, budget, *args, ran=None):
        tool = subprocess.Popen(
            [FIXTURES / "measured", used, WALLPROF, "-p", str(pid), "-o", out,
             "--profile", "wall", "--max-memory", f"{budget}M",
             "--max-stopped", "0", *map(str, args)],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            if ran:
                wallprof_pid = wait_until(lambda: children_of(tool.pid))[0]
                wait_until(has_run(pid, ran), 200)
                os.kill(wallprof_pid, signal.SIGINT)
            _, err = tool.communicate(timeout=120)
        finally:
            tool.kill()
            tool.wait()
        err = err.decode()
        assert tool.returncode in (0, 1), err
        mib, cpu = map(float, used.read_text().split())
        p = pprof_check.load(str(out))
        pprof_check.validate(p)
        return tool.returncode, err, mib, cpu, p
    return record


@pytest.fixture
def goroutines(start, tmp_path):
    """goroutines(BUDGET, words...): status and output of wallprof about a program of
    100,000 goroutines; with a budget of so many MiB that is held."""
    target = start("gohang", "many")
    target.read_line("waiting")

    def run(budget, *args):
        limit = ("--max-memory", f"{budget}M") if budget else ()
        used = tmp_path / "used"
        tool = subprocess.run(
            [FIXTURES / "measured", used, WALLPROF, *args, "-p",
             str(target.pid), *limit], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120)
        mib, _ = map(float, used.read_text().split())
        assert not budget or mib < budget + OWN, mib
        return tool.returncode, tool.stdout + tool.stderr
    yield run
    target.assert_unharmed()


@pytest.mark.parametrize("form", ["text", "json", "go"])
def test_goroutines_beyond_the_budget_are_said_to_be_missing(goroutines, form):
    status, out = goroutines(16, "dump", "-f", form)
    assert status == 1
    assert re.search(r"exit status 1: \d+ of \d{6} goroutines were lost", out), out[-300:]
    if form == "text":
        n, left = map(int, re.search(
            r"\n(\d+) goroutines of go[\d.]+, (\d+) more not read\n",
            out).groups())
        assert n > 5000 and n + left > 100000, (n, left)


def test_a_profile_says_how_many_goroutines_it_lacks(goroutines, tmp_path):
    out = tmp_path / "x.pb.gz"
    args = ("dump", "--profile", "goroutine", "-o", str(out))
    status, err = goroutines(16, *args)
    p = pprof_check.load(str(out))
    n = sum(s["values"]["goroutine"] for s in pprof_check.samples(p))
    left = next(int(m.group(1)) for c in pprof_check.comments(p) if
                (m := re.search(r"lost: .*?(\d+) goroutines were not read", c)))
    assert status == 1 and n > 5000 and n + left > 100000, (n, left)
    assert f"{left} goroutines were not read" in err
    status, err = goroutines(None, *args)
    assert (status, err) == (0, "")


def test_no_verdict_on_goroutines_that_were_not_all_read(goroutines):
    status, out = goroutines(16, "check", "-i", "300ms")
    assert status == 0
    assert re.search(r"; \d+ goroutines were not read, and so none is judged\n",
                     out), out[:300]
    status, out = goroutines(None, "check", "-i", "300ms")
    assert status == 3 and "not read" not in out, out[:300]


def names(p):
    return {f["name"] for s in pprof_check.samples(p) for f in s["frames"]}


def wall(p):
    return sum(s["values"]["wall"] for s in pprof_check.samples(p))


def test_frame_info_that_is_long_to_read(start, tmp_path, bombs, watched):
    target = start(compiled(tmp_path, PROGRAM), *bombs(LONG_CIES, 2))
    _, _, _, cpu, p = watched(target.pid, 512, "-d", 1)
    assert cpu < 3, cpu
    assert "run" in names(p)


def test_files_that_unpack_to_much(start, tmp_path, bombs, watched):
    target = start(compiled(tmp_path, PROGRAM), *bombs(LIBRARY, 20))
    status, err, mib, cpu, p = watched(target.pid, 128, "-d", 1)
    assert mib < 128 and cpu < 10, (mib, cpu)
    assert status == 1, err
    assert "files with parts left out for --max-memory" in err
    assert len(pprof_check.threads(p)) == 21
    assert wall(p) >= 0.9 * 21 * p.duration_nanos
    # Their unwind info is not needed where the code itself shows the way.
    assert "run" in names(p)


def test_stacks_that_are_all_different(start, tmp_path, watched):
    target = start(compiled(tmp_path, DISTINCT_STACKS))
    status, err, mib, _, p = watched(target.pid, 16, "-r", 1000, ran=3)
    assert mib < 16 + OWN, mib
    assert status == 1, err
    assert "stacks left out for --max-memory" in err
    assert "[dropped: memory]" in names(p)
    assert wall(p) >= 0.9 * p.duration_nanos


def test_executable_mappings_that_come_and_go(start, tmp_path, watched):
    code = tmp_path / "code"
    # pushq %rbx; movq %rdi, %rbx; movl $1, %edi; call *%rbx; popq %rbx; ret
    code.write_bytes(bytes.fromhex("534889fbbf01000000ffd35bc3").ljust(4096,
                                                                      b"\0"))
    target = start(compiled(tmp_path, CHURN), code)
    _, err, mib, _, p = watched(target.pid, 16, "-d", 3, "-r", 1000)
    target.assert_unharmed()
    assert mib < 16 + OWN, (mib, err)
    assert wall(p) >= 0.9 * p.duration_nanos


@pytest.mark.parametrize("budget", [16, 64])
def test_long_names_of_many_addresses(start, tmp_path, watched, budget):
    """Each is kept once, however many addresses it is of."""
    name = "f" + 14000 * "a"
    calls = "".join(f"case {i}: {name}({i + 1}); break;\n"
                    for i in range(DEEP))
    body = f"""#define f {name}
        __attribute__((noinline, noclone)) void {name}(int i) {{
        switch (i) {{ {calls} default: pause(); }} sink++; }}"""
    target = start(compiled(tmp_path, NAMES % body))
    status, err, mib, _, p = watched(target.pid, budget, "-d", 2)
    assert status == 0, err
    assert "no better name" not in err
    assert sum(f["name"] == name for s in pprof_check.samples(p)[:1]
               for f in s["frames"]) == DEEP + 1
    assert mib < budget + OWN, mib


def test_more_names_than_there_is_room_for(start, tmp_path, watched):
    def name(i):
        return f"f{i}_" + 15000 * "a"

    body = "".join(f"__attribute__((noinline)) void {name(i)}(int i) "
                   f"{{ {name(i + 1)}(i); sink++; }}\n"
                   for i in reversed(range(DEEP)))
    body = (f"void {name(DEEP)}(int i) {{ pause(); }}\n{body}\n"
            f"#define f {name(0)}\n")
    target = start(compiled(tmp_path, NAMES % body))
    status, err, mib, _, p = watched(target.pid, 16, "-d", 0.3)
    assert mib < 16 + OWN, mib
    assert status == 1, err
    assert ("offset: the names took more than --max-memory lets them"
            in err), err
    named = sum(len(n) > 15000 for n in names(p))
    assert 300 < named < DEEP, named


def test_a_thread_that_changes_its_name_all_the_time(start, watched, tmp_path):
    target = start(compiled(tmp_path, RENAMES))
    mib = watched(target.pid, 16, "--children", "-d", 3)[2]
    assert mib < 16 + OWN, mib
    target.assert_unharmed()


def test_a_dump_says_what_had_no_room(start):
    target = start("waiters", "60")
    dump = wallprof("dump", "--max-memory", "64K", target.pid).check(1)
    assert "the memory of --max-memory was full" in dump.err
    check = wallprof("check", "--max-memory", "64K", "-i", "300ms",
                     target.pid).check(2)
    assert "no verdict: a lock may be among what --max-memory left out" in check.err
    target.assert_unharmed()
