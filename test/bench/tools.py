# SPDX-License-Identifier: Apache-2.0
"""wallprof and its competitors, running beside a target."""
import contextlib
import os
import signal
import subprocess
import threading
import time

from programs import WALLPROF, WORK

# Until a tool has begun in earnest.  None of them says when it has.
SETTLE_S = 0.25


class Recorder:
    """A tool that records until it is interrupted."""

    def __init__(self, name, argv):
        self.name = name
        self.argv = argv

    def start(self, pid):
        argv = [str(a).replace("PID", str(pid)) for a in self.argv]
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
        time.sleep(SETTLE_S)

    def stop(self):
        if self.proc.poll() is not None:
            raise RuntimeError(f"{self.name} ended by itself: "
                               f"{self.proc.stderr.read().decode()}")
        self.proc.send_signal(signal.SIGINT)
        try:
            self.proc.communicate(timeout=60)
        except BaseException:
            self.proc.kill()
            self.proc.wait()
            raise


class Loop:
    """A tool that looks once, over and over."""

    def __init__(self, name, argv, hz):
        self.name = name
        self.argv = argv
        self.interval = 1 / hz
        self.looks = 0
        self.seconds = 0.0

    def start(self, pid):
        self.argv_now = [a.replace("PID", str(pid)) for a in self.argv]
        self.ending = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        time.sleep(SETTLE_S)

    def run(self):
        start = time.monotonic()
        due = start
        while not self.ending:
            subprocess.run(self.argv_now, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
            self.looks += 1
            due = max(due + self.interval, time.monotonic())
            time.sleep(max(0, due - time.monotonic()))
        self.seconds += time.monotonic() - start

    def stop(self):
        self.ending = True
        self.thread.join()

    def rate(self):
        return self.looks / self.seconds if self.seconds else 0


class Nothing:
    name = "without"

    def start(self, pid):
        pass

    def stop(self):
        pass


def wallprof(hz, stop="auto", unbounded=False, profile="wall,cpu"):
    """PROFILE: wall alone has no CPU samples, and stops those that run."""
    bound = ["--max-stopped", "0"] if unbounded else []
    name = (f"{stop} {hz} Hz" + (" no bound" if unbounded else "") +
            (" wall" if profile == "wall" else ""))
    return Recorder(name, [WALLPROF, "-p", "PID", "-r", hz, "--stop", stop,
                           *bound, "--profile", profile, "-q", "-o",
                           WORK / "beside.pb.gz"])


def perf(hz, how):
    return Recorder(f"perf {how} {hz} Hz",
                    ["perf", "record", "-q", "-F", hz, "--call-graph", how,
                     "-p", "PID", "-o", WORK / "perf.data"])


def eu_stack(hz=100):
    return Loop("eu-stack loop", ["eu-stack", "-q", "-p", "PID"], hz)


def gdb(hz=100):
    return Loop("gdb loop", GDB, hz)


GDB = ["gdb", "-p", "PID", "-batch", "-nx", "-ex",
       "set debuginfod enabled off", "-ex", "thread apply all bt"]


@contextlib.contextmanager
def beside(tool, pid):
    """TOOL runs on PID meanwhile, and is over afterwards, whatever happens."""
    tool.start(pid)
    try:
        yield
    finally:
        tool.stop()


def switches(pid, tid=None):
    """How often the threads of PID were put on a CPU or left one."""
    total = 0
    for t in [tid] if tid else os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{t}/status") as f:
                total += sum(int(line.split()[1]) for line in f
                             if "ctxt_switches" in line)
        except OSError:
            continue
    return total
