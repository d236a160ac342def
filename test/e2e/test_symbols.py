# SPDX-License-Identifier: Apache-2.0
"""Names, files, lines and inlined functions against other symbolizers.

test/tools/name_addresses asks the resolver about svmas of one file.  llvm-symbolizer
and eu-addr2line, which share no code with it, say what is right.
"""
import fcntl
import hashlib
import lzma
import os
import pathlib
import random
import re
import shutil
import subprocess
import zlib

import pytest

BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release"))
TOOL = (BUILD / "tools/name_addresses").resolve()
LIBC = pathlib.Path("/usr/lib/x86_64-linux-gnu/libc.so.6")

PROGRAM = r"""
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace shop {
template <class T> struct Cart {
	std::vector<T> items;
	void add(const T &t) { items.push_back(t); }
	template <class F> void each(F f) { for (auto &i : items) f(i); }
	T best() const { return *std::max_element(items.begin(), items.end()); }
};
struct Thing {
	virtual ~Thing() {}
	virtual int cost(int n) { return n * 3; }
};
struct Big : Thing {
	int cost(int n) override { return n * 7 + helper(n); }
	static inline int helper(int n) { return n ^ 5; }
};
}
static std::map<std::string, int> names;
static int count(const std::string &s) { return ++names[s]; }
int main(int argc, char **argv)
{
	shop::Cart<std::string> c;
	shop::Cart<int> d;
	std::unique_ptr<shop::Thing> t(argc > 2 ? new shop::Big :
						  new shop::Thing);
	for (int i = 0; i < argc; i++) {
		c.add(argv[i]);
		d.add(t->cost(i));
	}
	int sum = 0;
	c.each([&](std::string &s) { sum += count(s); });
	std::sort(c.items.begin(), c.items.end(),
		  [](const std::string &a, const std::string &b) {
			  return a.size() < b.size();
		  });
	printf("%s %d %d\n", c.best().c_str(), d.best(), sum);
	try {
		throw std::string("x");
	} catch (std::string &s) {
		sum += s.size();
	}
	return sum;
}
"""

C_PROGRAM = """
#include <stdio.h>
static int __attribute__((noinline)) hidden_function(int n)
{
	printf("%d", n);
	return n * 3;
}
int main(int argc, char **argv)
{
	(void)argv;
	return hidden_function(argc);
}
"""


def run(*args, **kwargs):
    return subprocess.run([str(a) for a in args], check=True,
                          capture_output=True, text=True, **kwargs)


def functions(path):
    """(svma, size) of the functions in PATH's symbol tables."""
    found = set()
    for line in run("readelf", "-sW", path).stdout.splitlines():
        w = line.split()
        if (len(w) >= 8 and w[3] in ("FUNC", "IFUNC") and
                w[6] not in ("UND", "ABS") and int(w[2], 0)):
            found.add((int(w[1], 16), int(w[2], 0)))
    return sorted(found)


def addresses(path, n):
    """N svmas inside functions of PATH; the same ones each time."""
    pick = random.Random(1)
    of = functions(path)
    starts = [pick.choice(of) for _ in range(n)]
    return [start + pick.randrange(size) for start, size in starts]


class Level:
    """One line of output."""
    def __init__(self, line):
        self.function, self.system, self.place, start = line.split("\t")
        self.start = int(start)

    def __repr__(self):
        return f"{self.system} {self.place}"


class Answer:
    """What symbolize printed: levels per address; flags; KiB at its peak."""
    def __init__(self, path, svmas, *options):
        done = run(TOOL, *options, path,
                   input="".join(f"{a:x}\n" for a in svmas))
        blocks = done.stdout.split("\n\n")[:-1]
        self.levels = [[Level(line) for line in block.strip("\n").split("\n")]
                       for block in blocks]
        assert len(self.levels) == len(svmas)
        has, peak = done.stderr.strip().split("\n")
        self.has = set(has.split()[1:])
        self.peak_kib = int(peak.split()[1])

    def function(self, i=0):
        """The function proper of address I."""
        return self.levels[i][-1]


def llvm(path, svmas):
    """[[(linkage name, file:line)]] by llvm-symbolizer."""
    if not shutil.which("llvm-symbolizer"):
        pytest.skip("llvm-symbolizer is not installed")
    out = run("llvm-symbolizer", "-e", path, "--functions=linkage",
              "--no-demangle", "--inlines", "--output-style=GNU",
              "--addresses", input="".join(f"{a:#x}\n" for a in svmas))
    answers = []
    lines = iter(out.stdout.splitlines())
    for line in lines:
        if re.fullmatch("0x[0-9a-f]+", line):
            answers.append([])
        else:
            place = re.sub(r" \(discriminator \d+\)$", "", next(lines))
            answers[-1].append((line, place))
    return answers


def assert_as_llvm(path, svmas, symbols_of=None, *options):
    """All levels are the same; the function proper has any of the names that
    its address has."""
    theirs = llvm(symbols_of or path, svmas)
    ours = Answer(path, svmas, *options).levels
    bad = []
    for svma, mine, right in zip(svmas, ours, theirs):
        places = [level.place for level in mine]
        names = [level.system for level in mine[:-1]]
        if ([p.replace("??", "") for _, p in right] != places or
                [n for n, _ in right[:-1]] != names):
            bad.append(f"{svma:#x}: {mine}, llvm-symbolizer {right}")
    assert not bad, f"{len(bad)} of {len(svmas)} differ\n" + "\n".join(bad[:9])
    return sum(len(levels) for levels in ours)


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    """Where programs are that one of the tests' processes has compiled."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    place = place / "symbols"
    place.mkdir(exist_ok=True)
    return place


def compile_once(builds, compiler, flags, source, suffix):
    """The program, which no two of the tests' processes compile; one source
    has one path, whatever it is compiled with."""
    def place_of(*words):
        text = "\0".join(map(str, words)).encode()
        place = builds / hashlib.sha256(text).hexdigest()[:16]
        place.mkdir(exist_ok=True)
        return place

    name = place_of(source) / ("prog" + suffix)
    place = place_of(compiler, *flags, suffix, source)
    with open(builds / (place.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "prog").exists():
            new = name.with_name(f"{place.name}{suffix}")
            new.write_text(source)
            new.rename(name)
            run(compiler, "-O2", *flags, "-o", place / "new", name,
                cwd=name.parent)
            (place / "new").rename(place / "prog")
    return place / "prog"


@pytest.fixture
def build(builds):
    def begin(tmp_path, compiler, *flags, source=PROGRAM, suffix=".cc"):
        """A program of its own for each test, which may change it."""
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        prog = compile_once(builds, compiler, flags, source, suffix)
        return shutil.copy(prog, tmp_path / "prog")
    return begin


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
    prog = build(tmp_path, "g++", "-gsplit-dwarf")
    svmas = addresses(prog, 300)
    whole = build(tmp_path, "g++", "-g")
    right = Answer(whole, svmas)
    ours = Answer(prog, svmas)
    places = [levels[0].place for levels in ours.levels]
    assert places == [levels[0].place for levels in right.levels]
    assert all(level[-1].function for level in ours.levels)


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


def debug_file_of(path):
    notes = run("readelf", "-n", path).stdout
    build_id = re.search("Build ID: ([0-9a-f]+)", notes)[1]
    return pathlib.Path("/usr/lib/debug/.build-id", build_id[:2],
                        build_id[2:] + ".debug")


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


def names_by_address(path, *options):
    """{svma: names} of PATH's symbols by nm."""
    table = {}
    for line in run("nm", *options, path).stdout.splitlines():
        words = line.split()
        if len(words) == 3:
            table.setdefault(int(words[0], 16), set()).add(
                words[2].split("@")[0])
    return table


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


@pytest.fixture
def stripped(build, tmp_path):
    """A program without symbols; its debug file; an address in it."""
    prog = build(tmp_path, "gcc", "-g", "-Wl,--build-id", source=C_PROGRAM,
                 suffix=".c")
    debug = tmp_path / "prog.debug"
    svma = next(a for a, names in names_by_address(prog).items()
                if "hidden_function" in names)
    run("objcopy", "--only-keep-debug", prog, debug)
    run("strip", "-s", prog)
    return prog, debug, svma


def assert_hidden(prog, svma, *options, wanted=True):
    answer = Answer(prog, [svma], *options)
    level = answer.function()
    if wanted:
        assert level.function == "hidden_function"
        assert level.start == 3
        assert level.place.endswith("/prog.c:4")
        assert "debug_file" in answer.has
    else:
        assert level.function == f"{pathlib.Path(prog).name}+{svma:#x}"
        assert "debug_file" not in answer.has


def place_by_id(root, prog, debug):
    """Copy DEBUG to where PROG's build-id says, below ROOT."""
    path = root / str(debug_file_of(prog))[1:]
    path.parent.mkdir(parents=True)
    shutil.copy(debug, path)
    return path


def test_a_debug_file_is_found_by_build_id_below_a_root(stripped, tmp_path):
    prog, debug, svma = stripped
    root, other = tmp_path / "root", tmp_path / "other"
    place_by_id(root, prog, debug)
    assert_hidden(prog, svma, wanted=False)
    assert_hidden(prog, svma, "-r", other, wanted=False)
    assert_hidden(prog, svma, "-r", other, "-r", root)


def test_a_debug_file_of_another_build_is_not_used(build, stripped, tmp_path):
    prog, debug, svma = stripped
    path = place_by_id(tmp_path / "root", prog, debug)
    (tmp_path / "more").mkdir()
    other = build(tmp_path / "more", "gcc", "-g", "-Wl,--build-id",
                  source=C_PROGRAM + "int more;", suffix=".c")
    shutil.copy(other, path)
    assert_hidden(prog, svma, "-r", tmp_path / "root", wanted=False)


def test_links_do_not_lead_out_of_a_root(stripped, tmp_path):
    prog, debug, svma = stripped
    root = tmp_path / "root"
    path = place_by_id(root, prog, debug)
    path.unlink()
    # The target's own "/" is the root; this link points nowhere in it.
    path.symlink_to(debug)
    assert_hidden(prog, svma, "-r", root, wanted=False)
    inside = root / str(debug)[1:]
    inside.parent.mkdir(parents=True)
    shutil.copy(debug, inside)
    assert_hidden(prog, svma, "-r", root)


@pytest.mark.parametrize("where", ["", ".debug", "usr/lib/debug"])
def test_a_debug_file_is_found_by_its_link(build, tmp_path, where):
    """By name and checksum, as neither file has a build-id."""
    prog = build(tmp_path, "gcc", "-g", "-Wl,--build-id=none",
                 source=C_PROGRAM, suffix=".c")
    svma = next(a for a, names in names_by_address(prog).items()
                if "hidden_function" in names)
    root, name = tmp_path / "root", "linked.debug"
    place = root / where / "opt" if where == "usr/lib/debug" else \
        root / "opt" / where
    place.mkdir(parents=True)
    (tmp_path / "d").mkdir()
    run("objcopy", "--only-keep-debug", prog, tmp_path / "d" / name)
    run("strip", "-s", prog)
    run("objcopy", f"--add-gnu-debuglink={tmp_path}/d/{name}", prog)
    shutil.copy(tmp_path / "d" / name, place / name)
    options = ["-r", root, "-p", "/opt/prog"]
    assert_hidden(prog, svma, *options)
    # One bit more and it is another file.
    data = bytearray((place / name).read_bytes())
    data[-1] ^= 1
    (place / name).write_bytes(data)
    answer = Answer(prog, [svma], *options)
    assert answer.function().function == f"prog+{svma:#x}"


def test_a_fifo_in_place_of_a_debug_file_does_not_block(stripped, tmp_path):
    prog, debug, svma = stripped
    path = place_by_id(tmp_path / "root", prog, debug)
    path.unlink()
    os.mkfifo(path)
    assert_hidden(prog, svma, "-r", tmp_path / "root", wanted=False)


def test_packed_symbols_are_read(stripped, tmp_path):
    """As distributions do it: what .dynsym lacks, in xz, in the file."""
    prog, debug, svma = stripped
    mini = tmp_path / "mini"
    run("objcopy", "-S", "--keep-symbol=hidden_function", debug, mini)
    (tmp_path / "mini.xz").write_bytes(lzma.compress(mini.read_bytes()))
    run("objcopy", f"--add-section=.gnu_debugdata={tmp_path}/mini.xz", prog)
    answer = Answer(prog, [svma])
    assert answer.function().system == "hidden_function"
    assert answer.function().place == ":0"
    assert answer.has == {"functions"}


def test_dwarf_shared_between_files_is_found(build, tmp_path):
    """dwz -m moves what two programs share to a third file."""
    if not shutil.which("dwz"):
        pytest.skip("dwz is not installed")
    progs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        progs.append(build(tmp_path / name, "g++", "-g", "-gdwarf-4"))
    svmas = addresses(progs[0], 500)
    before = [str(levels) for levels in Answer(progs[0], svmas).levels]
    root = tmp_path / "root"
    (root / "usr/lib/debug/.dwz").mkdir(parents=True)
    run("dwz", "-m", root / "usr/lib/debug/.dwz/shared",
        "-M", "/usr/lib/debug/.dwz/shared", *progs)
    assert ".gnu_debugaltlink" in run("readelf", "-SW", progs[0]).stdout
    answer = Answer(progs[0], svmas, "-r", root)
    assert [str(levels) for levels in answer.levels] == before
    # Without the third file there are names, from the symbols.
    alone = Answer(progs[0], svmas)
    assert alone.has == {"functions"}


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
                              capture_output=True, timeout=60)
        assert done.returncode == 0, done
        assert done.stdout.count(b"\n\n") == len(svmas)


def test_crc_is_zlibs(build, tmp_path):
    """objcopy wrote the link's checksum; this says which one that is."""
    prog = build(tmp_path, "gcc", "-g", source=C_PROGRAM, suffix=".c")
    debug = tmp_path / "x.debug"
    run("objcopy", "--only-keep-debug", prog, debug)
    run("objcopy", f"--add-gnu-debuglink={debug}", prog)
    out = tmp_path / "link"
    run("objcopy", "-O", "binary", "--only-section=.gnu_debuglink",
        "--set-section-flags", ".gnu_debuglink=alloc", prog, out)
    assert int.from_bytes(out.read_bytes()[-4:], "little") == \
        zlib.crc32(debug.read_bytes())
