#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Names of random addresses of the running kernel: vmprof script beside perf script.

usage: symbols_kernel.py VMPROF DATA [--count N]

DATA is what perf record has written of one event without call chains. Each of its samples is made
one of the kernel's, at an address that is drawn between _text and _etext.
"""
import argparse
import random
import struct
import subprocess
import sys

SAMPLE, KERNEL, CPUMODE = 9, 1, 7
IDENTIFIER = 1 << 16
ATTRS, DATA_SECTION = 24, 40  # in the header


def text():
    """(start, end) of the kernel's code; addresses are hidden from whom they are no business of."""
    found = {}
    with open('/proc/kallsyms', encoding='ascii') as f:
        for line in f:
            addr, _, name, *module = line.split()
            if name in ('_text', '_etext') and not module:
                found[name] = int(addr, 16)
    return found.get('_text', 0), found.get('_etext', 0)


def randomize(data, draw, start, end):
    """Returns how many samples there are."""
    attrs, = struct.unpack_from('<Q', data, ATTRS)
    sample_type, = struct.unpack_from('<Q', data, attrs + 24)
    at, size = struct.unpack_from('<QQ', data, DATA_SECTION)
    ip = 16 if sample_type & IDENTIFIER else 8
    stop, n = at + size, 0
    while at < stop:
        kind, misc, length = struct.unpack_from('<IHH', data, at)
        if kind == SAMPLE:
            struct.pack_into('<H', data, at + 4, misc & ~CPUMODE | KERNEL)
            struct.pack_into('<Q', data, at + ip, draw.randrange(start, end))
            n += 1
        at += length
    return n


def names(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [' '.join(line.split()) for line in out.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('vmprof')
    parser.add_argument('data')
    parser.add_argument('--count', type=int, default=10000)
    args = parser.parse_args()
    start, end = text()
    if not start:
        print('addresses of the kernel are hidden here')
        sys.exit(77)
    with open(args.data, 'rb') as f:
        data = bytearray(f.read())
    draw, total, bad = random.Random(1), 0, []
    while total < args.count:
        n = randomize(data, draw, start, end)
        if n < 100:
            print(f'{n} samples only')
            sys.exit(77)
        with open(args.data, 'wb') as f:
            f.write(data)
        what = ['script', '-i', args.data, '-F', 'ip,sym,symoff,dso']
        theirs, ours = names(['perf', *what]), names([args.vmprof, *what])
        if len(theirs) != n or len(ours) != n:
            bad.append((n, len(theirs), len(ours)))
        bad += [(a, b) for a, b in zip(theirs, ours) if a != b]
        total += n
    print(f'{total} addresses of the kernel, {len(bad)} differ')
    for pair in bad[:20]:
        print('  perf, vmprof:', *pair)
    sys.exit(bool(bad))


main()
