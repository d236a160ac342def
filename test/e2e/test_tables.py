# SPDX-License-Identifier: Apache-2.0
"""Tables that restate what the system knows better."""
import pathlib
import re
import subprocess

import pytest

from conftest import BUILD

UNISTD = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
TOOL = BUILD / "tools/syscalls"


@pytest.mark.skipif(not UNISTD.exists(), reason="no x86-64 kernel headers")
def test_every_system_call_of_the_headers_is_in_the_table():
    lines = subprocess.run([TOOL], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    table = {int(nr): name for nr, name, *_ in map(str.split, lines)}
    system = {int(nr): name for name, nr in re.findall(
        r"#define __NR_(\w+) (\d+)", UNISTD.read_text())}
    assert len(system) > 300
    assert {nr: table.get(nr) for nr in system} == system
