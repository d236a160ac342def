# SPDX-License-Identifier: Apache-2.0
"""Stop whole processes by a cgroup, as container runtimes do."""
import os
import pathlib
import time

from conftest import wait_until


class Freezer:
    """A cgroup that stops whole processes, of version 2 or 1, or of that asked for."""

    def __init__(self, pid, version=None):
        self.dir = None
        for root, name, on, off in (
                ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
                ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
                ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN",
                 "THAWED")):
            path = pathlib.Path(root) / f"wallprof_test_{os.getpid()}"
            if version and version != (2 if name == "cgroup.freeze" else 1):
                continue
            if not (path.parent / "cgroup.procs").exists():
                continue
            try:
                path.mkdir()
                (path / "cgroup.procs").write_text(str(pid))
            except OSError:
                if path.is_dir():
                    path.rmdir()
                continue
            self.dir, self.file = path, path / name
            self.on, self.off = on, off
            return

    def set(self, frozen):
        self.file.write_text(self.on if frozen else self.off)
        wait_until(lambda: self.is_set(frozen), pause=0.001)

    def is_set(self, frozen):
        if self.file.name == "freezer.state":
            return self.file.read_text().strip() == (self.on if frozen
                                                     else self.off)
        events = (self.dir / "cgroup.events").read_text()
        return f"frozen {int(frozen)}" in events

    def remove(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                self.dir.rmdir()
                return
            except OSError:
                time.sleep(0.01)
