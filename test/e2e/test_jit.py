# SPDX-License-Identifier: Apache-2.0
"""Code that compilers make as the program runs, which has a frame pointer and no
unwind info: JavaScript's, Java's and Erlang's.  The programs call ten functions, each the
next, and nothing is inlined: a frame that is left out is a gap in a row of
numbers."""
import collections
import pathlib
import re
import shutil
import subprocess

import pprof_check
import pytest

from call_edges import Edges
from conftest import has_run, wait_until, wallprof

JS = """
%s
function f9(n) { let a = []; for (let i = 0; i < 40; i++) a.push(i * n %% 7);
  a.sort((p, q) => p - q); return ('x' + a.join('y')).replace(/y(\\d)/g,
    (m, d) => d).length + (n %% 2 ? a.map(x => x * 2)[3] : JSON.stringify(a)
    .length); }
let t = 0; for (let i = 0; ; i++) t += f0(i);
""" % "\n".join(f"function f{i}(n) {{ const r = f{i + 1}(n + {i}); "
                f"return r + {i}; }}" for i in range(9))

JAVA = """
public class Chain {
%s
    static int f9(int n) {
        int[] a = new int[40];
        for (int i = 0; i < a.length; i++) a[i] = i * n %% 7;
        java.util.Arrays.sort(a);
        return ("x" + a[3] + n).hashCode() + new StringBuilder("y").append(n)
            .reverse().length();
    }
    static synchronized void g9() throws Exception {
        Chain.class.wait();
    }
    public static void main(String[] args) throws Exception {
        new Thread(() -> { try { g0(); } catch (Exception e) { } }).start();
        long t = 0;
        for (int i = 0; ; i++) t += f0(i);
    }
}
""" % "\n".join(f"    static int f{i}(int n) {{ return f{i + 1}(n + {i}) + {i}; }}\n"
                f"    static void g{i}() throws Exception {{ g{i + 1}(); }}"
                for i in range(9))

ERLANG = """
-module(chain).
-export([main/0]).
main() -> spawn(fun() -> loop(0) end), io:format("READY pid=~s~n", [os:getpid()]),
  timer:sleep(infinity).
loop(N) -> _ = f0(N), loop(N + 1).
%s
f9(N) -> L = lists:sort([X * N rem 97 || X <- lists:seq(1, 60)]),
  length(lists:flatten(io_lib:format("~p~w", [L, N]))) + erlang:phash2(L).
""" % "\n".join(f"f{i}(N) -> f{i + 1}(N + {i}) + {i + 1}." for i in range(9))


def numbers(s, pattern):
    """Of the functions of a row, innermost first."""
    return [int(found.group(1)) for f in s["frames"]
            if (found := re.search(pattern, f["name"]))]


# What is called for each number has parts that move their return address about,
# or pop it: there nothing is certain, and nothing is said.
WHOLE = {"wall": 0.97, "cpu": 0.96}
# The interpreter's parts go from one to the next without frames: 2 to 7 % cut.
WHOLE_INTERPRETED = {"wall": 0.97, "cpu": 0.88}


def check(p, pattern, end, least=None):
    """Rows have no gap, and begin at 0 where the stack does; stacks are whole, by
    wall and CPU."""
    total, cut, rows = {}, collections.Counter(), 0
    for s in pprof_check.samples(p):
        row = numbers(s, pattern)
        last = s["frames"][-1]["name"]
        first = row[-1] if row and last.startswith("[") else 0
        assert row == list(range(first, first + len(row)))[::-1], [
            f["name"] for f in s["frames"]]
        rows += len(row) == 10
        for kind in ("wall", "cpu"):
            total[kind] = total.get(kind, 0) + s["values"][kind]
            # Where no look met the thread there was nothing to walk.
            if last.startswith("[truncated"):
                cut[kind, last, s["frames"][-2:][0]["name"]] += (
                    s["values"][kind])
        if row and not last.startswith("["):
            assert any(re.search(end, f["name"]) for f in s["frames"])
    for kind, ns in total.items():
        lost = sum(n for key, n in cut.items() if key[0] == kind)
        assert lost <= (1 - (least or WHOLE)[kind]) * ns, (kind, lost / ns, cut)
    assert rows > 3
    edges = Edges()
    edges.add(p)
    assert not edges.wrong, edges.wrong


@pytest.mark.parametrize("tier", ["all", "interpreter"])
def test_javascript(start, profile, tmp_path, tier):
    if not shutil.which("node"):
        pytest.skip("no node")
    program = tmp_path / "chain.js"
    program.write_text(JS)
    flags = ["--no-opt", "--no-sparkplug"] if tier == "interpreter" else []
    target = start(shutil.which("node"), "--perf-basic-prof",
                   "--interpreted-frames-native-stack", "--no-turbo-inlining",
                   *flags, program, ready=False, cwd=tmp_path)
    wait_until(has_run(target.pid, 1.5))
    # Of the interpreter's own CPU time, about as much is cut as status 1 is for.
    _, p = profile(target.pid, "-r", 300, cpu=1.5,
                   status=(0, 1) if tier == "interpreter" else 0)
    target.assert_unharmed()
    check(p, r"\b[~*^+]?f(\d)\b.*chain\.js", r"main|_start",
          WHOLE_INTERPRETED if tier == "interpreter" else None)


@pytest.fixture(scope="module")
def java_class(tmp_path_factory):
    if not shutil.which("javac"):
        pytest.skip("no javac")
    place = tmp_path_factory.mktemp("java")
    (place / "Chain.java").write_text(JAVA)
    subprocess.run(["javac", "Chain.java"], cwd=place, check=True,
                   capture_output=True, timeout=100)
    return place


def test_java(start, profile, java_class):
    target = start(shutil.which("java"), "-XX:+PreserveFramePointer",
                   "-XX:-Inline", "-Xcomp", "-Xmx64m", "-cp", java_class,
                   "Chain", ready=False)
    perf_map = pathlib.Path(f"/tmp/perf-{target.pid}.map")

    def is_compiled():
        subprocess.run(["jcmd", str(target.pid), "Compiler.perfmap"],
                       check=False, capture_output=True, timeout=100)
        return perf_map.exists() and all(
            f"Chain.{f}{i}(" in perf_map.read_text()
            for f in "fg" for i in range(10))

    def is_over():
        """It has run, and what was compiled anew meanwhile is in the map."""
        has_run_enough = has_run(target.pid, 1.5)
        return lambda: has_run_enough() and is_compiled()

    wait_until(is_compiled, 200, pause=1)
    _, p = profile(target.pid, "-r", 300, until=is_over)
    target.assert_unharmed()
    check(p, r"\bChain\.f(\d)\b", r"clone|start_thread")
    rows = [numbers(s, r"\bChain\.g(\d)\b") for s in pprof_check.samples(p)]
    assert list(range(10))[::-1] in rows


@pytest.mark.parametrize("flags", [["-XX:+PreserveFramePointer"], []])
def test_java_as_elfutils_sees_it(start, java_class, flags, tmp_path):
    """Interpreted methods have frame pointers, whatever the flags: the thread
    that waits is the same, address by address."""
    target = start(shutil.which("java"), "-Xint", *flags, "-Xmx64m", "-cp",
                   java_class, "Chain", ready=False)
    wait_until(has_run(target.pid, 1))
    theirs = []

    def waits():
        """It has been where it is for two looks."""
        done = subprocess.run(["eu-stack", "-p", str(target.pid)], check=False,
                              capture_output=True, text=True, timeout=100)
        before = theirs[:]
        theirs[:] = [[int(a, 16) for a in re.findall(r"^#\d+ +(0x\w+)", t, re.M)]
                     for t in done.stdout.split("TID ")[1:]]
        return any(len(stack) > 20 and stack in before for stack in theirs)
    wait_until(waits)
    # Where a stop does not tell the busy thread's registers, status is 1.
    out = tmp_path / "p.pb.gz"
    wallprof("-p", target.pid, "--profile", "wall", "-d", 1, output=out)
    p = pprof_check.load(str(out))
    target.assert_unharmed()
    addresses = {l.id: l.address for l in p.location}
    ours = []
    for raw, s in zip(p.sample, pprof_check.samples(p)):
        if s["labels"].get("wait") != "condvar":
            continue
        assert not s["frames"][-1]["name"].startswith("["), s
        ours.append([addresses[i] for i in raw.location_id])
    # A caller's address is that of the last byte of its call.
    rows = [[row[0]] + [a + 1 for a in row[1:]] for row in ours]
    assert any(len(row) > 20 and row in theirs for row in rows), (rows, theirs)


def test_erlang(start, profile, tmp_path):
    """Its code has a stack of its own beside the thread's, and stops find code
    that was not met before: 10 to 30 % of CPU time was cut when a stop did not
    copy both stacks."""
    if not shutil.which("erl"):
        pytest.skip("no erl")
    (tmp_path / "chain.erl").write_text(ERLANG)
    subprocess.run(["erlc", "+no_line_info", "chain.erl"], cwd=tmp_path, check=True,
                   capture_output=True, timeout=100)
    target = start(shutil.which("erl"), "+JPperf", "true", "+S", "1", "-noshell",
                   "-eval", "chain:main().", cwd=tmp_path)
    wait_until(has_run(target.pid, 1.5))
    _, p = profile(target.pid, "-r", 300, cpu=1.5)
    target.assert_unharmed()
    # While garbage is collected the stack is moved, frame by frame.
    check(p, r"\$chain:f(\d)/1", "process_main|loop/1")
