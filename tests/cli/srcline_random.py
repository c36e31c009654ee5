#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Source lines and inlined functions of random addresses: the "lookup" of tests/unit/dwarfinfo beside
addr2line and eu-addr2line.

usage: srcline_random.py DWARFINFO FILE [--debug DEBUG] [--count N] [--mode MODE] [--section NAME]

MODE is another one of dwarfinfo's. Addresses are drawn over the section, else over the executable
segments of FILE; the DWARF is FILE's, or that of its separate
debug file. The functions and lines must be those of addr2line, or, where it is another's, of
eu-addr2line (binutils 2.40 names wrong files of DWARF 5, and for a local function without a linkage name
the symbol around it). Padding between functions, which addr2line gives to the symbol before it, and code
of assembly do not count. Fails with the first addresses that differ.
"""
import argparse
import random
import re
import subprocess
import sys

from symbols_random import segments

EU_MAX = 400


def run(argv, addresses):
    return subprocess.run(argv, input=''.join('%x\n' % a for a in addresses), check=True,
                          capture_output=True, text=True).stdout


def section(path, name):
    """(address, offset, size) of a section"""
    for line in run(['readelf', '-SW', path], []).splitlines():
        m = re.match(r' *\[ *\d+\] (\S+) +\w+ +(\w+) (\w+) (\w+) ', line)
        if m and m[1] == name:
            yield int(m[2], 16), int(m[3], 16), int(m[4], 16)


def place(text):
    """file:line of 'dir/file:line:column (discriminator N)'; '' unknown"""
    m = re.match(r'(?:.*/)?([^/:]+):(\d+)', text)
    return f'{m[1]}:{m[2]}' if m and m[1] != '??' else ''


def blocks(text):
    """For each address a list of (function, file:line), innermost first."""
    found = []
    for line in text.splitlines():
        if line.startswith('0x'):
            found.append([])
        else:
            found[-1].append(line)
    return [[(f.split(' inlined at ')[0], place(p)) for f, p in zip(b[::2], b[1::2])]
            for b in found]


def same(ours, theirs):
    # the outermost is a symbol's business: its name in DWARF lacks suffixes of clones
    return ([f for f, _ in ours[:-1]] == [f for f, _ in theirs[:-1]] and
            [p for _, p in ours] == [p for _, p in theirs])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('file')
    parser.add_argument('--debug')
    parser.add_argument('--count', type=int, default=10000)
    parser.add_argument('--mode', default='lookup')
    parser.add_argument('--section')
    args = parser.parse_args()
    debug = args.debug or args.file
    draw = random.Random(args.file)
    loads = list(section(args.file, args.section) if args.section else segments(args.file))
    addresses = sorted({addr + draw.randrange(size) for addr, _, size in
                        draw.choices(loads, [size for _, _, size in loads], k=args.count)})
    ours = blocks(run([args.program, args.mode, debug], addresses))
    theirs = blocks(run(['addr2line', '-a', '-f', '-i', '-e', debug], addresses))
    known = [i for i, o in enumerate(ours) if o[0] != ('??', '')]
    inlined = sum(len(ours[i]) > 1 for i in known)
    lost = [i for i, t in enumerate(theirs)
            if ours[i][0] == ('??', '') and (t[0][1] or len(t) > 1)]
    other = [i for i in known if not same(ours[i], theirs[i])]
    judged = other[::max(1, len(other) // EU_MAX + 1)]
    eu = blocks(run(['eu-addr2line', '-a', '-f', '-i', '-e', debug],
                    [addresses[i] for i in judged])) if judged else []
    bad = [(i, e) for i, e in zip(judged, eu) if not same(ours[i], e)]
    print(f'{args.file}: {len(addresses)} addresses, {len(known)} known, {inlined} of them inlined, '
          f'{len(other)} other than in addr2line, of {len(judged)} of these {len(bad)} other than in '
          f'eu-addr2line, {len(lost)} not found')
    for i, e in bad[:10]:
        print(f'  {addresses[i]:#x}: {ours[i]}\n    addr2line {theirs[i]}\n    eu-addr2line {e}')
    for i in lost[:10]:
        print(f'  {addresses[i]:#x}: not found, but addr2line {theirs[i]}')
    sys.exit(bool(bad) or len(lost) > len(known) / 1000 or len(ours) != len(addresses) or
             len(known) < len(addresses) / 2 or not inlined)


if __name__ == '__main__':
    main()
