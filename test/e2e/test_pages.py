# SPDX-License-Identifier: Apache-2.0
"""Pages (-o FILE.html): what they compute, what Chromium shows of them, and what
a recording puts in them.

The tests in JavaScript stand in test/html; packages from npm are in
$NODE_MODULES, which the Makefile fills.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

import page_data
from conftest import BUILD, ROOT, wait_until, wallprof

MODULES = pathlib.Path(os.environ.get("NODE_MODULES", ROOT / "build/npm/pages"))


def run_node(name, **env):
    """Run test/html/NAME with node's test runner."""
    run = subprocess.run(
        ["node", "--test", "--test-reporter=tap", ROOT / "test/html" / name],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=400, check=False,
        env={**os.environ, "NODE_MODULES": str(MODULES), **env})
    assert run.returncode == 0, run.stdout
    assert int(re.search(r"^# pass (\d+)", run.stdout, re.M).group(1)) > 3


def known(tmp_path, form):
    """The profile of test/unit/timeline_maker.h in format FORM."""
    path = tmp_path / f"known.{form}"
    subprocess.run([BUILD / "test_lanes", form, path], check=True)
    return path


@pytest.fixture
def packages():
    if not (MODULES / "installed").exists():
        pytest.skip("the npm registry could not be reached")


def test_what_a_page_computes():
    run_node("model.test.mjs")


def test_page_in_chromium(packages, tmp_path):
    run_node("browser.test.mjs", PAGE=str(known(tmp_path, "html")),
             CHROMIUM=shutil.which("chromium") or "")


def test_speedscope_reads_its_format(packages, tmp_path):
    run_node("speedscope.test.mjs", CHROMIUM=shutil.which("chromium") or "",
             PROFILE=str(known(tmp_path, "speedscope")))


def firefox(home, *args):
    return subprocess.run(
        [MODULES / "node_modules/.bin/profiler-cli", *args],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=100, check=False, env={**os.environ, "HOME": str(home)})


def test_firefox_profiler_reads_its_format(packages, tmp_path):
    """Its own command line client counts what the fixture's truth says."""
    path = known(tmp_path, "firefox")
    shared = json.loads(path.read_text())["shared"]
    assert "main" in shared["stringArray"]
    # It gives its daemon half a second to start; that may go on longer.
    firefox(tmp_path, "load", path)
    try:
        wait_until(lambda: not firefox(tmp_path, "thread", "list").returncode,
                   pause=0.5)
        threads = firefox(tmp_path, "thread", "list").stdout
        assert re.search(r"t-0 +server +.* 1000\.0", threads), threads
        assert re.search(r"t-1 +work-1 +.* 3950\.0", threads), threads
        samples = firefox(tmp_path, "thread", "samples", "--thread", "t-0",
                          "--include-idle").stdout
        assert "epoll_wait" in samples and "90.0%" in samples, samples
        markers = firefox(tmp_path, "thread", "markers", "--thread",
                          "t-1").stdout
        assert "waiting: lock" in markers, markers
    finally:
        firefox(tmp_path, "stop", "--all")


def test_svg_is_a_whole_picture(tmp_path):
    root = ElementTree.parse(known(tmp_path, "svg")).getroot()
    ns = {"s": "http://www.w3.org/2000/svg"}
    titles = [t.text for t in root.iterfind(".//s:title", ns)]
    assert titles[0] == "all - 50.0 s (100.00 %)", titles
    assert "epoll_wait - 19.0 s (38.00 %)" in titles
    assert "parse_inline - 1.00 s (2.00 %)" in titles
    for group in root.iterfind("s:g", ns):
        rects = group.findall("s:rect", ns)
        width = sum(float(r.get("width")) for r in rects)
        share = float(re.search(r"([0-9.]+) %\)$",
                                group.find("s:title", ns).text).group(1))
        assert abs(width / 1180 * 100 - share) < 0.02


def test_page_holds_every_nanosecond_of_every_thread(start, tmp_path):
    target = start("shares")
    wallprof("-p", target.pid, "-d", 2,
             output=tmp_path / "x.html").check()
    target.assert_unharmed()
    page = page_data.load(tmp_path / "x.html")
    assert page["pid"] == target.pid
    assert {t["name"] for t in page["threads"]} >= {"worker-0", "helper-0"}
    for thread in page["threads"]:
        assert thread["timed"]
        watched = thread["start"] + sum(ns for *_, ns in thread["rows"])
        assert abs(watched - page["duration_ns"]) < 20_000_000
    worker = next(t for t in page["threads"] if t["name"] == "worker-1")
    seen = {name for stack, *_ in worker["rows"] for name in stack}
    assert {"run", "do_sleep", "do_lock"} <= seen
    changes = [a[:2] != b[:2] for a, b in zip(worker["rows"],
                                              worker["rows"][1:])]
    assert sum(changes) > 10
