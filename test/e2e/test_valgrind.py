# SPDX-License-Identifier: Apache-2.0
"""wallprof reads no memory that is not set, not its own, or given back.

Each way to record, to look and to write is taken once under valgrind.  Shares
and times are the matter of other tests: valgrind makes wallprof some thirty
times slower, so that it may miss ticks and say so (status 1).
"""
import os
import subprocess

import pytest

from conftest import BUILD, WALLPROF, wallprof

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif("asan" in BUILD.name,
                       reason="the sanitizers exclude valgrind"),
]

# valgrind writes code and a log in the process that it watches.  The filter of
# the sandboxed child forbids both; the rest of the sandbox stays.
NO_SECCOMP = r"""
#include <linux/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int prctl(int option, unsigned long a, unsigned long b, unsigned long c,
	  unsigned long d)
{
	return option == PR_SET_SECCOMP ? 0 :
	       (int)syscall(SYS_prctl, option, a, b, c, d);
}
"""

# libbpf sets what the kernel reads of a union for each command.
BPF_UNION = """{
   libbpf
   Memcheck:Param
   bpf(attr->%s)
   fun:syscall
   obj:*libbpf*
}
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory):
    library = tmp_path_factory.mktemp("preload") / "no_seccomp.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
                   input=NO_SECCOMP, text=True, check=True)
    return library


@pytest.fixture
def watched(preloaded, tmp_path):
    """watched(*args) runs wallprof and says no fault was found in it."""
    def run(*args, status=(0, 1), **kwargs):
        logs = tmp_path / "logs"
        logs.mkdir(exist_ok=True)
        suppressed = tmp_path / "suppressed"
        suppressed.write_text(BPF_UNION % "expected_attach_type" +
                              BPF_UNION % "prog_ifindex")
        done = wallprof(*args, prefix=(
            "valgrind", "--quiet", "--leak-check=full", "--num-callers=30",
            f"--suppressions={suppressed}", f"--log-file={logs}/%p"),
            env={**os.environ, "LD_PRELOAD": str(preloaded)}, timeout=600,
            **kwargs)
        # Lines that begin otherwise tell of calls that it does not know.
        found = [line for log in logs.iterdir()
                 for line in log.read_text().splitlines()
                 if line.startswith("==")]
        assert not found, "\n".join(found)
        assert done.status in status, (done.status, done.err)
        return done

    return run


@pytest.mark.parametrize("target, args, leaf", [
    ("shares", (), "do_sleep"),
    ("shares", ("--stop", "all"), "do_sleep"),
    ("shares", ("--stop", "never", "-k"), "do_sleep"),
    ("shares", ("--unwinder", "libunwind", "--stop", "all"), "do_sleep"),
    ("shares", ("--profile", "cpu"), "do_spin"),
    ("waiters 300", ("--scan", "bpf"), "cond_wait"),
    ("cxx", (), "std::"),
    ("hostile", (), "pause"),
    ("goroutines", (), "runtime."),
    ("stack-musl-O2-static wait", (), "main"),
    ("churn", (), "breed"),
], ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_recording(start, watched, tmp_path, target, args, leaf):
    target = start(*target.split())
    out = tmp_path / "a.folded"
    watched("-p", target.pid, "-r", 20, "-d", 2, *args, output=out)
    assert leaf in out.read_text()
    target.assert_unharmed()


@pytest.mark.parametrize("name", ["a.pb.gz", "a.txt", "a.folded"])
def test_formats(start, watched, tmp_path, name):
    target = start("shares")
    watched("-p", target.pid, "-r", 20, "-d", 2, "--report", "-v",
            output=tmp_path / name)
    assert (tmp_path / name).stat().st_size


@pytest.mark.parametrize("kinds, target", [
    ("block,mutex", "profiles block"),
    ("wall,cpu,block,mutex", "profiles hold sleep"),
    ("threadcreate", "profiles churn 50"),
])
def test_profiles(start, watched, tmp_path, kinds, target):
    target = start(*target.split())
    watched("-p", target.pid, "-d", 2, "--profile", kinds, "-f", "pprof",
            output=tmp_path / "a.pb.gz")
    target.assert_unharmed()


@pytest.mark.parametrize("mode", ["abba robust", "rwlock", "fullpipe", "flock",
                                  "socketpair", "forked", "pool"])
@pytest.mark.parametrize("args", [
    ("--threads", "--follow-processes"),
    ("--threads", "--group"), ("--threads", "-f", "json"),
    ("--check", "-i", "1s")], ids=" ".join)
def test_dumps(start, watched, mode, args):
    target = start("hang", *mode.split())
    done = watched(*args, "-p", target.pid, status=(0, 3, 4))
    assert "thread" in done.out


@pytest.mark.parametrize("args, status", [
    (("--timeout", "60", "--", "sh", "-c", "exit 7"), 7),
    (("--timeout", "5", "--", "sleep", "600"), 124),
    (("-f", "text", "--", "sleep", "2"), 0),
    (("-p", "1", "-r", "0"), 64),
    (("--", "/nowhere"), 2),
    (("--help",), 0),
], ids=lambda v: " ".join(v) if isinstance(v, tuple) else str(v))
def test_commands(watched, args, status):
    watched(*args, status=(status, 1) if status == 0 else (status,))


def test_a_fault_would_be_found(watched, tmp_path):
    """The check itself: a program that leaks."""
    program = tmp_path / "leaks"
    subprocess.run(["cc", "-x", "c", "-", "-o", program], text=True,
                   check=True,
                   input="#include <stdlib.h>\n"
                         "int main(void) { return !malloc(9); }\n")
    import conftest
    conftest.WALLPROF = program
    try:
        with pytest.raises(AssertionError, match="definitely lost"):
            watched()
    finally:
        conftest.WALLPROF = WALLPROF
