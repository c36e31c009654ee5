# SPDX-License-Identifier: GPL-2.0-only
"""dwarf.py PERF OURS [--same SHARE]: the lines of perf script and of vmprof script of one file that
has copies of the stack, sample by sample.

Where they differ, perf has left frames out or has gone astray: its chain without addresses that no
file has is a part of ours, which reaches the outermost frame. (Its library takes the frame
pointer where it finds no row, and forgets what it knew of a process that has called exec. Of the code
a signal handler returns to it looks for the symbol one byte too early. Slots of PLTs have the name of the
symbol before them, or none.) And a word of the stack that
was not copied it takes for 0: then its chain has one frame more, which is at -1. --same: at least so
many samples of a hundred are the same."""
import argparse
import re
import sys

OUTERMOST = ('_start+', 'clone3+', '__clone+', 'clone+', '__clone3+')


def samples(path):
    head, frames = None, []
    with open(path, errors='replace') as lines:
        for line in lines:
            if line.startswith('\t'):
                frame = line.split(None, 1)
                if frame[1].endswith(' ([vdso])\n'):  # perf knows its names only by its cache
                    frame[1] = '[vdso]'
                frames.append(frame)
            elif line.strip():
                if head is not None:
                    yield head, frames
                head, frames = line.rstrip('\n'), []
    if head is not None:
        yield head, frames


def restorer(frame):
    """The address that a handler returns to, in perf's words and in ours."""
    if frame[1].startswith('__restore_rt+0x0 '):
        return ['%x' % (int(frame[0], 16) - 1), '[unknown]' + frame[1][len('__restore_rt+0x0'):]]
    return frame


def slots(theirs, ours):
    """perf's frames, those called as ours are that are the same slots of a PLT."""
    known = {f[0]: f[1] for f in ours if '@plt' in f[1]}
    return [[f[0], known[f[0]]] if f[0] in known and re.match(r'\[unknown\] \(|_init\+|\S*@plt', f[1]) else f
            for f in theirs]


def is_part(theirs, ours):
    rest = iter(ours)
    return all(any(f == g for g in rest) for f in theirs)


def judge(theirs, ours):
    theirs = slots(theirs, ours)
    if theirs == ours:
        return 'same'
    ours = [restorer(f) for f in ours]
    if theirs == ours:
        return 'restorer'
    if theirs == ours + [['ffffffffffffffff', '[unknown] ([unknown])\n']]:
        return 'not copied'
    theirs = [f for f in theirs if not f[1].rstrip().endswith(('([unknown])', '([stack])'))]
    outermost = ours and (ours[-1][1].startswith(OUTERMOST) or '[unknown]' in ours[-1][1])
    return 'perf lacks frames' if outermost and is_part(theirs, ours) else 'differ'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('perf')
    parser.add_argument('ours')
    parser.add_argument('--same', type=float, default=0)
    args = parser.parse_args()
    perf, ours = list(samples(args.perf)), list(samples(args.ours))
    counts = {}
    bad = len(perf) != len(ours)
    for (head, theirs), (our_head, mine) in zip(perf, ours):
        # perf forgets the address of a sample whose chain is empty
        verdict = 'differ' if head != our_head else 'empty' if not theirs else judge(theirs, mine)
        if verdict == 'differ' and 'differ' not in counts:
            print(head, 'perf:', *theirs, 'ours:', our_head, *mine, sep='\n')
        counts[verdict] = counts.get(verdict, 0) + 1
    print(len(perf), len(ours), counts)
    same = counts.get('same', 0) * 100 >= args.same * len(perf)
    return 1 if bad or counts.get('differ') or not same or not perf else 0


if __name__ == '__main__':
    sys.exit(main())
