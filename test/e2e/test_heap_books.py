# SPDX-License-Identifier: Apache-2.0
"""A heap profile against a program's own books, to the standard error of each number;
and the standard errors that a report prints, against the truth.

An object of SIZE bytes is sampled with the probability P of its size class and stands
for 1 / P: N of them have a variance of N * (1 - P) / P, and bytes that times SIZE^2."""
import collections
import math
import os
import re

import pytest

from test_heap import (COLUMNS, LIBRARIES, PROGRAMS, RATE, SIZES, by_site, each_tier,
                       record, work)
from conftest import wallprof

# Of 1.2 GB in use the standard error of the sum is 0.6 %: 2 % are more than three of it.
ROUNDS, KEEP_EVERY = 360, 2


def probability(size, rate):
    """wp_heap_threshold, of the size's class."""
    middle = size // 8 * 8 + 4
    if size >= 128 << 10:
        middle = 1.5 * 2 ** math.floor(math.log2(size))
    return max(1, math.floor((1 - math.exp(-middle / rate)) * 2 ** 32)) / 2 ** 32


def objects_of(site, books):
    """({size: number allocated}, {size: number in use}) of SITE, as fixtures/heap.c
    has them; BOOKS: [objects, bytes, objects in use, bytes in use]."""
    allocated, kept = collections.Counter(), collections.Counter()
    if site in SIZES:
        allocated[SIZES[site]], kept[SIZES[site]] = books[0], books[2]
    elif site == "site_malloc_mixed":
        for k in range(ROUNDS):
            for i in range(300):
                allocated[1 + i % 7 * 700] += 1
                kept[1 + i % 7 * 700] += (i + k) % KEEP_EVERY == 0
    else:
        assert site == "site_realloc"
        for size in (512, 1024, 2048, 4096, 8192):
            allocated[size] = books[0] // 5
        kept[8192] = books[2]
    for sizes, (number, bytes_) in ((allocated, books[:2]), (kept, books[2:])):
        assert sum(sizes.values()) == number, site
        assert sum(n * size for size, n in sizes.items()) == bytes_, site
    return allocated, kept


def variances(sizes, rate):
    """Those of the number of objects and of bytes."""
    number = bytes_ = 0
    for size, n in sizes.items():
        p = probability(size, rate)
        # A number is rounded at random to a whole one.
        part = 1 / p % 1
        number += n * ((1 - p) / p + p * part * (1 - part))
        bytes_ += n * (1 - p) / p * size ** 2
    return number, bytes_


def deviations(truth, sums):
    """({(site, column): standard errors that the profile is off by}, {column: (that of
    the sum, three standard errors of it), as parts of the sum})."""
    errors, whole = {}, {column: [0, 0, 0] for column in COLUMNS}
    for site, books in truth.items():
        allocated, kept = objects_of(site, books)
        variance = (*variances(allocated, RATE), *variances(kept, RATE))
        got = sums.get(site, [0] * 4)
        for column, *row in zip(COLUMNS, got, books, variance):
            whole[column] = [a + b for a, b in zip(whole[column], row)]
            if row[1]:
                # Of what is sampled for sure the variance is 0, and off by one object.
                errors[site, column] = (row[0] - row[1]) / math.sqrt(row[2] + 1)
    return errors, {column: ((got - want) / want, 3 * math.sqrt(v) / want)
                    for column, (got, want, v) in whole.items()}


@pytest.mark.soak
@each_tier
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_number_is_off_by_its_standard_error(start, tmp_path, name, tier):
    """At 64 KiB: the sums by less than 2 %, and each number at each site by less than
    three standard errors: of 58, which go in pairs, two pairs may be off by more once in
    10,000 recordings."""
    program, library = PROGRAMS[name]
    env = dict(os.environ)
    if library:
        env["LD_PRELOAD"] = str(LIBRARIES / library)
    target = start(program, ROUNDS, KEEP_EVERY, env=env)
    run, p = record(target, tmp_path, "--heap-probe", tier)
    target.assert_unharmed()
    assert ", 0 of them lost" in run.err, run.err
    errors, whole = deviations(target.truth(), by_site(p))
    beyond = {key: z for key, z in errors.items() if abs(z) > 3}
    root = math.sqrt(sum(z * z for z in errors.values()) / len(errors))
    print(name, tier, f"{len(beyond)} of {len(errors)} beyond 3, rms {root:.2f},",
          *(f"{column} {off:+.2%} (3 errors: {three:.2%})"
            for column, (off, three) in whole.items()))
    assert len(errors) == 58
    for column in ("alloc_space", "inuse_space"):
        off, three = whole[column]
        assert three < 0.02 and abs(off) < 0.02, (column, off, three)
    assert len(beyond) <= 4 and all(abs(z) < 5 for z in beyond.values()), beyond
    # 29 of them are independent.
    assert 0.55 < root < 1.5, errors


# What stands in a report for a site: the function that calls the allocator.
CALLERS = {"site_posix": "posix", "site_strdup": "strdup", "site_longjmp": "jumps"}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def rows_of(text):
    """{function: (bytes, share in percent, its standard error)} of the table."""
    table = text.split("Functions by their own time")[1].split("\n\n")[0]
    return {function: (float(size) * UNITS[unit], float(share), float(error or 0))
            for size, unit, share, error, function in re.findall(
                r"\n +([\d.]+) (\w+) +([\d.]+) % (?:±([\d.]+))? +[\d.]+ %  (\S+)",
                table)}


@pytest.mark.soak
def test_printed_errors_hold_the_truth(start):
    """Of 100 recordings 93 to 97 % of the shares that a report prints are within two
    printed standard errors of the truth."""
    within = shown = 0
    for _ in range(10):
        target, tables = start("heap", "20", "4"), []
        for _ in range(10):
            run = wallprof("-p", target.pid, "--profile", "heap", "--heap-anyway",
                           "--full", "--heap-rate", RATE,
                           until=lambda: work(target)).check((0, 1))
            tables.append(rows_of(run.out))
        kept = {CALLERS.get(site, site): books[3] / len(tables)
                for site, books in target.truth().items()}
        for rows in tables:
            # Stacks of threads, of which each is sampled.
            whole = sum(kept.values()) + sum(
                row[0] for function, row in rows.items() if function not in kept)
            for function in kept.keys() & rows.keys():
                _, share, error = rows[function]
                shown += 1
                within += abs(share - 100 * kept[function] / whole) <= 2 * error
    print(f"{within} of {shown}: {within / shown:.1%}")
    assert shown > 1200 and 0.93 <= within / shown <= 0.97
