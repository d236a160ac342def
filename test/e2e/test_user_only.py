# SPDX-License-Identifier: Apache-2.0
"""Time in the kernel, of which a user without privileges gets no CPU samples."""
import collections
import os
import pathlib
import re
import shutil
import tempfile

import pprof_check
import pytest

from conftest import WALLPROF, wallprof

PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")

# 3 s of CPU time in turns of some 2 ms, and of a call that copies 8 MiB.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static volatile unsigned long x;

__attribute__((noinline)) static void compute(void)
{
	for (int i = 0; i < 1000000; i++)
		x += i * x;
}

int main(void)
{
	size_t size = 8 << 20;
	char *data = memset(malloc(size), 1, size);
	int fd = memfd_create("copy", 0);
	double user = 0, begin = cpu(), before;

	while ((before = cpu()) < begin + 1.5) {
		compute();
		user += cpu() - before;
		if (pwrite(fd, data, size, 0) < 0)
			return 1;
	}
	fprintf(stderr, "TRUTH %g\\n", user / (cpu() - begin));
}
"""


@pytest.fixture
def public(monkeypatch):
    """Where any user can execute programs, with a copy of wallprof."""
    with tempfile.TemporaryDirectory(prefix="wallprof-test-") as directory:
        place = pathlib.Path(directory)
        place.chmod(0o755)
        monkeypatch.setattr("conftest.WALLPROF",
                            shutil.copy(WALLPROF, place / "wallprof"))
        yield place


UNTOLD = "[no stack: CPU time that no CPU sample covers]"


def shares_on_a_cpu(path, profile):
    """What part of it compute, pwrite and UNTOLD are in, by the stacks in PATH: time
    that a busy machine has it wait for a CPU is no part."""
    ns = collections.Counter()
    for s in pprof_check.samples(pprof_check.load(path)):
        if profile != "cpu" and s["labels"]["state"] != "running":
            continue
        value = s["values"]["cpu" if profile == "cpu" else "wall"]
        stack = ";".join(f["name"] for f in s["frames"])
        for name in ("", "compute", "pwrite", UNTOLD):
            ns[name] += value if name in stack else 0
    return [ns[name] / ns[""] for name in ("compute", "pwrite", UNTOLD)]


# Alone, as it judges shares.
@pytest.mark.alone
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be two users")
@pytest.mark.parametrize("stop, profile", [
    ("auto", "wall,cpu"), ("never", "wall,cpu"), ("auto", "cpu")])
def test_time_in_the_kernel_is_not_that_of_samples(build, public, stop,
                                                   profile):
    if not 0 < int(PARANOID.read_text()) <= 2:
        pytest.skip("users may sample the kernel, or nothing")
    prog = build(public, "gcc", source=SOURCE, suffix=".c")
    out = public / "out" / "x.pb.gz"
    out.parent.mkdir()
    out.parent.chmod(0o777)
    run = wallprof("--stop", stop, "--profile", profile, "-r", 500, "--", prog,
                   output=out, prefix=("setpriv", "--reuid=65534", "--regid=65534",
                                       "--clear-groups"))
    run.check(0 if profile != "cpu" else 1)
    truth = float(re.search(r"TRUTH (\S+)", run.err)[1])
    computes, called, untold = shares_on_a_cpu(out, profile)
    # More than three times as much where samples divide all of it.
    assert abs(computes - truth) < 0.1, (truth, computes)
    rest = 1 - truth
    assert called + untold > min(0.7 * rest, rest - 0.1), (truth, called, untold)
    # Stops find the call.
    if (stop, profile) == ("auto", "wall,cpu"):
        assert called > 0.55 * (1 - truth), (truth, called)
