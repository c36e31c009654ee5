#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""gdb_objects.py ROOT <MAPS: commands for gdb that load the files below ROOT which a process has mapped,
by the lines of its /proc/PID/maps, to where they are."""
import os
import struct
import sys


def first_load(path):
    """Address and offset of the first segment that is loaded; None: no ELF file."""
    with open(path, 'rb') as f:
        head = f.read(64)
        if head[:4] != b'\x7fELF':
            return None
        (phoff,) = struct.unpack_from('<Q', head, 32)
        size, count = struct.unpack_from('<HH', head, 54)
        for i in range(count):
            f.seek(phoff + i * size)
            kind, _, offset, vaddr = struct.unpack('<IIQQ', f.read(24))
            if kind == 1:
                return vaddr, offset
    return None


seen = set()
for line in sys.stdin:
    fields = line.split(None, 5)
    if len(fields) < 6:
        continue
    path = sys.argv[1] + fields[5].strip()
    if path in seen or not os.path.isfile(path):
        continue
    load = first_load(path)
    if load:
        seen.add(path)
        start = int(fields[0].split('-')[0], 16)
        print('add-symbol-file %s -o %#x' % (path, start - int(fields[2], 16) - load[0] + load[1]))
