# SPDX-License-Identifier: Apache-2.0
"""What wallprof's own figures are to come down to, by group and row."""

GOALS = {
    ("frames", "cold: files opened, first stack"): 300,
    ("waiting", "10000 threads: CPU, steady"): 12,
    # A hundred looks at each of them a second, of 4 us.
    ("waiting", "100 threads that nap: CPU, steady"): 4,
    ("dump", "10 threads: CPU"): 25,
    ("dump", "100 threads: CPU"): 35,
    ("dump", "1000 threads: CPU"): 100,
    ("dump", "10 threads: the second dump"): 15,
    ("dump", "100 threads: the second dump"): 15,
    ("dump", "1000 threads: the second dump"): 15,
    ("big", "rustc: start to first stop"): 10,
    ("big", "rustc: start to first stop, once more"): 10,
    ("sizes", "1,000,000 stacks, pb.gz: write"): 1000,
    ("sizes", "1,000,000 stacks, pb.gz: memory"): 300,
}
