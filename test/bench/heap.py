# SPDX-License-Identifier: Apache-2.0
"""What a heap profile costs programs: their CPU time, as a multiple of that without it,
beside other tools' profiles of the same, at one sample per 512 KiB where they sample."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import threading

from programs import ROOT, WALLPROF, WORK, answers, free_port
from table import median, spread

sys.path.insert(0, str(ROOT / "test" / "e2e"))
from debian import Packages  # noqa: E402

TEXT = "CPU time of a program whose allocations are sampled, times that of bare"
ROUNDS = 5
# Of tools that take many times as long.
SLOW_ROUNDS = 2
SLOW = ("HEAPPROFILE", "bcc memleak")
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
HEAPTRACK = "/usr/lib/heaptrack/libheaptrack_preload.so"
PACKAGES = Packages(ROOT / "build" / "bench-packages", ("trixie",))

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
SETS = 100000
# What a throw-away program of the same kind cost (measured once, 512 KiB).
PROTOTYPE = {"jq": 4.2, "sqlite3": 3.9, "python3": 1.5, "clang": 3.3, "node": 1.5,
             "redis SET": 2.2}


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
            "node": ["node", "-e", NODE],
            "redis SET": None}


class Held:
    """A command that begins when told to: who looks at it is there by then."""
    allocator = "libc.so.6"

    def __init__(self, argv, env):
        # The shell is not to have what it loads: heaptrack looks at one program only.
        self.proc = subprocess.Popen(
            ["/bin/sh", "-c", 'read line; exec "$@"', "sh", "env",
             *(f"{k}={v}" for k, v in env.items()), *map(str, argv)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.pid = self.proc.pid
        # The shell waits for its line, with all of its libraries.
        while not pathlib.Path(f"/proc/{self.pid}/syscall").read_text().startswith("0 0x0 "):
            assert self.proc.poll() is None

    def work(self):
        """Have it do all: its CPU seconds."""
        self.proc.stdin.write(b"\n")
        self.proc.stdin.close()
        _, status, usage = os.wait4(self.pid, 0)
        self.proc.returncode = os.waitstatus_to_exitcode(status)
        assert self.proc.returncode == 0, self.proc.args
        return usage.ru_utime + usage.ru_stime

    def end(self):
        """It has."""


class Redis:
    """A server that is asked to set keys by four clients."""
    allocator = "libjemalloc.so.2"

    def __init__(self, env):
        self.port = free_port()
        self.proc = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
             "--save", "", "--appendonly", "no", "--dir", WORK],
            stdout=subprocess.DEVNULL, env=env)
        self.pid = self.proc.pid
        while not answers(self.port, b"PING\r\n", b"+PONG"):
            assert self.proc.poll() is None

    def cpu(self):
        with open(f"/proc/{self.pid}/schedstat") as f:
            return int(f.read().split()[0]) / 1e9

    def work(self):
        before = self.cpu()
        subprocess.run(["redis-benchmark", "-p", str(self.port), "-t", "set", "-q",
                        "-n", str(SETS), "-r", "100000", "-c", "4"], check=True,
                       stdout=subprocess.DEVNULL)
        return self.cpu() - before

    def end(self):
        self.proc.terminate()
        self.proc.wait(60)


def code(pid, library):
    """The code of LIBRARY in PID, which probes change; None: it has none."""
    with open(f"/proc/{pid}/maps") as maps:
        line = next((li for li in maps if library in li and "r-xp" in li), None)
    if not line:
        return None
    begin, end = (int(x, 16) for x in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(begin)
        return memory.read(end - begin)


def wallprof(*args):
    """One that looks at a target until it ends."""
    def begin(target):
        before = code(target.pid, target.allocator)
        tool = subprocess.Popen(
            [WALLPROF, "-p", str(target.pid), "--profile", "heap", *args, "-v",
             "-o", WORK / "heap.pb.gz"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while code(target.pid, target.allocator) == before:
            assert tool.poll() is None, tool.stderr.read()
        return tool
    return begin


def memleak():
    """bcc's, which follows each call, with the C library that it wants; None: there is
    none."""
    root = PACKAGES.unpack("memleak", "libbpf-tools", "libbpf1", "libc6", "libelf1t64",
                           "zlib1g", "libzstd1")
    if not root:
        return None
    libraries = root / "usr/lib/x86_64-linux-gnu"

    def begin(target):
        # It takes 31 bytes of a path.
        (WORK / "lib").unlink(missing_ok=True)
        (WORK / "lib").symlink_to(LIBRARIES / target.allocator)
        # To a pipe memleak writes only once it has 4 KiB.
        screen, terminal = pty.openpty()
        tool = subprocess.Popen(
            [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries,
             root / "usr/sbin/memleak-libbpf", "-p", str(target.pid), "-O", "./lib",
             "1000"], cwd=WORK, stdout=terminal, stderr=terminal)
        os.close(terminal)
        text = b""
        while b"Tracing" not in text:
            assert select.select([screen], [], [], 60)[0], text
            text += os.read(screen, 4096)
        threading.Thread(target=drain, args=(screen,), daemon=True).start()
        return tool
    return begin


def drain(screen):
    """Read terminal SCREEN until nobody writes to it any more."""
    try:
        while os.read(screen, 4096):
            pass
    except OSError:
        pass
    os.close(screen)


def cpu_of(argv, env=None, tool=None):
    """CPU seconds of ARGV, or of a redis, with ENV besides, while TOOL looks."""
    target = Held(argv, env or {}) if argv else Redis({**os.environ, **(env or {})})
    looks = tool(target) if tool else None
    seconds = target.work()
    if looks:
        if looks.poll() is None:
            looks.send_signal(signal.SIGINT)
        looks.communicate(timeout=600)
    target.end()
    return seconds


def profilers():
    """{name: (environment without it, and with it)} of profilers that programs load."""
    jemalloc = {"LD_PRELOAD": str(LIBRARIES / "libjemalloc.so.2")}
    tcmalloc = {"LD_PRELOAD": str(LIBRARIES / "libtcmalloc.so.4")}
    return {
        "heaptrack": ({}, {"LD_PRELOAD": HEAPTRACK,
                           "DUMP_HEAPTRACK_OUTPUT": str(WORK / "heaptrack.out")}),
        "jemalloc": (jemalloc, {**jemalloc, "MALLOC_CONF":
                                "prof:true,lg_prof_sample:19,prof_final:true,"
                                f"prof_prefix:{WORK}/jeprof"}),
        "tcmalloc": (tcmalloc, {**tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": "524288"}),
        "HEAPPROFILE": (tcmalloc, {**tcmalloc, "HEAPPROFILE": str(WORK / "hprof"),
                                   "HEAP_PROFILE_ALLOCATION_INTERVAL": str(1 << 40),
                                   "HEAP_PROFILE_INUSE_INTERVAL": str(1 << 40)})}


def of_others(argv, bare, round_):
    """{profiler: times bare} of those that look at ARGV, or a redis, in round ROUND_."""
    found = {}
    for other, (without, given) in profilers().items():
        if other in SLOW and round_ >= SLOW_ROUNDS:
            continue
        own = cpu_of(argv, without) if without else bare
        found[other] = cpu_of(argv, given) / own
    # memleak wants mmap in the file that has malloc; redis's, jemalloc's, has none.
    follows = memleak() if argv else None
    if follows and round_ < SLOW_ROUNDS:
        found["bcc memleak"] = cpu_of(argv, tool=follows) / bare
    return found


def run(table):
    for name, argv in commands().items():
        bare, ours, unasked, theirs = [], [], [], {}
        for round_ in range(ROUNDS):
            bare.append(cpu_of(argv))
            ours.append(cpu_of(argv, tool=wallprof("--heap-anyway")) / bare[-1])
            unasked.append(cpu_of(argv, tool=wallprof()) / bare[-1])
            for other, times in of_others(argv, bare[-1], round_).items():
                theirs.setdefault(other, []).append(times)
        for other, values in theirs.items():
            table.add(name, ours, "x bare", other, values, paired=False)
        table.add(f"{name}, without --heap-anyway", unasked, "x bare")
        table.limit(f"{name}: CPU time with its heap profiled", median(ours),
                    "x bare", 1.3 * PROTOTYPE[name], ROUNDS)
        # 5 % of all, and of the second in which that is seen to be too little.
        table.limit(f"{name}: the same, if not asked for anyway", median(unasked),
                    "x bare", 1.05 + 0.05 / median(bare), ROUNDS,
                    noise=spread(bare)[1] / median(bare))
