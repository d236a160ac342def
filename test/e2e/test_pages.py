# SPDX-License-Identifier: Apache-2.0
"""Pages (-o FILE.html): what they compute, what Chromium shows of them, and what
a recording puts in them.

The tests in JavaScript stand in test/html; packages from npm are in
$NODE_MODULES, which the Makefile fills.
"""
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

import page_data
import pprof_check
from conftest import BUILD, FIXTURES, ROOT, WALLPROF, wait_until, wallprof

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


def test_what_a_page_computes(tmp_path):
    run_node("model.test.mjs")
    # The modules are joined into one scope: no two may have the same name.
    joined = tmp_path / "page.mjs"
    joined.write_text((BUILD / "html/page.js").read_text())
    subprocess.run(["node", "--check", joined], check=True)


def test_page_has_the_errors_of_the_text(start, tmp_path):
    target = start("shares")
    wallprof("-p", target.pid, "-d", 2, output=tmp_path / "x.pb.gz").check()
    report("report", tmp_path / "x.pb.gz", "-o", tmp_path / "x.html")
    (tmp_path / "x.txt").write_text(
        report("report", "--full", tmp_path / "x.pb.gz").stdout)
    run_node("errors.test.mjs", PAGE=str(tmp_path / "x.html"),
             REPORT=str(tmp_path / "x.txt"))


def test_page_in_chromium(packages, saved, tmp_path):
    report("diff", saved, saved, "-o", tmp_path / "diff.html")
    run_node("browser.test.mjs", PAGE=str(known(tmp_path, "html")),
             DIFF=str(tmp_path / "diff.html"), CHROMIUM=shutil.which("chromium") or "")


def test_speedscope_reads_its_format(packages, tmp_path):
    run_node("speedscope.test.mjs", CHROMIUM=shutil.which("chromium") or "",
             PROFILE=str(known(tmp_path, "speedscope")))


def firefox(home, *args):
    return subprocess.run(
        [MODULES / "node_modules/.bin/profiler-cli", *args],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=100, check=False, env={**os.environ, "HOME": str(home)})


@pytest.fixture
def in_firefox(packages, tmp_path):
    """in_firefox(FILE) loads it in the profiler's own command line client; what that
    gives asks the client."""
    def ask(*args):
        return firefox(tmp_path, *args).stdout

    def load(path):
        # It gives its daemon half a second to start; that may go on longer.
        firefox(tmp_path, "load", path)
        wait_until(lambda: not firefox(tmp_path, "thread", "list").returncode,
                   pause=0.5)
        return ask
    yield load
    firefox(tmp_path, "stop", "--all")


def test_firefox_profiler_reads_its_format(in_firefox, tmp_path):
    """It counts what the fixture's truth says."""
    path = known(tmp_path, "firefox")
    shared = json.loads(path.read_text())["shared"]
    assert "main" in shared["stringArray"]
    ask = in_firefox(path)
    threads = ask("thread", "list")
    assert re.search(r"t-0 +server +.* 1000\.0", threads), threads
    assert re.search(r"t-1 +work-1 +.* 3950\.0", threads), threads
    samples = ask("thread", "samples", "--thread", "t-0", "--include-idle")
    assert "epoll_wait" in samples and "90.0%" in samples, samples
    markers = ask("thread", "markers", "--thread", "t-1")
    assert "waiting: lock" in markers, markers


def test_other_viewers_have_the_totals_of_the_pprof(in_firefox, start, tmp_path):
    """Of each thread, in each state for Firefox, from one recording."""
    target = start("spinner", 2)
    wallprof("-p", target.pid, "-d", 1, "--timeline",
             output=tmp_path / "x.pb.gz").check()
    target.assert_unharmed()
    want = collections.Counter()
    for s in pprof_check.samples(pprof_check.load(str(tmp_path / "x.pb.gz"))):
        labels = s["labels"]
        want[labels["tid"], labels["state"]] += s["values"]["wall"] / 1e6
    total = collections.Counter()
    for (tid, _), ms in want.items():
        total[tid] += ms
    report("report", tmp_path / "x.pb.gz", "-o", tmp_path / "x.speedscope.json")
    for p in json.loads((tmp_path / "x.speedscope.json").read_text())["profiles"]:
        tid = int(re.search(r"\((\d+)\)$", p["name"])[1])
        assert abs(sum(p["weights"]) / 1e6 - total.pop(tid)) < 0.001, p["name"]
    assert not total
    report("report", tmp_path / "x.pb.gz", "-o", tmp_path / "x.firefox.json")
    ask = in_firefox(tmp_path / "x.firefox.json")
    for thread in json.loads(ask("thread", "list", "--json"))["threads"]:
        samples = json.loads(ask("thread", "samples", "--include-idle", "--json",
                                 "--thread", thread["threadHandle"]))
        got = collections.Counter()
        for c in samples["categoryBreakdown"]["categories"]:
            got[c["name"].split(":")[0]] += c["samples"]
        tid = int(thread["tid"])
        for state in {state for t, state in want if t == tid} | set(got):
            assert abs(got[state] - want.pop((tid, state), 0)) < 0.5, (
                tid, state, got)
    assert not want


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


def test_page_counts_the_threads_that_were_chosen(start, tmp_path):
    target = start("shares")
    wallprof("-p", target.pid, "-d", 0.5, "-t", "worker-*",
             output=tmp_path / "x.html").check()
    target.assert_unharmed()
    page = page_data.load(tmp_path / "x.html")
    assert {t["name"] for t in page["threads"]} >= {"worker-0", "helper-0"}
    for thread in page["threads"]:
        chosen = thread["name"].startswith("worker-")
        assert thread["count"] == chosen, thread["name"]
        assert bool(thread["rows"]) == chosen, thread["name"]


def report(*args, status=0):
    run = subprocess.run([WALLPROF, *args], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=100,
                         check=False)
    assert run.returncode == status, run.stderr
    return run


@pytest.fixture
def saved(tmp_path):
    """timeline_maker.h's profile as a file that was saved."""
    path = tmp_path / "saved.pb.gz"
    subprocess.run([BUILD / "test_pprof_read", path], check=True)
    return path


def test_program_that_a_link_names_is_the_main_one(start, tmp_path):
    """As /usr/bin/redis-server, which is a link to redis-check-rdb."""
    shutil.copy(FIXTURES / "spinner", tmp_path / "file")
    (tmp_path / "link").symlink_to("file")
    target = start(tmp_path / "link", 1)
    wallprof("-p", target.pid, "-d", 0.3, output=tmp_path / "x.html").check()
    target.assert_unharmed()
    page = page_data.load(tmp_path / "x.html")
    assert page["exe"] == str(tmp_path / "link")
    own = {name for name, *_, flags in page["frames"] if flags & 4}
    assert "main" in own and "clone3" not in own, page["frames"]


def test_saved_profile_makes_the_same_page(saved, tmp_path):
    report("report", saved, "-o", tmp_path / "saved.html")
    fresh = page_data.load(known(tmp_path, "html"))
    again = page_data.load(tmp_path / "saved.html")
    for key in ("pid", "command", "exe", "unit", "type", "duration_ns",
                "states", "hz", "target_end"):
        assert again[key] == fresh[key], key
    totals = [[(t["tid"], t["timed"], t["start"],
                [(len(stack), kind[:2], ns) for stack, kind, ns in t["rows"]])
               for t in page["threads"]] for page in (fresh, again)]
    assert totals[0] == totals[1]


def test_timeline_in_a_pprof_file_disturbs_nobody(saved):
    """go tool pprof skips a field that it does not know."""
    run = subprocess.run(["go", "tool", "pprof", "-sample_index=wall",
                          "-tags", saved], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    assert run.returncode == 0 and re.search(r"thread: Total 50\.0s",
                                             run.stdout), run.stdout


def test_recording_keeps_its_timeline_if_asked(start, tmp_path):
    target = start("shares")
    wallprof("-p", target.pid, "-d", 1, "--timeline",
             output=tmp_path / "x.pb.gz").check()
    report("report", tmp_path / "x.pb.gz", "-o", tmp_path / "x.html")
    page = page_data.load(tmp_path / "x.html")
    for thread in page["threads"]:
        assert thread["timed"]
        watched = thread["start"] + sum(ns for *_, ns in thread["rows"])
        assert abs(watched - page["duration_ns"]) < 20_000_000


GO = """package main
import ("os"; "runtime"; "runtime/pprof"; "syscall")
var keep [][]byte
var sum int
func spin() {
	for u := (syscall.Rusage{}); u.Utime.Nano() < 4e8; syscall.Getrusage(0, &u) {
		for i := 0; i < 1e6; i++ { sum += i ^ sum }
	}
}
func hold() { for i := 0; i < 64; i++ { keep = append(keep, make([]byte, 1<<20)) } }
func main() {
	cpu, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(cpu)
	spin()
	pprof.StopCPUProfile()
	hold()
	runtime.GC()
	heap, _ := os.Create(os.Args[2])
	pprof.WriteHeapProfile(heap)
}
"""


def test_profiles_of_go_are_read(tmp_path):
    source, program = tmp_path / "x.go", tmp_path / "x"
    cpu, heap = tmp_path / "cpu", tmp_path / "heap"
    source.write_text(GO)
    subprocess.run(["go", "build", "-o", program, source], check=True,
                   env={**os.environ, "GOFLAGS": "", "GO111MODULE": "off"})
    subprocess.run([program, cpu, heap], check=True)
    assert "main.spin" in report("report", cpu).stdout
    report("report", cpu, "-o", tmp_path / "cpu.html")
    page = page_data.load(tmp_path / "cpu.html")
    assert (page["type"], page["unit"]) == ("cpu", "nanoseconds")
    spun = sum(ns for t in page["threads"] for stack, _, ns in t["rows"]
               if "main.spin" in stack)
    assert spun > 100_000_000
    report("report", heap, "-o", tmp_path / "heap.html")
    page = page_data.load(tmp_path / "heap.html")
    assert (page["type"], page["unit"]) == ("inuse_space", "bytes")
    assert sum(n for t in page["threads"] for stack, _, n in t["rows"]
               if "main.hold" in stack) > 40 << 20
    report("report", heap, "-o", tmp_path / "heap.svg")
    assert "bytes, no times" in report("report", heap, status=2).stderr
    assert "bytes, no times" in report("report", heap, "-f", "firefox",
                                       status=2).stderr
    said = report("diff", heap, cpu, "-o", tmp_path / "d.html", status=2)
    assert ("before (inuse_space) are bytes, those after (cpu) are nanoseconds"
            in said.stderr) and not (tmp_path / "d.html").exists(), said.stderr
    folded = report("report", heap, "-f", "folded").stdout.splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded
               if "main.hold" in line) > 40 << 20


def as_perf_to_profile_writes(path, stacks):
    """A file as Google's perf_to_profile makes of perf.data: two values for each
    event, of cycles here, addresses without functions, the kernel's mapping by
    its name, no duration.  STACKS are lists of (address, mapping)."""
    p = pprof_check.new_profile()
    strings = ["", "cycles_sample", "count", "cycles_event", "/usr/bin/victim",
               "[kernel.kallsyms]", "0123456789abcdef0123456789abcdef01234567"]
    p.string_table.extend(strings)
    p.sample_type.add(type=1, unit=2)
    p.sample_type.add(type=3, unit=2)
    p.period_type.type, p.period_type.unit, p.period = 3, 2, 1000000
    p.mapping.add(id=1, memory_start=0x400000, memory_limit=0x500000, filename=4,
                  build_id=6)
    p.mapping.add(id=2, memory_start=0xffffffff81000000, filename=5,
                  memory_limit=0xffffffff82000000)
    ids = {}
    for stack in stacks:
        for at in stack:
            if at not in ids:
                ids[at] = len(ids) + 1
                p.location.add(id=ids[at], address=at[0], mapping_id=at[1])
        p.sample.add(location_id=[ids[at] for at in stack], value=[1, 1000000])
    path.write_bytes(gzip.compress(p.SerializeToString()))


def test_profiles_that_were_made_of_perf_data_are_read(tmp_path):
    main, spin, kernel = (0x401000, 1), (0x402000, 1), (0xffffffff81000040, 2)
    as_perf_to_profile_writes(tmp_path / "perf.pb.gz",
                              3 * [[spin, main]] + [[kernel, spin, main]])
    said = report("report", tmp_path / "perf.pb.gz", status=2)
    assert said.stdout == "" and re.fullmatch(
        r"wallprof: its values \(cycles_event\) are count, no times: .*\n",
        said.stderr)
    report("report", tmp_path / "perf.pb.gz", "-o", tmp_path / "perf.html")
    page = page_data.load(tmp_path / "perf.html")
    assert (page["type"], page["unit"]) == ("cycles_event", "count")
    assert collections.Counter({
        stack: n for t in page["threads"] for stack, _, n in t["rows"]}) == {
            ("0x401000", "0x402000"): 3000000,
            ("0x401000", "0x402000", "0xffffffff81000040"): 1000000}
    # Name, module, and whether it is the kernel's.
    assert {(f[0], f[2], f[4] & 1) for f in page["frames"]} == {
        ("0x401000", "victim", 0), ("0x402000", "victim", 0),
        ("0xffffffff81000040", "", 1)}
    report("report", tmp_path / "perf.pb.gz", "-o", tmp_path / "perf.svg")
    assert "0x402000 - 4000000 (100" in (tmp_path / "perf.svg").read_text()


def test_what_is_no_profile_gets_one_line(tmp_path):
    for name, data in (("empty", b""), ("text", b"hello\n" * 99),
                       ("elf", WALLPROF.read_bytes()),
                       ("gzip", gzip.compress(b"nonsense"))):
        path = tmp_path / name
        path.write_bytes(data)
        run = report("report", path, status=2)
        assert run.stdout == ""
        assert re.fullmatch(r"wallprof: cannot read \S+: no valid .*\n",
                            run.stderr), run.stderr
    for args, says in (([], "wants one FILE"), (["a", "b"], "wants one FILE"),
                       (["x", "-o", "y.bmp"], "-f"), (["x", "--no"], "--no"),
                       (["x", "-f", "json"], "report writes")):
        assert says in report("report", *args, status=64).stderr
    assert "No such file" in report("report", tmp_path / "none",
                                    status=2).stderr
    assert "BEFORE" in report("diff", "x", status=64).stderr
    assert "usage:" in report("diff", "--help").stdout


def test_diff_tells_what_changed(saved, start, tmp_path):
    lines = report("diff", saved, saved).stdout.splitlines()
    assert lines[-1].endswith("functions changed less")
    target = start("shares")
    wallprof("-p", target.pid, "-d", 1,
             output=tmp_path / "shares.pb.gz").check()
    text = report("diff", saved, tmp_path / "shares.pb.gz").stdout
    # 9 s and 10 s of 10 s before, nothing after.
    assert re.search(r"-1\.90 s +±\S+ ms \* +1\.90 s +0 s +-1\.90 s +"
                     "epoll_wait", text)
    assert re.search(r"\+\S+ m?s +±\S+ \S+ \* +0 s +\S+ m?s +\S+ m?s +"
                     "clock_nanosleep",
                     text), text
    report("diff", saved, tmp_path / "shares.pb.gz", "-o",
           tmp_path / "d.html")
    before = page_data.load(tmp_path / "d.html", "base")
    after = page_data.load(tmp_path / "d.html")
    assert (before["pid"], after["pid"]) == (100, target.pid)


def test_two_dumps_of_an_idle_process_are_alike(start, tmp_path):
    """However long each took."""
    target = start("hang", "abba")
    for name in ("a", "b"):
        wallprof("dump", target.pid, output=tmp_path / f"{name}.pb.gz").check()
    files = tmp_path / "a.pb.gz", tmp_path / "b.pb.gz"
    threads = len(os.listdir(f"/proc/{target.pid}/task"))
    lines = report("diff", *files).stdout.splitlines()
    assert lines[0] == "sums of each file", lines
    assert lines[2].split() == ["+0", str(threads), str(threads), "+0", "all"], lines
    report("diff", *files, "-o", tmp_path / "d.html")
    dom = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path / 'home'}", "--virtual-time-budget=5000",
         (tmp_path / "d.html").as_uri()], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, timeout=100, check=True).stdout.decode()
    text = re.sub("<[^>]*>", " ", dom[dom.index("</header>"):dom.index("</main>")])
    assert f"sums {threads} before, {threads} now" in text, text


def test_deadlock_is_in_the_page(start, tmp_path):
    """Two threads that hold what the other wants, told without --profile
    mutex."""
    target = start("hang", "abba")
    wallprof("-p", target.pid, "-d", 1, output=tmp_path / "x.html").check()
    page = page_data.load(tmp_path / "x.html")
    last = {i: t["rows"][-1][1] for i, t in enumerate(page["threads"])}
    waits = {i: kind[4] - 1 for i, kind in last.items() if kind and kind[4]}
    assert len(waits) == 2 and all(waits[waits[i]] == i for i in waits), last
