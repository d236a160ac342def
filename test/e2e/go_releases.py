# SPDX-License-Identifier: Apache-2.0
"""Go itself, of the versions that Debian's suites have, unpacked beside the
system's: nothing is installed."""
import fcntl
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT

PLACE = ROOT / "build" / "go"
SUITES = ("bookworm-backports", "trixie", "trixie-backports")
# Linked by the C compiler, with cgo.
EXTERNAL = ("-ldflags", "-linkmode=external")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def _apt(*args, cwd=PLACE):
    subprocess.run(args, cwd=cwd, check=True, capture_output=True, timeout=300,
                   stdin=subprocess.DEVNULL,
                   env={**os.environ, "APT_CONFIG": str(PLACE / "apt.conf")})


def _archive():
    """Debian's archive, where this machine's apt has it from."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)",
         "Created-By: Packages"], check=True, capture_output=True, text=True,
        timeout=300, stdin=subprocess.DEVNULL)
    return next(uri for uri in done.stdout.split() if "security" not in uri)


def _update():
    """Lists of packages of our own, once."""
    if (PLACE / "updated").exists():
        return
    for name in ("state/lists/partial", "cache/archives/partial",
                 "etc/apt.conf.d", "etc/preferences.d"):
        (PLACE / name).mkdir(parents=True, exist_ok=True)
    (PLACE / "state/status").touch()
    archive = _archive()
    (PLACE / "etc/sources.list").write_text("".join(
        f"deb [signed-by={KEYRING}] {archive} {suite} main\n"
        for suite in SUITES))
    (PLACE / "apt.conf").write_text(
        f'Dir "{PLACE}";\nDir::State "{PLACE}/state";\n'
        f'Dir::State::status "{PLACE}/state/status";\n'
        f'Dir::Cache "{PLACE}/cache";\nDir::Etc "{PLACE}/etc";\n'
        f'Dir::Etc::sourcelist "{PLACE}/etc/sources.list";\n'
        'Dir::Etc::sourceparts "-";\nAcquire::Languages "none";\n')
    _apt("apt-get", "update")
    (PLACE / "updated").touch()


def fetch(version):
    """Where Go VERSION ("1.24") is; None where it cannot be had."""
    installed = pathlib.Path(f"/usr/lib/go-{version}")
    if installed.exists():
        return installed
    root = PLACE / version
    PLACE.mkdir(parents=True, exist_ok=True)
    with open(PLACE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new = PLACE / "new"
        try:
            if not root.exists():
                _update()
                shutil.rmtree(new, ignore_errors=True)
                new.mkdir()
                _apt("apt-get", "download", f"golang-{version}-go",
                     f"golang-{version}-src", cwd=new)
                for package in list(new.glob("*.deb")):
                    _apt("dpkg", "-x", package.name, "root", cwd=new)
                (new / "root").rename(root)
        except (OSError, subprocess.SubprocessError):
            return None
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return root / f"usr/lib/go-{version}"


def build(version, fixture, out, *args):
    """Build FIXTURE by Go VERSION, or a test less."""
    root = fetch(version)
    if not root:
        pytest.skip(f"no golang-{version} from Debian")
    subprocess.run([root / "bin/go", "build", *args, "-o", out,
                    ROOT / "fixtures" / f"{fixture}.go"], check=True,
                   timeout=600, env={
                       **os.environ, "GOROOT": str(root), "GOFLAGS": "",
                       "GOTOOLCHAIN": "local", "GO111MODULE": "off",
                       "CGO_ENABLED": str(int(EXTERNAL[1] in args)),
                       "GOCACHE": str(PLACE / "cache-go")})
    return out


def program(package, path):
    """The program at PATH of Debian's PACKAGE, which is unpacked and not
    installed; or a test less."""
    root = PLACE / "programs" / package
    root.parent.mkdir(parents=True, exist_ok=True)
    with open(PLACE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new = PLACE / "programs" / "new"
        shutil.rmtree(new, ignore_errors=True)
        try:
            if not root.exists():
                new.mkdir()
                subprocess.run(["apt-get", "download", package], cwd=new,
                               check=True, capture_output=True, timeout=300,
                               stdin=subprocess.DEVNULL)
                deb, = new.glob("*.deb")
                subprocess.run(["dpkg", "-x", deb, new / "root"], check=True,
                               capture_output=True, timeout=300)
                (new / "root").rename(root)
        except (OSError, ValueError, subprocess.SubprocessError):
            pytest.skip(f"no {package} from Debian")
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return root / path
