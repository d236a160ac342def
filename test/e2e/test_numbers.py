# SPDX-License-Identifier: Apache-2.0
"""The numbers that wallprof prints are those in its files, and shares of time
without a whole stack are judged by what they are a share of."""
import re
import subprocess

import pprof_check
import pytest

from conftest import wallprof

KINDS = "wall,cpu,block,mutex,threadcreate"

# A thread runs on a stack of nonsense, so that nobody can tell who called it; others
# wait.
LOST = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char nonsense[1 << 16];

static void *spin(void *arg)
{
#ifdef __x86_64__
	__asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n1:\tjmp 1b"
			 : : "r"(nonsense + sizeof(nonsense) / 2));
#else
	__asm__ volatile("mov sp, %0\n\tmov x29, #0\n\tmov x30, #0\n1:\tb 1b"
			 : : "r"(nonsense + sizeof(nonsense) / 2));
#endif
	return arg;
}

static void *nap(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(void)
{
	pthread_t t;

	memset(nonsense, 0x11, sizeof(nonsense));
	for (int i = 0; i < 30; i++)
		pthread_create(&t, NULL, nap, NULL);
	pthread_create(&t, NULL, spin, NULL);
	printf("READY pid=%d\n", (int)getpid());
	fflush(stdout);
	nap(NULL);
}
"""


def said(text, kind):
    """Threads and samples that TEXT says a profile has; as the report says it
    where KIND is None."""
    begin = rf"{kind}: " if kind else "^"
    line = re.search(rf"{begin}(\d+) threads?, (\d+) (samples|waits|threads)",
                     text, re.MULTILINE)
    assert line, text
    return int(line.group(1)), int(line.group(2))


def sums(p):
    """The same by the samples themselves."""
    samples = pprof_check.samples(p)
    value = p.string_table[p.sample_type[0].type]
    return (len({s["labels"]["tid"] for s in samples}),
            sum(s["values"][value] for s in samples))


def check_ways(text, nsamples):
    """Each sample came in one of these ways."""
    line = re.search(r"^ *samples: (.*)", text, re.M).group(1)
    # These two are some of those read without a stop.
    line = re.sub(r", \d+ (from the wait-site|not stopped)[^,]*", "", line)
    total, *ways = re.findall(r"(\d+)", line)
    assert int(total) == sum(map(int, ways)) == nsamples, line


def test_numbers_agree(start, tmp_path):
    target = start("shares")
    run = wallprof("-p", target.pid, "-d", 1, "--profile", KINDS,
                   output=tmp_path / "x.pb.gz").check()
    for kind in ("wall", "block", "mutex"):
        name = "x.pb.gz" if kind == "wall" else f"x.{kind}.pb.gz"
        p = pprof_check.load(str(tmp_path / name))
        assert said(run.err, kind) == sums(p), run.err
        comments = "\n".join(pprof_check.comments(p))
        assert pprof_check.counter(p, "with a sample") == sums(p)[0], comments
        if kind == "wall":
            check_ways(comments, sums(p)[1])
            check_ways(run.err, sums(p)[1])
            cpu = sum(s["values"]["cpu_samples"]
                      for s in pprof_check.samples(p))
            assert re.search(rf"^cpu: .*, {cpu} samples", comments, re.M)
    target.assert_unharmed()


def test_the_report_has_the_numbers_of_the_file(start, tmp_path):
    """A file and a report of one recording."""
    target = start("churn")
    run = wallprof("-p", target.pid, "-d", 1, "--report",
                   output=tmp_path / "x.pb.gz").check((0, 1))
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    assert said(run.out, None) == said(run.err, "wall") == sums(p), run.err
    check_ways(run.out, sums(p)[1])


@pytest.fixture
def lost(start, tmp_path):
    program = tmp_path / "lost"
    subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-o", program, "-"],
                   input=LOST.encode(), check=True)
    return start(program)


def test_quiet_hides_no_reason_for_a_status(lost, tmp_path):
    run = wallprof("-q", "-p", lost.pid, "-d", 3, output=tmp_path / "x.pb.gz").check(1)
    assert re.fullmatch(r"wallprof: exit status 1: [\d.]+ % of CPU time has no whole "
                        r"stack\n", run.err), run.err
    lost.assert_unharmed()


@pytest.mark.parametrize("kinds", ["wall,cpu", "wall", "cpu"])
def test_threads_that_wait_do_not_outvote_those_that_run(lost, tmp_path, kinds):
    target = lost
    run = wallprof("-p", target.pid, "-d", 3, "--profile", kinds,
                   output=tmp_path / "x.pb.gz")
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    assert run.status == 1, run.err
    assert re.search(r"exit status 1: (9\d[\d.]*|100) % of CPU time has no "
                     "whole stack", run.err), run.err
    assert run.counter("% of CPU time without a whole stack") > 90
    assert pprof_check.counter(
        p, "% of CPU time without a whole stack") > 90
    if "wall" in kinds:
        assert run.counter("% of wall time, ") < 10, run.err
    target.assert_unharmed()
