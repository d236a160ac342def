# SPDX-License-Identifier: Apache-2.0
"""What wallprof writes where its output is a terminal."""
import fcntl
import os
import pty
import re
import struct
import termios

import pprof_check
import pytest

from conftest import WALLPROF, wait_until

COLUMNS = 100


def read_all(master):
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    return text.decode()


def all_on_terminal(*args, columns=COLUMNS, **env):
    """(status, text) of wallprof with ARGS on a terminal of so many columns."""
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 40, columns, 0, 0))
        os.execve(WALLPROF, [str(WALLPROF), *(str(a) for a in args)],
                  {"TERM": "xterm", **env})
    text = read_all(master)
    os.close(master)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, text


def on_terminal(*args, **env):
    """The same, without progress, which is wiped off."""
    status, text = all_on_terminal(*args, **env)
    return status, text.rpartition("\r\x1b[K")[2].replace("\r", "")


@pytest.fixture
def locked(start):
    """Two threads that wait for locks, and main, which joins."""
    target = start("hang", "abba")
    yield target
    target.assert_unharmed()


def test_with_a_file_one_line_says_what_is_in_it(locked, tmp_path):
    path = tmp_path / "x.pb.gz"
    status, text = on_terminal(locked.pid, "-d", "1", "-o", path)
    assert status == 0
    assert re.fullmatch(
        r"wallprof: wall: 3 threads, \d+ samples, \S+ s of thread time in "
        rf"{re.escape(str(path))}: \d+\.\d % waiting: \S+ at .*\n", text), text


@pytest.mark.parametrize("columns", [40, 200])
def test_progress_is_one_line(locked, tmp_path, columns):
    status, text = all_on_terminal(locked.pid, "-d", "0.8", "-o",
                                   tmp_path / "x.pb.gz", columns=columns)
    lines = text.split("\r\x1b[K")[1:-1]
    assert status == 0 and lines
    for line in lines:
        assert re.match(r"wallprof: \d+ s left, 3 threads, \d+ sa", line), text
        assert len(line) == 39 if columns == 40 else "lost" in line, text
    # At first it is too early to say.
    assert columns == 40 or lines[0].endswith(" lost"), text
    assert columns == 40 or all(line.endswith(" of a core") for line in lines[1:]), text


def fill():
    """Write to the terminal what it takes, of which nobody reads anything."""
    os.set_blocking(2, False)
    try:
        while True:
            os.write(2, b"." * 1024)
    except BlockingIOError:
        os.set_blocking(2, True)


@pytest.mark.parametrize("how", ["stopped", "full"])
def test_a_terminal_that_takes_nothing_holds_up_no_recording(locked, tmp_path,
                                                             how):
    """As by Ctrl-S, or by a connection that hangs: for longer than a worker that does
    not run is waited for, which is 5 s."""
    path = tmp_path / "x.pb.gz"
    pid, master = pty.fork()
    if pid == 0:
        if how == "full":
            fill()
        os.execv(WALLPROF, [str(WALLPROF), str(locked.pid), "-d", "8", "-o",
                            str(path)])
    if how == "stopped":
        assert b"wallprof" in os.read(master, 65536)
        os.write(master, b"\x13")
    try:
        # The file has its name once it is whole.
        assert wait_until(path.exists, 60)
        os.write(master, b"\x11")
        text = read_all(master)
    finally:
        os.close(master)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 0 and " s of thread time in " in text, text
    wall = sum(s["values"]["wall"]
               for s in pprof_check.samples(pprof_check.load(path)))
    assert wall > 0.95 * 3 * 8e9


def test_verbose_adds_how_it_was_recorded(locked, tmp_path):
    status, text = on_terminal(locked.pid, "-d", "1", "-v", "-o",
                               tmp_path / "x.pb.gz")
    assert status == 0
    assert "\n  ticks: " in text and "\n  lost: nothing\n" in text, text
    status, text = on_terminal(locked.pid, "-d", "1", "-q", "-o",
                               tmp_path / "x.pb.gz")
    assert (status, text) == (0, "")


def test_states_have_colours_unless_somebody_says_no(locked):
    red = r"\x1b\[31m.*\x1b\[0m"
    status, text = on_terminal(locked.pid, "-d", "1")
    assert status == 0
    assert re.search(r"%\s+\x1b\[31mlock\x1b\[0m\n", text), text
    assert re.search(r"\x1b\[31m\[waiting: lock\]\x1b\[0m\n", text), text
    plain = re.sub(r"\x1b\[\d+m", "", text)
    assert max(len(line) for line in plain.split("How it was")[0]
               .splitlines()) <= COLUMNS
    for env in {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}:
        status, text = on_terminal(locked.pid, "-d", "1", **env)
        assert status == 0 and "lock" in text and not re.search(red, text)


def test_a_file_is_written_as_if_there_were_no_terminal(locked, tmp_path):
    """Neither cut to the terminal's columns, nor coloured."""
    path, text = tmp_path / "x.pb.gz", tmp_path / "x.txt"
    assert on_terminal(locked.pid, "-d", "1", "-o", path)[0] == 0
    assert on_terminal("report", path, "-o", text) == (0, "")
    written = text.read_text()
    assert "\x1b" not in written
    assert written.index("Thread time by state") < written.index("Call tree")


def test_ctrl_z_stops_nothing_that_nobody_could_set_going_again(tmp_path):
    """In a process group whose parents have gone, as under `ssh -t host wallprof`."""
    pid, master = pty.fork()
    if pid == 0:
        os.execve(WALLPROF, [str(WALLPROF), "-o", str(tmp_path / "x.pb.gz"),
                             "--", "sleep", "2"], {"TERM": "xterm"})
    text = b""
    while b"% of a core" not in text:
        text += os.read(master, 4096)
    os.write(master, b"\x1a")
    read_all(master)
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
