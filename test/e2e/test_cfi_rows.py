# SPDX-License-Identifier: Apache-2.0
"""The unwinder's CFI rows against readelf's, row by row.

readelf prints every row of every FDE; test/tools/cfi_rows prints the rule that
the product finds for an address.  Both are asked for the first and the last
address of each row.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release"))
TOOL = BUILD / "tools/cfi_rows"
LIBS = pathlib.Path("/usr/lib/x86_64-linux-gnu")

FDE = re.compile(r"[0-9a-f]{8,16} [0-9a-f]{8,16} [0-9a-f]{8,16} FDE "
                 r"cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)")
CIE = re.compile(r"([0-9a-f]{8,16}) [0-9a-f]{8,16} [0-9a-f]{8,16} CIE ")
ROW = re.compile(r"[0-9a-f]{8,16} (?!ZERO)")
# A register that is in another: "r5 (rdi)".
IN_REGISTER = re.compile(r"\br\d+ \((\w+)\)")


def shared_libs(program):
    """The files that PROGRAM is linked with."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True,
                         check=True).stdout
    return re.findall(r"(/\S+) \(0x", out)


def quick_files():
    files = ["/lib64/ld-linux-x86-64.so.2", LIBS / "libc.so.6",
             LIBS / "libstdc++.so.6"]
    for program in ("/usr/bin/python3", "bash", "git"):
        path = shutil.which(program)
        if path:
            files += [path] + shared_libs(path)
    return sorted({os.path.realpath(f) for f in files if os.path.exists(f)})


def i386_files():
    """Libraries of i386 programs, as Debian has them for gcc -m32."""
    names = ("ld-linux.so.2", "libc.so.6", "libgcc_s.so.1", "libstdc++.so.6")
    found = [f for n in names for d in ("/lib32", "/usr/lib32")
             if os.path.exists(f := os.path.join(d, n))]
    return sorted({os.path.realpath(f) for f in found})


def is_elf(path):
    """Some .so files are scripts for the linker."""
    return path.is_file() and path.open("rb").read(4) == b"\x7fELF"


def every_library():
    return sorted({os.path.realpath(f) for f in LIBS.glob("*.so*")
                   if is_elf(f)})


class Expected:
    """One row: what readelf says holds at LO <= svma < HI."""
    __slots__ = ("lo", "hi", "rule")

    def __init__(self, lo, hi, rule):
        self.lo, self.hi, self.rule = lo, hi, rule


def rows_of_fde(start, end, lines, columns, cie_row):
    """Rows of one FDE; it has none of its own where all is as in its CIE."""
    rows = []
    for line in lines:
        words = line.split()
        loc = int(words[0], 16)
        rule = dict(zip(columns, words[1:]))
        # Two rows at one address: the later one is what holds there.
        if rows and rows[-1].lo == loc:
            rows.pop()
        rows.append(Expected(loc, end, rule))
    if not rows:
        rows.append(Expected(start, end, cie_row))
    for row, after in zip(rows, rows[1:]):
        row.hi = after.lo
    return [r for r in rows if r.lo < r.hi]


def parse_readelf(lines):
    """Expected rows of all FDEs, as readelf printed them."""
    cies, rows = {}, []
    head, columns, body = None, [], []

    def finish():
        if head is None:
            return
        kind, key = head
        if kind == "cie":
            words = body[0].split() if body else []
            cies[key] = dict(zip(columns, words[1:]))
        else:
            cie, start, end = key
            if start < end:
                rows.extend(rows_of_fde(start, end, body, columns,
                                        cies.get(cie, {})))

    for line in lines:
        if line.startswith("Contents of the"):
            finish()
            head = None
            if rows:
                # Another section's entries have offsets of their own.
                cies = {}
            continue
        fde, cie = FDE.match(line), CIE.match(line)
        if fde or cie:
            finish()
            columns, body = [], []
            if fde:
                head = ("fde", (int(fde[1], 16), int(fde[2], 16),
                                int(fde[3], 16)))
            else:
                head = ("cie", int(cie[1], 16))
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif columns and ROW.match(line):
            body.append(IN_REGISTER.sub(r"\1", line))
    finish()
    return rows


def readelf_rows(path):
    run = subprocess.Popen(["readelf", "-wN", "--debug-dump=frames-interp",
                            path], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True)
    rows = parse_readelf(run.stdout)
    run.wait()
    return rows


def our_rules(path, addresses):
    """The printed rule for each of ADDRESSES, in order."""
    text = "".join(f"{a:x}\n" for a in addresses)
    run = subprocess.run([TOOL, path], input=text, capture_output=True,
                         text=True, check=True)
    return run.stdout.splitlines()


def same_register(name, ours, theirs):
    # readelf prints "u" too for a register that no rule has named yet.
    if theirs is None or theirs in ("u", "s"):
        default = "v+0" if name in ("rsp", "esp") else "s"
        return ours in ("u", "s", default)
    return ours == theirs


def disagreements(path):
    """Texts of the addresses where the two differ; how many were asked for."""
    rows = readelf_rows(path)
    # An address that two FDEs claim has two answers, both right.
    rows.sort(key=lambda r: (r.lo, r.hi))
    asked = []
    reach = 0
    for i, row in enumerate(rows):
        after = rows[i + 1].lo if i + 1 < len(rows) else row.hi
        if row.lo >= reach and after >= row.hi:
            asked.append((row.lo, row))
            if row.hi - 1 > row.lo:
                asked.append((row.hi - 1, row))
        reach = max(reach, row.hi)
    bad = []
    for (svma, row), line in zip(asked, our_rules(path,
                                                  [a for a, _ in asked])):
        words = line.split()
        want = dict(row.rule)
        cfa = want.pop("CFA", "?")
        ours = dict(w.split("=") for w in words[2:])
        ok = words[1] == cfa and ours and all(
            same_register(n, v, want.get(n)) for n, v in ours.items())
        if not ok:
            bad.append(f"{path} {svma:#x}: readelf {row.rule} ours {line}")
    return bad, len(asked)


def check(path):
    """Compare all rows of PATH; returns how many addresses were asked for."""
    bad, asked = disagreements(path)
    assert not bad, f"{len(bad)} of {asked} differ\n" + "\n".join(bad[:20])
    return asked


@pytest.mark.parametrize("path", quick_files(), ids=os.path.basename)
def test_rows_are_those_of_readelf(path):
    assert check(path) > 100, "this file has many functions"


@pytest.mark.parametrize("path", i386_files(), ids=os.path.basename)
def test_rows_of_i386_are_those_of_readelf(path):
    assert check(path) > 100, "this file has many functions"


# Frames of every kind: pushes, a frame pointer, a realigned stack, alloca.
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b)
{ return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) int sized(int n)
{ char v[n]; memset(v, n, sizeof(v)); return v[n / 2]; }
__attribute__((noinline)) int aligned(int n)
{ char v[n] __attribute__((aligned(64))); memset(v, n, sizeof(v));
  return v[n / 2] + sized(n); }
__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f)
{ int v[32]; for (int i = 0; i < 32; i++) v[i] = a * i ^ b * c;
  qsort(v, 32, sizeof(v[0]), compare);
  return v[d & 31] + aligned(e + 1) + sized(f + 1); }
int main(int argc, char **argv)
{ return many(argc, 2, 3, argc, 5, 6) + (argv[0] == NULL); }
"""

NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-g"]
# Debian has <asm/...> for both widths in one place, where -m32 does not look.
M32 = ["-m32", "-idirafter", "/usr/include/x86_64-linux-gnu"]
BUILDS = {
    "eh_frame": ["gcc"],
    "eh_frame-O0": ["gcc", "-O0"],
    "clang": ["clang"],
    # Found by an index: no search table, or no .eh_frame at all.
    "no-search-table": ["gcc", "-Wl,--no-eh-frame-hdr"],
    "debug_frame": ["gcc", *NO_TABLES],
    "debug_frame-64-bit": ["gcc", *NO_TABLES, "-gdwarf64"],
    "debug_frame-version-1": ["gcc", *NO_TABLES, "-gdwarf-2"],
    "debug_frame-clang": ["clang", *NO_TABLES],
    "musl-static": ["musl-gcc", "-static"],
    "static": ["gcc", "-static"],
    "i386": ["gcc", *M32],
    "i386-O0-debug_frame": ["gcc", *M32, "-O0", *NO_TABLES],
    "i386-no-search-table": ["gcc", *M32, "-Wl,--no-eh-frame-hdr"],
}


@pytest.mark.parametrize("build", BUILDS)
def test_rows_of_a_compiled_program(build, tmp_path):
    compiler, *flags = BUILDS[build]
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    if "-m32" in flags and not i386_files():
        pytest.skip("no i386 libraries (libc6-dev-i386)")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    subprocess.run([compiler, "-O2", *flags, "-o", program, source],
                   check=True)
    assert check(program) > 20
    if "debug_frame" in build:
        symbols = subprocess.run(["nm", program], capture_output=True,
                                 text=True, check=True).stdout
        main = int(re.search(r"([0-9a-f]+) T main", symbols)[1], 16)
        rule, = our_rules(program, [main])
        sp = "esp+4" if "i386" in build else "rsp+8"
        assert rule.split()[1] == sp, "main has .debug_frame only"


@pytest.mark.soak
@pytest.mark.parametrize("path", every_library(), ids=os.path.basename)
def test_rows_of_every_library_are_those_of_readelf(path):
    # Some libraries have data only, and no rows.
    check(path)
