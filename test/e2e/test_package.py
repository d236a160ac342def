# SPDX-License-Identifier: Apache-2.0
"""Debian's package: `dpkg-buildpackage -us -uc` of what is committed."""
import os
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
def test_the_package_is_built_clean_and_can_be_installed(tmp_path):
    tree = tmp_path / "wallprof"
    run("git", "checkout-index", "-a", f"--prefix={tree}/", cwd=ROOT)
    run("dpkg-buildpackage", "-us", "-uc", cwd=tree)
    changes, = tmp_path.glob("*.changes")
    package, = tmp_path.glob("wallprof_*.deb")
    assert run("lintian", "--allow-root", str(changes)) == ""
    run("apt-get", "install", "-s", str(package))
    run("dpkg-deb", "-x", str(package), str(tmp_path / "root"))
    depends = run("dpkg-deb", "-f", str(package), "Depends")
    assert "libcurl" in depends and "libmicrohttpd" in depends, depends
    usr = tmp_path / "root/usr"
    assert run(str(usr / "bin/wallprof"), "--version").startswith("wallprof ")
    for name in ("man/man1/wallprof.1.gz", "zsh/vendor-completions/_wallprof",
                 "bash-completion/completions/wallprof",
                 "fish/vendor_completions.d/wallprof.fish"):
        assert (usr / "share" / name).stat().st_size
