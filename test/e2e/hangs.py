# SPDX-License-Identifier: Apache-2.0
"""Programs that hang, by their own account (fixtures/hang.h), and what wallprof
says of them."""
import json
import platform
import re
import time

import pytest

from conftest import FIXTURES, ROOT, status_of, tids_of, wallprof

SCHEMA = ROOT / "test" / "data" / "dump.schema.json"
STATUS = {"healthy": 0, "deadlock": 3, "no progress": 4}
SYS_FUTEX = 98 if platform.machine() == "aarch64" else 202
INTERVAL = ("--interval", "300ms")

# Edges that are of another kind than a lock.
KINDS = {
    "fullpipe": {"parent": "child", "child": "pipe"},
    "tworead": {"parent": "pipe", "child": "pipe"},
    "socketpair": {"parent": "socket", "child": "socket"},
    "flock": {"parent": "file lock", "child": "file lock"},
    "ofd": {"parent": "file lock", "child": "file lock"},
    "fcntl": {"parent": "file lock"},
    "forked": {"parent": "child"},
    "vfork": {"parent": "child"},
    "join": {"rock": "join", "paper": "join", "scissors": "join"},
    "rwlock-readers": {"reader": "join"},
}
TYPES = {"recursive": "recursive", "errorcheck": "error-checking",
         "adaptive": "adaptive", "robust": "robust", "pi": "PI"}


class Hang:
    """A hanging program and its own account of it."""

    def __init__(self, start, tmp_path, program, mode="", argument=""):
        if program == "hang_rust" and not (FIXTURES / program).exists():
            pytest.skip("no rustc")
        if mode in ("flock", "ofd", "fcntl"):
            argument = str(tmp_path)
        self.program, self.argument = program, argument
        # In a session of its own: descriptors of other tests that are on their way to a
        # process (SCM_RIGHTS) are older, and cannot be of this program.
        self.target = start(program, *filter(None, (mode, argument)),
                            start_new_session=True)
        self.pid = self.target.pid
        self.__dict__.update(json.loads(self.target.ready.split(" ", 2)[2]))
        if program == "hang_rust":
            self.await_join()
        if (program, mode, argument) == ("hang-musl", "abba", "normal"):
            # Its normal mutex says that it is locked, not by whom.
            self.verdict, self.cycle = "no progress", []

    def await_join(self):
        """Until its main thread, which says READY itself, waits for the others."""
        while self.target.is_running():
            with open(f"/proc/{self.pid}/syscall") as f:
                if f.read().split()[0] == str(SYS_FUTEX):
                    return
            time.sleep(0.001)

    def knows_owner(self, name):
        """Does what NAME waits for say who has it?"""
        if self.program == "hang_rust":
            return False
        if self.program == "hang-musl":
            return name == "main" or self.argument in TYPES
        return (self.mode, name) != ("rwlock-readers", "writer")

    def kind(self, name):
        default = "join" if name == "main" else "lock"
        return KINDS.get(self.mode, {}).get(name, default)

    def followers(self, name):
        """Threads that wait for NAME, directly or through others."""
        found, todo = set(), [name]
        while todo:
            at = todo.pop()
            more = {n for n, w in self.waits_for.items() if w == at} - found
            found |= more
            todo += more
        return found - {name}

    def assert_unharmed(self):
        assert self.target.is_running()
        for pid in set(self.pids.values()):
            for tid in tids_of(pid):
                status = status_of(pid, tid)
                assert status["TracerPid"] == "0", status
                assert status["State"][0] not in "TtZX", status


def validate(dump):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(dump, schema)


class Dump:
    """A dump as JSON, made sure to be what the schema says."""

    def __init__(self, pid, *args, statuses=(0,)):
        run = wallprof("--threads", "-f", "json", "-p", pid, *args)
        assert run.status in statuses, (run.status, run.err, run.out)
        self.status, self.err = run.status, run.err
        self.json = json.loads(run.out)
        validate(self.json)
        self.processes = {p["pid"]: p for p in self.json["processes"]}
        self.threads = {t["tid"]: t for p in self.json["processes"]
                        for t in p["threads"]}
        self.edges = self.json["edges"]
        self.cycles = [[self.edges[i] for i in cycle]
                       for cycle in self.json["deadlocks"]]

    def functions(self, tid):
        return [f["function"] for f in self.threads[tid]["frames"]]

    def site(self, tid):
        t = self.threads[tid]
        return (t["frames"][t["site"]]["function"] if t["site"] is not None
                else None)


def check(pid, *args):
    """Run --check; its verdict, the reason, and the dump that follows."""
    run = wallprof("--check", *INTERVAL, "-p", pid, *args)
    found = re.match(r"(deadlock|no progress|healthy): (.+)\n", run.out)
    assert found, (run.status, run.out, run.err)
    run.verdict, run.why = found.groups()
    run.dump = run.out[found.end():]
    return run.check(STATUS[run.verdict])
