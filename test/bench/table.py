# SPDX-License-Identifier: Apache-2.0
"""Rows of figures: the table, the CSV, and the limits that must hold."""
import csv
import statistics

from goals import GOALS

# LOW, HIGH: the middle half of wallprof's figures.  MORE: more is better.
COLUMNS = ["group", "row", "value", "unit", "competitor", "competitor_value",
           "ratio", "n", "low", "high", "more", "goal"]


def median(values):
    return statistics.median(values)


def spread(values):
    """The middle half of VALUES, or all of them when they are few."""
    values = sorted(values)
    if len(values) < 5:
        return values[0], values[-1]
    quarters = statistics.quantiles(values, n=4)
    return quarters[0], quarters[2]


def short(x):
    """Three digits that count, in at most seven columns."""
    if x is None:
        return "-"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(x) >= size:
            scaled = x / (1e3 if letter == "k" else size)
            return f"{scaled:.3g}{letter}" if scaled < 1000 else \
                f"{scaled:.0f}{letter}"
    if abs(x) >= 1000:
        return f"{x:.0f}"
    text = f"{x:.3g}"
    return f"{x:.4f}" if "e" in text else text


class Table:
    """What was measured, printed as it comes.

    A ratio says how many times better wallprof's figure is than the other one:
    1 is as good, below 1 is worse."""

    def __init__(self):
        self.rows = []
        self.limits = []
        self.group = ""

    def begin(self, group, text):
        self.group = group
        print(f"\n{group}: {text}")
        print(f"{'ratio':>7} {'row':<36} {'wallprof':>8} {'spread':<13} "
              f"{'unit':<6} {'goal':>5} {'competitor':<17} {'its':>7}"
              f"{'n':>3}")

    def add(self, row, values, unit, competitor="", other=None, more=False,
            ratio=True, paired=True):
        """A row of the medians of VALUES and OTHER.  MORE: more is better.
        RATIO: there is one.  PAIRED: it is the median of the pairs'."""
        value = median(values)
        low, high = spread(values)
        its = median(other) if other else None
        if other and ratio:
            ratio = self.ratio(values, other, more, paired)
        else:
            ratio = None
        goal = GOALS.get((self.group, row))
        self.rows.append([self.group, row, value, unit, competitor, its, ratio,
                          len(values), low, high, "more" if more else "", goal])
        print(f"{short(ratio):>7} {row:<36} {short(value):>8} "
              f"{short(low) + '..' + short(high):<13} {unit:<6} "
              f"{short(goal) if goal else '':>5} "
              f"{competitor:<17} {short(its):>7}{len(values):>3}", flush=True)
        return value

    @staticmethod
    def ratio(values, other, more=False, paired=True):
        """The median of the pairs' ratios, or the medians' where there are no
        pairs; None where a figure is 0."""
        if not paired or len(values) != len(other):
            values, other = [median(values)], [median(other)]
        pairs = zip(other, values) if more else zip(values, other)
        ratios = [theirs / ours for ours, theirs in pairs if ours]
        return median(ratios) if ratios else None

    def note(self, text):
        print(f"{'':7} {text}", flush=True)

    def limit(self, row, value, unit, bound, n, least=False, noise=0):
        """VALUE must be at most BOUND (LEAST: at least).  NOISE: what the same
        measure says of no tool at all; past BOUND it can tell nothing."""
        self.limits.append((row, value, unit, bound, n, least, noise))

    def print_limits(self):
        if not self.limits:
            return 0
        failed = 0
        print("\nlimits: what must hold (ratio 1 or more)")
        print(f"{'ratio':>7} {'':4} {'row':<58} {'wallprof':>8} "
              f"{'limit':>9} {'unit'}")
        for row, value, unit, bound, n, least, noise in self.limits:
            holds = value >= bound if least else value <= bound
            word = "PASS" if holds else "FAIL"
            if noise > bound:
                word = "?"
                row += f" (noise {short(noise)})"
            failed += word == "FAIL"
            over, under = (value, bound) if least else (bound, value)
            ratio = over / under if under > 0 else None
            sign = ">=" if least else "<="
            self.rows.append(["limits", row, value, unit, f"limit {sign}",
                              bound, ratio, n, value, value,
                              "more" if least else "", ""])
            print(f"{short(ratio):>7} {word:4} "
                  f"{row:<58} {short(value):>8} "
                  f"{sign + ' ' + short(bound):>9} {unit}")
        return failed

    def print_goals(self, about):
        """The rows that have a goal, once each."""
        rows = {(r[0], r[1]): r for r in self.rows if r[-1]}
        if rows:
            print(f"\ngoals: {', '.join(about)}")
        for r in rows.values():
            print(f"{short(r[-1] / r[2] if r[2] else None):>7} "
                  f"{r[0] + ': ' + r[1]:<58} {short(r[2]):>8} "
                  f"{'<= ' + short(r[-1]):>9} {r[3]}")

    def write(self, path, about):
        """ABOUT: words on the machine and the build."""
        with open(path, "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(COLUMNS)
            for text in about:
                out.writerow(["about", text] + [""] * (len(COLUMNS) - 2))
            for row in self.rows:
                out.writerow([f"{x:.6g}" if isinstance(x, float) else
                              "" if x is None else x for x in row])
