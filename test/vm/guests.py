#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""guests.py KERNEL-ARCH... - write what guests said since the last make vm-check, or
since build/vm/KERNEL-ARCH/told was removed, into README.md, between BEGIN and END."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- make vm-table: -->\n", "<!-- end -->\n"


def tests_of(outcomes):
    """What is said of unit tests, or end-to-end tests of one file: {test: outcome}."""
    bad = [test for test, outcome in outcomes.items()
           if outcome not in ("PASSED", "SKIPPED", "ok")]
    n = collections.Counter(outcomes.values())
    if bad:
        return f"no: of {len(outcomes)} " + ", ".join(bad)
    skipped = f", {n['SKIPPED']} skipped" if n["SKIPPED"] else ""
    return f"ok: {n['PASSED'] + n['ok']} passed{skipped}"


def read(name):
    """(what uname says, {what: result}) of the guest NAME: of each what was said last."""
    lines = told(name).read_text(errors="replace").splitlines()
    checks, files = {}, {}
    for line in lines:
        if match := re.fullmatch(r"check: ([^:]+): (.*)", line):
            checks[match[1]] = match[2]
        elif match := re.match(
                r"test/e2e/(\w+)\.py::(.+?) (PASSED|SKIPPED|FAILED|ERROR)", line):
            files.setdefault(match[1], {})[match[2]] = match[3]
        elif match := re.fullmatch(r"unit: (\w+) (ok|failed)", line):
            files.setdefault("unit tests", {})[match[1]] = match[2]
    checks.pop("end-to-end tests", None)
    for file, outcomes in sorted(files.items()):
        checks[file] = tests_of(outcomes)
    return lines[0], checks


def told(name):
    return ROOT / "build/vm" / name / "told"


def main():
    guests = [read(name) for name in sys.argv[1:]
              if told(name).exists() and told(name).stat().st_size]
    whats = list(dict.fromkeys(w for _, checks in guests for w in checks))
    notes, rows = [], []
    for what in whats:
        row = []
        for _, checks in guests:
            word, _, rest = checks.get(what, "-").partition(":")
            rest = rest.strip().replace("|", "/").replace(
                " of time with whole stacks", "")
            if word in ("no", "refused") and rest not in notes:
                notes.append(rest)
            row.append(f"{word} ({notes.index(rest) + 1})"
                       if word in ("no", "refused") else
                       f"{word}: {rest}" if re.match(r"[0-9]", rest) else word)
        rows.append([what, *row])
    head = ["", *(uname for uname, _ in guests)]
    text = "".join("| " + " | ".join(r) + " |\n"
                   for r in [head, ["---"] * len(head), *rows])
    text += "".join(f"\n{i}. {note}" for i, note in enumerate(notes, 1)) + "\n"
    readme = ROOT / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    readme.write_text(before + BEGIN + "\n" + text + "\n" + END +
                      rest.split(END)[1])


if __name__ == "__main__":
    main()
