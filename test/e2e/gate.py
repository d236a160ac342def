# SPDX-License-Identifier: Apache-2.0
"""What a run of the tests leaves for who reads it: counts, and skips with their
reasons."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
AUTOGROUP = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")


def pytest_sessionstart(session):
    """Sessions are no groups of the scheduler while tests run, if that may be said:
    as they come and go, Linux 6.18 runs one of them and nothing else, not even its
    own threads, for up to a minute ("BUG: workqueue lockup")."""
    if hasattr(session.config, "workerinput"):
        return
    try:
        before = AUTOGROUP.read_text()
        AUTOGROUP.write_text("0")
    except OSError:
        return
    session.config.add_cleanup(lambda: AUTOGROUP.write_text(before))


def pytest_collection_modifyitems(items):
    """Tests that wait for seconds come first: xdist gives the first quarter of all tests
    out one by one, and the others in runs of neighbours.  A run of tests that wait would
    keep one worker busy when the others have nothing left."""
    items.sort(key=lambda item: item.path.stem not in ("test_deadline", "test_timeout"))


def skips_of(stats):
    """Lines of test, tab, reason."""
    for report in stats.get("skipped", []):
        why = report.longrepr
        why = why[2] if isinstance(why, tuple) else str(why)
        path, _, name = report.nodeid.partition("::")
        why = why.removeprefix("Skipped: ").splitlines()[0]
        yield f"{os.path.basename(path)}::{name}\t{why}"


def pytest_sessionfinish(session):
    """Skips and counts, for test/skips.sh and test/totals.sh."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput") or not reporter:
        return
    stats = reporter.stats
    skips = list(skips_of(stats))
    done = subprocess.run([ROOT / "test" / "skips.sh"], cwd=ROOT, text=True,
                          input="".join(line + "\n" for line in skips),
                          stdout=subprocess.PIPE, check=False)
    reporter.skips = done.stdout
    if done.returncode and session.exitstatus == 0:
        session.exitstatus = 1
    name = os.environ.get("TOTALS")
    if name:
        failed = len(stats.get("failed", [])) + len(stats.get("error", []))
        passed = len(stats.get("passed", []))
        (ROOT / "build" / "totals").mkdir(exist_ok=True)
        (ROOT / "build" / "totals" / name).write_text(
            f"{passed} passed, {failed} failed, {len(skips)} skipped\n")


def pytest_terminal_summary(terminalreporter):
    """What was skipped, and why."""
    terminalreporter.write(getattr(terminalreporter, "skips", ""))
