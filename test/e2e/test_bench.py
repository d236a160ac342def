# SPDX-License-Identifier: Apache-2.0
"""make bench-compare: what two files of the bench's figures tell."""
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
sys.path.append(str(BENCH))

from table import Table  # noqa: E402  pylint: disable=wrong-import-position


def write(path, cpu, rate=(100, 101, 102)):
    """A file of a run: CPU ms of a dump, beside two others, and a RATE."""
    table = Table()
    table.begin("dump", "a dump")
    table.add("100 threads: CPU", cpu, "ms", "gdb", [300, 310, 320])
    table.add("100 threads: CPU", cpu, "ms", "eu-stack", [80, 81, 82])
    table.add("looks", rate, "Hz", "asked", [100], more=True)
    table.write(path, ["2 CPUs", "commit abc"])


def compare(*paths):
    done = subprocess.run([sys.executable, BENCH / "compare.py", *paths],
                          text=True, capture_output=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("cpu, rate, status, said", [
    # Some of its figures were had before.
    ((32, 36, 40), (100, 101, 102), 0, []),
    ((40, 41, 42), (100, 101, 102), 1,
     ["worse  dump: 100 threads: CPU: 31 (30..32) -> 41 (40..42) ms"]),
    ((20, 21, 22), (100, 101, 102), 0,
     ["better dump: 100 threads: CPU: 31 (30..32) -> 21 (20..22) ms"]),
    # More is better of a rate.
    ((30, 31, 32), (90, 91, 92), 1,
     ["worse  dump: looks: 101 (100..102) -> 91 (90..92) Hz"]),
    ((30, 31, 32), (110, 111, 112), 0,
     ["better dump: looks: 101 (100..102) -> 111 (110..112) Hz"]),
])
def test_a_row_is_worse_if_it_is_beyond_noise(tmp_path, cpu, rate, status,
                                              said):
    write(tmp_path / "a.csv", (30, 31, 32))
    write(tmp_path / "b.csv", cpu, rate)
    got, lines = compare(tmp_path / "a.csv", tmp_path / "b.csv")
    assert got == status
    assert lines[:2] == ["A: 2 CPUs, commit abc", "B: 2 CPUs, commit abc"]
    assert lines[2:-1] == said
    assert lines[-1] == (f"2 rows in both, {status} worse; 0 in A only, "
                         "0 in B only")


def test_a_row_that_only_one_has_is_counted(tmp_path):
    write(tmp_path / "a.csv", (30, 31, 32))
    table = Table()
    table.begin("dump", "a dump")
    table.add("10 threads: CPU", [9], "ms")
    table.write(tmp_path / "b.csv", [])
    assert compare(tmp_path / "a.csv", tmp_path / "b.csv") == (
        0, ["A: 2 CPUs, commit abc", "B: ",
            "0 rows in both, 0 worse; 2 in A only, 1 in B only"])


def test_one_file_is_a_table(tmp_path):
    write(tmp_path / "a.csv", (30, 31, 32))
    assert compare(tmp_path / "a.csv") == (0, [
        "2 CPUs, commit abc:", "",
        "| | wallprof | goal | beside it, in the same run |",
        "|---|---|---|---|",
        "| 100 threads: CPU | 31 ms | 35 ms | gdb 310 ms; eu-stack 81 ms |",
        "| looks | 101 Hz |  | asked 100 Hz |"])


def test_goals_stand_at_the_end(tmp_path, capsys):
    table = Table()
    table.begin("dump", "a dump")
    table.add("100 threads: CPU", [70], "ms", "gdb", [300])
    table.add("100 threads: CPU", [70], "ms", "eu-stack", [80])
    capsys.readouterr()
    table.print_goals(["2 CPUs", "commit abc"])
    lines = capsys.readouterr().out.split("\n")
    assert lines[1] == "goals: 2 CPUs, commit abc"
    assert lines[2].split() == ["0.5", "dump:", "100", "threads:", "CPU", "70",
                                "<=", "35", "ms"]
    assert lines[3:] == [""]
