# SPDX-License-Identifier: Apache-2.0
"""Whatever signal meets `wallprof serve`, its recorders and what they start: no thread
of the target stays stopped, and no call of it fails."""
import os
import random
import signal
import time

import pytest

from conftest import children_of, is_clean, status_of, wait_until
from fault_records import mode_args
from test_attention import SOON, TRIALS, is_stopped
from test_serve import serve  # noqa: F401  pylint: disable=unused-import


def named(pids, name):
    found = []
    for pid in pids:
        try:
            found += [pid] if status_of(pid)["Name"] == name else []
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def recorder_of(server):
    return named(children_of(server.tool.pid), "wp-recorder")[0]


@pytest.mark.parametrize("name", ["TSTP", "STOP", "TTIN", "TTOU"])
def test_a_stop_of_the_group(start, serve, name):  # noqa: F811
    target = start("spinner", 6)
    server = serve(*mode_args("all"), target.pid,
                   preexec_fn=os.setpgrp).ready()
    sig = getattr(signal, "SIG" + name)
    for _ in range(TRIALS):
        time.sleep(random.uniform(0, 0.02))
        os.killpg(server.tool.pid, sig)
        wait_until(lambda: is_stopped(server.tool.pid), 20)
        for _ in range(5):
            wait_until(lambda: is_clean(target.pid), SOON, pause=0)
        os.killpg(server.tool.pid, signal.SIGCONT)
        wait_until(lambda: not is_stopped(server.tool.pid), 20)
    server.ready()
    server.end()
    target.assert_unharmed()


def test_a_stop_of_a_recorder(start, serve):  # noqa: F811
    """Who started it sets it going again."""
    target = start("spinner", 6)
    server = serve(*mode_args("all"), target.pid).ready()
    recorder = recorder_of(server)
    for _ in range(TRIALS):
        time.sleep(random.uniform(0, 0.02))
        os.kill(recorder, signal.SIGSTOP)
        wait_until(lambda: not is_stopped(recorder), SOON, pause=0)
    server.end()
    target.assert_unharmed()


def catches(pid, sig):
    return int(status_of(pid)["SigCgt"], 16) >> (sig - 1) & 1


def test_sigterm_to_all_repairs_every_call(start, serve):  # noqa: F811
    """As `systemctl stop` does it."""
    target = start("eintr")
    for _ in range(max(TRIALS // 3, 1)):
        server = serve(*mode_args("all"), target.pid).ready()
        recorder = recorder_of(server)
        # It would end in a stop window otherwise.
        assert catches(recorder, signal.SIGTERM)
        time.sleep(random.uniform(0, 0.02))
        for pid in children_of(server.tool.pid) + [server.tool.pid]:
            os.kill(pid, signal.SIGTERM)
        assert server.tool.wait(20) == 0
        wait_until(lambda: is_clean(target.pid), SOON, pause=0)
        server.end()
    truth = target.truth()
    assert not any(t["eintrs"] for t in truth.values()), truth
