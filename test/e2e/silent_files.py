# SPDX-License-Identifier: Apache-2.0
"""A file system whose server never answers, and a process that reads from it.

silent_files.py DIRECTORY [sendfile] mounts it there, in a mount namespace of its own,
and prints "READING PID" when PID waits for it in read(2), or in a sendfile(2) to a
socket that a child of PID reads.  Of the file "x" it gives
a name and a handle (fuse(4), include/uapi/linux/fuse.h), and no answer to
GETATTR or READ, as a server that has died does.
"""
import ctypes
import os
import socket
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, FLUSH, RELEASE, INIT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 25, 18, 26, 42)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
ROOT, FILE = 1, 2

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(libc, name)(*args):
        raise OSError(ctypes.get_errno(), name)


def mount(directory):
    fd = os.open("/dev/fuse", os.O_RDWR)
    call("unshare", CLONE_NEWNS)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    call("mount", b"silent", directory.encode(), b"fuse", 0,
         f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode())
    return fd


def read_file(directory, server_fd):
    if os.fork() == 0:
        # When the server ends, so does the file system.
        os.close(server_fd)
        fd = os.open(os.path.join(directory, "x"), os.O_RDONLY)
        if sys.argv[2:] == ["sendfile"]:
            send_file(fd)
        os.read(fd, 100)
        os._exit(1)


def send_file(fd):
    own, other = socket.socketpair()
    if os.fork() == 0:
        own.close()
        os.close(fd)
        other.recv(1)
        os._exit(0)
    other.close()
    os.sendfile(own.fileno(), fd, 0, 100)


def attr(node, mode):
    """struct fuse_attr."""
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0,
                       0, 0, 4096, 0)


def answer(op, node):
    """None: there is none.  What is known is not to be kept: validity 0."""
    if op == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 0, 0, 65536, 1,
                           1, 0, 0, *[0] * 7)
    if op == GETATTR and node == ROOT:
        return struct.pack("<QII", 0, 0, 0) + attr(ROOT, 0o40755)
    if op == LOOKUP:
        return struct.pack("<4Q2I", FILE, 0, 0, 0, 0, 0) + attr(FILE, 0o100644)
    if op == OPEN:
        return struct.pack("<QII", 0, 0, 0)
    return b"" if op in (FLUSH, RELEASE) else None


def main():
    fd = mount(sys.argv[1])
    read_file(sys.argv[1], fd)
    while True:
        request = os.read(fd, 1 << 17)
        _, op, unique, node, _, _, pid = struct.unpack_from("<IIQQIII",
                                                            request)
        body = answer(op, node)
        if body is not None:
            os.write(fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
        if op == READ:
            print("READING", pid, flush=True)


if __name__ == "__main__":
    main()
