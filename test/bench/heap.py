# SPDX-License-Identifier: Apache-2.0
"""What a heap profile costs programs that start and end: their CPU time, as a
multiple of that without it."""
import os
import subprocess

from programs import WALLPROF, WORK
from table import median

TEXT = "CPU time of a program whose allocations are sampled, times that of bare"
ROUNDS = 5
PRELOAD = "/usr/lib/heaptrack/libheaptrack_preload.so"

JSON = WORK / "heap.json"
SOURCE = WORK / "heap.c"
PYTHON = ("import json\n"
          "for i in range(40): json.loads(json.dumps([{'a': k, 'b': str(k)}"
          " for k in range(10000)]))")
NODE = ("for (let i = 0; i < 60; i++) JSON.parse(JSON.stringify("
        "Array.from({length: 10000}, (_, k) => ({a: k, b: String(k)}))))")
SQL = ("create table t(a, b); with recursive n(i) as (select 1 union all "
       "select i + 1 from n where i < 300000) insert into t select i, "
       "hex(randomblob(20)) from n; select count(distinct b) from t;")
# What a throw-away program of the same kind cost (measured once, 512 KiB).
PROTOTYPE = {"jq": 4.2, "sqlite3": 3.9, "python3": 1.5, "clang": 3.3, "node": 1.5}


def commands():
    JSON.write_text("[" + ",".join(f'{{"a":{i},"b":["{i}",{i / 7}]}}'
                                   for i in range(60000)) + "]")
    SOURCE.write_text("\n".join(
        f"int f{i}(int *p, int n) {{ int s = {i}; for (int k = 0; k < n; k++) "
        f"s += p[k] * {i + 1} ^ s >> {i % 7}; return s; }}"
        for i in range(400)))
    return {"jq": ["jq", "-c", ".", JSON],
            "sqlite3": ["sqlite3", ":memory:", SQL],
            "python3": ["/usr/bin/python3", "-c", PYTHON],
            "clang": ["clang", "-O2", "-c", "-o", WORK / "heap.o", SOURCE],
            "node": ["node", "-e", NODE]}


def cpu_of(argv, env=None, probed=False):
    """CPU seconds of ARGV, which begins when what looks at it is there."""
    hold = subprocess.Popen(
        ["/bin/sh", "-c", 'read line; exec "$@"', "sh", *map(str, argv)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env)
    tool = None
    if probed:
        tool = subprocess.Popen(
            [WALLPROF, "-p", str(hold.pid), "--profile", "heap",
             "--heap-anyway", "-v", "-o", WORK / "heap.pb.gz"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        before = code(hold.pid)
        while code(hold.pid) == before:
            assert tool.poll() is None, tool.stderr.read()
    hold.stdin.write(b"\n")
    hold.stdin.close()
    _, status, usage = os.wait4(hold.pid, 0)
    hold.returncode = os.waitstatus_to_exitcode(status)
    assert hold.returncode == 0, argv
    if tool:
        tool.communicate(timeout=60)
    return usage.ru_utime + usage.ru_stime


def code(pid):
    """The code of the C library in PID, which probes change."""
    with open(f"/proc/{pid}/maps") as maps:
        line = next(li for li in maps if "/libc.so.6" in li and "r-xp" in li)
    begin, end = (int(x, 16) for x in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(begin)
        return memory.read(end - begin)


def run(table):
    heaptrack = dict(os.environ, LD_PRELOAD=PRELOAD,
                     DUMP_HEAPTRACK_OUTPUT=str(WORK / "heaptrack.out"))
    for name, argv in commands().items():
        ours, theirs = [], []
        for _ in range(ROUNDS):
            bare = cpu_of(argv)
            ours.append(cpu_of(argv, probed=True) / bare)
            if os.path.exists(PRELOAD):
                theirs.append(cpu_of(argv, env=heaptrack) / bare)
        table.add(name, ours, "x bare", "heaptrack", theirs or None)
        table.limit(f"{name}: CPU time with its heap profiled", median(ours),
                    "x bare", 1.3 * PROTOTYPE[name], ROUNDS)
