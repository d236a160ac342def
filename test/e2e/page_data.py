# SPDX-License-Identifier: Apache-2.0
"""The data of a page, decoded as src/output/html_data.h says."""
import base64
import gzip
import json
import re


def numbers(data):
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value, shift = 0, 0


def load(path, name="data"):
    """The first line's object; each thread has its rows as (frames' names from
    the root to the leaf, kind or None, nanoseconds), and the stacks whose waits are
    known exactly as (frames' names, nanoseconds)."""
    text = path.read_text()
    packed = re.search(f'id="{name}">([^<]*)<', text).group(1)
    head, _, rest = gzip.decompress(base64.b64decode(packed)).partition(b"\n")
    page = json.loads(head)
    stream = numbers(rest)
    stacks = [()]
    for i in range(page["nodes"]):
        up = i + 1 - next(stream)
        stacks.append((*stacks[up], page["frames"][next(stream)][0]))
    deeds = [(stacks[next(stream)], next(stream)) for _ in range(page["deeds"])]
    threads = []
    for tid, count, thread, start, timed, n, idle, *looks in page["threads"]:
        low = [next(stream) for _ in range(n)]
        did = [deeds[bits + 128 * next(stream)] for bits in low]
        rows = [(stack, page["kinds"][k - 1] if k else None,
                 next(stream) * page["quantum"]) for stack, k in did]
        threads.append({"tid": tid, "count": count, "name": thread,
                        "start": start, "timed": timed, "idle": idle, "rows": rows,
                        "looks": looks[:2], "exact": looks[2]})
    for thread in threads:
        thread["exact"] = [(stacks[next(stream)],
                            next(stream) * page["quantum"])
                           for _ in range(thread["exact"])]
    assert next(stream, None) is None
    page["threads"] = threads
    return page
