#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds a folded profile (standard input: "vm;comm;frame;... count") against what must be in it.

truth.py NAME CHECK...   prints an "ok NAME: ..." or "not ok NAME: ..." line a check:
  split:COMM:A:B[:MIN]        of COMM's samples in A and B, 75 % are in A, within the 99 % bound of the
                              binomial distribution; MIN samples at least (20000)
  share:COMM:A:B:PCT:MIN      the same for another share than 75 %, within the 99.9 % bound
  whole:COMM:CHAIN:LEAF:PCT   at least PCT per cent of COMM's samples in LEAF, or in the kernel with no
                              user frame, have the frames of CHAIN right below LEAF (a,b|c,d: a calls b
                              or c, which calls d, which calls LEAF)
  only:COMM:PREFIX            functions PREFIX* are in no other process, and there are some
  leaf:COMM:PATTERN:PCT       at least PCT per cent of COMM's samples have a leaf that matches; the less
                              the host gives the VM, the more are in its timer interrupts
  in:COMM:PATTERN:PCT         at least PCT per cent of COMM's samples have a frame that matches
  comms:PATTERN:N             at least N processes or threads whose name matches
"""

import math
import re
import sys

Z99, Z999 = 2.576, 3.291
KERNEL = "_[k]"


def read(stream):
    """[(comm, [frame...], count)], frames from the caller to the leaf"""
    samples = []
    for line in stream:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        samples.append((frames[1] if len(frames) > 1 else "", frames[2:], int(count)))
    return samples


def user(frames):
    """The chain without the kernel's frames: a timer tick or a page fault may lie on top."""
    return [f for f in frames if not f.endswith(KERNEL)]


def share_within(samples, comm, a, b, right, z, least):
    in_a = sum(c for name, f, c in samples if name == comm and a in f)
    n = in_a + sum(c for name, f, c in samples if name == comm and b in f)
    if n < int(least):
        return False, "%d samples of %s, %s wanted" % (n, comm, least)
    share = in_a / n
    bound = z * math.sqrt(right * (1 - right) / n)
    return abs(share - right) <= bound, "%s has %.2f %% of %d samples, %g +- %.2f %% is right" % (
        a, 100 * share, n, 100 * right, 100 * bound)


def check_split(samples, comm, a, b, least="20000"):
    return share_within(samples, comm, a, b, 0.75, Z99, least)


def check_share(samples, comm, a, b, percent, least):
    return share_within(samples, comm, a, b, float(percent) / 100, Z999, least)


def check_whole(samples, comm, chain, leaf, percent):
    want = [set(step.split("|")) for step in chain.split(",")] + [{leaf}]
    n = good = 0
    for name, frames, count in samples:
        frames = user(frames)
        if name != comm or (frames and frames[-1] != leaf):
            continue
        n += count
        have = frames[-len(want):]
        good += count * (len(have) == len(want) and all(f in w for f, w in zip(have, want)))
    share = 100 * good / n if n else 0
    return share >= float(percent), "%.2f %% of %d chains are whole, %s %% wanted" % (
        share, n, percent)


def check_only(samples, comm, prefix):
    good = wrong = 0
    for name, frames, count in samples:
        if any(f.startswith(prefix) for f in frames):
            if name == comm:
                good += count
            else:
                wrong += count
    return good > 0 and wrong == 0, "%d samples in %s* of %s, %d of other processes" % (
        good, prefix, comm, wrong)


def share_of(samples, comm, matches, percent):
    n = sum(c for name, f, c in samples if name == comm)
    good = sum(c for name, f, c in samples if name == comm and matches(f))
    share = 100 * good / n if n else 0
    return share >= float(percent), "%.2f %% of %d samples of %s, %s %% wanted" % (
        share, n, comm, percent)


def check_leaf(samples, comm, pattern, percent):
    return share_of(samples, comm, lambda f: f and re.search(pattern, f[-1]), percent)


def check_in(samples, comm, pattern, percent):
    return share_of(samples, comm, lambda f: any(re.search(pattern, x) for x in f), percent)


def check_comms(samples, pattern, least):
    names = {name for name, f, c in samples if re.search(pattern, name)}
    return len(names) >= int(least), "%d names match %s, %s wanted" % (len(names), pattern, least)


CHECKS = {
    "split": check_split,
    "share": check_share,
    "whole": check_whole,
    "only": check_only,
    "leaf": check_leaf,
    "in": check_in,
    "comms": check_comms,
}


def main():
    name, checks = sys.argv[1], sys.argv[2:]
    samples = read(sys.stdin)
    failed = 0
    for check in checks:
        kind, *args = check.split(":")
        good, why = CHECKS[kind](samples, *args)
        failed += not good
        print("%s %s, %s: %s" % ("ok" if good else "not ok", name, kind, why))
    return 1 if failed else 0


sys.exit(main())
