#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""guests.py KERNEL-ARCH... - write what the last guests said (make vm-check) into
README.md, between the lines BEGIN and END."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- make vm-table: -->\n", "<!-- end -->\n"


def read(name):
    """(what uname says, {what: result}) of the guest NAME."""
    log = ROOT / "build/vm" / name / "out/log"
    lines = log.read_text(errors="replace").splitlines()
    checks = {}
    for line in lines:
        if match := re.fullmatch(r"check: ([^:]+): (.*)", line):
            checks[match[1]] = match[2]
    return lines[0], checks


def main():
    guests = [read(name) for name in sys.argv[1:]
              if (ROOT / "build/vm" / name / "out/log").exists()]
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
