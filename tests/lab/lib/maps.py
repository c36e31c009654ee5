#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the executable mappings that vmprof saw against the guest's own /proc/PID/maps.

maps.py CONSOLE seen DUMP    DUMP is what bench/guest -d printed: with device and inode
maps.py CONSOLE file SCRIPT  SCRIPT is what perf script --show-mmap-events printed
CONSOLE has the guest's lines "@pid PID COMM" and "@maps PID LINE". Prints an "ok NAME" or
"not ok NAME: ..." line a process.
"""

import os
import re
import sys

SEEN = re.compile(r"^MMAP (\d+)/\d+ ppid -?\d+ (\w+)-(\w+) (\w+) (.*) dev (\w+) ino (\d+) size \d+ id \w*$")
FILE = re.compile(r"PERF_RECORD_MMAP2 (\d+)/\d+: \[0x(\w+)\(0x(\w+)\) @ (?:0x)?(\w+) <\w+>\]: (\S{4}) (.*)$")
MAPS = re.compile(r"^(\w+)-(\w+) (\S{4}) (\w+) (\w+):(\w+) (\d+) *(.*)$")


def truth(console, how):
    """{pid: set of mappings}, {pid: comm}"""
    maps, comms = {}, {}
    for line in console:
        word, _, rest = line.rstrip("\r\n").partition(" ")
        pid, _, rest = rest.partition(" ")
        if word == "@pid":
            comms[int(pid)] = rest
        if word != "@maps":
            continue
        start, end, prot, pgoff, major, minor, ino, path = MAPS.match(rest).groups()
        # The kernel adds the last one to what it shows; it is in no process's map.
        if prot[2] != "x" or path == "[vsyscall]":
            continue
        start, end, pgoff = int(start, 16), int(end, 16), int(pgoff, 16)
        if how == "seen":
            dev = os.makedev(int(major, 16), int(minor, 16))
            m = (start, end, pgoff, path or "//anon", dev, int(ino))
        else:
            # Memory that code may be made in is named after its process, its offsets are addresses.
            made = not path or path.startswith("/memfd:")
            m = (start, end, start if made else pgoff, f"[JIT] tid {pid}" if made else path, prot)
        maps.setdefault(int(pid), set()).add(m)
    return maps, comms


def seen(lines):
    maps = {}
    for m in filter(None, map(SEEN.match, lines)):
        pid, start, end, pgoff, path, dev, ino = m.groups()
        entry = (int(start, 16), int(end, 16), int(pgoff, 16), path, int(dev, 16), int(ino))
        maps.setdefault(int(pid), set()).add(entry)
    return maps


def in_file(lines):
    maps = {}
    for m in filter(None, map(FILE.search, lines)):
        pid, start, size, pgoff, prot, path = m.groups()
        start = int(start, 16)
        entry = (start, start + int(size, 16), int(pgoff, 16), path, prot)
        maps.setdefault(int(pid), set()).add(entry)
    return maps


def show(mapping):
    return "%x-%x %x " % mapping[:3] + " ".join(map(str, mapping[3:]))


def main(console, how, path):
    with open(console, errors="replace") as f:
        want, comms = truth(f, how)
    with open(path, errors="replace") as f:
        have = (seen if how == "seen" else in_file)(line.rstrip("\n") for line in f)
    for pid, wanted in sorted(want.items()):
        got = have.get(pid, set())
        name = f"{comms.get(pid, pid)}: {len(wanted)} executable mappings, {how}"
        wrong = ["missing " + show(m) for m in sorted(wanted - got)]
        wrong += ["not the guest's " + show(m) for m in sorted(got - wanted)]
        print(f"not ok {name}: {'; '.join(wrong)}" if wrong else f"ok {name}")


main(*sys.argv[1:])
