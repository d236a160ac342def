# SPDX-License-Identifier: Apache-2.0
"""Splices from a pipe by io_uring, which a worker of the kernel's carries out.

ring_splices.py PAUSE: begin one splice after the other until SIGTERM, each of a byte that
comes after PAUSE seconds; then print how many ended with which result.
"""
import collections
import ctypes
import mmap
import os
import signal
import struct
import sys
import threading
import time

SYS_SETUP, SYS_ENTER = 425, 426
OP_SPLICE, GETEVENTS, SINGLE_MMAP = 30, 1, 1
ENTRIES_AT = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)
params = bytearray(120)
ring = libc.syscall(SYS_SETUP, 8, (ctypes.c_char * 120).from_buffer(params))
if ring < 0 or not struct.unpack_from("I", params, 20)[0] & SINGLE_MMAP:
    sys.exit("no io_uring")
nsq, ncq = struct.unpack_from("2I", params, 0)
sq = struct.unpack_from("10I", params, 40)
cq = struct.unpack_from("10I", params, 80)
queues = mmap.mmap(ring, max(sq[6] + 4 * nsq, cq[5] + 16 * ncq))
entries = mmap.mmap(ring, 64 * nsq, offset=ENTRIES_AT)
readable, writable = os.pipe()
null = os.open("/dev/null", os.O_WRONLY)
ended = False


def end(*_):
    global ended
    ended = True


def feed():
    while True:
        time.sleep(float(sys.argv[1]))
        os.write(writable, b"x")


def word(offset):
    return struct.unpack_from("I", queues, offset)[0]


def submit():
    tail = word(sq[1])
    i = tail & word(sq[2])
    entries[64 * i:64 * i + 64] = struct.pack(
        "<BBHiQQIIQHHi16x", OP_SPLICE, 0, 0, null, 2**64 - 1, 2**64 - 1, 1, 0, 1, 0,
        0, readable)
    struct.pack_into("I", queues, sq[6] + 4 * i, i)
    struct.pack_into("I", queues, sq[1], tail + 1)
    libc.syscall(SYS_ENTER, ring, 1, 1, GETEVENTS, None, 0)


def results():
    while word(cq[0]) != word(cq[1]):
        head = word(cq[0])
        at = cq[5] + 16 * (head & word(cq[2]))
        yield struct.unpack_from("<Qi", queues, at)[1]
        struct.pack_into("I", queues, cq[0], head + 1)


signal.signal(signal.SIGTERM, end)
threading.Thread(target=feed, daemon=True).start()
print("ready", flush=True)
counts = collections.Counter()
while not ended:
    submit()
    counts.update(results())
print(dict(counts), flush=True)
os._exit(0)
