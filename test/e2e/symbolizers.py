# SPDX-License-Identifier: Apache-2.0
"""The resolver's answers and those of other symbolizers, for the same svmas."""
import os
import pathlib
import random
import re
import shutil
import subprocess

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


def debug_file_of(path):
    notes = run("readelf", "-n", path).stdout
    build_id = re.search("Build ID: ([0-9a-f]+)", notes)[1]
    return pathlib.Path("/usr/lib/debug/.build-id", build_id[:2],
                        build_id[2:] + ".debug")


def names_by_address(path, *options):
    """{svma: names} of PATH's symbols by nm."""
    table = {}
    for line in run("nm", *options, path).stdout.splitlines():
        words = line.split()
        if len(words) == 3:
            table.setdefault(int(words[0], 16), set()).add(
                words[2].split("@")[0])
    return table
