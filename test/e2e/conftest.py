# SPDX-License-Identifier: Apache-2.0
"""Start fixtures, run wallprof on them, check that nobody was harmed."""
import bisect
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD_DIR", "build/release")
WALLPROF = BUILD / "wallprof"
FIXTURES = ROOT / os.environ.get("FIXTURES_DIR", "build/fixtures")
# Names that another test has looked up are of no use to one that looks at how.
os.environ["WALLPROF_CACHE"] = ""
# Every pid is less (linux/threads.h, PID_MAX_LIMIT).
NO_PID = 1 << 22
SLOW = "asan" in BUILD.name or "valgrind" in os.environ.get("WRAP", "")

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gate import (  # noqa: E402,F401  pylint: disable=unused-import
    pytest_collection_modifyitems, pytest_sessionfinish, pytest_sessionstart,
    pytest_terminal_summary)


def pytest_configure(config):
    config.addinivalue_line("markers", "soak: takes minutes (make soak)")
    config.addinivalue_line(
        "markers", "alone: measures what the machine's load changes, or sets "
        "what the whole machine has: runs when no other test does")
    # A shell's background and nohup(1) have some ignored; what is started here
    # would inherit that, and heed it.
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, signal.SIG_DFL)


def status_of(pid, tid=None):
    """/proc/PID/status as a dict."""
    path = f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status"
    with open(path, errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f
                    if ":\t" in line)


def is_alive(pid):
    """Has PID not ended? A zombie that nobody asks about has."""
    try:
        return status_of(pid)["State"][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def tids_of(pid):
    return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))


def schedstat(pid, tid):
    """Nanoseconds on a CPU, and waiting for one, and how often it was on one."""
    with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
        return [int(n) for n in f.read().split()]


def states_of(pid):
    states = set()
    for tid in tids_of(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            states.add(status_of(pid, tid)["State"][0])
    return states


def children_of(pid):
    """Processes that the first thread of PID has started."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def family(pid):
    """PID and all that it has started, by the first threads' children."""
    pids = [pid]
    for one in pids:
        pids += children_of(one)
    return pids


def run_ns(pid):
    """The CPU time of PID, by its own clock."""
    # linux/posix-timers.h: ~pid << 3 | CPUCLOCK_SCHED.
    return time.clock_gettime_ns(~pid << 3 | 2)


def wait_until(condition, seconds=100, pause=0.005):
    """Until CONDITION() is true; what it gives."""
    deadline = time.monotonic() + seconds
    while not (ret := condition()):
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(pause)
    return ret


def is_executed(path):
    """Is PATH there, and does the kernel execute it?  i386 programs it may not
    (ia32_emulation=off)."""
    try:
        with subprocess.Popen([path], stdout=subprocess.DEVNULL) as process:
            process.kill()
    except OSError as e:
        if e.errno not in (errno.ENOENT, errno.ENOEXEC):
            raise
        return False
    return True


def has_run(pid, seconds):
    """A condition: PID has had so much more CPU time than now."""
    until = run_ns(pid) + seconds * 1e9
    return lambda: run_ns(pid) >= until


def has_slept(pid, times, tid=None):
    """A condition: PID, or its thread TID, has gone to sleep so often since."""
    def switches():
        return int(status_of(pid, tid)["voluntary_ctxt_switches"])
    until = switches() + times
    return lambda: switches() >= until


def worker_of(tool):
    """The process of wallprof, TOOL, that looks."""
    return wait_until(lambda: children_of(tool.pid))[0]


def sampler_of(tool):
    """The process of wallprof, TOOL, that holds a file of another's thread open;
    0: none."""
    children = children_of(tool.pid)
    pairs = [(tool.pid, p) for p in children]
    pairs += [(p, c) for p in children for c in children_of(p)]
    for parent, pid in pairs:
        # A child that tries a probe inherits its parent's own.
        own = (f"/proc/{pid}/", f"/proc/{parent}/")
        try:
            for fd in os.scandir(f"/proc/{pid}/fd"):
                # It may be open for a moment.
                try:
                    path = os.readlink(fd.path)
                except OSError:
                    continue
                if (path.endswith("/schedstat") and
                        not path.startswith(own)):
                    return pid
        except OSError:
            continue
    return 0


def is_sampling(tool):
    return sampler_of(tool) != 0


def wait_until_sampling(tool):
    """Until it has looked at threads, and gone to sleep until a next time, more
    than once: there is a sample."""
    def slept():
        pid = sampler_of(tool)
        try:
            return pid and int(status_of(pid)["voluntary_ctxt_switches"])
        except OSError:
            return 0

    def begun_or_ended():
        """It sleeps between ticks: in its first one it may wait for other things."""
        pid = sampler_of(tool)
        try:
            with open(f"/proc/{pid}/wchan") as f:
                sleeps = pid and "sigtimedwait" in f.read()
        except OSError:
            sleeps = False
        return tool.poll() is not None or (sleeps and slept())

    before = wait_until(begun_or_ended)
    wait_until(lambda: tool.poll() is not None or slept() >= before + 4)
    assert tool.poll() is None, (tool.returncode, tool.stderr and
                                 tool.stderr.read())


def in_window(spans, p):
    """{what: ns} of [what, begin, end] that fell into the recording P."""
    begin, end = p.time_nanos, p.time_nanos + p.duration_nanos
    ret = {}
    for what, b, e in spans:
        ret[what] = ret.get(what, 0) + max(0, min(e, end) - max(b, begin))
    return ret


def ticks(p):
    """How many ticks a recording had: fewer than asked for on a machine that
    is busy."""
    import pprof_check
    for line in pprof_check.comments(p):
        found = re.search(r"ticks: (\d+)", line)
        if found:
            return int(found.group(1))
    raise AssertionError(pprof_check.comments(p))


def tolerance(p, changes):
    """Of a share of the time of one thread that ticks tell, where it has begun
    and ended so many times in the recording P: each time is known to a tick,
    any part of one being as likely; six standard deviations.  What it was in
    while ticks were missed is not known."""
    import pprof_check
    made, missed = ticks(p), pprof_check.counter(p, "missed")
    return (changes * 6) ** 0.5 / made + missed / (made + missed)


class CpuClock:
    """The CPU time of a process, by its own clock, at times of our choice."""

    def __init__(self, pid):
        self.pid = pid
        self.times, self.cpu = [], []
        self.over = threading.Event()
        self.look()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def look(self):
        before = after = 0
        # One that loses its CPU in between would be of another time.
        while not 0 < after - before < 1e6:
            before, cpu, after = time.time_ns(), run_ns(self.pid), time.time_ns()
        self.times.append((before + after) // 2)
        self.cpu.append(cpu)

    def run(self):
        while not self.over.wait(0.005):
            self.look()

    def stop(self):
        self.over.set()
        self.thread.join()
        self.look()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def at(self, ns):
        """What it was, and by how much that may be wrong."""
        i = bisect.bisect(self.times, ns)
        assert 0 < i < len(self.times), "outside of what was watched"
        t0, t1 = self.times[i - 1], self.times[i]
        c0, c1 = self.cpu[i - 1], self.cpu[i]
        return c0 + (c1 - c0) * (ns - t0) / (t1 - t0), c1 - c0

    def spent(self, p):
        """CPU time in the recording P, and by how much that may be wrong."""
        before, not_sure = self.at(p.time_nanos)
        after, not_sure_either = self.at(p.time_nanos + p.duration_nanos)
        return after - before, not_sure + not_sure_either


def is_clean(pid):
    """Nobody traces a thread of PID, and none is stopped: who held them has
    gone."""
    states = [status_of(pid, t) for t in tids_of(pid)]
    return all(s["TracerPid"] == "0" and s["State"][0] not in "tT"
               for s in states)


class Target:
    """A running program that wallprof is pointed at."""

    def __init__(self, argv, ready=True, **kwargs):
        self.argv = [str(a) for a in argv]
        self.proc = subprocess.Popen(self.argv, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE,
                                     stdin=subprocess.DEVNULL, **kwargs)
        self.pid = self.proc.pid
        # Lines read that nobody has asked for yet, and what has no end so far.
        self.lines, self.rest = [], b""
        self.ready = ""
        if ready:
            self.ready = self.read_line("READY")
            self.pid = int(re.search(r"pid=(\d+)", self.ready).group(1))

    def read_line(self, start, timeout=100):
        """The next line of its output that begins with START; those before it
        stay for who asks for them."""
        end = time.monotonic() + timeout
        while True:
            for i, line in enumerate(self.lines):
                if line.startswith(start):
                    return self.lines.pop(i)
            if not self.read_lines(end - time.monotonic()):
                break
        err = b""
        if select.select([self.proc.stderr], [], [], 0)[0]:
            err = os.read(self.proc.stderr.fileno(), 65536)
        raise AssertionError(f"{self.argv}: no line {start} but {self.lines}; "
                             f"stderr: {err.decode(errors='replace')}")

    def read_lines(self, timeout):
        """More of its output; nothing: it has ended, or said nothing for so long."""
        out = self.proc.stdout
        if timeout <= 0 or not select.select([out], [], [], timeout)[0]:
            return b""
        data = os.read(out.fileno(), 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.lines += [line.decode(errors="replace") + "\n" for line in lines]
        return data

    def is_running(self):
        return self.proc.poll() is None

    def assert_unharmed(self):
        """It runs on, nobody traces it, no thread is stopped."""
        assert self.is_running(), f"{self.argv} ended: {self.proc.returncode}"
        for tid in tids_of(self.pid):
            try:
                status = status_of(self.pid, tid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            assert status["TracerPid"] == "0", status
            assert status["State"][0] not in "Tt", status

    def truth(self):
        """End it with SIGTERM and return its own account."""
        self.proc.send_signal(signal.SIGTERM)
        line = self.read_line("TRUTH")
        assert self.proc.wait(100) == 0
        return json.loads(line[len("TRUTH"):])

    def end(self):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()
        self.proc.stdout.close()
        self.proc.stderr.close()


def missed_ticks(said):
    """Does wallprof say that it missed more ticks than it made: exit status 1?"""
    return "more ticks were missed" in said


class Run:
    """What a run of wallprof gave."""

    def __init__(self, argv, done, output):
        self.argv = argv
        self.status = done.returncode
        self.out = done.stdout.decode(errors="replace")
        self.err = done.stderr.decode(errors="replace")
        self.output = output

    def lacked_cpu(self):
        """Did wallprof get so little of a busy machine's CPUs that it says so:
        more ticks missed than made, stops not in time, or a pause in which it
        must have been off its CPU, and which uses up what stops may cost?"""
        made = re.search(r"ticks: (\d+)", self.err + self.out)
        pause = re.search(r"pauses: .* max ([\d.]+) us", self.err + self.out)
        return missed_ticks(self.err) or bool(made) and (
            self.counter("missed") > int(made.group(1)) or
            self.counter("not in time") > 0 or
            bool(pause) and float(pause.group(1)) > 5000)

    def check(self, status=0):
        """STATUS: the exit status, or a tuple of those that may be."""
        if status == 0 and self.status == 1 and self.lacked_cpu():
            return self
        wanted = status if isinstance(status, tuple) else (status,)
        assert self.status in wanted, (
            f"{' '.join(self.argv)}\nstatus {self.status}, wanted {status}\n"
            f"{self.err}\n{self.out[:2000]}")
        return self

    def counter(self, phrase):
        """The number before PHRASE in the summary, 0 when it is not there."""
        found = re.search(r"([\d.]+) " + re.escape(phrase), self.err + self.out)
        return float(found.group(1)) if found else 0


def tree_of(pid):
    """Where process PID and its descendants wait, and their signals: text for the
    message of a test."""
    lines = []
    for name in ("stat", "schedstat", "wchan", "syscall", "stack"):
        try:
            with open(f"/proc/{pid}/{name}", errors="replace") as f:
                lines.append(f"{name}: {f.read().strip()}")
        except OSError as e:
            lines.append(f"{name}: {e}")
    try:
        lines += [f"{k}: {v}" for k, v in status_of(pid).items()
                  if k.startswith(("Sig", "Shd", "TracerPid"))]
    except OSError:
        pass
    return "\n".join(lines + [tree_of(c) for c in children_of(pid)])


def end_of(tool, timeout):
    """Standard output and error of TOOL; the test fails, and tells where TOOL's
    processes wait, if TOOL has not ended after TIMEOUT seconds."""
    try:
        return tool.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{tool.args} has not ended in {timeout} s:\n"
                    + tree_of(tool.pid))


def interrupt(tool, until):
    """End wallprof, TOOL, by SIGINT when the condition is true that UNTIL()
    gives once it samples."""
    try:
        wait_until_sampling(tool)
        wait_until(until())
    except AssertionError:
        tool.kill()
        raise
    tool.send_signal(signal.SIGINT)


def wallprof(*args, output=None, timeout=120, prefix=(), until=None, **kwargs):
    """Run wallprof with ARGS to its end; with OUTPUT, -o is added; with UNTIL
    it is ended as by interrupt()."""
    argv = [*prefix, str(WALLPROF), *(str(a) for a in args)]
    if output:
        at = argv.index("--") if "--" in argv else len(argv)
        argv[at:at] = ["-o", str(output)]
    tool = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **kwargs)
    try:
        if until:
            interrupt(tool, until)
        out, err = end_of(tool, timeout)
    finally:
        if tool.poll() is None:
            tool.kill()
            tool.communicate()
    done = subprocess.CompletedProcess(argv, tool.returncode, out, err)
    return Run(argv, done, output)


@pytest.fixture
def start():
    """start(NAME or argv...) runs a program; all are ended after the test."""
    targets = []

    def begin(*argv, **kwargs):
        argv = list(argv)
        if "/" not in str(argv[0]):
            argv[0] = FIXTURES / str(argv[0])
        target = Target(argv, **kwargs)
        targets.append(target)
        # It says so before all of its threads wait.
        if pathlib.Path(argv[0]).name in ("waiters", "cxx"):
            wait_until(lambda: states_of(target.pid) == {"S"})
        return target

    yield begin
    for target in targets:
        target.end()


@pytest.fixture
def profile(tmp_path):
    """profile(pid, *options) records and returns (Run, decoded profile).

    With cpu=SECONDS it records until PID has had so much CPU time, however
    long that takes.
    """
    import pprof_check

    def record(pid, *args, status=0, cpu=None, **kwargs):
        if cpu is not None:
            kwargs["until"] = lambda: has_run(pid, cpu)
        out = tmp_path / f"p{len(list(tmp_path.iterdir()))}.pb.gz"
        run = wallprof("-p", pid, *args, output=out, **kwargs).check(status)
        p = pprof_check.load(str(out))
        pprof_check.validate(p)
        return run, p

    return record


def free_port():
    """A TCP port of 127.0.0.1 that nobody has."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stack_variants():
    """The names of fixtures/stack.c's builds, by the table they are made of:
    a build that is missing is a failure, not a test less."""
    table = (ROOT / "fixtures" / "fixtures.mk").read_text()
    lines = re.search(r"^STACKS := ((?:.*\\\n)*.*)", table, re.M).group(1)
    return sorted("stack-" + word.split(":")[0]
                  for word in lines.split() if ":" in word)


def raise_nofile():
    """As many descriptors as are allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.fixture
def redis(start, tmp_path):
    if not shutil.which("redis-server"):
        pytest.skip("no redis-server")
    sock = tmp_path / "redis.sock"
    server = start("/usr/bin/redis-server", "--port", "0", "--unixsocket",
                   sock, "--save", "", "--dir", tmp_path, ready=False)
    # It answers once it has all of its threads.
    wait_until(lambda: not subprocess.run(["redis-cli", "-s", sock, "ping"], check=False,
                                          capture_output=True).returncode)
    return server, sock


@pytest.fixture
def nginx(start, tmp_path):
    if not shutil.which("nginx"):
        pytest.skip("no nginx")
    port = free_port()
    conf = tmp_path / "nginx.conf"
    conf.write_text(f"""
worker_processes 1; daemon off; pid {tmp_path}/pid; error_log {tmp_path}/err;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {tmp_path}/b;
  proxy_temp_path {tmp_path}/p; fastcgi_temp_path {tmp_path}/f;
  uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;
  server {{ listen 127.0.0.1:{port}; root /usr/share/doc; autoindex on; }} }}
""")
    tmp_path.chmod(0o755)
    server = start("/usr/sbin/nginx", "-c", conf, ready=False)
    worker, = wait_until(lambda: children_of(server.pid))
    yield server, worker, port
    # Killed outright it would leave its worker behind.
    server.proc.terminate()
    server.proc.wait(100)


@pytest.fixture
def hang(start, tmp_path):
    """hang(PROGRAM, MODE, ARGUMENT) starts one that hangs."""
    from hangs import Hang
    return lambda *case: Hang(start, tmp_path, *case)


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """Where programs are that one of the tests' processes has compiled."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    place = place / "symbols"
    place.mkdir(exist_ok=True)
    return place


def compile_once(builds, compiler, flags, source, suffix):
    """The program, which no two of the tests' processes compile; one source
    has one path, whatever it is compiled with."""
    def place_of(*words):
        text = "\0".join(map(str, words)).encode()
        place = builds / hashlib.sha256(text).hexdigest()[:16]
        place.mkdir(exist_ok=True)
        return place

    name = place_of(source) / ("prog" + suffix)
    place = place_of(compiler, *flags, suffix, source)
    with open(builds / (place.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "prog").exists():
            new = name.with_name(f"{place.name}{suffix}")
            new.write_text(source)
            new.rename(name)
            subprocess.run([compiler, "-O2", *flags, "-o", place / "new", name],
                           check=True, capture_output=True, cwd=name.parent)
            (place / "new").rename(place / "prog")
    return place / "prog"


@pytest.fixture
def build(builds):
    def begin(tmp_path, compiler, *flags, source=None, suffix=".cc"):
        """A program of its own for each test, which may change it."""
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        from symbolizers import PROGRAM
        prog = compile_once(builds, compiler, flags, source or PROGRAM, suffix)
        return shutil.copy(prog, tmp_path / "prog")
    return begin
