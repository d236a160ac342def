# SPDX-License-Identifier: Apache-2.0
"""A process that waits for its children: they are named, and it is said that they
are what to look at."""
import os
import re
import signal
import sys

import pprof_check
import pytest

from conftest import children_of, wait_until, wallprof
from test_hang_pipes import is_blocked

# Its threads wait for nothing, so no threads but main; the first child is not the
# one that it waits for.
WAITS_FOR_THE_SECOND = """
import os, subprocess
first, second = (subprocess.Popen(["/bin/sleep", n]) for n in ("1000", "1001"))
print(f"READY pid={os.getpid()} {second.pid} {first.pid}", flush=True)
try:
    second.wait()
finally:
    first.kill()
    second.kill()
"""


def waits(p):
    """{object: wall time} of the waits for children."""
    return pprof_check.by_label(p, "object") if "child" in \
        pprof_check.by_label(p, "wait") else {}


def test_a_commands_child_is_what_to_record(tmp_path):
    run = wallprof("--report", "--", "sh", "-c", "sleep 2; true",
                   output=tmp_path / "x.pb.gz").check()
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    objects = waits(p)
    child = max((ns, name) for name, ns in objects.items() if name)[1]
    assert re.fullmatch(r"child \d+ \(sleep 2\)", child), objects
    assert objects[child] > 0.8 * sum(objects.values()), objects
    hint = f" % of the time this process waited for {child}: record it with"
    for text in (run.err, run.out, "\n".join(pprof_check.comments(p))):
        assert hint in text, text


def test_the_child_that_is_waited_for_is_named(start, profile):
    target = start(sys.executable, "-c", WAITS_FOR_THE_SECOND)
    second, first = map(int, target.ready.split()[2:4])
    # In wait4.
    wait_until(lambda: is_blocked(target.pid, (61, 260)))
    run, p = profile(target.pid, "-d", "0.3")
    objects = waits(p)
    assert f"child {second} (/bin/sleep 1001)" in objects, objects
    assert not any(str(first) in str(name) for name in objects)
    assert f"waited for child {second} (/bin/sleep 1001)" in run.err
    target.assert_unharmed()
    # Its children are killed by its own hand.
    target.proc.send_signal(2)
    target.proc.wait(10)


@pytest.mark.parametrize("command, some", [
    ("sleep 0.4 & sleep 0.5 & wait", r"one of 2 children, \d+ \(sleep 0\.4\)"),
    ("for i in 1 2 3 4 5; do sleep 0.1; done", r"children, most for child"),
])
def test_many_children_are_said_to_be_many(tmp_path, command, some):
    run = wallprof("--", "bash", "-c", command,
                   output=tmp_path / "x.pb.gz").check()
    assert re.search(rf"this process waited for {some}", run.err), run.err


def test_a_process_that_waits_for_no_child_has_no_hint(start, profile):
    target = start("shares")
    run, p = profile(target.pid, "-d", "0.3")
    assert "this process waited" not in run.err
    target.assert_unharmed()


# Parent and child spin right behind the system call, where a child is that has not run.
FORKED = """
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int fork_c(void) {
#if defined(__x86_64__)
    long rax = 56;
    __asm__ volatile("mov $56, %%eax\\n syscall\\n 1: jmp 1b" : "+a"(rax)
                     : "D"(17), "S"(0), "d"(0) : "rcx", "r11", "memory");
    return rax;
#else
    register long x0 __asm__("x0") = 17, x1 __asm__("x1") = 0;
    __asm__ volatile("mov x8, #220\\n svc #0\\n 1: b 1b" : "+r"(x0)
                     : "r"(x1) : "x8", "memory");
    return x0;
#endif
}
__attribute__((noinline)) int fork_b(void) { return fork_c() + 1; }
int main(void) {
    printf("READY pid=%d\\n", getpid());
    fflush(stdout);
    return fork_b() + 1;
}
"""


def test_a_child_that_has_not_run_has_its_parents_stack(start, build, tmp_path):
    prog = build(tmp_path, "gcc", "-fno-optimize-sibling-calls",
                 source=FORKED, suffix=".c")
    target = start(prog)
    child = wait_until(lambda: children_of(target.pid))[0]
    try:
        for pid in (child, target.pid):
            out = wallprof("--threads", "-p", pid).check().out
            assert re.search(r"#0  fork_c .*\n.* fork_b .*\n.* main ", out), out
    finally:
        os.kill(child, signal.SIGKILL)
