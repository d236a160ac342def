#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Make the inputs of test/data/fuzz that fuzzing begins with.

seeds.py DIRECTORY: writes DIRECTORY/FUZZER/seed-NAME.  Needs gcc, binutils and
xz.  Texts are as the kernel writes them, of no machine in particular; ELF files
are small and come from the sources below.
"""
import os
import struct
import subprocess
import sys
import tempfile

C_SOURCE = """
struct s { int a; char b[24]; };
extern int sink(struct s *);
__attribute__((noinline)) int sink(struct s *p) { return p->a + p->b[3]; }
static inline int deep(int n) { struct s v = { n, { 1 } }; return sink(&v); }
static inline int mid(int n) { return deep(n + 1) * deep(n); }
int outer(int n);
int outer(int n) { for (int i = 0; i < n; i++) n += mid(i); return n; }
int varied(int n);
int varied(int n) { struct s v[n]; v[0].a = n; return sink(v) + outer(n); }
"""

CXX_SOURCE = """
namespace far { template <class T, int N> struct Box {
	T v[N]; __attribute__((noinline)) T sum(T x) const;
}; }
template <class T, int N> T far::Box<T, N>::sum(T x) const {
	T s = x; for (T y : v) s += y; return s; }
int total(const far::Box<int, 3> &b) { return b.sum(1) + b.sum(2); }
"""

# Functions whose stack can be made by hand: a plain one, one that keeps rbp,
# CFA and a register by expressions, a signal trampoline by its augmentation.
ASM_SOURCE = """
	.text
plain:	.cfi_startproc
	sub $24, %rsp
	.cfi_adjust_cfa_offset 24
	call framed
	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
framed:	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register 6
	push %rbx
	.cfi_offset 3, -24
	call byexpr
	pop %rbx
	pop %rbp
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
byexpr:	.cfi_startproc
	sub $8, %rsp
	.cfi_escape 0x0f, 3, 0x77, 16, 0x96
	.cfi_escape 0x10, 3, 2, 0x77, 0
	.cfi_escape 0x16, 12, 4, 0x77, 8, 0x06, 0x20
	call plain
	add $8, %rsp
	ret
	.cfi_endproc
tramp:	.cfi_startproc
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06
	.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
	mov $15, %rax
	syscall
	.cfi_endproc
	call plain
nocfi:	mov $15, %rax
	syscall
	push %rbp
	mov %rsp, %rbp
	call plain
	nop
	pop %rbp
	ret
"""

TEXTS = {
    'proctext': {
        'stat': '4242 (a) R (b) S 1 4242 4242 0 -1 4194560 907 0 3 0 12 7 0 0 '
                '20 0 4 0 38166 8220672 1024 18446744073709551615 1 1 0 0 0 0 '
                '0 16781312 17642 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n',
        'stat-least': '1 (a) R 1 1 1 0 -9223372036854775808 0 0 0 0 0 0 0 0 '
                      '20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 ',
        'schedstat': '123456789 4567 89\n',
        'syscall': '202 0x7f2a10ff99d0 0x109 0x0 0x0 0x0 0xffffffff '
                   '0x7ffd5c1cb7a0 0x7f2a11083d06\n',
        'syscall-running': 'running\n',
        'syscall-fault': '-1 0x7ffd5c1cb7a0 0x7f2a11083d06\n',
        'status': 'Name:\tworker\nUmask:\t0022\nState:\tS (sleeping)\n'
                  'Tgid:\t4242\nPid:\t4243\nPPid:\t1\nTracerPid:\t17\n'
                  'NSpid:\t4243\t7\n'
                  'SigCgt:\t00000001800004ec\nSeccomp:\t2\n'
                  'voluntary_ctxt_switches:\t150\n',
        'sched': 'worker (4243, #threads: 4)\n'
                 '---------------------------------------------------------\n'
                 'se.exec_start                                :      '
                 '8766490.882386\n'
                 'se.vruntime                                  :        '
                 '12345.678901\n'
                 'nr_switches                                  :             '
                 '     150\n',
        'children': '12 345 4243 ',
        'fdinfo': 'pos:\t0\nflags:\t0100001\nmnt_id:\t14\nino:\t131\n',
        'timers': 'ID: 1\nsignal: 10/0000000000000001\nnotify: none/pid.4242\n'
                  'ClockID: 1\nID: 0\nsignal: 34/000055aeb4ac02c0\n'
                  'notify: signal/tid.4243\nClockID: 0\n',
    },
    'maps': {
        'maps':
            '5581a0000000-5581a0002000 r--p 00000000 fd:01 131'
            '                        /usr/bin/cat\n'
            '5581a0002000-5581a0007000 r-xp 00002000 fd:01 131'
            '                        /usr/bin/cat\n'
            '5581a1000000-5581a1021000 rw-p 00000000 00:00 0'
            '                          [heap]\n'
            '7f0000000000-7f0000026000 r-xp 00026000 fd:01 77 /a b\\012c\n'
            '7f0000026000-7f0000027000 r--s 00000000 00:05 9'
            '                          /memfd:x (deleted)\n'
            '7f0000027000-7f0000028000 rw-p 00000000 00:00 0 \n'
            '7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0'
            '                          [stack]\n'
            '7ffd000fe000-7ffd00100000 r-xp 00000000 00:00 0'
            '                          [vdso]\n'
            'ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0'
            '                  [vsyscall]\n',
    },
    'filelocks': {
        'locks':
            '1: POSIX  ADVISORY  WRITE 100 fd:01:131 0 EOF\n'
            '1: -> POSIX  ADVISORY  WRITE 200 fd:01:131 0 EOF\n'
            '1:     -> POSIX  ADVISORY  READ  300 fd:01:131 0 10\n'
            '2: FLOCK  ADVISORY  READ  101 00:1a:131 0 EOF\n'
            '2:  -> FLOCK  ADVISORY  WRITE 200 00:1a:131 0 EOF\n'
            '3: OFDLCK ADVISORY  WRITE -1 103:02:77 0 EOF\n'
            '3:  -> OFDLCK ADVISORY  WRITE -1 103:02:77 0 EOF\n'
            '4: LEASE  ACTIVE    WRITE 102 fd:01:9 0 EOF\n',
        'least':
            '1: POSIX  ADVISORY  WRITE -2147483648 fd:01:131 0 EOF\n',
        'fdinfo':
            'pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t131\n'
            'lock:\t1: FLOCK  ADVISORY  READ 101 fd:01:131 0 EOF\n'
            'lock:\t2: OFDLCK ADVISORY  WRITE -1 fd:01:131 10 29\n'
            'lock:\t3: POSIX  ADVISORY  WRITE 101 fd:01:131 50 EOF\n',
    },
    'net': {
        'tcp':
            'tcp\n  sl  local_address rem_address   st tx_queue rx_queue tr '
            'tm->when retrnsmt   uid  timeout inode\n'
            '   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 '
            '00:00000000 00000000     0        0 31337 1 0000000000000000 100 '
            '0 0 10 0\n'
            '   1: 0100007F:9C40 0100007F:18EB 01 00000000:00000000 '
            '00:00000000 00000000  1000        0 31338 1 0000000000000000 20 '
            '4 30 10 -1\n',
        'tcp6':
            'tcp6\n  sl  local_address  remote_address  st\n'
            '   0: 00000000000000000000000001000000:1F90 '
            '0000000000000000FFFF00000100007F:9C42 01 00000000:00000000 '
            '00:00000000 00000000     0        0 5150 1\n',
        'udp':
            'udp\n   sl  local_address rem_address   st\n'
            '  340: 00000000:0044 00000000:0000 07 00000000:00000000 '
            '00:00000000 00000000     0        0 777 2 0000000000000000 0\n',
        'unix':
            'unix\nNum       RefCount Protocol Flags    Type St Inode Path\n'
            '0000000000000000: 00000002 00000000 00010000 0001 01 4711 '
            '/run/x.sock\n'
            '0000000000000000: 00000003 00000000 00000000 0001 03 4712\n'
            '0000000000000000: 00000003 00000000 00000000 0002 01 4713 @abc\n',
        'netlink':
            'netlink\nsk               Eth Pid        Groups   Rmem     Wmem'
            '     Dump  Locks    Drops    Inode\n'
            '0000000000000000 0   4242       00000111 0        0        0     '
            '2        0        999\n',
        'packet':
            'packet\nsk               RefCnt Type Proto  Iface R Rmem   User '
            '  Inode\n'
            '0000000000000000 3      3    0003   2     1 0      0      1234\n',
        'link-pipe': 'pipe:[123]',
        'link-anon': 'anon_inode:[eventpoll]',
        'link-path': '/dev/pts/3',
    },
    'serve': {
        'wall':
            '/debug/pprof/wall\nlocalhost:6060\nBearer 0123456789abcdef\n'
            '0\n300\n60\n4711\nredis-server',
    },
    'perfmap': {
        'map':
            '7f0000001000 40 LazyCompile:~foo /src/a.js:1\n'
            '7f0000001040 80 LazyCompile:*bar /src/a.js:20\r\n'
            '7f0000001000 20 Builtin:again\n'
            '0x7f0000002000 0x10 py::<module>:/src/x.py\n'
            'bad line\n'
            '7f0000001010 1000 around everything\n'
            '7f0000003000 0 empty\n'
            'ffffffffffffff00 ff top\n'
            '7f00000040',
    },
    'demangle': {
        'cxx': '_ZNK3far3BoxIiLi3EE3sumEi',
        'cxx-clone': '_ZN4core9runPieceERKSt6vectorIiSaIiEE.isra.0.cold',
        'cxx-lambda': '_ZZN3foo3barEvENKUlT_DpOT0_E_clIiJRKSsEEEDaS0_S2_',
        'cxx-subst': '_Z1fSt4pairISt3mapIiSsSt4lessIiESaIS_IKiSsEEES6_E',
        'cxx-pack': '_Z1fIJidcEEvDpT_DTcl1gspfp_EE',
        'rust-legacy':
            '_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE',
        'rust-v0': '_RNvMs_NtCs8nP1jXzqE_4core5sliceSh4iter',
        'rust-v0-generic': '_RINvNtC3std3mem8align_ofNtNtC3std3mem12'
                           'DiscriminantjKj1_pE',
        'rust-no-crate': '_RNvC03foo',
        'plt': 'puts@plt',
        'plain': 'main',
        'mangled-plt': '_ZN3far4callEv@plt',
    },
}


def netlink(attrs, kind=20, family=1, ino=7):
    body = struct.pack('<BBBBIII', family, 1, 1, 0, ino, 11, 22)
    for number, data in attrs:
        pad = b'\0' * (-len(data) % 4)
        body += struct.pack('<HH', 4 + len(data), number) + data + pad
    return struct.pack('<IHHII', 16 + len(body), kind, 0, 1, 0) + body


def unixdiag():
    u32 = struct.Struct('<I').pack
    return {
        'peer': netlink([(6, b'\0'), (2, u32(9))]),
        'no-peer': netlink([(0, b'/run/x\0'), (6, b'\0')]),
        'error': struct.pack('<IHHIIi', 36, 2, 0, 1, 0, -2) + b'\0' * 16,
    }


def pprof():
    """A profile of ours with a timeline, and one as Go's heap profiles are."""
    def uleb(n):
        out = b''
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    def put(number, value):
        if isinstance(value, int):
            return uleb(number << 3) + uleb(value)
        return uleb(number << 3 | 2) + uleb(len(value)) + value

    def message(number, *fields):
        return put(number, b''.join(put(n, v) for n, v in fields))

    def strings(*words):
        return b''.join(put(6, w) for w in (b'', *words))

    tables = (message(3, (1, 1), (2, 4096), (3, 8192), (5, 3)) +
              message(4, (1, 1), (2, 1), (3, 5000), (4, put(1, 1) + put(2, 9)),
                      (4, put(1, 2))) +
              message(4, (1, 2), (4, put(1, 2))) +
              message(5, (1, 1), (2, 4), (4, 3)) + message(5, (1, 2), (2, 5)))
    label = put(1, 6) + put(2, 7)
    tid = put(1, 8) + put(3, 42)
    wait = put(1, 9) + put(2, 10)
    why = put(1, 11) + put(2, 12)
    return {
        'ours': message(1, (1, 13), (2, 14)) + message(1, (1, 1), (2, 2)) +
        message(2, (1, uleb(1) + uleb(2)), (2, uleb(3) + uleb(70)), (3, label),
                (3, tid)) +
        message(2, (1, 2), (2, uleb(1) + uleb(30)), (3, label), (3, tid),
                (3, wait), (3, why)) +
        put(9, 1700000000 << 30) + put(10, 100) + put(13, 15) + tables +
        put(1001, bytes([1, 5, 3, 1, 70, 0, 0, 9, 0, 2, 30, 1])) +
        strings(b'wall', b'nanoseconds', b'/exe', b'main', b'[no stack]',
                b'thread', b'w-1', b'tid', b'state', b'waiting', b'wait',
                b'syscall:poll', b'samples', b'count',
                b'ticks: 9, 1.0 Hz asked, 2.0 Hz achieved'),
        'heap': message(1, (1, 6), (2, 7)) + message(1, (1, 1), (2, 2)) +
        message(2, (1, 1), (1, 2), (2, 4), (2, 4096),
                (3, put(1, 2) + put(3, 16))) + put(14, 1) + tables +
        strings(b'inuse_space', b'bytes', b'/exe', b'main', b'run', b'x', b'y'),
    }


def namer():
    """What is said of 12 addresses in modules 1, 2 and 7."""
    def message(kind, *parts):
        body = bytes([kind]) + b''.join(parts)
        return struct.pack('<I', len(body)) + body

    def answer(*names):
        return message(1, bytes([len(names)]), *(
            name + b'\0_Z' + name + b'\0a.c\0' + struct.pack('<II', 7, 3)
            for name in names))

    def has(module):
        return message(2, struct.pack('<IB', module, 0x15))

    def want(kind, of_debug, module, nth, ident=b'', name=b''):
        return message(3, struct.pack('<BBIIB', kind, of_debug, module, nth,
                                      len(ident)), ident, name, b'\0')

    def end(how, error=0):
        return message(4, struct.pack('<BI', how, error))

    return {
        'whole': b''.join([
            want(0, 0, 1, 0, ident=bytes(range(20))),
            want(1, 0, 1, 0, name=b'lib.debug'),
            answer(b'f'), answer(b'g', b'f'), has(1),
            want(2, 0, 7, 0, name=b'../x/y.debug'),
            *[answer(b'h')] * 10, has(7), end(0)]),
        'no-memory': answer(b'f') + end(1),
        'no-sandbox': end(2, 1),
        'of-debug': want(0, 1, 2, 3, ident=bytes(20)),
        'too-many': answer(b'f') * 13 + end(0),
        'deep': answer(*[b'f'] * 64),
    }


def futexlocks():
    """Locks of thread 4242 (a live one: a multiple of 3) and how it is
    waited for."""
    live, waiters = 4242, 0x80000000
    links = (0x1000, 0x7f00, 0x1008, 0x7f00)

    def make(words, op, val, name, at=0, flags=0, changes=0):
        head = struct.pack('<HHIBBBB', at, op, val, flags, 0, changes, 0)
        frames = ''.join(f'{f}\0' for f in name.split())
        return (head + frames.encode() + b'\0' +
                struct.pack(f'<{len(words)}I', *words) + bytes(64))

    return {
        'mutex': make((2, 0, live, 1, 0x200), 128, 2,
                      '__lll_lock_wait ___pthread_mutex_lock'),
        'robust': make((waiters | live, 1, live, 1, 0x290, 0) + links, 0,
                       waiters | live, 'pthread_mutex_lock'),
        'changing': make((2, 0, live, 1, 0), 0x189, 2, '', flags=1,
                         changes=1),
        'pi': make((waiters | live, 1, live, 1, 0x220), 134, 0,
                   '__pthread_mutex_lock_full'),
        'rwlock': make((2, 0, 0, 3, 0, 0, live, 0, 0, 0, 0, 0), 128, 3,
                       'pthread_rwlock_rdlock', at=12),
        'join': make((0,) * 4 + (live, 0, 0, 0), 9, live,
                     'pthread_join main', at=16),
        'musl-mutex': make((0, waiters | live, 1, 0, 0, 0, 0, 0, 0, 0), 128,
                           waiters | live, '__timedwait pthread_mutex_lock',
                           at=4),
        'waitv': make((1, 2, 3), 0, 0, '', flags=3),
    }


def perfring():
    """Records as linux/perf_event.h lays them out."""
    kernel, user = -128 & (1 << 64) - 1, -512 & (1 << 64) - 1

    def record(kind, misc, *words):
        body = struct.pack(f'<{len(words)}Q', *words)
        return struct.pack('<IHH', kind, misc, 8 + len(body)) + body

    def pair(lo, hi):
        return hi << 32 | lo

    trailer = (pair(11, 12), 1000, 3, 77)
    base = (77, 0x401000, pair(11, 12), 1000, 3, 10000000)
    chain = (5, kernel, 0xffffffff81000001, 0xffffffff81000002, user,
             0x401000)
    regs = (2,) + tuple(range(0x100, 0x111))
    stack = (64,) + tuple(range(0x5000, 0x5008)) + (40,)
    comm = int.from_bytes(b'worker\0\0', 'little')
    others = (record(3, 1 << 13, pair(11, 12), comm, *trailer) +
              record(7, 0, pair(11, 11), pair(12, 10), 999, *trailer) +
              record(4, 0, pair(11, 11), pair(12, 10), 999, *trailer) +
              record(14, 1 << 13, *trailer) +
              record(15, 3 << 13, pair(20, 21), *trailer) +
              record(2, 0, 77, 5, *trailer) +
              record(5, 0, 1000, 77, 77, *trailer) +
              record(99, 0, 1, 2, *trailer))
    full = record(9, 1, *base, *chain, *regs, *stack)
    return {
        'sample': b'\7\0' + full,
        'wrapped': b'\7\x30' + full + full,
        'bare': b'\0\0' + record(9, 2, *base) * 3,
        'others': b'\0\5' + others,
        'no-regs': b'\7\0' + record(9, 2, *base, 0, 0, 0),
    }


class Compiler:
    """Small shared objects, without a name of the machine in them."""

    def __init__(self, directory):
        self.dir = directory

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, *args):
        subprocess.run(args, check=True, cwd=self.dir)

    def build(self, name, source, *flags, suffix='.c'):
        with open(self.path(name + suffix), 'w') as f:
            f.write(source)
        # Its name is in the file.
        self.run('gcc', '-c', '-fPIC', '-O2', '-fcf-protection=none',
                 '-gno-record-gcc-switches',
                 f'-fdebug-prefix-map={self.dir}=/src', *flags, '-o', 't.o',
                 name + suffix)
        self.run('gcc', '-shared', '-nostdlib', *(f for f in flags if f == '-m32'),
                 '-Wl,-z,norelro',
                 '-Wl,-z,noseparate-code', '-Wl,--hash-style=gnu',
                 '-Wl,--build-id=0x0123456789abcdef0123456789abcdef',
                 '-o', name, 't.o')
        self.run('objcopy', '-R', '.comment', name)
        return self.read(name)

    def read(self, name):
        with open(self.path(name), 'rb') as f:
            return f.read()

    def objcopy(self, name, new, *flags):
        self.run('objcopy', *flags, name, new)
        return self.read(new)

    def section(self, name, section):
        """Offset, address and bytes of a section."""
        out = subprocess.run(['readelf', '-SW', self.path(name)], check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            words = line.replace('[ ', '[').split()
            if len(words) > 5 and words[1] == section:
                addr, off, size = (int(w, 16) for w in words[3:6])
                return off, addr, self.read(name)[off:off + size]
        raise KeyError(section)

    def symbols(self, name):
        out = subprocess.run(['nm', self.path(name)], check=True,
                             capture_output=True, text=True).stdout
        return {w[2]: int(w[0], 16)
                for w in map(str.split, out.splitlines()) if len(w) == 3}


def elf_files(c):
    files = {
        'plain': c.build('plain.so', C_SOURCE),
        'dwarf4': c.build('dwarf4.so', C_SOURCE, '-gdwarf-4'),
        'dwarf5': c.build('dwarf5.so', C_SOURCE, '-gdwarf-5'),
        'cxx': c.build('cxx.so', CXX_SOURCE, '-gdwarf-5', suffix='.cc'),
    }
    files['packed'] = c.objcopy('dwarf5.so', 'packed.so',
                                '--compress-debug-sections=zlib-gabi')
    files['ranges'] = c.objcopy('dwarf5.so', 'ranges.so',
                                '-R', '.debug_aranges')
    files['i386'] = c.build('i386.so', C_SOURCE, '-m32', '-g')
    files['stripped'] = c.objcopy('plain.so', 'stripped.so', '-S')
    c.build('asm.so', ASM_SOURCE, suffix='.s')
    files['asm'] = c.read('asm.so')
    c.build('debugframe.so', C_SOURCE, '-g',
            '-fno-asynchronous-unwind-tables', '-fno-unwind-tables')
    files['debugframe'] = c.objcopy(
        'debugframe.so', 'debugframe-only.so', '-R', '.debug_info', '-R',
        '.debug_line', '-R', '.debug_str', '-R', '.debug_abbrev', '-R',
        '.debug_loclists', '-R', '.debug_aranges', '-R', '.debug_line_str',
        '-R', '.debug_rnglists')
    return files


def debugfile_inputs(c):
    with open(c.path('link'), 'wb') as f:
        f.write(b'x.debug\0' + struct.pack('<I', 0x12345678))
    with open(c.path('alt'), 'wb') as f:
        f.write(b'../d/x.debug\0' + bytes.fromhex('0123456789abcdef' * 2))
    return {
        'link': c.objcopy('stripped.so', 'link.so', '-R', '.eh_frame', '-R',
                          '.note.gnu.build-id', '--add-section',
                          '.gnu_debuglink=link'),
        'alt': c.objcopy('stripped.so', 'alt.so', '-R', '.eh_frame',
                         '--add-section', '.gnu_debugaltlink=alt'),
    }


def cfi_inputs(c):
    _, _, asm = c.section('asm.so', '.eh_frame')
    _, _, plain = c.section('plain.so', '.eh_frame')
    _, _, debug = c.section('debugframe-only.so', '.debug_frame')
    return {'asm': b'\0' + asm, 'rest': b'\2' + plain, 'debug': b'\1' + debug}


def ehframe_inputs(c):
    inputs = {}
    for name in 'asm.so', 'plain.so':
        hdr_off, _, hdr = c.section(name, '.eh_frame_hdr')
        eh_off, _, eh = c.section(name, '.eh_frame')
        data = c.read(name)[hdr_off:eh_off] + eh
        inputs[name[:-3]] = struct.pack('<HHH', len(hdr), eh_off - hdr_off,
                                        0) + data
    _, _, debug = c.section('debugframe-only.so', '.debug_frame')
    _, _, eh = c.section('plain.so', '.eh_frame')
    inputs['debug'] = struct.pack('<HHH', 0, 0, len(eh)) + eh + debug
    return inputs


def cfiexpr_inputs():
    every = b'\xff\xff\xff\xff'
    return {
        'sum': b'\0' + every + b'\x77\x10',
        'deref': b'\0' + every + b'\x76\x78\x06',
        'plt': b'\0' + every + b'\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22',
        'branch': b'\1\x80\0\1\0' + b'\x12\x31\x1c\x12\x28\xfb\xff\x2f\0\0',
        'unknown': b'\0\x80\0\0\0' + b'\x73\0\x23\x90\1\x06',
        'i386': b'\2' + every + b'\x74\4\x78\0\x3f\x1a\x3b\x2a\x32\x24\x22',
        'i386-signs': b'\3' + every + b'\x11\x7f\x0b\xff\xff\x26\x2d\x75\x78\x06\x1f',
        'constants': b'\1' + every + b'\x03\1\2\3\4\5\6\7\x08\x08\xff\x09\xff'
                     b'\x0a\1\2\x0b\1\2\x10\x80\1\x11\x7f\x16\x17\x15\2\x1b'
                     b'\x1d\x94\4\x19\x1f\x20\x14\x13',
    }


def walk_inputs(c):
    """Stacks of asm.so, where plain calls framed calls byexpr calls plain."""
    at = c.symbols('asm.so')
    file = c.read('asm.so')
    module, stack = 0x550000000000, 0x7ffc00000000

    def ret(name, off):
        return module + at[name] + off

    def header(pc, sp=0, fp=0, flags=0, known=0xffffffff, nwords=0):
        return struct.pack('<BBHIHHHH', flags, 0, 8 * nwords, known, pc, sp,
                           fp, 0x40)

    def make(words, **kw):
        data = struct.pack(f'<{len(words)}Q', *words)
        return header(nwords=len(words), **kw) + data + file

    # In plain, past its sub; its caller byexpr, then framed, then plain.
    full = [0, 0, 0, ret('byexpr', 9), 0, ret('framed', 10), 1,
            stack + 0x80, ret('plain', 9), 0, 0, 0, 0, 0, 0]
    signal = [0] * 20 + [stack + 0xb8, ret('byexpr', 9), 0, 0]
    return {
        'rows': make(full, pc=at['plain'] + 4),
        'libunwind': make(full, pc=at['plain'] + 4, flags=1),
        'no-regs': make(full, pc=at['plain'] + 4, known=0),
        'entry': make(full[3:], pc=at['plain']),
        'signal': make(signal + full[3:], pc=at['tramp']),
        'kernel-signal': make(
            [0] * 15 + [stack + 0xc0, 0, 0, 0, 0, stack + 0xc0, module +
                        at['plain'] + 4, 0, 0] + full, pc=at['nocfi']),
        'frame-pointer': make([0, stack + 0x20, ret('tramp', 14), 0, 0, 0, 0],
                              pc=at['nocfi'] + 16, fp=8),
    }


def walk_i386_input(c):
    """A caller of the first function, by stale words too."""
    at = min(c.symbols('i386.so').values())
    words = [0] * 4 + [0x56000000 + at + 5, 0xffd00030, 0x56000000 + at + 9] * 8
    return (struct.pack('<BBHIHHHH', 2, 0, 4 * len(words), 0xffffffff, at, 0, 16,
                        0x40) + struct.pack(f'<{len(words)}I', *words) +
            c.read('i386.so'))


def gotable_inputs():
    """Three functions, of which the second has no table of frame sizes."""
    names = b'main.a\0main.bb\0main.ccc\0'
    sizes = bytes([0, 2, 4, 48, 0x38, 47, 4, 0,
                   2, 0x10, 0x80, 0x40, 0x90, 0x1d, 0])
    funcs = [(0, 0, 1), (0x40, 7, 0), (0x60, 15, 8)]
    end = 0x1000

    def make(magic, text):
        names_off = 72
        sizes_off = names_off + len(names)
        funcs_off = sizes_off + len(sizes)
        at = 8 * len(funcs) + 4
        table, rest = b'', b''
        for start, name, frames in funcs:
            table += struct.pack('<II', start, at + len(rest))
            rest += (struct.pack('<5I', start, name, 0, 0, frames) +
                     bytes(17) + b'\2' + bytes(2) + b'\2' + bytes(3))
        return (struct.pack('<IBBBB8Q', magic, 0, 0, 1, 8, len(funcs), 1, text,
                            names_off, 0, 0, sizes_off, funcs_off) + names +
                sizes + table + struct.pack('<I', end) + rest)

    return {'go1.18': make(0xfffffff0, 0x401000),
            'go1.20': make(0xfffffff1, 0x401000),
            'go1.26': make(0xfffffff1, 0)}


def goroutines_inputs():
    """Writes into the program of test/unit/go_maker.h: how is 1 at once, 0
    before a later read, plus 2 times the logarithm of the bytes."""
    memory, list_, g = 0x1000, 0x1040, 0x3000

    def write(where, how, what):
        return struct.pack('<I', where | how << 24) + struct.pack('<Q', what)

    return {
        'count': write(list_ + 8, 7, 1 << 40) + write(list_ + 16, 7, 1 << 41),
        'grows': write(list_ + 8, 6, 1 << 40),
        'moves': b''.join(write(g + 191, 0, i) for i in range(40)),
        'deep': write(g + 8, 7, 1 << 45),
        'labels': write(g + 344, 7, 0x10708000) + write(memory + 0x8009, 1, 9),
        'version': write(0x821 + 4, 1, ord('3')),
    }


def debugdata_inputs(c):
    inner = c.objcopy('plain.so', 'inner.so', '--only-keep-debug', '-R',
                      '.eh_frame')
    packed = subprocess.run(['xz', '-1', '-c'], input=inner, check=True,
                            capture_output=True).stdout
    crc = subprocess.run(['xz', '-1', '-C', 'none', '-c'], input=inner,
                         check=True, capture_output=True).stdout
    return {'xz': packed, 'unchecked': crc}


def main():
    top = sys.argv[1]
    inputs = {name: {k: v.encode() for k, v in texts.items()}
              for name, texts in TEXTS.items()}
    with tempfile.TemporaryDirectory() as directory:
        c = Compiler(directory)
        elf = elf_files(c)
        inputs['unixdiag'] = unixdiag()
        inputs['futexlocks'] = futexlocks()
        inputs['namer'] = namer()
        inputs['pprof'] = pprof()
        inputs['perfring'] = perfring()
        inputs['cfi'] = cfi_inputs(c)
        inputs['ehframe'] = ehframe_inputs(c)
        inputs['cfiexpr'] = cfiexpr_inputs()
        inputs['walk'] = walk_inputs(c)
        inputs['walk']['i386'] = walk_i386_input(c)
        inputs['gotable'] = gotable_inputs()
        inputs['goroutines'] = goroutines_inputs()
        inputs['debugdata'] = debugdata_inputs(c)
        inputs['debugfile'] = debugfile_inputs(c)
        for fuzzer, names in (
                ('elfimage', ('plain', 'asm', 'debugframe', 'stripped',
                              'i386')),
                ('symtab', ('plain', 'stripped', 'cxx', 'i386')),
                ('dwarf', ('dwarf4', 'dwarf5', 'ranges', 'packed', 'cxx')),
                ('resolver', ('dwarf5', 'cxx', 'stripped', 'i386'))):
            inputs[fuzzer] = {name: elf[name] for name in names}
    for fuzzer, files in inputs.items():
        os.makedirs(os.path.join(top, fuzzer), exist_ok=True)
        for name, data in files.items():
            with open(os.path.join(top, fuzzer, 'seed-' + name), 'wb') as f:
                f.write(data)


if __name__ == '__main__':
    main()
