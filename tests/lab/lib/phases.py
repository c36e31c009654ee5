#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""When does the program "phases" change over, as two profiles of it have it?

phases.py HOST GUEST ERROR   HOST and GUEST are "vmprof script -F comm,cpu,time,ip,sym" of a profile on one
                             clock. Of HOST the samples with a CPU of the host count, of GUEST those
                             without: these were recorded in the guest. Prints "CHANGES AGREE": how many
                             changes of phase are in both, and how many of them can be of one time, give
                             or take ERROR ns.
"""

import re
import sys

HEADER = re.compile(r"^\s*\S*phases +\[(-?\d+)\] +(\d+)\.(\d+): *$")
PHASE = re.compile(r"\bphase_([ab])\b")
NEAR = 60_000_000  # ns; the same change comes again after 300 ms at the earliest


def samples(path, host):
    """[(time, phase)] in the order of time"""
    found, time = [], None
    with open(path, errors="replace") as f:
        for line in f:
            if m := HEADER.match(line):
                time = None
                if (int(m[1]) >= 0) == host:
                    time = int(m[2]) * 10**9 + int(m[3].ljust(9, "0"))
            elif time is not None and (m := PHASE.search(line)):
                found.append((time, m[1]))
                time = None
            elif not line.startswith("\t"):
                time = None
    return sorted(found)


def changes(found):
    """[(time of the last sample before, of the first one behind, new phase)]"""
    return [(a[0], b[0], b[1]) for a, b in zip(found, found[1:]) if a[1] != b[1]]


def main(host, guest, error):
    ours, error, n, agree = changes(samples(host, True)), int(error), 0, 0
    for before, behind, phase in changes(samples(guest, False)):
        middle = (before + behind) / 2
        twin = [c for c in ours if c[2] == phase and abs((c[0] + c[1]) / 2 - middle) < NEAR]
        if len(twin) == 1:
            n += 1
            agree += before - twin[0][1] <= error and behind - twin[0][0] >= -error
    print(n, agree)


main(*sys.argv[1:])
