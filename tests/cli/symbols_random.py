#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Names of random addresses: the "symtab lookup" of tests/unit/symtab beside nm and addr2line.

usage: symbols_random.py SYMTAB FILE [--symbols DEBUG] [--dwarf] [--count N]

Addresses are drawn over the executable segments of FILE; the symbols are FILE's, or those of its
separate debug file. nm: the name must be one of those at the start of the innermost symbol that covers
the address; of a slot of the PLT that of objdump. --dwarf: addr2line's function, the one that others were inlined into, must be there as
well. Fails with the first addresses that differ.
"""
import argparse
import bisect
import random
import re
import struct
import subprocess
import sys

SUFFIX = re.compile(r'(\.(cold|part|isra|constprop|lto_priv|localalias)(\.\d+)*)+$')
MAX_OUTER = 64


def segments(path):
    """(address, offset, size) of the executable PT_LOADs of an ELF-64 file."""
    with open(path, 'rb') as f:
        data = f.read(64)
        off, = struct.unpack_from('<Q', data, 32)
        size, n = struct.unpack_from('<HH', data, 54)
        f.seek(off)
        table = f.read(size * n)
    for i in range(n):
        kind, flags, off, addr, _, filesz = struct.unpack_from('<IIQQQQ', table, i * size)
        if kind == 1 and flags & 1:
            yield addr, off, filesz


def nm_groups(path):
    """Sorted starts, and for each the names, the end, and whether a symbol there has a size."""
    groups = {}
    for dynamic in ([], ['-D']):
        out = subprocess.run(['nm', '-P', '--defined-only', *dynamic, path], check=True,
                             capture_output=True, text=True).stdout
        for line in out.splitlines():
            name, kind, *rest = line.split()
            if kind in 'aANU' or not rest:
                continue
            start, size = int(rest[0], 16), int(rest[1], 16) if len(rest) > 1 else 0
            names, end = groups.setdefault(start, (set(), 0))
            names.add(name.split('@')[0])
            groups[start] = names, max(end, start + size if size else 0)
        if groups:
            break
    starts = sorted(groups)
    for start, after in zip(starts, starts[1:] + [starts[-1] + 4096]):
        names, end = groups[start]
        groups[start] = names, end or after, bool(end)
    return starts, groups


def nm_names(starts, groups, addr):
    i = bisect.bisect_right(starts, addr)
    for start in reversed(starts[max(0, i - MAX_OUTER):i]):
        if groups[start][1] > addr:
            return groups[start][0], groups[start][2]
    return None, False


def plt_slots(path):
    """Names that objdump makes for slots of the PLT, by address; one is 8 or 16 bytes."""
    out = subprocess.run(['objdump', '-d', '-j', '.plt', '-j', '.plt.sec', '-j', '.plt.got', path],
                         capture_output=True, text=True).stdout
    return {int(m[1], 16): m[2].split('@')[0]
            for m in re.finditer(r'^([0-9a-f]+) <(.*)@plt>:', out, re.M)}


def is_function(dwarf, names):
    """Is that one of the names? DWARF has no mangled names of local C++ functions."""
    plain = {SUFFIX.sub('', n) for n in names} | names
    bare = dwarf.split('<')[0]
    return dwarf in plain or any(n.startswith('_Z') and bare in n for n in names)


def lookup(program, path, offsets):
    text = '\n'.join('%x' % o for o in offsets)
    return subprocess.run([program, 'lookup', path], input=text, check=True,
                          capture_output=True, text=True).stdout.splitlines()


def dwarf_names(path, addresses):
    """For each address the outermost function of addr2line, None if it knows none."""
    text = '\n'.join('%x' % a for a in addresses)
    out = subprocess.run(['addr2line', '-f', '-i', '-a', '-e', path], input=text, check=True,
                         capture_output=True, text=True).stdout.splitlines()
    names, block = [], []
    for line in out[1:] + ['0x']:
        if line.startswith('0x'):
            known = len(block) > 1 and not block[-1].startswith('??')
            names.append(block[-2] if known else None)
            block = []
        else:
            block.append(line)
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('file')
    parser.add_argument('--symbols')
    parser.add_argument('--dwarf', action='store_true')
    parser.add_argument('--count', type=int, default=10000)
    args = parser.parse_args()
    symbols = args.symbols or args.file
    loads = list(segments(args.file))
    draw = random.Random(args.file)
    picks = draw.choices(loads, [size for _, _, size in loads], k=args.count)
    places = [(addr + at, off + at) for addr, off, size in picks
              for at in [draw.randrange(size)]]
    addresses = [a for a, _ in places]
    ours = lookup(args.program, symbols, [o for _, o in places])
    starts, groups = nm_groups(symbols)
    slots = plt_slots(args.file)
    dwarf = dwarf_names(symbols, addresses) if args.dwarf else [None] * len(addresses)
    bad, named, by_dwarf = [], 0, 0
    for addr, name, of_dwarf in zip(addresses, ours, dwarf):
        base = name.split('@')[0]
        names, sized = nm_names(starts, groups, addr)
        if name.endswith('@plt') and not sized:
            slot = slots.get(addr & ~15, 'none')
            if slot != base and not slot.startswith('*ABS*'):
                bad.append((addr, name, f'objdump {slot}@plt'))
        elif names is None:
            if name != '-':
                bad.append((addr, name, 'nothing in nm'))
        elif base not in names:
            bad.append((addr, name, f'nm {sorted(names)}'))
        elif of_dwarf and not is_function(of_dwarf, names):
            bad.append((addr, name, f'addr2line {of_dwarf}'))
        named += names is not None
        by_dwarf += of_dwarf is not None
    print(f'{args.file}: {len(ours)} addresses, {named} in symbols, {by_dwarf} in functions of '
          f'addr2line, {len(bad)} differ')
    for addr, name, why in bad[:20]:
        print(f'  {addr:#x}: {name}, but {why}')
    sys.exit(bool(bad) or len(ours) != args.count or named < args.count / 10)


if __name__ == '__main__':
    main()
