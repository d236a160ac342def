# SPDX-License-Identifier: Apache-2.0
"""Names and files that a target, or somebody else, makes up to do harm."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

import pprof_check
import pytest

from conftest import (FIXTURES, SLOW, WALLPROF, has_run, wait_until,
                      wait_until_sampling, wallprof)
from fault_records import check_whole_time

# Of files, threads, sockets: lines and fields of their own, a terminal told to
# clear itself (also in one byte, C1), what is no UTF-8, right-to-left marks, what
# may be in no XML.
EVIL = (b"e;vil 7\n\x1b[2J\x9b2J\xc2\x9b2J\xff\xc3\xe2\x80\xae\t\\x"
        b"]]>\xef\xbf\xbe\xef\xbf\xbf")


def assert_tame(data):
    """Valid UTF-8, in which nothing is a command to a terminal."""
    text = data.decode()
    assert not re.search("[^\n -~\u00a0-\u2027\u202f-\ufffd"
                         "\U00010000-\U0010ffff]", text), text
    return text


@pytest.fixture
def evil(start, tmp_path):
    """A program of such a name, with such an argument, waiting for such."""
    path = os.fsencode(tmp_path) + b"/" + EVIL
    shutil.copy(FIXTURES / "hostile", path)
    subprocess.run(["strip", path], check=True)
    target = start(os.fsdecode(path), os.fsdecode(path + b".fifo"))
    wait_until(lambda: os.path.exists(path + b".fifo"))
    return target


def raw(*args, **kwargs):
    """Bytes of standard output, of standard error, and the status."""
    done = subprocess.run([WALLPROF, *map(str, args)], timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **kwargs)
    assert_tame(done.stderr)
    return done


@pytest.mark.parametrize("args", [
    ("-d", 0.5), ("-d", 0.5, "--full"), ("-d", 0.5, "-v", "-k"),
    ("-d", 0.5, "--profile", "wall,cpu,block,mutex,threadcreate"),
    ("-d", 0.5, "-f", "folded"), ("-d", 0.5, "-f", "html"),
    ("-d", 0.5, "-f", "speedscope"), ("-d", 0.5, "-f", "firefox"),
    ("-d", 0.5, "-f", "svg"),
    ("--threads",), ("--threads", "--group"), ("--threads", "-v"),
    ("--threads", "--follow-processes"), ("--threads", "-f", "json"),
    ("--check", "-i", 0.2), ("--check", "-i", 0.2, "-f", "json"),
], ids=lambda args: "".join(map(str, args)))
def test_what_is_printed_is_tame(evil, args):
    done = raw(*args, "-p", evil.pid)
    text = assert_tame(done.stdout)
    assert done.returncode in ((3,) if "--check" in args else (0, 1))
    evil.assert_unharmed()
    if {"json", "speedscope", "firefox"} & set(args):
        json.loads(text)
    elif "svg" in args:
        xml.etree.ElementTree.fromstring(text)
    elif "folded" in args:
        # One stack a line, and its number.
        for line in text.splitlines():
            assert re.fullmatch(r"[^ ].* \d+", line), line
    elif args[0] == "--threads":
        # The names are there.
        assert r"\x1b[31m\xff" in text and r"vil 7\x0a\x1b[2J" in text, text


def test_what_is_written_as_pprof_is_tame(evil, tmp_path):
    out = tmp_path / "x.pb.gz"
    raw("-d", 0.5, "-o", out, "-p", evil.pid)
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    for string in p.string_table:
        assert_tame(string.encode())
    # The program's file is in it, and one thread for each name.
    assert any("vil 7" in s for s in p.string_table)
    assert len({s["labels"]["thread"] for s in pprof_check.samples(p)}) == 6
    top = subprocess.run(["go", "tool", "pprof", "-top", out],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert_tame(top.stdout)


def test_a_dump_after_a_time_out_is_tame(evil):
    # Time for its threads to start.
    done = raw("--timeout", 5, "--", evil.argv[0],
               evil.argv[1] + ".2")
    assert done.returncode == 124
    assert "reader" in done.stderr.decode()


@pytest.fixture
def jit(start):
    """(target, its map's path, a line for it); the map is gone afterwards."""
    target = start("jit")
    code, size = re.search("code=(.*) size=(.*)", target.ready).groups()
    path = pathlib.Path(f"/tmp/perf-{target.pid}.map")
    yield target, path, f"{code} {size} ".encode()
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def jit_names(target, tmp_path, **kwargs):
    """What the code that is in no file is called."""
    out = tmp_path / "x.pb.gz"
    run = wallprof("-p", target.pid, output=out, timeout=100,
                   until=lambda: has_run(target.pid, 0.3), **kwargs)
    assert run.status in (0, 1), run.err
    target.assert_unharmed()
    p = pprof_check.load(str(out))
    pprof_check.validate(p)
    return {s["frames"][0]["name"] for s in pprof_check.samples(p)
            if s["labels"]["thread"] == "jit"}


def test_a_map_of_code_names_it(jit, tmp_path):
    target, path, line = jit
    assert "jitted" not in jit_names(target, tmp_path)
    path.write_bytes(line + b"jitted\n")
    assert "jitted" in jit_names(target, tmp_path)


def place_link(path, good):
    path.symlink_to(good)


def place_fifo(path, good):
    os.mkfifo(path)


def place_directory(path, good):
    path.mkdir()


def place_strangers(path, good):
    if os.geteuid():
        pytest.skip("only root can give a file to another user")
    shutil.copy(good, path)
    os.chown(path, 65534, -1)


def place_huge(path, good):
    """10 GB, sparse, after a line that would do."""
    shutil.copy(good, path)
    os.truncate(path, 10 << 30)


def place_noise(path, good):
    path.write_bytes(os.urandom(1 << 20))


@pytest.mark.parametrize("place", [place_link, place_fifo, place_directory,
                                   place_strangers, place_huge, place_noise])
def test_a_map_of_code_that_is_none_is_left(jit, tmp_path, place):
    """It neither blocks nor costs memory, and everything else is written."""
    target, path, line = jit
    good = tmp_path / "good"
    good.write_bytes(line + b"jitted\n")
    place(path, good)
    limit = None if SLOW else lambda: resource.setrlimit(
        resource.RLIMIT_AS, (1 << 30, 1 << 30))
    names = jit_names(target, tmp_path, preexec_fn=limit)
    assert names and "jitted" not in names


def test_names_in_a_map_of_code_are_tame(jit, tmp_path):
    target, path, line = jit
    path.write_bytes(line + EVIL.replace(b"\n", b"\r") + b"\n")
    for form in ("text", "folded"):
        done = raw("-p", target.pid, "-d", 2, "-f", form)
        assert "vil 7" in assert_tame(done.stdout)
    assert any("vil 7" in n for n in jit_names(target, tmp_path))
    p = pprof_check.load(str(tmp_path / "x.pb.gz"))
    for string in p.string_table:
        assert_tame(string.encode())


@pytest.mark.parametrize("where", ["shm", "memfd"])
def test_files_in_memory_are_files(start, profile, where):
    """A program in /dev/shm, or in a memfd, has unwind info and names."""
    program = FIXTURES / "stack-gcc-O2"
    if where == "memfd":
        fd = os.memfd_create("program", 0)
        os.write(fd, program.read_bytes())
        target = start(f"/proc/self/fd/{fd}", "idle", pass_fds=(fd,))
        os.close(fd)
    else:
        path = pathlib.Path(f"/dev/shm/wallprof-{os.getpid()}")
        shutil.copy(program, path)
        try:
            target = start(path, "idle")
        except PermissionError:
            pytest.skip("/dev/shm is mounted noexec")
        finally:
            path.unlink()
    # Of who is met on its way into the call not all registers are known.
    wchan = pathlib.Path(f"/proc/{target.pid}/wchan")
    wait_until(lambda: "pause" in wchan.read_text())
    _, p = profile(target.pid, "-d", 0.5)
    target.assert_unharmed()
    stacks = [[f["name"] for f in s["frames"]]
              for s in pprof_check.samples(p)]
    assert any("in_qsort" in names and "main" in names for names in stacks)
    assert not any("truncated" in name for names in stacks for name in names)


NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


@pytest.fixture
def overlaid(start):
    """A program of a plain user, over whose file a fifo is mounted; a way to
    wallprof for that user; and the fifo."""
    if os.geteuid():
        pytest.skip("only root may mount")
    with tempfile.TemporaryDirectory() as name:
        where = pathlib.Path(name)
        where.chmod(0o755)
        program, tool, fifo = (where / n for n in ("program", "tool", "fifo"))
        shutil.copy(FIXTURES / "stack-gcc-O2", program)
        shutil.copy(WALLPROF, tool)
        os.mkfifo(fifo)
        fifo.chmod(0o666)
        target = start(program, "wait", **NOBODY)
        done = subprocess.run(["mount", "--bind", fifo, program],
                              stderr=subprocess.DEVNULL)
        if done.returncode:
            pytest.skip("nothing may be mounted here")
        try:
            yield target, tool, fifo
        finally:
            subprocess.run(["umount", program], check=True)


@pytest.mark.parametrize("args", [("--threads",), ("-d", 0.5)])
def test_a_fifo_laid_over_a_program_is_not_opened(overlaid, args):
    """Its writer waits on for a reader, where the file can be found only by its
    path: the kernel keeps map_files for the privileged."""
    target, tool, fifo = overlaid
    writer = subprocess.Popen(["sh", "-c", 'exec 3> "$0"', fifo])
    try:
        done = subprocess.run([tool, *map(str, args), "-p", str(target.pid)],
                              timeout=120, stdin=subprocess.DEVNULL,
                              capture_output=True, **NOBODY)
        assert done.returncode in (0, 1), done.stderr
        target.assert_unharmed()
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.parametrize("n,size", [(20000, 5000), (17000, 8 << 30),
                                    (1, 8 << 30)])
def test_many_mapped_files_cost_nothing(start, tmp_path, n, size):
    """Only those that code runs in are opened, and SIGINT ends it."""
    where = next((d for d in ("/tmp", "/dev/shm") if os.access(d, os.W_OK)))
    target = start("mapped", where, str(n), str(size))
    out = tmp_path / "x.pb.gz"
    before = os.times()
    tool = subprocess.Popen([WALLPROF, "-p", str(target.pid), "-o", out],
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_until_sampling(tool)
    time.sleep(0.3)
    interrupted = time.monotonic()
    tool.send_signal(signal.SIGINT)
    err = tool.communicate(timeout=100)[1].decode()
    assert time.monotonic() - interrupted < 5
    assert tool.returncode in (0, 1), err
    after = os.times()
    if not SLOW:
        assert (after.children_user - before.children_user +
                after.children_system - before.children_system) < 2
    p = pprof_check.load(str(out))
    assert any("main" in (f["name"] for f in s["frames"])
               for s in pprof_check.samples(p)), err
    check_whole_time(p, *{s["labels"]["thread"]
                          for s in pprof_check.samples(p)})
    target.assert_unharmed()
    assert target.truth()["files"] == n
