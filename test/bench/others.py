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
import call_edges  # noqa: E402
import pprof_check  # noqa: E402

TEXT = "programs that nobody here wrote: whole stacks, eu-stack, perf"
SECONDS, HZ = 5, 997
FIRST = 10
HEAD = ["program", "wall whole", "CPU whole", "as eu-stack", "differ",
        "as gdb", "differ", "from perf, at most", "dump", "stopped", "exit"]


def run_tool(*argv, timeout=30):
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout,
                          errors="replace", check=False)


def bare(name):
    """Without parameters, what compilers add to tell parts of a function, and what
    glibc adds to tell the names of one function."""
    name = re.sub(r"(\(.*|<.*|\.(part|isra|constprop|cold|abi0)\b.*|@@?.*"
                  r"|\+0x.*)$", "", name) or name
    name = re.sub(r"^(_*(GI|libc)_)*_*", "", name) or name
    return re.sub(r"64(?=_|$)|^c(?=free$)", "",
                  name.replace("memmove", "memcpy")) or name


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
def perf_beside():
    """perf records for as long as wallprof does in the context; yields the place
    of its data.  It looks at CPUs, whoever is on them: its clock of a process
    starts anew when that wakes, and finds it there too often."""
    data = WORK / "perf.data"
    data.unlink(missing_ok=True)
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-g", "-a",
         "-o", str(data), "--", "sleep", str(SECONDS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        yield data
        perf.wait(timeout=90)
    finally:
        perf.kill()
        perf.wait()


def function_of(text):
    """What perf says of an address: "NAME (FILE)".  All functions of a file that
    have no names are one, as they are in bare()."""
    name, _, file = text.rpartition(" (")
    return (file.rstrip(")").rpartition("/")[2] if name == "[unknown]" else
            bare(name))


def perf_shares(data, pid):
    """({function: share}, number of samples), of user code: what a thread is in,
    or calls the kernel from."""
    text = run_tool("perf", "script", "-i", data, "--pid", pid, "-F",
                    "ip,sym,dso", timeout=90)
    leaves = collections.Counter()
    for sample in text.stdout.split("\n\n"):
        for line in sample.splitlines():
            found = re.match(r"\s+([0-9a-f]+) (.*)", line)
            if found and not (len(found.group(1)) == 16 and
                              found.group(1).startswith("ffff")):
                leaves[function_of(found.group(2))] += 1
                break
    total = sum(leaves.values())
    return {n: 100 * v / total for n, v in leaves.items()}, total


def difference(ours, theirs, nsamples):
    """The largest difference of the shares of perf's first functions that both
    have names for, and two standard errors of what perf has there of NSAMPLES, as
    text; "-" if there are none."""
    first = sorted(theirs, key=theirs.get, reverse=True)[:FIRST]
    known = [n for n in first if n in ours]
    if not known:
        return "-"
    most = max(known, key=lambda n: abs(ours[n] - theirs[n]))
    share = theirs[most]
    return (f"{abs(ours[most] - share):.1f} "
            f"±{2 * (share * (100 - share) / nsamples) ** .5:.1f} points")


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


def by_gdb(pid):
    """{tid: addresses}; {} where gdb takes too long."""
    try:
        done = run_tool("gdb", "-nx", "-batch", "-p", pid, "-ex",
                        "set print frame-arguments none", "-ex",
                        "set print frame-info location-and-address", "-ex",
                        "thread apply all backtrace", timeout=60)
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return {}
    ret = {}
    for text in re.split(r"^Thread \d+ ", done.stdout, flags=re.M)[1:]:
        tid = re.search(r"\((?:LWP|process) (\d+)\)", text)
        row = re.findall(r"^#\d+ +(0x\w+) in", text, re.M)
        if tid and row:
            ret[int(tid.group(1))] = without_inlined(
                [int(a, 16) for a in row])
    return ret


def without_inlined(row):
    """Functions that were inlined have the address of who they were inlined
    into."""
    return [a for i, a in enumerate(row) if not i or a != row[i - 1]]


def agreement(ours, theirs, code):
    """(threads with the same frames, threads with others) where both look at one
    place.  Theirs may end early, and have more.  Others that CODE, a
    call_edges.Code, refutes are no stack: where an address is none of code, or is
    behind a call of another function than the frame above is in."""
    same = other = 0
    for tid, row in ours.items():
        want = theirs.get(tid)
        if not want or want[0] != row[0]:
            continue
        rest = iter(want)
        if all(a in rest for a in row) and want[-1] == row[-1]:
            same += 1
        elif row[:len(want)] != want and (code.refutes(row) or
                                          not code.refutes(want)):
            other += 1
    return same, other


def compare(pid):
    """Of threads that waited all along at one place: [as eu-stack, differ, as gdb,
    differ], and the seconds of a dump."""
    before = by_eu_stack(pid)
    ours, took = stacks_of(pid)
    gdb = by_gdb(pid)
    after = by_eu_stack(pid)
    ours = {tid: row for tid, row in ours.items()
            if before.get(tid) == after.get(tid)}
    code = call_edges.Code(pid)
    return [*agreement(ours, before, code), *agreement(
        {tid: without_inlined(row) for tid, row in ours.items()},
        {tid: code.without_jumps(row) for tid, row in gdb.items()}, code)], took


def look(name):
    with PROGRAMS[name]() as pid:
        time.sleep(2)
        with perf_beside() as data:
            (wall, cpu), ours, stopped, status = record(pid)
        theirs = perf_shares(data, pid)
        counts, took = compare(pid)
    return [name, f"{wall:.1f} %", "-" if cpu is None else f"{cpu:.1f} %",
            *map(str, counts),
            difference(ours, *theirs), f"{1000 * took:.0f} ms", f"{stopped:.3f} %",
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
