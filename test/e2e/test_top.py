# SPDX-License-Identifier: Apache-2.0
"""`wallprof top` on a terminal: what the screen shows against what is true."""
import os
import re
import shlex
import signal
import subprocess
import time

import pytest

from conftest import FIXTURES, WALLPROF, wait_until, wallprof


class Terminal:
    """A terminal of tmux with a command in it."""

    def __init__(self, command, columns=120, rows=40):
        self.name = f"top{os.getpid()}x{id(self)}"
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(columns),
                 "-y", str(rows), f"{command}; echo ended with $?; cat")

    def run(self, *args):
        return subprocess.run(["tmux", "-L", self.name, *args], check=True,
                              stdout=subprocess.PIPE, timeout=60,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}
                              ).stdout.decode()

    def screen(self):
        return self.run("capture-pane", "-p")

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def until(self, pattern, seconds=60):
        """The first screen with PATTERN in it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen()
            if re.search(pattern, screen, re.MULTILINE):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"never {pattern}:\n{screen}")

    def end(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False)


@pytest.fixture
def top():
    terminals = []

    def begin(*args, **kwargs):
        words = [str(WALLPROF), "top", *(str(a) for a in args)]
        terminals.append(Terminal(shlex.join(words), **kwargs))
        return terminals[-1]
    yield begin
    for terminal in terminals:
        terminal.end()


def rows_of(screen):
    """The lines of the table of threads: {name: [tid, run, ready, wait, rest]}."""
    return {m[1]: [int(m[2]), *map(float, m.group(3, 4, 5)), m[6]]
            for m in re.finditer(r"^(\S+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)"
                                 r"(?: +(.*))?$", screen, re.MULTILINE)}


LOOK = r"^THREAD .*\n(.+\n)+"


def test_a_deadlock_is_seen_as_it_is(start, top):
    """Both threads wait for a lock, all of the time; main joins the first."""
    target = start("hang", "abba")
    terminal = top(target.pid)
    screen = terminal.until(r">[23][.\d]* +s")
    rows = rows_of(screen)
    assert set(rows) >= {"cook", "baker"}
    for name, line in ("cook", "cook_takes_pan"), ("baker", "baker_takes_oven"):
        assert rows[name][1:4] == [0, 0, 100]
        assert re.search(rf"lock 0x\w+ .*{line}", rows[name][4]), screen
    assert "3 of 3 threads; of all on average 0.0 ran" in screen
    assert re.search(r"^ +1.00  lock  cook_takes_pan", screen, re.MULTILINE)
    assert re.search(r"wallprof: [\d.]+ % of a core", screen)
    terminal.keys("/", "b", "a", "k", "e", "Enter")
    screen = terminal.until("1 of 3 threads")
    assert set(rows_of(screen)) == {"baker"}
    terminal.keys("Enter")
    screen = terminal.until("escape: back")
    assert re.search(r"baker_takes_oven.*\n +start_thread", screen), screen
    terminal.keys("Escape")
    terminal.until("1 of 3 threads")
    terminal.keys("d")
    terminal.until("^DEADLOCK: 2 threads wait for each other")
    terminal.keys("q")
    terminal.until("1 of 3 threads")
    terminal.keys("q")
    terminal.until("^ended with 0")
    target.assert_unharmed()


def test_long_lines_are_cut_and_a_text_ends(start, top):
    """A narrow screen has the beginnings of the lines that a wide one has."""
    target = start("hang", "abba")
    begins = []
    for columns in 200, 40:
        terminal = top(target.pid, columns=columns, rows=20)
        terminal.until(LOOK)
        terminal.keys("d")
        # The last line is drawn last.
        screen = terminal.until(
            r"^DEADLOCK: 2 threads wait for each other\n(.*\n)+escape: back")
        begins.append([line[:14] for line in screen.splitlines()])
    assert begins[0] == begins[1]
    assert max(map(len, screen.splitlines())) == 40
    terminal.keys(*["PageDown"] * 20)
    last = terminal.until(r"^ +#\d+ +clone3? .*\nescape: back")
    terminal.keys("k")
    wait_until(lambda: terminal.screen().splitlines()[1:19] ==
               last.splitlines()[:18], pause=0.1)
    terminal.keys("q", "q")
    terminal.until("^ended with 0")
    target.assert_unharmed()


def test_the_first_line_is_tops_own(start, top):
    """A command line that goes back and writes over what stands before it."""
    target = start("/bin/bash", "-c", 'exec -a "$0" "$1" 1',
                   "\rwallprof top 1 systemd,\b\n\u202e", FIXTURES / "spinner")
    screen = top(target.pid, columns=160).until(LOOK)
    assert re.match(rf"wallprof top {target.pid} \?wallprof top 1 systemd,\?+ 1, "
                    r"by \w+  wallprof: [\d.]+ % of a core\n", screen), screen
    target.assert_unharmed()


def test_states_sort_freeze_and_follow(start, top):
    """Two threads that never wait, beside main, which only waits."""
    target = start("spinner", 2)
    terminal = top(target.pid, columns=80, rows=30)
    terminal.until("3 of 3 threads")
    screen = terminal.until(r"functions that run\n +[\d.]+  spin")
    table = re.search(LOOK, screen, re.MULTILINE)[0].splitlines()[1:]
    waits = sorted(float(line.split()[4]) for line in table)
    assert len(waits) == 3 and waits[1] < 5 and waits[2] == 100, screen
    assert all(len(line) <= 80 for line in screen.splitlines())
    terminal.keys("s", "s")
    screen = terminal.until("by waiting")
    first = re.search(LOOK, screen, re.MULTILINE)[0].splitlines()[1]
    assert " 100.0 " in first, screen
    terminal.keys("f")
    terminal.until(r"__libc_start_main")
    terminal.keys("Space")
    frozen = terminal.until("FROZEN")
    time.sleep(2.5)
    assert terminal.screen() == frozen
    terminal.keys("q")
    terminal.until("^ended with 0")
    target.assert_unharmed()


def test_it_ends_with_the_target_and_gives_the_terminal_back(start, top):
    target = start("spinner", 1)
    terminal = top(target.pid)
    terminal.until(LOOK)
    target.proc.kill()
    screen = terminal.until("^ended with 0")
    assert "THREAD" not in screen
    assert "exited while being recorded" in screen


def test_control_c_ends_it(start, top):
    target = start("spinner", 1)
    terminal = top(target.pid)
    terminal.until(LOOK)
    terminal.keys("C-c")
    screen = terminal.until("^ended with 0")
    assert "THREAD" not in screen
    target.assert_unharmed()


def worker_of(target):
    """The process of the top that looks at TARGET."""
    def is_it(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return f"top\0{target.pid}\0".encode() in f.read()
        except OSError:
            return False

    def found():
        pids = subprocess.run(["pgrep", "-x", "wp-worker"],
                              stdout=subprocess.PIPE).stdout.split()
        return [int(p) for p in pids if is_it(int(p))]

    wait_until(found)
    pid, = found()
    return pid


def assert_is_as_before(terminal):
    """Lines are read and echoed, there is a cursor, and no picture."""
    terminal.keys("words", "Enter")
    # Once by the terminal's echo, once by cat.  What the shell said before the
    # terminal was as before ended no line's column.
    screen = terminal.until("^ *words\n(Killed *\n)?(ended with 137\n)?words")
    assert "THREAD" not in screen
    assert terminal.run("display-message", "-p",
                        "#{alternate_on} #{cursor_flag} #{keypad_cursor_flag}"
                        ).split() == ["0", "1", "0"]


def test_a_killed_worker_leaves_the_terminal_as_it_was(start, top):
    """Who kills it leaves it no time to give the terminal back: lines are read
    and echoed again, there is a cursor, and the picture is gone."""
    target = start("spinner", 1)
    terminal = top(target.pid)
    terminal.until(LOOK)
    os.kill(worker_of(target), signal.SIGKILL)
    terminal.until("^ended with 137")
    assert_is_as_before(terminal)
    target.assert_unharmed()


def test_a_killed_supervisor_leaves_nothing(start, top):
    """The worker sees that and ends as by a signal: the terminal is as before, and
    no thread stays stopped."""
    target = start("spinner", 1)
    terminal = top(target.pid)
    terminal.until(LOOK)
    worker = worker_of(target)
    with open(f"/proc/{worker}/stat") as f:
        supervisor = int(f.read().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    # What the shell says meanwhile may be on the screen that goes away.
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}")
                               for pid in (worker, supervisor)))
    assert_is_as_before(terminal)
    target.assert_unharmed()


def test_states_have_colours_unless_somebody_says_no(start, monkeypatch, top):
    target = start("hang", "abba")
    red = r"\x1b\[31m(\x1b\[\d+m)*cook "
    terminal = top(target.pid)
    terminal.until(LOOK)
    assert re.search(red, terminal.run("capture-pane", "-p", "-e"))
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = top(target.pid)
    terminal.until(LOOK)
    assert not re.search(r"\x1b\[3[0-7]m", terminal.run("capture-pane", "-p", "-e"))


def test_without_a_terminal_it_says_so(start):
    target = start("spinner", 1)
    run = wallprof("top", target.pid).check(2)
    assert run.err == ("wallprof: top wants a terminal; wallprof dump prints "
                       "threads once\n")
    target.assert_unharmed()


@pytest.mark.alone
def test_a_thousand_threads_cost_two_percent_of_a_core(start, top):
    """By its own figure, and by the kernel's of its processes; or as much as to list
    them a hundred times a second, on a machine whose memory is slow."""
    target = start("waiters", 1000)
    terminal = top(target.pid)
    terminal.until(">[3-9]")
    pid = worker_of(target)

    def spent():
        with open(f"/proc/{pid}/schedstat") as f:
            return int(f.read().split()[0])

    def shown():
        return float(re.search(r"wallprof: ([\d.]+) % of a core",
                               terminal.screen())[1])

    def listed():
        before = time.process_time()
        for _ in range(100):
            os.listdir(f"/proc/{target.pid}/task")
        return 100 * (time.process_time() - before)

    # The first figure is of nothing, the second of a thousand files opened.
    opened = wait_until(shown, pause=0.1)
    wait_until(lambda: shown() != opened, pause=0.1)
    listing = listed()
    begin, before = time.monotonic(), spent()
    shares = []
    while time.monotonic() < begin + 5:
        shares.append(shown())
        time.sleep(0.5)
    share = 100 * (spent() - before) / 1e9 / (time.monotonic() - begin)
    listing = (listing + listed()) / 2
    print(f"{share:.2f} % of a core, shown {sum(shares) / len(shares):.2f} %; to list "
          f"them {listing:.2f} %")
    assert share <= max(2, listing)
    # Each figure is of a second; of those at either end a part is not in both.
    ends = 2 * (max(shares) - min(shares)) / 5
    assert abs(sum(shares) / len(shares) - share) < 0.3 + ends, shares
    target.assert_unharmed()
