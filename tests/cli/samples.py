# SPDX-License-Identifier: GPL-2.0-only
"""samples.py FILE ARCH: a perf.data of samples that need hardware which tests do not have: weights,
data sources, branches, registers, page sizes, of random values, and BPF output."""
import random
import struct
import sys

IP, TID, TIME, ADDR, RAW, BRANCHES, UREGS, DATA_SRC, TXN, IREGS = (
    1 << i for i in (0, 1, 2, 3, 10, 11, 12, 15, 17, 18))
PHYS, DATA_PAGE, CODE_PAGE, WEIGHT_STRUCT, CPU, ID = (1 << i for i in (19, 22, 23, 24, 7, 16))
COMMON = ID | IP | TID | TIME | CPU
MEMORY = COMMON | ADDR | BRANCHES | UREGS | WEIGHT_STRUCT | DATA_SRC | TXN | IREGS | PHYS | DATA_PAGE | CODE_PAGE
REGS = (1 << 33) - 1 if sys.argv[2] == 'aarch64' else 0xff0fff | 1 << 33
random.seed(7)


def attr(kind, config, sample_type):
    fields = struct.pack('<IIQQQQQ', kind, 128, config, 1, sample_type, 0, 1 << 18)  # sample_id_all
    fields += struct.pack('<IIQQQQIiQIHHIIQ', 0, 0, 0, 0, 8, REGS, 0, 0, REGS, 0, 0, 0, 0, 0, 0)
    return fields


def sample(body):
    return struct.pack('<IHH', 9, 2, 8 + len(body)) + body


def words(*values):
    return struct.pack('<%dQ' % len(values), *values)


def number(bits):
    return random.getrandbits(bits) & random.getrandbits(bits)


def source():
    """Of each kind of bit at most one: perf cuts what is longer than 99 characters."""
    def one(at, bits):
        return random.choice([0] + [1 << at + b for b in range(bits)])
    hops = random.choice((0, 0, 0, 1, 2, 3, 4))
    v = one(0, 5) | one(19, 5) | one(24, 2) | one(40, 3)
    if hops:
        return v | hops << 43 | (hops in (1, 4)) << 37 | random.choice((0, 1, 3, 13)) << 33 | random.choice((2, 4)) << 5
    return v | one(5, 14) | one(26, 7) | random.choice((0, 2)) << 26


def memory(i):
    n = random.randrange(4)
    regs = [2] + [number(40) for _ in range(bin(REGS).count('1'))]
    body = words(1, 0x400000 + i, 11 | 11 << 32, 10**9 + i * 1000, number(47), 0)
    body += words(n, *[x for _ in range(n) for x in (number(47), number(63) | 1 << 63, number(30))])
    body += words(*regs) if i % 5 else words(0)
    body += words(number(48), source(), random.choice((0, 2, 1 << i % 8, 0xb | 5 << 32)))
    body += words(*regs, number(48), random.choice((0, 4096, 2 << 20, 1 << 30)), 4096)
    return sample(body)


def bpf(i):
    raw = random.choice((b'hello\0\0\0\0\0\0\0', b'ab\0c1234567', b'\x01\x02 bytes....', b'no end here!'))
    raw += bytes(-(len(raw) + 4) % 8)
    return sample(words(2, 0, 11 | 11 << 32, 10**9 + i * 1000 + 500, 0) + struct.pack('<I', len(raw)) + raw)


attrs = [attr(4, 0x1cd, MEMORY), attr(1, 10, COMMON | RAW)]
data = b''.join(memory(i) + bpf(i) for i in range(300))
ids = words(1, 2)
at = 104
table = b''
for i, a in enumerate(attrs):
    table += a + words(at + i * 8, 8)
arch = sys.argv[2].encode() + bytes(64 - len(sys.argv[2]))
start = at + len(ids) + len(table)
end = start + len(data)
with open(sys.argv[1], 'wb') as f:
    f.write(b'PERFILE2' + words(104, 144, at + len(ids), len(table), start, len(data), 0, 0))
    f.write(words(1 << 6, 0, 0, 0) + ids + table + data)
    f.write(words(end + 16, 4 + len(arch)) + struct.pack('<I', len(arch)) + arch)
