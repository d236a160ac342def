# SPDX-License-Identifier: Apache-2.0
"""The table of guests (test/vm/guests.py): of each thing what was said last."""
import importlib.util

from conftest import ROOT

TOLD = """5.10.0 x86_64
kernel/perf_event_paranoid: 3
check: dump: no: status 2, 1 of 5 stacks cut
check: BPF scan: refused: it wants Linux 6.7
test/e2e/test_a.py::test_x[of a] PASSED                    [ 50%]
test/e2e/test_a.py::test_y FAILED                          [100%]
check: end-to-end tests: no: 1 failed, 1 passed
unit: test_maps ok
unit: test_regs failed
check: unit tests: no: of 2 programs test_regs
"""
AGAIN = """5.10.0 x86_64
check: dump: ok: 5 threads
test/e2e/test_a.py::test_y PASSED                          [ 50%]
test/e2e/test_b.py::test_z SKIPPED (no such CPU)           [ 50%]
test/e2e/test_b.py::test_z2 PASSED                         [ 50%]
test/e2e/test_c.py::test_v ERROR                           [ 50%]
check: end-to-end tests: no: 1 error
unit: test_regs ok
check: unit tests: ok: 1 programs
"""


def test_of_each_thing_what_was_said_last(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("guests", ROOT / "test/vm/guests.py")
    guests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(guests)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{guests.BEGIN}old\n{guests.END}after\n")
    told = tmp_path / "build/vm/5.10-amd64/told"
    told.parent.mkdir(parents=True)
    told.write_text(TOLD + AGAIN)
    # This one did not come up.
    (tmp_path / "build/vm/lost-arm64").mkdir()
    (tmp_path / "build/vm/lost-arm64/told").write_text("")
    monkeypatch.setattr(guests, "ROOT", tmp_path)
    monkeypatch.setattr(guests.sys, "argv", ["guests.py", "5.10-amd64", "lost-arm64",
                                             "none-arm64"])
    guests.main()
    assert readme.read_text() == f"""before
{guests.BEGIN}
|  | 5.10.0 x86_64 |
| --- | --- |
| dump | ok: 5 threads |
| BPF scan | refused (1) |
| unit tests | ok: 2 passed |
| test_a | ok: 2 passed |
| test_b | ok: 1 passed, 1 skipped |
| test_c | no (2) |

1. it wants Linux 6.7
2. of 1 test_v

{guests.END}after
"""
