# SPDX-License-Identifier: Apache-2.0
"""A program's file is written over between two runs of it."""
import shutil

import pytest

from conftest import wallprof

# FIRST and SECOND have their function at the same address, but not the same one.
SOURCE = """
#include <stdio.h>
#include <time.h>

static volatile unsigned long x;

__attribute__((noinline)) void NAME(void)
{
	struct timespec t;

	do {
		for (int i = 0; i < 100000; i++)
			x += i * x;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec < 1);
}

int main(void)
{
	NAME();
	return 0;
}
"""


@pytest.mark.parametrize("flags", [("-static", "-no-pie"), ()],
                         ids=["static", "pie"])
def test_a_program_that_is_written_over(build, tmp_path, flags):
    progs = [shutil.move(build(tmp_path, "gcc", *flags, suffix=".c",
                               source=SOURCE.replace("NAME", name)),
                         tmp_path / name)
             for name in ("first", "second")]
    prog = shutil.copy(progs[0], tmp_path / "prog")
    # A subshell is forked: a child of vfork has the shell's memory until its exec.
    run = wallprof("--children", "-f", "folded", "--", "sh", "-c",
                   f"(exec {prog}); cat {progs[1]} >{prog}; (exec {prog}); exit 0")
    times = {"first": 0, "second": 0, "prog+0x": 0}
    for line in run.out.splitlines():
        stack, _, us = line.rpartition(" ")
        for name in times:
            if f";{name}" in stack:
                times[name] += int(us)
    # What the first one is like can no longer be read.
    assert not times["first"], run.out
    assert times["prog+0x"] > 0.7e6 and times["second"] > 0.7e6, run.out


def test_a_program_that_is_touched_only(build, tmp_path):
    """It is the same by its build-id."""
    prog = build(tmp_path, "gcc", suffix=".c",
                 source=SOURCE.replace("NAME", "first"))
    run = wallprof("--children", "-f", "folded", "--", "sh", "-c",
                   f"(exec {prog}) & sleep 0.3; touch {prog}; wait")
    us = sum(int(line.rpartition(" ")[2]) for line in run.out.splitlines()
             if ";first " in line)
    assert us > 0.7e6, run.out
