# SPDX-License-Identifier: Apache-2.0
"""Line coverage of src, unwind and symbols after a run of BUILD=cov.

lines.py BUILD_DIR [ROOT MIN] prints the share of each file and directory (of
those in ROOT alone), and writes what was never reached, with its text, to
BUILD_DIR/unreached.txt.  Fails where less than MIN per cent was reached.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOTS = ("src", "unwind", "symbols")


def counts_of(build, roots):
    """{file: {line: times run}}; what no test linked counts as never run."""
    files = collections.defaultdict(collections.Counter)
    # What a source that is no more has left is not of interest.
    notes = [str(p) for root in roots for p in build.glob(f"{root}/**/*.gcno")
             if p.relative_to(build).with_suffix(".c").exists()]
    done = subprocess.run(["gcov", "--json-format", "--stdout", *notes],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True)
    for text in done.stdout.splitlines():
        for file in json.loads(text)["files"]:
            name = os.path.relpath(file["file"])
            if name.startswith(roots):
                for line in file["lines"]:
                    files[name][line["line_number"]] += line["count"]
    return files


def unreached(name, counts):
    """Runs of lines never reached: a line that has no code ends none."""
    text = pathlib.Path(name).read_text().splitlines()
    first = None
    for line in [*sorted(counts), None]:
        if line and not counts[line]:
            first, last = first or line, line
        elif first:
            where = f"{first}-{last}" if last > first else str(first)
            yield f"{name}:{where}"
            yield from (f"\t{t}" for t in text[first - 1:last])
            first = None


def show(name, all_counts):
    lines = sum(map(len, all_counts))
    reached = sum(1 for c in all_counts for n in c.values() if n)
    share = 100 * reached / lines
    print(f"{share:6.1f} %  {reached:5} of {lines:5}  {name}")
    return share


def main(build, roots, least):
    files = counts_of(build, roots)
    folders = collections.defaultdict(list)
    for name, counts in sorted(files.items()):
        show(name, [counts])
        folders[os.path.dirname(name)].append(counts)
    print()
    for name, all_counts in sorted(folders.items()):
        show(name, all_counts)
    share = show(" ".join(roots), files.values())
    rest = build / "unreached.txt"
    rest.write_text("".join(f"{line}\n" for name, counts in
                            sorted(files.items())
                            for line in unreached(name, counts)))
    print(f"\nNever reached: {rest}")
    return share < least


sys.exit(main(pathlib.Path(sys.argv[1]), tuple(sys.argv[2:3]) or ROOTS,
              float(sys.argv[3]) if len(sys.argv) > 3 else 0))
