# SPDX-License-Identifier: Apache-2.0
"""Go programs that others have built, without symbols and .debug_frame: what
npm has of each version of Go since 1.18, whose .gopclntab is the first that is
read.  None was found that was built by 1.21 or 1.24."""
import collections
import re

import pprof_check
import pytest

from call_edges import Edges
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
        below = [n for n in names[:-1] if not names[-1].startswith("[")]
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

