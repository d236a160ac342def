#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of FAULTS.md, from what the last runs of tests and fuzzers left.

faults.py begin FORM   a run begins: FORM is check or soak
faults.py write        rewrite the figures of FAULTS.md, `make faults`

build/faults/FORM (FORM.part while it runs) has a line of JSON for the run, then one for each trial:
{"test": "test_x[what-mode]", "mode": "mode", "a figure": its number, ...}.
build/faults/fuzz has one for each run of a fuzzer, build/faults/mutants for each
source whose mutants were tried.
"""
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = ROOT / "build" / "faults"
TABLE = ROOT / "FAULTS.md"
MARKS = "<!-- figures: {} -->\n", "<!-- end -->\n"


def origin():
    """What the figures are figures of."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"],
                            cwd=ROOT, capture_output=True, text=True,
                            check=False).stdout.strip()
    return {"commit": commit, "date": datetime.date.today().isoformat(),
            "cpus": os.cpu_count(), "kernel": platform.release().split("-")[0],
            "machine": platform.machine()}


def begin(form):
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / (form + ".part")).write_text(json.dumps(origin()) + "\n")


def read(form):
    """The run, and its trials by test."""
    lines = (RECORDS / form).read_text().splitlines()
    trials = collections.defaultdict(list)
    for trial in map(json.loads, lines[1:]):
        mode = re.escape(str(trial.pop("mode") or ""))
        test = re.sub(rf"-?{mode}\]$", "]", trial.pop("test")) if mode else \
            trial.pop("test")
        trials[test.replace("[]", "")].append(trial)
    return json.loads(lines[0]), trials


def number(n):
    return f"{n:,.0f}" if abs(n) >= 100 or n == int(n) else f"{n:.3g}"


def said(trials):
    """The status of all and the range of each figure."""
    values = collections.defaultdict(list)
    for trial in trials:
        for name, value in trial.items():
            values[name].append(value)
    for name, of in values.items():
        if name in ("status", "trials") or not isinstance(of[0], (int, float)):
            each = collections.Counter(map(str, of))
            if name != "trials":
                yield name + " " + ", ".join(
                    f"{v} ({n})" if n < len(of) else v
                    for v, n in sorted(each.items()))
        elif any(of) or name == "left":
            low, high = number(min(of)), number(max(of))
            yield f"{name} {low if low == high else f'{low} to {high}'}"


def rows(form):
    run, trials = read(form)
    yield (f"Tests of `make {form}` at {run['commit']}, {run['date']}, {run['cpus']} "
           f"CPUs, {run['machine']}, Linux {run['kernel']}:\n\n")
    yield "| test | trials | figures |\n|---|---|---|\n"
    for test, of in sorted(trials.items()):
        n = sum(t.get("trials", 1) for t in of)
        yield f"| `{test}` | {n} | {'; '.join(said(of))} |\n"


def replace(text, form, new):
    start, end = MARKS[0].format(form), MARKS[1]
    before, rest = text.split(start)
    return before + start + "\n" + new + "\n" + end + rest.split(end, 1)[1]


def with_fuzzers(text):
    """The rows of those fuzzers that ran have new figures."""
    for line in (RECORDS / "fuzz").read_text().splitlines():
        run = json.loads(line)
        text = re.sub(
            rf"(\| `{run['name']}` \|).*\n",
            rf"\1 {run['executions']:,} | {run['seconds'] / 60:.0f} | "
            rf"{run['crashes']} | {run['commit']}, {run['date']} |\n", text)
    return text


def mutant_rows(old):
    """A row for each source, of OLD where it was not tried since, and for each
    directory the sum of its."""
    rows_of = {row[0]: row for row in re.findall(
        r"^\| `(\S+\.c)` \| (\d+) \| (\d+) \| (\d+) \| \d+ \| (.+) \|$", old, re.M)}
    for line in (RECORDS / "mutants").read_text().splitlines():
        run = json.loads(line)
        rows_of[run["source"]] = (
            run["source"], run["mutants"], run["tried"], run["killed"],
            f"{run['commit']}, {run['date']}")
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for source, *numbers, _ in rows_of.values():
        of = sums[str(pathlib.Path(source).parent)]
        for i, n in enumerate(numbers):
            of[i] += int(n)
    yield "| source | mutants | tried | killed | % | at |\n|---|---|---|---|---|---|\n"
    for source, *numbers, at in sorted(
            [*rows_of.values(), *((d, *of, "") for d, of in sums.items())]):
        n, tried, killed = map(int, numbers)
        yield (f"| `{source}` | {n} | {tried} | {killed} | "
               f"{100 * killed / max(tried, 1):.0f} | {at} |\n")


def write():
    text = TABLE.read_text()
    for form in ("check", "soak"):
        if (RECORDS / form).exists():
            text = replace(text, form, "".join(rows(form)))
    if (RECORDS / "fuzz").exists():
        text = with_fuzzers(text)
    if (RECORDS / "mutants").exists():
        old = text.split(MARKS[0].format("mutants"))[1].split(MARKS[1])[0]
        text = replace(text, "mutants", "".join(mutant_rows(old)))
    TABLE.write_text(text)


def record(form, **figures):
    RECORDS.mkdir(parents=True, exist_ok=True)
    with open(RECORDS / form, "a") as f:
        f.write(json.dumps({**figures, **origin()}) + "\n")


def fuzzed(name, executions, seconds, crashes):
    """A fuzzer has run (test/fuzz/run.sh)."""
    record("fuzz", name=name, executions=int(executions), seconds=int(seconds),
           crashes=int(crashes))


def mutated(source, mutants, tried, killed):
    """Of a source's mutants some were tried (test/mutate/mutate.py)."""
    record("mutants", source=source, mutants=mutants, tried=tried, killed=killed)


if __name__ == "__main__":
    {"begin": begin, "write": write, "fuzzed": fuzzed}[sys.argv[1]](
        *sys.argv[2:])
