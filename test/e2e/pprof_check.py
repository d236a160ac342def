# SPDX-License-Identifier: Apache-2.0
"""Read and judge a pprof file without any code of wallprof.

The classes are made by protoc from Google's own profile.proto, as Debian's
golang-github-google-pprof-dev has it.  validate() holds the union of what
`go tool pprof`, Pyroscope and Parca ask for, and what wallprof promises.
"""
import collections
import functools
import gzip
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROTO = pathlib.Path("/usr/share/gocode/src/github.com/google/pprof/proto")
STATES = {"running", "runnable", "waiting", "stopped", "exiting"}


@functools.lru_cache(maxsize=None)
def _pb2():
    """The module that protoc makes of profile.proto."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(["protoc", f"--proto_path={PROTO}",
                        f"--python_out={tmp}", "profile.proto"], check=True)
        spec = importlib.util.spec_from_file_location(
            "profile_pb2", os.path.join(tmp, "profile_pb2.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def new_profile():
    """An empty Profile message."""
    return _pb2().Profile()


def load(path):
    """The Profile message in the gzip file PATH."""
    data = pathlib.Path(path).read_bytes()
    assert data[:2] == b"\x1f\x8b", "not gzip-compressed"
    profile = _pb2().Profile()
    # Fails on strings that are not UTF-8: proto3 asks for it.
    profile.ParseFromString(gzip.decompress(data))
    return profile


def validate(p, noted=False):
    """Raise AssertionError unless every consumer will accept P.  NOTED: a Go
    program's own, of no thread and no time."""
    _no_unknown_fields(p)
    _strings(p)
    _types(p, noted)
    _tables(p)
    for s in p.sample:
        _sample(p, s, noted)
    _labels_agree(p)
    _nothing_unused(p)


def _no_unknown_fields(p):
    known = type(p)()
    known.CopyFrom(p)
    known.DiscardUnknownFields()
    assert known.ByteSize() == p.ByteSize(), "fields that are not in the .proto"


def _strings(p):
    table = p.string_table
    assert len(table) > 0 and table[0] == "", "string_table[0] is not empty"
    assert len(set(table)) == len(table), "a string twice in the table"


def _string(p, index, what, empty=False):
    assert 0 <= index < len(p.string_table), f"{what}: string index {index}"
    assert empty or index != 0, f"{what} is empty"
    return p.string_table[index]


def _types(p, noted):
    types = [(_string(p, t.type, "sample type"), _string(p, t.unit, "unit"))
             for t in p.sample_type]
    assert types, "no sample type"
    assert len(set(types)) == len(types), f"sample type twice: {types}"
    for name, unit in types:
        assert "-" not in name, f"'-' in sample type {name}"
        assert unit in ("count", "nanoseconds", "bytes"), unit
    assert types[0][1] == "count", "the count is first by convention"
    assert (_string(p, p.default_sample_type, "default_sample_type")
            in [t[0] for t in types])
    _string(p, p.period_type.type, "period type")
    _string(p, p.period_type.unit, "period unit")
    assert p.period > 0, "period"
    assert p.duration_nanos > 0 or noted, "duration_nanos"
    # Nanoseconds of this century, so neither seconds nor a monotonic clock.
    assert 978307200 * 10**9 < p.time_nanos < 4102444800 * 10**9, "time_nanos"
    for c in p.comment:
        assert "\n" not in _string(p, c, "comment"), "newline in a comment"


def _dense(what, entries):
    for i, e in enumerate(entries):
        assert e.id == i + 1, f"{what} ids are not 1..N in order: {e.id}"


def _tables(p):
    _dense("mapping", p.mapping)
    _dense("function", p.function)
    _dense("location", p.location)
    for m in p.mapping:
        _string(p, m.filename, "mapping file")
        build_id = _string(p, m.build_id, "build id", empty=True)
        assert all(c in "0123456789abcdef" for c in build_id), build_id
        assert m.memory_start <= m.memory_limit, f"mapping {m.id} ends early"
    for f in p.function:
        _string(p, f.name, "function name")
        _string(p, f.system_name, "system name", empty=True)
        _string(p, f.filename, "function file", empty=True)
        assert f.start_line >= 0
    for loc in p.location:
        _location(p, loc)


def _location(p, loc):
    assert loc.mapping_id <= len(p.mapping), f"mapping {loc.mapping_id}"
    assert len(loc.line) > 0, f"location {loc.id} has no line"
    for line in loc.line:
        assert 1 <= line.function_id <= len(p.function), "line without function"
        assert line.line >= 0
    if loc.mapping_id == 0:
        return
    m = p.mapping[loc.mapping_id - 1]
    name = p.string_table[m.filename]
    if name == "[kernel.kallsyms]":
        return
    assert m.memory_start <= loc.address < m.memory_limit, \
        f"{loc.address:#x} lies outside its mapping {name}"


def _sample(p, s, noted):
    assert len(s.value) == len(p.sample_type), "number of values"
    assert all(v >= 0 for v in s.value), f"negative value {list(s.value)}"
    assert any(v > 0 for v in s.value), "a sample of nothing"
    assert len(s.location_id) > 0, "a sample without a location"
    for loc in s.location_id:
        assert 1 <= loc <= len(p.location), f"location {loc}"
    labels = {}
    for label in s.label:
        key, value = _label(p, label)
        assert key not in labels, f"label {key} twice"
        labels[key] = value
    if noted:
        assert labels.keys() <= {"bytes"}, labels
        return
    # Goroutines have none.
    if not is_of_goroutines(p):
        assert isinstance(labels.get("thread"), str), f"no thread: {labels}"
        # Threads that share what they have, being too many, have none.
        assert "tid" in labels or counter(p, "told by name only"), labels
        assert isinstance(labels.get("tid", 1), int), labels
        assert labels.get("tid", 1) > 0, labels
    if p.string_table[p.sample_type[0].type] == "alloc_objects":
        assert not labels.keys() & {"state", "wait"}, labels
        return
    if p.string_table[p.sample_type[0].type] == "wakes":
        assert "state" not in labels and labels.get("woken"), labels
        return
    assert labels.get("state") in STATES, labels
    if "wait" in labels:
        assert labels["state"] == "waiting", labels


def is_of_goroutines(p):
    return p.string_table[p.sample_type[0].type] == "goroutine" or any(
        c.startswith("wall: goroutines of ") for c in comments(p))


def _label(p, label):
    key = _string(p, label.key, "label key")
    assert not key.startswith("pprof::"), key
    if label.str:
        assert label.num == 0 and label.num_unit == 0, f"{key}: str and num"
        return key, _string(p, label.str, key)
    # pprof drops the number 0 when it has no unit.
    _string(p, label.num_unit, f"unit of {key}", empty=label.num != 0)
    return key, label.num


def _labels_agree(p):
    kinds = {}
    for s in p.sample:
        for label in s.label:
            kind = "str" if label.str else ("num", label.num_unit)
            assert kinds.setdefault(label.key, kind) == kind, \
                f"label {p.string_table[label.key]} is {kind} and not"


def _nothing_unused(p):
    locations = {i for s in p.sample for i in s.location_id}
    assert locations == set(range(1, len(p.location) + 1)), "unused location"
    functions = {l.function_id for loc in p.location for l in loc.line}
    assert functions == set(range(1, len(p.function) + 1)), "unused function"
    mappings = {loc.mapping_id for loc in p.location} - {0}
    # The main binary comes first, used or not.
    rest = set(range(1, len(p.mapping) + 1)) - mappings
    assert rest <= {1}, f"unused mappings {rest}"


def comments(p):
    return [p.string_table[c] for c in p.comment]


def counter(p, phrase):
    """The number that stands before PHRASE in a comment; 0 where it is not.

    Counters that are 0 are left out of the comments.
    """
    for line in comments(p):
        m = re.search(r"(\d+) " + re.escape(phrase), line)
        if m:
            return int(m.group(1))
    return 0


def _frames(p, location_id):
    loc = p.location[location_id - 1]
    m = p.mapping[loc.mapping_id - 1] if loc.mapping_id else None
    for i, line in enumerate(loc.line, 1):
        f = p.function[line.function_id - 1]
        yield {
            "name": p.string_table[f.name],
            "file": p.string_table[f.filename],
            "line": line.line,
            "address": loc.address,
            "mapping": p.string_table[m.filename] if m else "",
            "build_id": p.string_table[m.build_id] if m else "",
            "inlined": i < len(loc.line),
        }


def samples(p):
    """Every sample as values{type}, labels{key}, frames[leaf first].

    Inlined functions are frames of their own, with their caller's address.
    """
    types = [p.string_table[t.type] for t in p.sample_type]
    frames = {}
    ret = []
    for s in p.sample:
        stack = []
        for i in s.location_id:
            if i not in frames:
                frames[i] = list(_frames(p, i))
            stack += frames[i]
        ret.append({
            "values": dict(zip(types, s.value)),
            "labels": dict(_label(p, label) for label in s.label),
            "frames": stack,
        })
    return ret


def by_label(p, key, value="wall"):
    """{what label KEY says: sum of VALUE}; None for samples without it."""
    ret = collections.Counter()
    for s in samples(p):
        ret[s["labels"].get(key)] += s["values"][value]
    return ret


def threads(p, value="wall"):
    """{tid: sum of VALUE over the samples of that thread}."""
    return by_label(p, "tid", value)


def stacks(p, value="wall"):
    """{(root, ..., leaf): sum of VALUE}, by function name."""
    ret = collections.Counter()
    for s in samples(p):
        names = tuple(f["name"] for f in reversed(s["frames"]))
        ret[names] += s["values"][value]
    return ret


def described(p):
    """The ten longest samples, for a test's message."""
    return "\n".join(
        f"{s['values']['wall'] / 1e6:.1f} ms {s['labels']} "
        + " < ".join(f["name"] for f in s["frames"][:8])
        for s in sorted(samples(p), key=lambda s: -s["values"]["wall"])[:10])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        validate(load(name))
        print(f"{name}: valid")
