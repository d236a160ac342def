# SPDX-License-Identifier: Apache-2.0
"""A file system whose server stops answering once a program of it runs.

dead_server.py DIRECTORY PROGRAM COMMAND... mounts it there, in a mount namespace
of its own, with PROGRAM as the file "x", and runs COMMAND.  From SIGUSR1 on it
takes requests and answers none; with SIGTERM it ends, and what waited for it.
See fuse(4) and include/uapi/linux/fuse.h.
"""
import errno
import os
import signal
import struct
import subprocess
import sys
import threading

from silent_files import (BATCH_FORGET, FILE, FLUSH, FORGET, GETATTR, INIT,
                          LOOKUP, OPEN, READ, RELEASE, ROOT, mount)

INTERRUPT, OPENDIR, STATFS, RELEASEDIR = 36, 27, 17, 29
LONG = 3600


class Server:
    def __init__(self, directory, program):
        with open(program, "rb") as f:
            self.bytes = f.read()
        self.fd = mount(directory)
        self.is_dead = False

    def attr(self, node):
        """struct fuse_attr."""
        mode = 0o40755 if node == ROOT else 0o100755
        size = 4096 if node == ROOT else len(self.bytes)
        return struct.pack("<6Q10I", node, size, size // 512 + 1, 0, 0, 0, 0,
                           0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, op, node, body):
        if op == INIT:
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 0, 0, 65536,
                               1, 1, 0, 0, *[0] * 7)
        if op == GETATTR:
            return struct.pack("<QII", LONG, 0, 0) + self.attr(node)
        if op == LOOKUP and body == b"x\0":
            return (struct.pack("<4Q2I", FILE, 0, LONG, LONG, 0, 0) +
                    self.attr(FILE))
        if op in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if op == READ:
            _, at, size = struct.unpack_from("<QQI", body)
            return self.bytes[at:at + size]
        if op == STATFS:
            return struct.pack("<5Q4I6I", *[0] * 15)
        if op in (FLUSH, RELEASE, RELEASEDIR):
            return b""
        return -(errno.ENOENT if op == LOOKUP else errno.ENOSYS)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 17)
            except OSError:
                return
            _, op, unique, node = struct.unpack_from("<IIQQ", request)
            if self.is_dead or op in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            body = self.answer(op, node, request[40:])
            error = body if isinstance(body, int) else 0
            body = b"" if error else body
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error,
                                          unique) + body)


def main():
    server = Server(sys.argv[1], sys.argv[2])

    def die(*_):
        server.is_dead = True
        os.write(1, b"DEAD\n")
    signal.signal(signal.SIGUSR1, die)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    threading.Thread(target=server.serve, daemon=True).start()
    print("MOUNTED", flush=True)
    subprocess.run(sys.argv[3:], check=False, close_fds=False,
                   preexec_fn=lambda: os.close(server.fd))
    # SIGUSR1 ends a pause, and the server stays, silent.
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
