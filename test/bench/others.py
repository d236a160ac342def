# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody here wrote: is what wallprof says of them so?"""
import collections
import contextlib
import json
import re
import subprocess
import sys
import time

from catalogue import PROGRAMS, Missing
from programs import ROOT, WALLPROF, WORK

sys.path.insert(0, str(ROOT / "test" / "e2e"))
import pprof_check  # noqa: E402

TEXT = "programs that nobody here wrote: whole stacks, eu-stack, perf"
SECONDS, HZ = 5, 997
FIRST = 10
HEAD = ["program", "wall whole", "CPU whole", "as eu-stack", "differ",
        "from perf, at most", "dump", "stopped", "exit"]


def run_tool(*argv, timeout=30):
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout,
                          errors="replace", check=False)


def bare(name):
    """Without parameters and what compilers add to tell parts of a function."""
    return re.sub(r"(\(.*|<.*|\.(part|isra|constprop|cold|abi0)\b.*|@@?.*"
                  r"|\+0x.*)$", "", name) or name


def record(pid):
    """(whole by wall, by CPU in %, {function: share of CPU}, paused %, status)."""
    out = WORK / "others.pb.gz"
    done = run_tool(WALLPROF, "-p", pid, "-d", SECONDS, "-r", HZ, "-v", "-o",
                    out, timeout=90)
    if done.returncode > 1:
        raise Missing(done.stderr.strip().splitlines()[-1])
    total, whole = collections.Counter(), collections.Counter()
    leaves = collections.Counter()
    for s in pprof_check.samples(pprof_check.load(str(out))):
        names = [f["name"] for f in s["frames"]]
        for kind in ("wall", "cpu"):
            total[kind] += s["values"][kind]
            if not names[-1].startswith("["):
                whole[kind] += s["values"][kind]
        # The function, not what was inlined into it.
        at = [i for i, f in enumerate(s["frames"])
              if f["address"] == s["frames"][0]["address"]]
        leaves[bare(names[at[-1]])] += s["values"]["cpu"]
    paused = re.search(r"([\d.]+) % of the recording in all", done.stderr)
    return ([100 * whole[k] / total[k] if total[k] else None
             for k in ("wall", "cpu")],
            {n: 100 * v / total["cpu"] for n, v in leaves.items()}
            if total["cpu"] else {},
            float(paused.group(1)) if paused else 0.0, done.returncode)


@contextlib.contextmanager
def perf_beside(pid):
    """perf records PID for as long as wallprof does in the context; yields the
    place of its data."""
    data = WORK / "perf.data"
    data.unlink(missing_ok=True)
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-g", "-p",
         str(pid), "-o", str(data), "--", "sleep", str(SECONDS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        yield data
        perf.wait(timeout=90)
    finally:
        perf.kill()
        perf.wait()


def perf_shares(data):
    """{function: share}, of user code: what a thread is in, or calls the kernel
    from."""
    text = run_tool("perf", "script", "-i", data, "-F", "ip,sym", timeout=90)
    leaves = collections.Counter()
    for sample in text.stdout.split("\n\n"):
        for line in sample.splitlines():
            found = re.match(r"\s+([0-9a-f]+) (.*)", line)
            if found and not (len(found.group(1)) == 16 and
                              found.group(1).startswith("ffff")):
                leaves[bare(found.group(2))] += 1
                break
    total = sum(leaves.values())
    return {n: 100 * v / total for n, v in leaves.items()} if total else {}


def difference(ours, theirs):
    """The largest difference of the shares of perf's first functions that both
    have names for."""
    first = sorted((n for n in theirs if n != "[unknown]"),
                   key=theirs.get, reverse=True)[:FIRST]
    known = [n for n in first if n in ours]
    return max((abs(ours[n] - theirs[n]) for n in known), default=None)


def stacks_of(pid):
    """{tid: addresses} of threads that wait, as the walk has them; {} where
    there is no whole stack; and the seconds that it took."""
    start = time.monotonic()
    done = run_tool(WALLPROF, "--threads", "-f", "json", "-p", pid)
    took = time.monotonic() - start
    found = {}
    with contextlib.suppress(ValueError, IndexError):
        for t in json.loads(done.stdout)["processes"][0]["threads"]:
            row = [int(f["address"], 16) for f in t["frames"]
                   if not f["inlined"]]
            if t["state"] == "waiting" and not t["truncated"] and row:
                found[t["tid"]] = row[:1] + [a + 1 for a in row[1:]]
    return found, took


def by_eu_stack(pid):
    """{tid: addresses}."""
    done = run_tool("eu-stack", "-p", pid)
    ret = {}
    for text in done.stdout.split("TID ")[1:]:
        row = re.findall(r"^#\d+ +(0x\w+)", text, re.M)
        ret[int(text.split(":")[0])] = [int(a, 16) for a in row]
    return ret


def compare(pid):
    """Of threads that waited all along at one place: (as eu-stack, differ, seconds
    of a dump)."""
    before = by_eu_stack(pid)
    ours, took = stacks_of(pid)
    after = by_eu_stack(pid)
    same = other = 0
    for tid, row in ours.items():
        theirs = before.get(tid)
        if not theirs or after.get(tid) != theirs or theirs[0] != row[0]:
            continue
        # Theirs may end early.
        if row[:len(theirs)] == theirs:
            same += len(theirs) == len(row)
        else:
            other += 1
    return same, other, took


def look(name):
    with PROGRAMS[name]() as pid:
        time.sleep(2)
        with perf_beside(pid) as data:
            (wall, cpu), ours, stopped, status = record(pid)
        theirs = perf_shares(data)
        *counts, took = compare(pid)
    return [name, f"{wall:.1f} %", "-" if cpu is None else f"{cpu:.1f} %",
            *map(str, counts),
            "-" if (d := difference(ours, theirs)) is None else
            f"{d:.1f} points", f"{1000 * took:.0f} ms", f"{stopped:.3f} %",
            str(status)]


def run(table, names=None):
    """The rows of the README's table, and into it."""
    rows = []
    for name in names or PROGRAMS:
        try:
            rows.append(look(name))
            table.note(" | ".join(rows[-1]))
        except (Missing, RuntimeError, OSError,
                subprocess.SubprocessError) as e:
            table.note(f"{name}: skipped: {e}")
    text = "\n".join("| " + " | ".join(row) + " |" for row in
                     [HEAD, ["---"] * len(HEAD), *rows])
    path = WORK.parent / "wallprof-programs.md"
    path.write_text(text + "\n")
    table.note(f"as a table: {path}")
