# SPDX-License-Identifier: Apache-2.0
"""A process that waits for its children: they are named, and it is said that they
are what to look at."""
import re
import sys

import pprof_check
import pytest

from conftest import wallprof

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
    run = wallprof("--report", "--", "sh", "-c", "sleep 0.5; true",
                   output=tmp_path / "x.pb.gz").check()
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    objects = waits(p)
    child = max((ns, name) for name, ns in objects.items() if name)[1]
    assert re.fullmatch(r"child \d+ \(sleep 0\.5\)", child), objects
    assert objects[child] > 0.8 * sum(objects.values()), objects
    hint = f" % of the time this process waited for {child}: record it with"
    for text in (run.err, run.out, "\n".join(pprof_check.comments(p))):
        assert hint in text, text


def test_the_child_that_is_waited_for_is_named(start, profile):
    target = start(sys.executable, "-c", WAITS_FOR_THE_SECOND)
    second, first = map(int, target.ready.split()[2:4])
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
