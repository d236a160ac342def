# SPDX-License-Identifier: Apache-2.0
"""Programs to be looked at, and what it takes to run others beside them."""
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD_DIR", "build/release")
WALLPROF = BUILD / "wallprof"
HELPERS = BUILD / "bench"
FIXTURES = ROOT / "build" / "fixtures"
WORK = pathlib.Path(tempfile.mkdtemp(prefix="wallprof-bench-"))

# Nobody's symbols come from the network.
os.environ.pop("DEBUGINFOD_URLS", None)


class Program:
    """A running program; as a context it is ended by its pid."""

    def __init__(self, argv, ready="READY", **kwargs):
        self.argv = [str(a) for a in argv]
        self.name = pathlib.Path(self.argv[0]).name
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stderr", subprocess.DEVNULL)
        self.proc = subprocess.Popen(self.argv, stdout=subprocess.PIPE,
                                     **kwargs)
        self.pid = self.proc.pid
        try:
            if ready:
                self.read_line(ready)
        except BaseException:
            self.end()
            raise

    def read_line(self, start, timeout=60):
        """The rest of the next line of output that begins with START."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not select.select([self.proc.stdout], [], [], 1)[0]:
                continue
            line = self.proc.stdout.readline().decode(errors="replace")
            if line.startswith(start):
                return line[len(start):]
            if not line:
                break
        raise RuntimeError(f"{self.argv}: no line {start}")

    def truth(self):
        """End it and return its own account."""
        self.proc.send_signal(signal.SIGTERM)
        return json.loads(self.read_line("TRUTH"))

    def tids(self):
        return sorted(int(t) for t in os.listdir(f"/proc/{self.pid}/task"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Nothing of it is left, whatever happened before."""
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()

    def until(self, what, timeout=60):
        """Ask WHAT until it says yes, while the program runs; it is ended if
        that never comes.  Returns the program."""
        end = time.monotonic() + timeout
        try:
            while not what():
                if self.proc.poll() is not None:
                    raise RuntimeError(f"{self.argv[0]} ended by itself")
                if time.monotonic() > end:
                    raise RuntimeError(f"{self.argv[0]} is never ready")
                time.sleep(0.01)
        except BaseException:
            self.end()
            raise
        return self


def fixture(name, *args):
    return Program([FIXTURES / name, *args])


def helper(name, *args):
    return Program([HELPERS / name, *args])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port, question, answer):
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as s:
            s.sendall(question)
            return answer in s.recv(4096)
    except OSError:
        return False


def redis():
    """A redis on a port of its own, answering."""
    port = free_port()
    server = Program(["redis-server", "--port", port, "--bind", "127.0.0.1",
                      "--save", "", "--appendonly", "no", "--dir", WORK],
                     ready=None)
    server.port = port
    return server.until(lambda: answers(port, b"PING\r\n", b"+PONG"))


NGINX = """daemon off; master_process off; pid {dir}/nginx.pid;
error_log {dir}/nginx.log;
events {{ }}
http {{ access_log off; server {{ listen 127.0.0.1:{port};
return 200 ok; }} }}
"""


def nginx():
    """One that answers "ok"."""
    port = free_port()
    conf = WORK / "nginx.conf"
    conf.write_text(NGINX.format(dir=WORK, port=port))
    exe = shutil.which("nginx") or "/usr/sbin/nginx"
    server = Program([exe, "-p", WORK, "-c", conf], ready=None)
    return server.until(
        lambda: answers(port, b"GET / HTTP/1.0\r\n\r\n", b"ok"))


CONSTEXPR = """constexpr unsigned f(unsigned n)
{ unsigned s = 0; while (n) for (unsigned i = 0; i < n; i++) s += i; return s; }
constexpr unsigned x = f(1000);
"""
CONST = """#![allow(long_running_const_eval)]
const X: () = { loop {} };
fn main() { X }
"""


def is_busy(pid):
    """The thread that ran for much of the last 200 ms, or None.  Others may
    want the CPU as well."""
    def run_ns(tid):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
            return int(f.read().split()[0])
    try:
        before = {t: run_ns(t) for t in os.listdir(f"/proc/{pid}/task")}
        time.sleep(0.2)
        for tid, ns in before.items():
            if run_ns(tid) - ns > 2e7:
                return int(tid)
    except OSError:
        pass
    return None


def compiler(name):
    """A compiler that evaluates a constant for ever, and its busy thread; None
    where there is none."""
    if not shutil.which(name):
        return None
    if name == "rustc":
        source = WORK / "loop.rs"
        source.write_text(CONST)
        argv = ["rustc", "--emit", "metadata", "-o", WORK / "loop.out", source]
    else:
        source = WORK / "loop.cc"
        source.write_text(CONSTEXPR)
        argv = [name, "-std=c++17", "-fsyntax-only",
                "-fconstexpr-steps=4294967295", source]
    program = Program(argv, ready=None)
    # One second of steady work: what it loads and starts is over by then.
    seen = []

    def is_steady():
        seen.append(is_busy(program.pid))
        return len(seen) >= 5 and seen[-1] and len(set(seen[-5:])) == 1

    program.until(is_steady)
    program.busy_tid = seen[-1]
    return program


def elf_bytes(pid):
    """Bytes of the files that PID has mapped code of."""
    files = {}
    with open(f"/proc/{pid}/maps") as f:
        for line in f:
            parts = line.split(None, 5)
            if len(parts) == 6 and "x" in parts[1] and parts[5][0] == "/":
                path = parts[5].strip()
                if os.path.exists(path):
                    files[path] = os.path.getsize(path)
    return sum(files.values())


def spend(*argv, timeout=120):
    """Run a command to its end: what it took, and what it wrote to standard
    output ("out") and standard error ("err")."""
    account = WORK / "spend.json"
    done = subprocess.run([HELPERS / "spend", account, *map(str, argv)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout,
                          errors="replace")
    took = json.loads(account.read_text())
    took["out"], took["err"] = done.stdout, done.stderr
    return took


def record(pid, *args, output="x.pb.gz"):
    """Run wallprof on PID to its end; as spend."""
    took = spend(WALLPROF, "-p", pid, "-v", *args, "-o", WORK / output)
    if took["status"] > 1:
        raise RuntimeError(f"wallprof {args}: {took['err']}")
    return took


def counter(took, pattern):
    """The number that PATTERN's group finds in the counters, 0 if none."""
    found = re.search(pattern, took["err"])
    return float(found.group(1)) if found else 0.0
