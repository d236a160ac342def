# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian's suites, unpacked beside the system's: nothing is installed."""
import fcntl
import os
import shutil
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def _archive():
    """Debian's archive, where this machine's apt has it from."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)",
         "Created-By: Packages"], check=True, capture_output=True, text=True,
        timeout=300, stdin=subprocess.DEVNULL)
    return next(uri for uri in done.stdout.split() if "security" not in uri)


class Packages:
    """Those of SUITES, in the folder PLACE, with lists of packages of their own."""

    def __init__(self, place, suites):
        self.place, self.suites = place, suites

    def _apt(self, *args, cwd=None):
        subprocess.run(args, cwd=cwd or self.place, check=True,
                       capture_output=True, timeout=300,
                       stdin=subprocess.DEVNULL,
                       env={**os.environ,
                            "APT_CONFIG": str(self.place / "apt.conf")})

    def _update(self):
        """Once."""
        place = self.place
        if (place / "updated").exists():
            return
        for name in ("state/lists/partial", "cache/archives/partial",
                     "etc/apt.conf.d", "etc/preferences.d"):
            (place / name).mkdir(parents=True, exist_ok=True)
        (place / "state/status").touch()
        archive = _archive()
        (place / "etc/sources.list").write_text("".join(
            f"deb [signed-by={KEYRING}] {archive} {suite} main\n"
            for suite in self.suites))
        (place / "apt.conf").write_text(
            f'Dir "{place}";\nDir::State "{place}/state";\n'
            f'Dir::State::status "{place}/state/status";\n'
            f'Dir::Cache "{place}/cache";\nDir::Etc "{place}/etc";\n'
            f'Dir::Etc::sourcelist "{place}/etc/sources.list";\n'
            'Dir::Etc::sourceparts "-";\nAcquire::Languages "none";\n'
            # A mirror may be behind: old packages are what is wanted.
            'Acquire::Check-Valid-Until "false";\n')
        self._apt("apt-get", "update")
        (place / "updated").touch()

    def unpack(self, name, *packages):
        """The folder NAME of PLACE, with what PACKAGES have; None where they cannot be
        had."""
        root, new = self.place / name, self.place / "new"
        self.place.mkdir(parents=True, exist_ok=True)
        with open(self.place / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                if not root.exists():
                    self._update()
                    shutil.rmtree(new, ignore_errors=True)
                    new.mkdir()
                    self._apt("apt-get", "download", *packages, cwd=new)
                    for package in list(new.glob("*.deb")):
                        self._apt("dpkg", "-x", package.name, "root", cwd=new)
                    (new / "root").rename(root)
            except (OSError, subprocess.SubprocessError):
                return None
            finally:
                shutil.rmtree(new, ignore_errors=True)
        return root
