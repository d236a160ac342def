# SPDX-License-Identifier: Apache-2.0
"""make bench-compare A B: which rows of bench.csv B are worse than those of A.

compare.py A B: a row is worse, or better, where the middle halves of its figures
have no figure in common; exit status 1 if one is worse.
compare.py A: the rows of A as a table of Markdown.
"""
import csv
import sys

from table import short


def read(path):
    """What the file says of where its figures are from; its rows, by their names."""
    about, rows = [], {}
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if row["group"] == "about":
                about.append(row["row"])
            elif row["group"] != "limits":
                rows[row["group"], row["row"], row["competitor"]] = row
    return about, rows


def figure(row, column):
    return float(row[column]) if row[column] else None


def change(a, b):
    """"worse", "better", or "" for what may be noise."""
    if figure(b, "low") > figure(a, "high"):
        return "better" if a["more"] else "worse"
    if figure(b, "high") < figure(a, "low"):
        return "worse" if a["more"] else "better"
    return ""


def spread(row):
    return f"{short(figure(row, 'low'))}..{short(figure(row, 'high'))}"


def compare(first, second):
    """Print how SECOND differs; returns how many rows are worse."""
    (about_a, rows_a), (about_b, rows_b) = read(first), read(second)
    seen = set()
    nworse = 0
    print(f"A: {', '.join(about_a)}\nB: {', '.join(about_b)}")
    for key, a in rows_a.items():
        b = rows_b.get(key)
        # Beside each competitor the same figures of wallprof stand again.
        if not b or key[:2] in seen:
            continue
        seen.add(key[:2])
        word = change(a, b)
        nworse += word == "worse"
        if word:
            print(f"{word:<6} {key[0]}: {key[1]}: {short(figure(a, 'value'))} "
                  f"({spread(a)}) -> {short(figure(b, 'value'))} "
                  f"({spread(b)}) {a['unit']}")
    names = [{key[:2] for key in rows} for rows in (rows_a, rows_b)]
    print(f"{len(seen)} rows in both, {nworse} worse; "
          f"{len(names[0] - names[1])} in A only, "
          f"{len(names[1] - names[0])} in B only")
    return nworse


def markdown(path):
    about, rows = read(path)
    print(f"{', '.join(about)}:\n")
    print("| | wallprof | goal | beside it, in the same run |")
    print("|---|---|---|---|")
    names = {}
    for key, row in rows.items():
        names.setdefault(key[:2], []).append(row)
    for (_, name), its in names.items():
        unit = its[0]["unit"]
        goal = figure(its[0], "goal")
        beside = "; ".join(
            f"{row['competitor']} {short(figure(row, 'competitor_value'))} "
            f"{unit}" for row in its if row["competitor_value"])
        print(f"| {name} | {short(figure(its[0], 'value'))} {unit} | "
              f"{f'{short(goal)} {unit}' if goal else ''} | {beside} |")


def main():
    if len(sys.argv) == 2:
        markdown(sys.argv[1])
        return 0
    if len(sys.argv) != 3:
        print("usage: make bench-compare A=FILE.csv [B=FILE.csv]",
              file=sys.stderr)
        return 64
    return 1 if compare(sys.argv[1], sys.argv[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
