# SPDX-License-Identifier: Apache-2.0
"""A server under load, with and without each tool."""
import csv
import subprocess

from programs import redis
from tools import Nothing, beside, eu_stack, gdb, perf, wallprof

TEXT = "redis under redis-benchmark (20 connections, GET)"
ROUNDS = 4
WINDOW_S = 0.8


def load(port, requests):
    """(requests a second, p99 in ms)."""
    done = subprocess.run(
        ["redis-benchmark", "-p", str(port), "-t", "get", "-c", "20", "-n",
         str(requests), "--csv"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, timeout=120, check=True)
    row = next(csv.DictReader(done.stdout.splitlines()))
    return float(row["rps"]), float(row["p99_latency_ms"])


def measure(server, tools):
    """{tool: [(requests with over without, p99 with over without)]}."""
    kept = {tool.name: [] for tool in tools}
    # As many requests as are a window's worth here.
    requests = int(WINDOW_S * load(server.port, 20000)[0])
    before = load(server.port, requests)
    first = before
    for _ in range(ROUNDS):
        for tool in tools:
            with beside(tool, server.pid):
                with_tool = load(server.port, requests)
            after = load(server.port, requests)
            kept[tool.name].append(
                [100 * 2 * w / (b + a) for w, b, a in
                 zip(with_tool, before, after)])
            before = after
    return first, kept


def run(table):
    tools = [Nothing(), wallprof(100), wallprof(100, "all"),
             wallprof(100, "never"), wallprof(1000), perf(100, "fp"),
             perf(100, "dwarf"), eu_stack(), gdb()]
    with redis() as server:
        first, kept = measure(server, tools)
    table.note(f"alone: {first[0]:.0f} requests a second, p99 {first[1]:.2f} "
               "ms; figures are % of what it does alone")
    rate = {name: [k[0] for k in v] for name, v in kept.items()}
    p99 = {name: [k[1] for k in v] for name, v in kept.items()}
    others = ["without", "perf fp 100 Hz", "perf dwarf 100 Hz",
              "eu-stack loop", "gdb loop"]
    for name in others:
        table.add("requests, auto 100 Hz", rate["auto 100 Hz"], "%", name,
                  rate[name], more=True)
    for name in ("all 100 Hz", "never 100 Hz", "auto 1000 Hz"):
        table.add(f"requests, {name}", rate[name], "%", "without",
                  rate["without"], more=True)
    for name in others:
        table.add("p99 latency, auto 100 Hz", p99["auto 100 Hz"], "%", name,
                  p99[name])
    for name in ("all 100 Hz", "never 100 Hz", "auto 1000 Hz"):
        table.add(f"p99 latency, {name}", p99[name], "%", "without",
                  p99["without"])
