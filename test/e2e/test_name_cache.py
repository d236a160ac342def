# SPDX-License-Identifier: Apache-2.0
"""Names that were looked up are kept for the next time."""
import os
import re
import stat

import pprof_check
from conftest import wallprof

FRAME = re.compile(r"^ +#\d+ .*", re.M)


def frames(run):
    """The lines of a dump that say where threads are."""
    lines = FRAME.findall(run.check().out)
    assert len(lines) > 10
    return [re.sub("0x[0-9a-f]+", "", line) for line in lines]


def test_a_second_dump_has_the_same_names(start, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    target = start("waiters", 5)
    plain = frames(wallprof("--threads", "-p", target.pid))
    monkeypatch.setenv("WALLPROF_CACHE", str(cache))
    assert frames(wallprof("--threads", "-p", target.pid,
                           "--no-cache")) == plain
    assert not cache.exists()
    assert frames(wallprof("--threads", "-p", target.pid)) == plain
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    kept = list(cache.iterdir())
    assert kept and all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in kept)
    assert frames(wallprof("--threads", "-p", target.pid)) == plain
    # What is written there is what it says.
    for f in kept:
        data = f.read_bytes()
        f.write_bytes(data.replace(b"wait_for_ever", b"wait_for_good"))
    again = frames(wallprof("--threads", "-p", target.pid))
    assert again == [line.replace("wait_for_ever", "wait_for_good")
                     for line in plain]
    # But not by a wallprof whose code makes names in another way.
    for f in kept:
        first, rest = f.read_bytes().split(b"\n", 1)
        f.write_bytes(re.sub(rb"\d+$", b"1", first) + b"\n" + rest)
    assert frames(wallprof("--threads", "-p", target.pid)) == plain
    target.assert_unharmed()


def test_a_recording_has_the_names_of_a_dump(start, profile, tmp_path,
                                             monkeypatch):
    monkeypatch.setenv("WALLPROF_CACHE", str(tmp_path / "cache"))
    target = start("waiters", 3)
    wallprof("--threads", "-p", target.pid).check()
    _, p = profile(target.pid, "-d", 0.2)
    found = [f for s in pprof_check.samples(p) for f in s["frames"]
             if f["name"] == "wait_for_ever"]
    assert found and all(f["file"].endswith("waiters.c") and f["line"]
                         for f in found)
    mapping = next(m for m in p.mapping
                   if p.string_table[m.filename].endswith("/waiters"))
    assert mapping.has_functions and mapping.has_line_numbers


def test_where_it_cannot_be_written_there_is_none(start, tmp_path,
                                                  monkeypatch):
    target = start("waiters", 3)
    plain = frames(wallprof("--threads", "-p", target.pid))
    for where in ("/proc/nowhere", "/dev/null", str(tmp_path)):
        os.chmod(tmp_path, 0o755)
        monkeypatch.setenv("WALLPROF_CACHE", where)
        assert frames(wallprof("--threads", "-p", target.pid)) == plain
    assert not list(tmp_path.iterdir())
