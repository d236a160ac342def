# SPDX-License-Identifier: Apache-2.0
"""--profile heap of Debian's servers under load: who allocates is named, and how much is
what the server does for each request, so many times as it was asked."""
import http.client
import math
import os
import pathlib
import socket
import subprocess
import tempfile

import pprof_check
import pytest

from conftest import ROOT, wait_until, wallprof
from debian import Packages
from test_processes import POSTGRES, Postgres

PACKAGES = Packages(ROOT / "build" / "daemons", ("bookworm",))


def record(pids, tmp_path, rate, load):
    """The samples of a heap profile of PIDS, one for RATE bytes, while LOAD is called."""
    def loaded():
        load()
        return lambda: True
    run = wallprof("-p", ",".join(map(str, pids)), "--profile", "heap",
                   "--heap-rate", rate, "--heap-anyway",
                   output=tmp_path / "p.pb.gz", until=loaded).check((0, 1))
    assert ", 0 of them lost" in run.err, run.err
    p = pprof_check.load(str(tmp_path / "p.pb.gz"))
    pprof_check.validate(p)
    samples = pprof_check.samples(p)
    whole = by([s for s in samples
                if not s["frames"][-1]["name"].startswith("[truncated")])
    assert whole[1] >= 0.99 * by(samples)[1] > 0, run.err
    return samples


def by(samples, *functions):
    """[objects, bytes] allocated where all FUNCTIONS are on the stack."""
    took = [s["values"] for s in samples
            if {*functions} <= {f["name"] for f in s["frames"]}]
    return [sum(v[column] for v in took)
            for column in ("alloc_objects", "alloc_space")]


def check_number(got, number, rate):
    """GOT, [objects, bytes], are NUMBER objects of one size.  One is sampled with the
    probability P: a count has a standard deviation of sqrt(NUMBER * (1 - P) / P)."""
    p = 1 - math.exp(-got[1] / got[0] / rate)
    assert abs(got[0] - number) <= 5 * math.sqrt(number * (1 - p) / p), (got, p)


class Backends:
    """Three of a postgres, that wait until they are let go, and then select each so
    many times."""
    SCRIPT = ("\\set aid random(1, 100000)\n"
              "SELECT pg_advisory_xact_lock_shared(1);\n"
              "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n")

    def __init__(self, server, each):
        self.server = server
        (server.home / "script").write_text(self.SCRIPT)
        self.psql = subprocess.Popen(
            server.argv("psql", *server.client, "-At", "postgres"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("SELECT pg_advisory_lock(1);")
        server.load(3, "-n", "-t", each, "-f", server.home / "script")
        wait_until(lambda: len(self.pids()) == 3)

    def ask(self, question):
        self.psql.stdin.write(question + "SELECT 'that is all';\n")
        self.psql.stdin.flush()
        return list(iter(self.psql.stdout.readline, "that is all\n"))

    def pids(self):
        return [int(line) for line in self.ask(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' "
            "AND wait_event_type = 'Lock';")]

    def go(self):
        self.ask("SELECT pg_advisory_unlock(1);")
        self.psql.communicate(timeout=100)
        out, _ = self.server.bench.communicate(timeout=100)
        assert self.server.bench.returncode == 0, out


# It has a processor to read the samples of a GB a second with.
@pytest.mark.alone
@pytest.mark.skipif(not POSTGRES, reason="no postgres")
def test_postgres(tmp_path):
    """Each select begins a scan of an index, whose state is an object that is too large
    for what a memory context keeps (access/nbtree.h, BTScanOpaqueData)."""
    with tempfile.TemporaryDirectory() as directory:
        server = Postgres(pathlib.Path(directory))
        try:
            backends = Backends(server, 10000)
            samples = record(backends.pids(), tmp_path, 512 << 10, backends.go)
        finally:
            server.end()
    assert by(samples, "PostgresMain", "main")[1] >= 0.99 * by(samples)[1]
    check_number(by(samples, "btbeginscan", "palloc"), 30000, 512 << 10)


def test_nginx(nginx, tmp_path):
    """Each request has a pool of request_pool_size, 4 KiB."""
    _, worker, port = nginx
    number, rate = 10000, 16 << 10

    def ask():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(number):
            connection.request("GET", "/nothing")
            connection.getresponse().read()
        connection.close()
    samples = record([worker], tmp_path, rate, ask)
    got = by(samples, "ngx_http_create_request", "ngx_create_pool")
    check_number(got, number, rate)
    # Counts are rounded at random to whole numbers.
    assert abs(got[1] / 4096 - got[0]) <= 5 * math.sqrt(number)


def test_redis(redis, tmp_path):
    """By jemalloc.  A value that is set is copied from what the client sent."""
    server, path = redis
    number, size, rate = 20000, 4096, 64 << 10

    def ask():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            for i in range(number):
                client.sendall(b"*3\r\n$3\r\nSET\r\n$8\r\n%08d\r\n$%d\r\n%s\r\n"
                               % (i, size, b"x" * size))
                assert client.recv(16) == b"+OK\r\n"
    samples = record([server.pid], tmp_path, rate, ask)
    got = by(samples, "readQueryFromClient", "aeMain", "main")
    # Beside it the command's name, its key, their objects and what lists them.
    off = 5 * math.sqrt(number * size * rate)
    assert number * size - off < got[1] < 1.1 * number * size + off, got


class MariaDB:
    """A server of its own, without tables."""

    def __init__(self, root, directory):
        self.root = root
        self.socket = directory / "socket"
        (directory / "db").mkdir()
        # Libraries that the system may not have.
        self.env = {**os.environ, "LD_LIBRARY_PATH": ":".join(
            str(root / place / "x86_64-linux-gnu") for place in ("lib", "usr/lib"))}
        self.proc = subprocess.Popen(
            [root / "usr/sbin/mariadbd", "--no-defaults", "--user=root",
             f"--datadir={directory}/db", f"--socket={self.socket}",
             f"--pid-file={directory}/pid", "--skip-networking",
             "--skip-grant-tables", f"--lc-messages-dir={root}/usr/share/mysql",
             f"--plugin-dir={root}/usr/lib/mysql/plugin"],
            env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.socket.exists, seconds=60)

    def ask(self, questions):
        subprocess.run(
            [self.root / "usr/bin/mariadb", "--no-defaults", "-S", self.socket],
            input=questions, text=True, check=True, env=self.env, timeout=100,
            stdout=subprocess.DEVNULL)


@pytest.mark.soak
def test_mariadb(tmp_path):
    """Each select makes a string of a million bytes."""
    root = PACKAGES.unpack("mariadb", "mariadb-server-core", "mariadb-client-core",
                           "mariadb-client", "libmariadb3", "liburing2", "libnuma1",
                           "libaio1", "libpcre2-8-0", "libsystemd0")
    if not root:
        pytest.skip("no mariadb from Debian")
    server = MariaDB(root, tmp_path)
    number, rate = 1000, 512 << 10
    try:
        samples = record([server.proc.pid], tmp_path, rate, lambda: server.ask(
            "SELECT LENGTH(REPEAT(CHAR(65 + RAND()), 1000000));\n" * number))
    finally:
        server.proc.terminate()
        server.proc.wait(100)
    got = by(samples, "Item_func_repeat::val_str", "Binary_string::real_alloc")
    check_number(got, number, rate)
    assert abs(got[1] / 1e6 - got[0]) <= 5 * math.sqrt(number)
