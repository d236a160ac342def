# SPDX-License-Identifier: Apache-2.0
"""`wallprof serve`: what questions leave behind, and those that cannot be answered."""
from conftest import children_of, status_of, wait_until
from test_serve import serve  # noqa: F401  pylint: disable=unused-import


def recorder_of(server):
    """Its process that records."""
    return next(pid for pid in children_of(server.tool.pid)
                if status_of(pid)["Name"] == "wp-recorder")


def test_answers_after_the_end_leave_no_zombie(start, serve):  # noqa: F811
    target = start("hang", "abba")
    server = serve(target.pid).ready(1)
    target.proc.kill()
    target.proc.wait()
    wait_until(lambda: server.metric("wallprof_up{") == 0, pause=0.1)
    recorder = recorder_of(server)
    for _ in range(5):
        server.get("/debug/pprof/wall?seconds=1&ago=2")
    wait_until(lambda: not children_of(recorder), seconds=20)
    assert server.metric("wallprof_up{") == 0
