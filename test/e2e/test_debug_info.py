# SPDX-License-Identifier: Apache-2.0
"""Debug info that is not read: of which file, and what that costs, is said."""
import re
import struct

import pytest

import pprof_check
from conftest import states_of, wait_until, wallprof
from symbolizers import Answer, addresses, run

SOURCE = """
#include <stdio.h>
#include <unistd.h>
static inline __attribute__((always_inline)) void inner(void)
{
	for (;;)
		pause();
}
__attribute__((noinline)) void outer(void)
{
	inner();
}
int main(void)
{
	printf("READY pid=%d\\n", getpid());
	fflush(stdout);
	outer();
}
"""
ZLIB, UNKNOWN = 1, 99


def set_header(prog, name, kind, size):
    """Let the header of the compressed section NAME say that it unpacks to SIZE bytes
    by method KIND."""
    row = re.search(rf"\] {re.escape(name)} +PROGBITS +\w+ (\w+) \w+ \w+ +\w*C",
                    run("readelf", "-SW", prog).stdout)
    with open(prog, "r+b") as f:
        f.seek(int(row[1], 16))
        f.write(struct.pack("<IIQ", kind, 0, size))


@pytest.mark.parametrize("kind,size,why", [
    (ZLIB, (512 << 20) + 1, "is larger than 512 MiB"),
    (UNKNOWN, 1 << 20, "cannot be read")], ids=["large", "unreadable"])
def test_a_file_without_lines_is_named(build, start, tmp_path, kind, size, why):
    prog = build(tmp_path, "gcc", "-g", "-gz", source=SOURCE, suffix=".c")
    target = start(prog)
    wait_until(lambda: states_of(target.pid) == {"S"})
    out = wallprof("dump", target.pid).check()
    assert re.search(r"inner prog\.c:7 ", out.out), out.out
    assert "are missing" not in out.err
    target.end()
    set_header(prog, ".debug_info", kind, size)
    target = start(prog)
    wait_until(lambda: states_of(target.pid) == {"S"})
    out = wallprof("dump", target.pid).check()
    # Functions are named by the table of symbols, which has no inlined ones.
    assert re.search(r"#\d+ +outer ", out.out) and "inner" not in out.out
    said = ("wallprof: lines or inlined functions are missing of 1 mapped file: the "
            f"debug info of prog {why}\n")
    assert said in out.err, out.err
    path = tmp_path / "x.pb.gz"
    assert said in wallprof("-p", target.pid, "-d", "0.3",
                            output=path).check().err
    assert ("lines or inlined functions of 1 mapped file (the debug info of "
            f"prog {why})") in \
        "\n".join(pprof_check.comments(pprof_check.load(str(path))))
    target.assert_unharmed()


def test_what_is_not_asked_for_may_be_large(build, tmp_path):
    prog = build(tmp_path, "g++", "-O1", "-g", "-gz", "-gpubnames")
    svmas = addresses(prog, 50)
    right = Answer(prog, svmas)
    assert right.has == {"functions", "filenames", "line_numbers",
                         "inline_frames"}
    for name in (".debug_pubnames", ".debug_pubtypes", ".debug_loclists"):
        set_header(prog, name, ZLIB, 1 << 40)
    ours = Answer(prog, svmas)
    assert ours.has == right.has
    assert str(ours.levels) == str(right.levels)
