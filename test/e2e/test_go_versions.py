# SPDX-License-Identifier: Apache-2.0
"""Go programs that others have built, without symbols and .debug_frame: what
npm has of each version of Go since 1.18, whose .gopclntab is the first that is
read.  None was found that was built by 1.21 or 1.24."""
import collections
import json
import os
import re
import socket

import pprof_check
import pytest

from call_edges import Edges
from conftest import free_port, wait_until, wallprof
from npm import program

VERSIONS = {
    "1.18": ("esbuild-linux-64", "0.14.30"),
    "1.19": ("esbuild-linux-64", "0.15.18"),
    "1.20": ("@esbuild/linux-x64", "0.17.19"),
    "1.22": ("@esbuild/linux-x64", "0.23.1"),
    "1.23": ("@esbuild/linux-x64", "0.25.0"),
    "1.25": ("@esbuild/linux-x64", "0.27.3"),
    "1.26": ("@esbuild/linux-x64", "0.28.0"),
}
CLASS = """export class C{i} {{ a{i}: number = {i}; f(x: number) {{
 const y = x * {i} + this.a{i};
 return y > {i} ? [y, ...[1, 2, 3]].map(q => q + `s${{y}}`) : null }} }}
"""
# What no function called, but the kernel or another stack.
FIRST = {"runtime.goexit", "runtime.clone", "runtime.mcall",
         "runtime.morestack", "runtime.rt0_go"}


def waiting_for_requests(pid):
    """The process in a dump of it, if it waits for connections."""
    # 1: the stack of a thread that runs is cut; those of goroutines are none of
    # these.
    run = wallprof("--threads", "-f", "json", "-p", pid).check((0, 1))
    process = json.loads(run.out)["processes"][0]
    reasons = {g["reason"] for g in process["goroutines"]}
    return process if {"IO wait", "force gc (idle)"} <= reasons else None


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A program that takes seconds to compile."""
    path = tmp_path_factory.mktemp("go") / "many.ts"
    path.write_text("".join(CLASS.format(i=i) for i in range(100000)))
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_of_every_version(version, source, start, profile, tmp_path):
    esbuild = program(*VERSIONS[version], "bin/esbuild")
    assert re.search(rb"go%s[.0-9]*\b" % version.encode(),
                     esbuild.read_bytes())
    target = start(esbuild, source, "--bundle", "--minify",
                   f"--outfile={tmp_path / 'out.js'}", ready=False)
    _, p = profile(target.pid, "-r", 300, cpu=0.7)
    target.assert_unharmed()
    total, cut, seen = 0, collections.Counter(), set()
    for s in pprof_check.samples(p):
        names = [re.sub(r"\.abi0$", "", f["name"]) for f in s["frames"]]
        total += s["values"]["wall"]
        if names[-1] not in FIRST:
            cut[tuple(names[-3:])] += s["values"]["wall"]
        # One that runs has been called, as clone by the thread that makes one.
        below = [n for n in names[1:-1] if not names[-1].startswith("[")]
        assert not set(below) & FIRST, names
        assert not any("esbuild+0x" in n for n in names), names
        seen |= set(names)
    assert sum(cut.values()) <= 0.05 * total, cut
    assert "runtime.goexit" in seen
    assert any("/internal/js_parser." in n for n in seen), seen
    edges = Edges()
    edges.add(p)
    wrong = [e for e in edges.wrong if " from runtime.goexit " not in e]
    assert edges.direct > 50 and not wrong, wrong



@pytest.mark.parametrize("version", VERSIONS)
def test_goroutines_of_every_version(version, start, tmp_path):
    """While it waits for requests."""
    esbuild = program(*VERSIONS[version], "bin/esbuild")
    # It ends when its standard input does.
    os.mkfifo(tmp_path / "in")
    port = free_port()
    target = start("/bin/sh", "-c", 'exec "$0" "$@" 0<>in', esbuild,
                   f"--serve=127.0.0.1:{port}", "--servedir=.", cwd=tmp_path,
                   ready=False)
    wait_until(lambda: listens(port))
    # The connection just made keeps it busy for a moment.
    process = wait_until(lambda: waiting_for_requests(target.pid))
    target.assert_unharmed()
    assert process["go_version"].startswith(f"go{version}")
    assert process["go_error"] == "" and process["lost_goroutines"] == 0
    without = 0
    for g in process["goroutines"]:
        without += g["state"] != "running" and not g["frames"]
        assert not g["frames"] or g["state"] == "running" or \
            g["frames"][-1]["function"] == "runtime.goexit", g
        assert all(f["file"] and f["line"] for f in g["frames"]), g
        assert g["id"] == 1 or g["created_by"][-1]["function"], g
    # One may run on and off: it has no stack then.
    assert without <= 1, process["goroutines"]
    ids = [g["id"] for g in process["goroutines"]]
    assert ids == sorted(set(ids)) and ids[0] == 1
