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
from debian import Packages

PLACE = ROOT / "build" / "go"
SUITES = ("bookworm-backports", "trixie", "trixie-backports")
# Linked by the C compiler, with cgo.
EXTERNAL = ("-ldflags", "-linkmode=external")
PACKAGES = Packages(PLACE, SUITES)


def fetch(version):
    """Where Go VERSION ("1.24") is; None where it cannot be had."""
    installed = pathlib.Path(f"/usr/lib/go-{version}")
    if installed.exists():
        return installed
    root = PACKAGES.unpack(version, f"golang-{version}-go",
                           f"golang-{version}-src")
    return root and root / f"usr/lib/go-{version}"


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
