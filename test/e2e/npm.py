# SPDX-License-Identifier: Apache-2.0
"""Programs from the npm registry, for tests on what others have built."""
import fcntl
import shutil
import subprocess

import pytest

from conftest import ROOT

PLACE = ROOT / "build" / "npm"


def fetch(package, version):
    """Where PACKAGE lies unpacked; None where it cannot be had.  None of its
    scripts is run."""
    place = PLACE / f"{package.replace('/', '-')}-{version}"
    if not shutil.which("npm"):
        return None
    PLACE.mkdir(parents=True, exist_ok=True)
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.exists():
            return place
        new = place.with_name(place.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        try:
            subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"],
                           cwd=new, check=True, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=100)
            packed, = new.iterdir()
            subprocess.run(["tar", "xzf", packed.name], cwd=new, check=True)
            packed.unlink()
        except (OSError, subprocess.SubprocessError):
            return None
        (new / "package").rename(place)
        new.rmdir()
    return place


def program(package, version, path):
    """The program PATH of PACKAGE, or a test less."""
    place = fetch(package, version)
    if not place:
        pytest.skip(f"no {package}@{version} from npm")
    return place / path
