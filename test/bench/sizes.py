"""What is written, and how long that takes."""
from programs import WORK, fixture, record, spend

TEXT = "output of a recording of 1 s at 100 Hz"
ROUNDS = 3
SECONDS = 1


def perf(pid):
    """Size of perf's data and of its text, and the time of the text."""
    data, text = WORK / "perf.data", WORK / "perf.txt"
    took = spend("perf", "record", "-q", "-F", 100, "--call-graph", "dwarf",
                 "-p", pid, "-o", data, "--", "sleep", SECONDS)
    script = spend("sh", "-c", f"perf script -i {data} >{text}")
    return {"data": (data.stat().st_size / 1024,
                     1e3 * (took["wall_s"] - SECONDS)),
            "text": (text.stat().st_size / 1024, 1e3 * script["wall_s"])}


def run(table):
    for name, args in (("shares", []), ("waiters", [1000])):
        with fixture(name, *args) as program:
            theirs = [perf(program.pid) for _ in range(ROUNDS)]
            for ending, other in (("pb.gz", "data"), ("folded", "text"),
                                  ("txt", "text")):
                path = f"x.{ending}"
                took = []
                for _ in range(ROUNDS):
                    t = record(program.pid, "-d", SECONDS, output=path)
                    took.append(((WORK / path).stat().st_size / 1024,
                                 1e3 * (t["wall_s"] - SECONDS)))
                label = {"data": "perf.data", "text": "perf script"}[other]
                table.add(f"{name}, {ending}: size", [t[0] for t in took],
                          "KiB", label, [t[other][0] for t in theirs])
                table.add(f"{name}, {ending}: start, names, write",
                          [t[1] for t in took], "ms", label,
                          [t[other][1] for t in theirs])
    table.note("perf sees only what runs: 3 busy threads of shares, none of "
               "the waiters")
