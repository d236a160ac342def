# SPDX-License-Identifier: Apache-2.0
"""Files with debug information: which are found, by what, and which are not
used."""
import lzma
import os
import pathlib
import shutil
import struct
import zlib

import pytest

from symbolizers import (C_PROGRAM, Answer, addresses, debug_file_of,
                         names_by_address, run)


@pytest.fixture
def stripped(build, tmp_path):
    """A program without symbols; its debug file; an address in it."""
    prog = build(tmp_path, "gcc", "-g", "-Wl,--build-id", source=C_PROGRAM,
                 suffix=".c")
    debug = tmp_path / "prog.debug"
    svma = next(a for a, names in names_by_address(prog).items()
                if "hidden_function" in names)
    run("objcopy", "--only-keep-debug", prog, debug)
    run("strip", "-s", prog)
    return prog, debug, svma


def assert_hidden(prog, svma, *options, wanted=True):
    answer = Answer(prog, [svma], *options)
    level = answer.function()
    if wanted:
        assert level.function == "hidden_function"
        assert level.start == 3
        assert level.place.endswith("/prog.c:4")
        assert "debug_file" in answer.has
    else:
        assert level.function == f"{pathlib.Path(prog).name}+{svma:#x}"
        assert "debug_file" not in answer.has


def place_by_id(root, prog, debug):
    """Copy DEBUG to where PROG's build-id says, below ROOT."""
    path = root / str(debug_file_of(prog))[1:]
    path.parent.mkdir(parents=True)
    shutil.copy(debug, path)
    return path


def test_a_debug_file_is_found_by_build_id_below_a_root(stripped, tmp_path):
    prog, debug, svma = stripped
    root, other = tmp_path / "root", tmp_path / "other"
    place_by_id(root, prog, debug)
    assert_hidden(prog, svma, wanted=False)
    assert_hidden(prog, svma, "-r", other, wanted=False)
    assert_hidden(prog, svma, "-r", other, "-r", root)


def test_a_debug_file_of_another_build_is_not_used(build, stripped, tmp_path):
    prog, debug, svma = stripped
    path = place_by_id(tmp_path / "root", prog, debug)
    (tmp_path / "more").mkdir()
    other = build(tmp_path / "more", "gcc", "-g", "-Wl,--build-id",
                  source=C_PROGRAM + "int more;", suffix=".c")
    shutil.copy(other, path)
    assert_hidden(prog, svma, "-r", tmp_path / "root", wanted=False)


def add_load(prog):
    """As patchelf does it where there is no room: a segment below the first, here
    in the place of PT_PHDR."""
    data = bytearray(pathlib.Path(prog).read_bytes())
    phoff = struct.unpack_from("<Q", data, 32)[0]
    assert struct.unpack_from("<I", data, phoff)[0] == 6
    struct.pack_into("<IIQQQQQQ", data, phoff, 1, 6, 0, 0x3ff000, 0x3ff000,
                     0x1000, 0x1000, 0x1000)
    pathlib.Path(prog).write_bytes(data)


@pytest.mark.parametrize("change", ["segment", "address"])
def test_a_file_that_was_changed_after_its_debug_file(build, tmp_path, change):
    """By patchelf, which adds a segment, or prelink, which moves all."""
    prog = build(tmp_path, "gcc", "-g", "-no-pie", "-Wl,--build-id",
                 source=C_PROGRAM, suffix=".c")
    svma = next(a for a, names in names_by_address(prog).items()
                if "hidden_function" in names)
    run("objcopy", "--only-keep-debug", prog, tmp_path / "x")
    run("strip", "-s", prog)
    place_by_id(tmp_path / "root", prog, tmp_path / "x")
    if change == "segment":
        add_load(prog)
    else:
        run("objcopy", "--change-addresses=0x100000", prog)
        svma += 0x100000
    assert_hidden(prog, svma, "-r", tmp_path / "root")


def test_links_do_not_lead_out_of_a_root(stripped, tmp_path):
    prog, debug, svma = stripped
    root = tmp_path / "root"
    path = place_by_id(root, prog, debug)
    path.unlink()
    # The target's own "/" is the root; this link points nowhere in it.
    path.symlink_to(debug)
    assert_hidden(prog, svma, "-r", root, wanted=False)
    inside = root / str(debug)[1:]
    inside.parent.mkdir(parents=True)
    shutil.copy(debug, inside)
    assert_hidden(prog, svma, "-r", root)


@pytest.mark.parametrize("where", ["", ".debug", "usr/lib/debug"])
def test_a_debug_file_is_found_by_its_link(build, tmp_path, where):
    """By name and checksum, as neither file has a build-id."""
    prog = build(tmp_path, "gcc", "-g", "-Wl,--build-id=none",
                 source=C_PROGRAM, suffix=".c")
    svma = next(a for a, names in names_by_address(prog).items()
                if "hidden_function" in names)
    root, name = tmp_path / "root", "linked.debug"
    place = root / where / "opt" if where == "usr/lib/debug" else \
        root / "opt" / where
    place.mkdir(parents=True)
    (tmp_path / "d").mkdir()
    run("objcopy", "--only-keep-debug", prog, tmp_path / "d" / name)
    run("strip", "-s", prog)
    run("objcopy", f"--add-gnu-debuglink={tmp_path}/d/{name}", prog)
    shutil.copy(tmp_path / "d" / name, place / name)
    options = ["-r", root, "-p", "/opt/prog"]
    assert_hidden(prog, svma, *options)
    # One bit more and it is another file.
    data = bytearray((place / name).read_bytes())
    data[-1] ^= 1
    (place / name).write_bytes(data)
    answer = Answer(prog, [svma], *options)
    assert answer.function().function == f"prog+{svma:#x}"


def test_a_fifo_in_place_of_a_debug_file_does_not_block(stripped, tmp_path):
    prog, debug, svma = stripped
    path = place_by_id(tmp_path / "root", prog, debug)
    path.unlink()
    os.mkfifo(path)
    assert_hidden(prog, svma, "-r", tmp_path / "root", wanted=False)


def test_packed_symbols_are_read(stripped, tmp_path):
    """As distributions do it: what .dynsym lacks, in xz, in the file."""
    prog, debug, svma = stripped
    mini = tmp_path / "mini"
    run("objcopy", "-S", "--keep-symbol=hidden_function", debug, mini)
    (tmp_path / "mini.xz").write_bytes(lzma.compress(mini.read_bytes()))
    run("objcopy", f"--add-section=.gnu_debugdata={tmp_path}/mini.xz", prog)
    answer = Answer(prog, [svma])
    assert answer.function().system == "hidden_function"
    assert answer.function().place == ":0"
    assert answer.has == {"functions"}


def test_dwarf_shared_between_files_is_found(build, tmp_path):
    """dwz -m moves what two programs share to a third file."""
    if not shutil.which("dwz"):
        pytest.skip("dwz is not installed")
    progs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        progs.append(build(tmp_path / name, "g++", "-g", "-gdwarf-4"))
    svmas = addresses(progs[0], 500)
    before = [str(levels) for levels in Answer(progs[0], svmas).levels]
    root = tmp_path / "root"
    (root / "usr/lib/debug/.dwz").mkdir(parents=True)
    run("dwz", "-m", root / "usr/lib/debug/.dwz/shared",
        "-M", "/usr/lib/debug/.dwz/shared", *progs)
    assert ".gnu_debugaltlink" in run("readelf", "-SW", progs[0]).stdout
    answer = Answer(progs[0], svmas, "-r", root)
    assert [str(levels) for levels in answer.levels] == before
    # Without the third file there are names, from the symbols.
    alone = Answer(progs[0], svmas)
    assert alone.has == {"functions", "dwarf_lacks_shared"}
    # A debug file is of no use without what it shares.
    debug = tmp_path / "debug"
    run("objcopy", "--only-keep-debug", progs[0], debug)
    run("strip", "-s", progs[0])
    place_by_id(root, progs[0], debug)
    answer = Answer(progs[0], svmas, "-r", root)
    assert [str(levels) for levels in answer.levels] == before
    assert "debug_file" in answer.has
    (root / "usr/lib/debug/.dwz/shared").unlink()
    assert Answer(progs[0], svmas, "-r", root).has == {
        "functions", "dwarf_lacks_shared"}


def test_crc_is_zlibs(build, tmp_path):
    """objcopy wrote the link's checksum; this says which one that is."""
    prog = build(tmp_path, "gcc", "-g", source=C_PROGRAM, suffix=".c")
    debug = tmp_path / "x.debug"
    run("objcopy", "--only-keep-debug", prog, debug)
    run("objcopy", f"--add-gnu-debuglink={debug}", prog)
    out = tmp_path / "link"
    run("objcopy", "-O", "binary", "--only-section=.gnu_debuglink",
        "--set-section-flags", ".gnu_debuglink=alloc", prog, out)
    assert int.from_bytes(out.read_bytes()[-4:], "little") == \
        zlib.crc32(debug.read_bytes())
