#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the house that a script can check: functions that fit a screen,
files of one job, names that stand once, a licence in every source file.

Arguments: [--lines] the object directory, and for each room ROOM=DIRECTORY.
test/lint/house.allow names the exceptions, each with its reason.
"""
import collections
import pathlib
import re
import subprocess
import sys

FUNCTION_MAX = 60
FILE_MAX = 500
PRODUCT = ("src/", "unwind/", "symbols/", "include/")
SOURCE = re.compile(r"\.(c|h|cc|py|sh|mk|go|rs|ld|js|1)$|(^|/)(Makefile|run|"
                    r"clang-(format|tidy)|skips\.txt|house\.allow)$")
ALLOW = pathlib.Path("test/lint/house.allow")


def allowed():
    """{(rule, name)} of the allow-list."""
    rows = [line.split("\t") for line in ALLOW.read_text().splitlines()
            if line and not line.startswith("#")]
    return {(rule, name) for rule, name, _ in rows}


def functions(text):
    """(name, lines) of each function whose braces stand in column 0."""
    lines = text.splitlines()
    start = None
    for at, line in enumerate(lines):
        if line == "{":
            start = at
        elif line == "}" and start is not None:
            head = start
            while head and lines[head - 1] and lines[head - 1][0] not in "#}":
                head -= 1
            name = re.search(r"(\w+)\(", " ".join(lines[head:start]))
            yield name.group(1) if name else "?", at - start + 1
            start = None


def product_faults(path, text):
    n = text.count("\n")
    if n > FILE_MAX:
        yield "file", path, f"{n} lines, over {FILE_MAX}"
    for name, n in functions(text) if path.endswith(".c") else ():
        if n > FUNCTION_MAX:
            yield "function", name, f"{path}: {n} lines, over {FUNCTION_MAX}"


def names_that_stand_twice(files):
    places = collections.defaultdict(list)
    for path in files:
        if re.search(r"\.(c|h|cc|py|sh|mk|go|rs|js)$", path):
            places[path.split("/")[-1]].append(path)
    for name, paths in places.items():
        if len(paths) > 1:
            yield "name", name, "stands in " + ", ".join(paths)


def symbols_of(build, room):
    """(symbol, stem of its file) of what a room's library has for others."""
    out = subprocess.run(["nm", "-g", "--defined-only", f"{build}/lib{room}.a"],
                         check=True, capture_output=True, text=True).stdout
    stem = ""
    for line in out.splitlines():
        if line.endswith(".o:"):
            stem = line[:-3]
        elif line and re.match(r"_?wp_", line.split()[-1]):
            yield line.split()[-1].lstrip("_"), stem


def shared_prefixes(build, rooms):
    """A prefix is the stem of a file: wp_maps_find is of maps.c."""
    home = {}
    for room, where in rooms:
        for path in pathlib.Path(where).glob("*.[ch]"):
            home.setdefault(path.stem, set()).add(room)
    users = collections.defaultdict(set)
    for room, _ in rooms:
        for symbol, _ in symbols_of(build, room):
            words = symbol.split("_")[1:]
            stems = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
            users[next((s for s in stems if s in home), words[0])].add(room)
    for prefix, of in users.items():
        of = of | home.get(prefix, set())
        if len(of) > 1:
            yield "prefix", f"wp_{prefix}", "of rooms " + ", ".join(sorted(of))


def readme_lists(texts):
    """The README follows a sample through files: each is there, once a list,
    and has the function."""
    way = []
    for line in pathlib.Path("README.md").read_text().splitlines() + [""]:
        step = re.match(r"    ((?:src|unwind)/\S+\.c) +(wp_\w+)", line)
        if not step:
            way = []
            continue
        path, function = step.groups()
        if not re.search(rf"^\w[^\n;]*\b{function}\(", texts.get(path, ""),
                         re.MULTILINE):
            yield "README.md", path, f"has no {function}"
        if path in way:
            yield "README.md", path, "is entered twice"
        way.append(path)


def lines_of(files, texts):
    """Lines of the tree by what they are for."""
    count = collections.Counter()
    longest = collections.Counter()
    for path in files:
        if not re.search(r"\.(c|h|cc|py|sh|mk|go|rs)$|Makefile$", path):
            continue
        kind = ("product" if path.startswith(PRODUCT) else
                "tests" if path.startswith(("test/", "fixtures/")) else "rest")
        count[kind] += texts[path].count("\n")
        if kind == "product":
            longest[path] = texts[path].count("\n")
    sizes = sorted(n for p in longest if p.endswith(".c")
                   for _, n in functions(texts[p]))
    print(", ".join(f"{kind}: {n:,} lines" for kind, n in count.items()))
    print(f"product: {len(longest)} files, {len(sizes):,} functions, median "
          f"{sizes[len(sizes) // 2]} lines, p90 {sizes[len(sizes) * 9 // 10]}, "
          f"longest {sizes[-1]}")


def main(argv):
    with_lines = argv[:1] == ["--lines"]
    build, *rooms = argv[1:] if with_lines else argv
    rooms = [room.split("=") for room in rooms]
    files = [f for f in subprocess.run(
        ["git", "ls-files"], check=True, capture_output=True,
        text=True).stdout.splitlines()
        if not f.startswith("test/data/") and pathlib.Path(f).is_file()]
    texts = {f: pathlib.Path(f).read_text(errors="replace")
             for f in files if SOURCE.search(f)}

    faults = [("licence", f, "no SPDX line") for f, text in texts.items()
              if "SPDX-License-Identifier: " not in text[:300]]
    for path, text in texts.items():
        if path.startswith(PRODUCT) and path.endswith((".c", ".h", ".js")):
            faults += product_faults(path, text)
    faults += names_that_stand_twice(files)
    faults += shared_prefixes(build, rooms)
    faults += readme_lists(texts)

    known = allowed()
    bad = [fault for fault in faults if fault[:2] not in known]
    for rule, name, what in bad:
        print(f"{rule}: {name}: {what}")
    for rule, name in sorted(known - {fault[:2] for fault in faults}):
        print(f"{ALLOW}: no need to allow: {rule} {name}")
    if with_lines:
        lines_of(files, texts)
    return bool(bad)


sys.exit(main(sys.argv[1:]))
