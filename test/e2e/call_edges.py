# SPDX-License-Identifier: Apache-2.0
"""Are the callers in a profile's stacks callers, by the bytes of the files?

A return address must be behind a call; and a direct call must lead to the
function that the frame above is in: go there itself, or through functions that
jump on, which may be by pointer, to anywhere.  Functions begin where the table
of .eh_frame_hdr says.  What cannot be told (code that is in no file) is left
out, and bytes that look like a jump are taken for one: what is called wrong here
is wrong.  Those of Go, which have no such table, begin where Go's own table says.
"""
import bisect
import re
import struct
import subprocess

PT_LOAD, PT_GNU_EH_FRAME = 1, 0x6474E550
# mov $15, %rax; syscall: what a signal handler returns to.
SIGRETURN = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
# Functions that jump on, one after the other.
JUMPS = 4


class File:
    def __init__(self, path):
        self.path, self.by_pointer = path, {}
        with open(path, "rb") as f:
            self.data = f.read()
        phoff, = struct.unpack_from("<Q", self.data, 32)
        phentsize, phnum = struct.unpack_from("<HH", self.data, 54)
        self.loads, hdr = [], None
        for n in range(phnum):
            kind, _, off, svma, _, size = struct.unpack_from(
                "<IIQQQQ", self.data, phoff + n * phentsize)
            if kind == PT_LOAD:
                self.loads.append((svma, off, size))
            elif kind == PT_GNU_EH_FRAME:
                hdr = svma, off
        self.functions = sorted((self._functions(*hdr) if hdr else []) +
                                self._go())
        self.starts = [start for start, _ in self.functions]

    def _functions(self, svma, off):
        version, _, count_enc, table_enc = self.data[off:off + 4]
        # LSB 5.0, 10.6: a count of 4 bytes, pairs of 4 from the header on; an
        # FDE, whose code's length is in 4 bytes, as all linkers' tables want.
        if (version, count_enc, table_enc) != (1, 0x03, 0x3B):
            return []
        count, = struct.unpack_from("<I", self.data, off + 8)
        words = struct.unpack_from(f"<{2 * count}i", self.data, off + 12)
        sizes = [struct.unpack("<I", self.code(svma + fde + 12, 4))[0]
                 for fde in words[1::2]]
        return [(svma + start, svma + start + size)
                for start, size in zip(words[::2], sizes)]

    def _sections(self):
        """{name: (svma, offset, size)}."""
        off, = struct.unpack_from("<Q", self.data, 40)
        size, n, strings = struct.unpack_from("<HHH", self.data, 58)
        rows = [struct.unpack_from("<IIQQQQ", self.data, off + i * size)
                for i in range(n)]
        if strings >= n:
            return {}
        at = rows[strings][4]
        return {self.data[at + row[0]:self.data.index(b"\0", at + row[0])]:
                row[3:] for row in rows}

    def _go(self):
        """By .gopclntab of Go 1.18 and later (debug/gosym/pclntab.go): NFUNC pairs of
        a function's offset in the text and one that is not read, and the end."""
        sections = self._sections()
        if b".gopclntab" not in sections:
            return []
        off = sections[b".gopclntab"][1]
        magic, = struct.unpack_from("<I", self.data, off)
        count, _, text = struct.unpack_from("<QQQ", self.data, off + 8)
        table, = struct.unpack_from("<Q", self.data, off + 64)
        if magic not in (0xFFFFFFF0, 0xFFFFFFF1):
            return []
        # Since Go 1.26 it is not told.
        text = text or sections[b".text"][0]
        starts = [text + s for s in struct.unpack_from(
            f"<{2 * count + 1}I", self.data, off + table)[::2]]
        return list(zip(starts, starts[1:]))

    def svma_of(self, off):
        """As mmap shows it; the last segment that has it."""
        for svma, start, size in reversed(self.loads):
            if start - start % 4096 <= off < start + size:
                return off - start + svma
        return None

    def code(self, svma, size):
        for start, off, length in self.loads:
            if start <= svma and svma + size <= start + length:
                return self.data[off + svma - start:off + svma - start + size]
        return b""

    def function(self, svma):
        """(start, end) of the one around it, or None."""
        i = bisect.bisect_right(self.starts, svma)
        return (self.functions[i - 1]
                if i and svma < self.functions[i - 1][1] else None)

    def jumps(self, function):
        """(by pointer, to these addresses), or what looks like it."""
        start, end = function
        code = self.code(start, min(end - start, 65536))
        targets = set()
        for at in range(len(code) - 4):
            # jmp rel32; jcc rel32 (0f 8x).
            if code[at] == 0xE9 or (code[at] & 0xF0 == 0x80 and at and
                                    code[at - 1] == 0x0F):
                disp, = struct.unpack_from("<i", code, at + 1)
                targets.add(start + at + 5 + disp)
        by_pointer = False
        for at in range(len(code) - 1):
            # jmp rel8; jmp by register or memory (ff /4).
            if code[at] == 0xEB or code[at] & 0xF0 == 0x70:
                disp, = struct.unpack_from("<b", code, at + 1)
                targets.add(start + at + 2 + disp)
            by_pointer |= (code[at] == 0xFF and code[at + 1] >> 3 & 7 == 4)
        return by_pointer and self._jumps_by_pointer(function), targets

    def _jumps_by_pointer(self, function):
        """Other instructions have such bytes, too."""
        if function not in self.by_pointer:
            done = subprocess.run(
                ["objdump", "-d", f"--start-address={function[0]}",
                 f"--stop-address={function[1]}", self.path],
                capture_output=True, text=True, check=False)
            self.by_pointer[function] = (
                done.returncode != 0 or
                re.search(r"\tjmp +\*", done.stdout.replace("notrack ", "")
                          .replace("bnd ", "")) is not None)
        return self.by_pointer[function]

    def leads(self, svma, want):
        """May a call of SVMA come to the function that starts at WANT?  None:
        it may come anywhere."""
        if not self.function(svma):
            return None
        seen, now = {None}, {svma}
        for _ in range(JUMPS):
            # What looks like a jump to no function is none.
            found = {self.function(s) for s in now} - seen
            if any(f[0] == want for f in found):
                return True
            if not found:
                return False
            seen |= found
            now = set()
            for function in found:
                by_pointer, targets = self.jumps(function)
                if by_pointer:
                    return None
                now |= targets
        return None


class Mapping:
    def __init__(self, filename, memory_start, file_offset):
        self.filename, self.memory_start = filename, memory_start
        self.file_offset = file_offset


class Code:
    """The code that process PID has mapped."""

    def __init__(self, pid):
        self.edges, self.maps = Edges(), []
        with open(f"/proc/{pid}/maps") as f:
            for line in f:
                where, rights, off, _, _, *path = line.split(None, 5)
                if "x" in rights:
                    start, end = (int(a, 16) for a in where.split("-"))
                    self.maps.append((start, end, Mapping(
                        path[0].strip() if path else "", start, int(off, 16))))

    def _mapping(self, address):
        return next((m for start, end, m in self.maps
                     if start <= address < end), None)

    def without_jumps(self, row):
        """ROW without addresses behind a jump, as gdb shows functions that ended in
        one."""
        return [a for a in row if not self._is_behind_jump(a)]

    def _is_behind_jump(self, address):
        mapping = self._mapping(address - 1)
        place = mapping and self.edges.place(mapping, address - 1)
        before = place[0].code(place[1] - 4, 5) if place else b""
        return len(before) == 5 and (before[0] == 0xE9 or before[3] == 0xEB)

    def refutes(self, row):
        """Why ROW, a pc and return addresses, is no stack; None where nothing tells.
        """
        row = row[:1] + [a - 1 for a in row[1:]]
        for i, address in enumerate(row):
            if not self._mapping(address):
                return f"{address:#x} is no code"
            if not i:
                continue
            caller, callee = (self.edges.place(self._mapping(a), a)
                              for a in (address, row[i - 1]))
            # Whom a signal came upon has called nobody.
            if (caller and callee and
                    SIGRETURN not in callee[0].code(callee[1], 10) and
                    (why := self.edges.is_wrong(caller, callee)) and
                    # What a thread was made to return to is behind no call.
                    (why != "no call" or address != row[-1])):
                return f"{address:#x}: {why}"
        return None


class Edges:
    """Of all profiles that were added: how many there were, and the wrong ones.
    """

    def __init__(self):
        self.files, self.known = {}, {}
        self.edges, self.direct, self.wrong = 0, 0, {}

    def place(self, mapping, address):
        """(file, svma); None where it is in no file."""
        path = mapping.filename
        if path not in self.files:
            try:
                self.files[path] = File(path)
            except (OSError, struct.error):
                self.files[path] = None
        file = self.files[path]
        svma = file and file.svma_of(
            address - mapping.memory_start + mapping.file_offset)
        return (file, svma) if svma is not None else None

    def is_wrong(self, caller, callee):
        """None if right or not to be told, else what is wrong."""
        file, last = caller
        before = file.code(last - 6, 7)
        # A handler returns to a trampoline that has not called it.
        if len(before) < 7 or SIGRETURN in file.code(last, len(SIGRETURN) + 1):
            return None
        if before[2] == 0xE8:
            self.direct += 1
            disp, = struct.unpack_from("<i", before, 3)
            target = last + 1 + disp
            function = callee and callee[0].function(callee[1])
            if not function:
                return None
            # Another file's is called through the GOT.
            want = function[0] if callee[0] is file else None
            if file.leads(target, want) is False:
                return f"calls {target:#x}"
            return None
        # ff /2, of 2 to 7 bytes.
        for at in range(len(before) - 1):
            if before[at] == 0xFF and before[at + 1] >> 3 & 7 == 2:
                return None
        # Of 7 bytes, the first of which is a prefix of REX and not read.
        return "no call"

    def add(self, p):
        """P: a decoded pprof profile with names."""
        strings = p.string_table
        functions = {f.id: strings[f.name] for f in p.function}
        mappings = {}
        for m in p.mapping:
            m_filename = strings[m.filename]
            mappings[m.id] = Mapping(m_filename, m.memory_start,
                                     m.file_offset)
        places = {}
        for l in p.location:
            m = mappings.get(l.mapping_id)
            place = m and l.address and self.place(m, l.address)
            name = functions[l.line[0].function_id] if l.line else ""
            places[l.id] = place or None, name
        for sample in p.sample:
            for i in range(1, len(sample.location_id)):
                self._add_edge(places[sample.location_id[i]],
                               places[sample.location_id[i - 1]])

    def _add_edge(self, caller, callee):
        place, name = caller
        if not place or not callee[0]:
            return
        # Whom a signal came upon has called nobody; Go's handler only lets it
        # look so (runtime/signal_unix.go, doSigPreempt).
        file, svma = callee[0]
        if (callee[1] == "runtime.asyncPreempt" or
                SIGRETURN in file.code(svma, len(SIGRETURN) + 1)):
            return
        self.edges += 1
        key = id(place[0]), place[1], id(callee[0][0]), callee[0][1]
        if key not in self.known:
            self.known[key] = self.is_wrong(place, callee[0])
        if self.known[key]:
            edge = f"{callee[1]} from {name} {place[1]:#x}: {self.known[key]}"
            self.wrong[edge] = self.wrong.get(edge, 0) + 1
