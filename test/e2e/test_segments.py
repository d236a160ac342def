# SPDX-License-Identifier: Apache-2.0
"""Programs whose data may be executed, and whose segments share pages of the file:
which segment a mapping shows is told by where all of them are."""
import json
import pathlib
import re
import shutil
import struct

import pytest

from conftest import wait_until, wallprof
from symbolizers import run

LEVELS = """
#define LEVEL __attribute__((noinline, noclone))
volatile int variable = 1;
LEVEL void third(void)
{
	for (;;)
		wait();
}
LEVEL void second(void)
{
	third();
}
LEVEL void first(void)
{
	second();
}
"""
WITH_LIBC = """
#include <stdio.h>
#include <unistd.h>
static void wait(void)
{
	pause();
}
""" + LEVELS + """
int main(void)
{
	printf("READY pid=%d\\n", getpid());
	fflush(stdout);
	first();
	return variable;
}
"""
# As short as it can be: all of it is in one page of the file.
WITHOUT_LIBC = """
static void wait(void)
{
#if defined(__x86_64__)
	long nr = 34;

	__asm__ volatile("syscall" : "+a"(nr) : : "rcx", "r11", "memory");
#else
	register long nr __asm__("x8") = 73;
	register long a __asm__("x0") = 0, b __asm__("x1") = 0;
	register long c __asm__("x2") = 0, d __asm__("x3") = 0;

	__asm__ volatile("svc 0" : "+r"(a) : "r"(b), "r"(c), "r"(d), "r"(nr)
			 : "memory");
#endif
}
""" + LEVELS + """
void _start(void)
{
	first();
}
"""
SCRIPT = """
ENTRY(_start)
PHDRS { %s }
SECTIONS {
	. = 0x400000 + SIZEOF_HEADERS;
	%s
	/DISCARD/ : { *(.note*) *(.comment) }
}
"""
NEXT = "\n\t. = . + CONSTANT(MAXPAGESIZE);\n\t"
TEXT = ".text : { *(.text*) } :text .eh_frame : { *(.eh_frame) } :text"
DATA = ".data : { *(.data*) } :data"


def let_data_be_executed(prog):
    """Set PF_X of each PT_LOAD that may be written; how many there are."""
    data = bytearray(prog.read_bytes())
    at, = struct.unpack_from("<Q", data, 32)
    count, = struct.unpack_from("<H", data, 56)
    n = 0
    for i in range(at, at + 56 * count, 56):
        kind, flags = struct.unpack_from("<II", data, i)
        if kind == 1 and flags & 2:
            struct.pack_into("<I", data, i + 4, flags | 1)
            n += 1
    prog.write_bytes(data)
    return n


def assert_stack(pid, outermost):
    """The functions are those that the source calls, one from the other."""
    # Nothing says that there is none above _start: one stack in one is not whole.
    out = wallprof("dump", "-f", "json", pid).check(
        1 if outermost == "_start" else 0).out
    process = json.loads(out)["processes"][0]
    frames = process["threads"][0]["frames"]
    names = [f["function"] for f in frames]
    assert re.search(rf"\bthird second first {outermost}\b", " ".join(names)), \
        names


def await_pause(pid):
    """pause(2), which the kernel of aarch64 has not: ppoll(2)."""
    call = pathlib.Path(f"/proc/{pid}/syscall")
    wait_until(lambda: call.read_text().split()[0] in ("34", "73"))


@pytest.mark.parametrize("flags", [
    ["-Wl,-z,noseparate-code"], ["-Wl,-z,noseparate-code", "-no-pie"],
    ["-Wl,-z,separate-code"], ["-fuse-ld=lld"], ["-fuse-ld=lld", "-no-pie"],
    ["-fuse-ld=gold"], ["-static", "-Wl,-z,noseparate-code"]], ids=" ".join)
def test_data_that_may_be_executed(build, start, tmp_path, flags):
    linker = next((f[9:] for f in flags if f.startswith("-fuse-ld=")), "bfd")
    if not shutil.which(f"ld.{linker}"):
        pytest.skip(f"ld.{linker} is not installed")
    prog = pathlib.Path(build(tmp_path, "gcc", *flags, source=WITH_LIBC,
                              suffix=".c"))
    for n in range(2):
        target = start(prog)
        await_pause(target.pid)
        assert_stack(target.pid, "main")
        target.assert_unharmed()
        target.end()
        if not n:
            assert let_data_be_executed(prog)


def run_short(build, start, tmp_path, *flags):
    """A program that is in one page of its file, once it waits."""
    prog = build(tmp_path, "gcc", "-nostdlib", "-static", "-no-pie",
                 "-fno-stack-protector", "-fcf-protection=none",
                 "-Wl,-z,max-page-size=4096", "-Wl,--build-id=none", *flags,
                 source=WITHOUT_LIBC, suffix=".c")
    offsets = re.findall(r"LOAD +0x(\w+)", run("readelf", "-lW", prog).stdout)
    assert len({int(off, 16) >> 12 for off in offsets}) == 1, offsets
    target = start(prog, ready=False)
    await_pause(target.pid)
    return target


def test_text_that_may_be_written(build, start, tmp_path):
    target = run_short(build, start, tmp_path, "-Wl,--omagic")
    assert_stack(target.pid, "_start")
    target.assert_unharmed()


@pytest.mark.parametrize("text,data", [(5, 7), (7, 7), (5, 6)])
@pytest.mark.parametrize("order", ["text data", "data text"])
def test_segments_of_one_page(build, start, tmp_path, order, text, data):
    """Each is mapped from the same page of the file."""
    rights = {"text": text, "data": data}
    script = tmp_path / "script.ld"
    script.write_text(SCRIPT % (
        " ".join(f"{s} PT_LOAD FLAGS({rights[s]});" for s in order.split()),
        NEXT.join({"text": TEXT, "data": DATA}[s] for s in order.split())))
    target = run_short(build, start, tmp_path, f"-Wl,-T,{script}")
    assert_stack(target.pid, "_start")
    target.assert_unharmed()
