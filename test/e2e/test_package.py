# SPDX-License-Identifier: Apache-2.0
"""Debian's package: `dpkg-buildpackage -us -uc` of what is committed."""
import os
import re
import subprocess

import pytest

from conftest import ROOT


def run(*argv, cwd=None):
    done = subprocess.run(argv, cwd=cwd, timeout=1500, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "MAKEFLAGS": ""})
    assert done.returncode == 0, done.stdout.decode()[-4000:]
    return done.stdout.decode()


@pytest.mark.soak
@pytest.mark.parametrize("arch", [None, "arm64"])
def test_the_package_is_built_clean_and_can_be_installed(tmp_path, arch):
    tree = tmp_path / "wallprof"
    run("git", "checkout-index", "-a", f"--prefix={tree}/", cwd=ROOT)
    # Libraries of another machine are no packages of this one.
    other = ["-b", "-d", "-a", arch] if arch else []
    run("dpkg-buildpackage", "-us", "-uc", *other, cwd=tree)
    changes, = tmp_path.glob("*.changes")
    package, = tmp_path.glob("wallprof_*.deb")
    assert run("lintian", "--allow-root", str(changes)) == ""
    run("dpkg-deb", "-x", str(package), str(tmp_path / "root"))
    depends = run("dpkg-deb", "-f", str(package), "Depends")
    for name in ("libc6", "libdw1", "libcurl", "libmicrohttpd"):
        assert re.search(rf"\b{name}\w* ", depends), depends
    usr = tmp_path / "root/usr"
    program = str(usr / "bin/wallprof")
    if arch:
        assert "AArch64" in run("readelf", "-h", program)
    else:
        run("apt-get", "install", "-s", str(package))
        assert run(program, "--version").startswith("wallprof ")
    for name in ("man/man1/wallprof.1.gz", "zsh/vendor-completions/_wallprof",
                 "bash-completion/completions/wallprof",
                 "fish/vendor_completions.d/wallprof.fish"):
        assert (usr / "share" / name).stat().st_size
