# SPDX-License-Identifier: Apache-2.0
"""Names, files, lines and inlined functions against other symbolizers.

test/tools/name_addresses asks the resolver about svmas of one file.  llvm-symbolizer
and eu-addr2line, which share no code with it, say what is right.
"""
import os
import random
import re
import shutil
import subprocess

import pytest

from symbolizers import (BUILD, C_PROGRAM, LIBC, TOOL, Answer, addresses,
                         assert_as_llvm, debug_file_of, functions,
                         names_by_address, run)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [
    ["-gdwarf-4"], ["-gdwarf-5"], ["-gdwarf-5", "-no-pie", "-fPIE"],
    ["-gdwarf-5", "-gz"], ["-gdwarf-4", "-ffunction-sections"],
], ids=" ".join)
def test_inlined_functions_are_those_of_llvm(build, tmp_path, compiler, flags):
    prog = build(tmp_path, compiler, *flags)
    svmas = addresses(prog, 2000)
    assert assert_as_llvm(prog, svmas) > 2 * len(svmas), "this code inlines"


def test_clang_without_aranges_is_like_clang_with(build, tmp_path):
    without = build(tmp_path, "clang++", "-g")
    svmas = addresses(without, 500)
    first = [str(levels) for levels in Answer(without, svmas).levels]
    prog = build(tmp_path, "clang++", "-g", "-gdwarf-aranges")
    assert first == [str(levels) for levels in Answer(prog, svmas).levels]


def test_places_are_those_of_eu_addr2line(build, tmp_path):
    """eu-addr2line misses inlined functions, but not lines."""
    prog = build(tmp_path, "g++", "-g")
    svmas = addresses(prog, 1000)
    out = run("eu-addr2line", "-e", prog,
              input="".join(f"{a:#x}\n" for a in svmas)).stdout.splitlines()
    ours = Answer(prog, svmas)
    for svma, levels, line in zip(svmas, ours.levels, out):
        assert levels[0].place == re.sub(r":(\d+):\d+$", r":\1", line) or \
            (levels[0].place == ":0" and line == "??:0"), hex(svma)
    assert ours.has == {"functions", "filenames", "line_numbers",
                        "inline_frames"}


def test_split_dwarf_has_lines(build, tmp_path):
    """The .dwo file is not opened, whose name the program tells."""
    whole = build(tmp_path, "g++", "-g")
    svmas = addresses(whole, 300)
    right = Answer(whole, svmas)
    # It takes the place of the other.
    prog = build(tmp_path, "g++", "-g", "-gsplit-dwarf")
    ours = Answer(prog, svmas)
    places = [levels[0].place for levels in ours.levels]
    assert places == [levels[0].place for levels in right.levels]
    assert all(level[-1].function for level in ours.levels)
    assert "dwarf_split" in ours.has and "dwarf_split" not in right.has


def test_cxx_names_are_demangled(build, tmp_path):
    prog = build(tmp_path, "g++", "-g")
    ours = Answer(prog, addresses(prog, 2000))
    names = {level.function for levels in ours.levels for level in levels}
    assert {"main", "shop::Big::cost", "shop::Thing::~Thing"} <= names
    assert "std::vector<int, std::allocator<int> >::_M_realloc_insert" \
        "<int const&>" in names
    assert not [n for n in names if n.startswith("_Z") or ".cold" in n]


def test_a_cold_part_belongs_to_its_function(build, tmp_path):
    prog = build(tmp_path, "g++", "-g")
    cold = [line.split() for line in run("nm", prog).stdout.splitlines()
            if line.endswith("main.cold")]
    assert cold, "gcc splits main, which catches"
    svma = int(cold[0][0], 16)
    assert Answer(prog, [svma]).function().function == "main"
    # Without DWARF too, the name is main's.
    run("strip", "-g", prog)
    assert Answer(prog, [svma]).function().system == "main.cold"
    assert Answer(prog, [svma]).function().function == "main"


@pytest.fixture
def libc_debug():
    debug = debug_file_of(LIBC)
    if not debug.exists():
        pytest.skip("libc6-dbg is not installed")
    return debug


def test_libc_is_as_llvm_sees_its_debug_file(libc_debug):
    svmas = sorted(addresses(libc_debug, 5000))
    assert_as_llvm(LIBC, svmas, libc_debug, "-r", "")
    answer = Answer(LIBC, svmas, "-r", "")
    assert "debug_file" in answer.has
    if "asan" not in BUILD.name:
        assert answer.peak_kib < 40 * 1024


def test_libc_has_its_public_names(libc_debug):
    """What a program calls, whether or not libc6-dbg is there."""
    names = ["read", "pthread_mutex_lock", "pthread_cond_wait", "sem_wait",
             "clock_nanosleep", "epoll_wait", "malloc", "poll", "select"]
    table = {}
    for line in run("nm", "-D", LIBC).stdout.splitlines():
        words = line.split()
        if len(words) == 3 and "@@" in words[2]:
            table[words[2].split("@")[0]] = int(words[0], 16)
    svmas = [table[name] for name in names]
    for roots in (["-r", ""], []):
        answer = Answer(LIBC, svmas, *roots)
        assert [answer.function(i).system for i in range(len(names))] == names
    # Only the debug file knows those that nobody else calls.
    waits = [int(line.split()[0], 16)
             for line in run("nm", libc_debug).stdout.splitlines()
             if line.endswith(" __lll_lock_wait")]
    assert Answer(LIBC, waits, "-r", "").function().system == "__lll_lock_wait"
    assert Answer(LIBC, waits).function().system == \
        f"libc.so.6+{waits[0]:#x}"


def test_a_stripped_program_has_the_names_that_it_exports():
    path = os.path.realpath("/usr/bin/python3")
    table = names_by_address(path, "-D")
    spans = [f for f in functions(path) if f[0] in table]
    assert len(spans) > 1000
    svmas = [start + size // 2 for start, size in spans]
    answer = Answer(path, svmas)
    for i, (start, _) in enumerate(spans):
        assert answer.function(i).system in table[start]
    assert answer.has == {"functions"}


def test_slots_of_the_plt_are_those_of_objdump(build, tmp_path):
    for flags in (["-Wl,-z,lazy"], ["-Wl,-z,now"],
                  ["-fcf-protection=full", "-Wl,-z,ibtplt"]):
        prog = build(tmp_path, "g++", *flags)
        table = run("objdump", "-d", "-j", ".plt", "-j", ".plt.sec", "-j",
                    ".plt.got", "--no-show-raw-insn", prog)
        slots = {}
        for m in re.finditer(r"^([0-9a-f]+) <(\w+)@plt>:", table.stdout, re.M):
            slots[m[2]] = int(m[1], 16)
        assert len(slots) > 5
        answer = Answer(prog, list(slots.values()))
        for i, name in enumerate(slots):
            assert answer.function(i).system == f"{name}@plt"


def test_rust_names_are_demangled(tmp_path):
    rustc = shutil.which("rustc")
    if not rustc or subprocess.run([rustc, "--version"],
                                   capture_output=True).returncode:
        pytest.skip("rustc is not installed")
    for version in ("legacy", "v0"):
        source = tmp_path / "prog.rs"
        source.write_text("""
            pub mod shop {
                pub struct Cart<T> { pub items: Vec<T> }
                impl<T: Copy + std::ops::Add<Output = T>> Cart<T> {
                    #[inline(never)]
                    pub fn sum(&self) -> T {
                        let mut s = self.items[0];
                        for i in &self.items[1..] { s = s + *i; }
                        s
                    }
                }
            }
            #[inline(never)]
            fn count(n: usize) -> usize { println!("{}", n); n * 3 }
            fn main() {
                let c = shop::Cart { items: vec![1u64, count(2) as u64] };
                println!("{}", c.sum());
            }
            """)
        flags = [f"-Csymbol-mangling-version={version}"]
        if version == "legacy":
            flags.append("-Zunstable-options")
        run(rustc, "-g", "-O", *flags, "-o", tmp_path / "prog", source,
            env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
        prog = tmp_path / "prog"
        answer = Answer(prog, [a for a, _ in functions(prog)])
        names = {levels[-1].function for levels in answer.levels}
        assert "prog::count" in names and "prog::main" in names, version
        assert [n for n in names if "shop::Cart" in n and n.endswith("::sum")]
        assert not [n for n in names if re.search("::h[0-9a-f]{16}$", n)]


def test_broken_files_do_no_harm(build, tmp_path):
    """Bytes of headers and debug info changed at random: any answer will do,
    as long as there is one."""
    prog = build(tmp_path, "gcc", "-g", source=C_PROGRAM, suffix=".c")
    svmas = [a for a, _ in functions(prog)]
    text = "".join(f"{a + 1:x}\n" for a in svmas)
    good = prog.read_bytes()
    pick = random.Random(3)
    # Sections that are read, and the headers.
    spans = [(64, 64 + 13 * 56)]
    for m in re.finditer(r"\] (\.debug\S+|\.symtab|\.strtab|\.dynsym) +\w+ +"
                         r"\w+ (\w+) (\w+)",
                         run("readelf", "-SW", prog).stdout):
        start = int(m[2], 16)
        spans.append((start, start + int(m[3], 16)))
    spans.append((len(good) - 40 * 64, len(good)))
    for _ in range(400):
        data = bytearray(good)
        start, end = pick.choice(spans)
        for _ in range(pick.choice((1, 1, 4, 30))):
            data[pick.randrange(start, end)] = pick.randrange(256)
        broken = tmp_path / "broken"
        broken.write_bytes(data)
        done = subprocess.run([TOOL, broken], input=text.encode(),
                              capture_output=True, timeout=100)
        assert done.returncode == 0, done
        assert done.stdout.count(b"\n\n") == len(svmas)
