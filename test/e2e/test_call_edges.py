"""Callers are callers, in programs that nobody here wrote: see call_edges.py."""
import shutil
import subprocess
import time

import pytest

from call_edges import Edges

PROGRAMS = {
    "bash": ["bash", "-c", "f() { local x=${1//a/b}; echo ${x^^} >/dev/null; };"
             " while :; do f aabbaac; [[ abc =~ ^a ]]; done"],
    "python3": ["python3", "-c", "import json, re\nwhile True: json.loads("
                "json.dumps([{'a': str(i)} for i in range(50)])); "
                "re.sub('a+', 'b', 'xaay' * 99)"],
    "perl": ["perl", "-e", "while (1) { my %h; $h{$_ % 7} .= $_ for 1..999; "
             "my $s = join ',', sort keys %h; $s =~ s/1+/2/g }"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_callers_are_callers(profile, name):
    if not shutil.which(PROGRAMS[name][0]):
        pytest.skip(f"no {name} here")
    proc = subprocess.Popen(PROGRAMS[name], stdout=subprocess.DEVNULL)
    try:
        # It runs its own code once it has used some time.
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with open(f"/proc/{proc.pid}/schedstat") as f:
                if int(f.read().split()[0]) > 100e6:
                    break
            time.sleep(0.02)
        edges = Edges()
        for options in (["--profile", "wall"], ["--profile", "wall,cpu"],
                        ["--profile", "cpu", "--stop", "never"]):
            _, p = profile(proc.pid, "-d", 2, "-r", 500, *options)
            edges.add(p)
    finally:
        proc.kill()
        proc.wait()
    assert edges.edges > 300
    assert not edges.wrong, edges.wrong


def test_the_oracle_knows_wrong_callers(start, profile):
    """Or nothing would be found out: the same stacks the other way round."""
    target = start("stack-gcc-O2", "spin")
    _, p = profile(target.pid, "-d", 1, "-r", 200)
    edges = Edges()
    edges.add(p)
    assert edges.direct > 5 and not edges.wrong, edges.wrong
    for sample in p.sample:
        sample.location_id.reverse()
    edges = Edges()
    edges.add(p)
    assert len(edges.wrong) > 5
