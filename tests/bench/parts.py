#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Where the recorder's CPU time goes: perf samples vmprof record while that records a web server.

usage: tests/bench/parts.py [--seconds S] [--hz HZ] [--image web|db|truth] [--ram memfd|plain]

Boots a VM, records it from the start, and prints for each part the CPU time in its functions and in what
they call, in milliseconds and as a share of all that the recorder used. One run: what happens once
(symbols, most of the saving of code) weighs the less the longer it is.
"""
import argparse
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build'))
NAME = 'benchvm'
HZ = 5000  # of perf

# In a chain the innermost one of these has the time.
PARTS = {
    'codesave_': 'saving code',
    'clockwatch_': 'measuring clocks',
    'symsave_': 'saving symbols',
    'guest_identify': 'finding the kernel',
    'guest_complete': 'completing samples',
}


def vm(*args):
    subprocess.run([os.path.join(TOP, 'tests/lab/vm'), *args], check=True)


def part_of(chain):
    for symbol in chain:
        for prefix, part in PARTS.items():
            if symbol.startswith(prefix):
                return part
    return 'the rest'


def read(data):
    """{part: ns}"""
    out = subprocess.run(['perf', 'script', '-i', data, '--no-inline', '-F', 'period,ip,sym'],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    parts = dict.fromkeys([*PARTS.values(), 'the rest'], 0)
    for block in out.split('\n\n'):
        lines = [line.split() for line in block.splitlines() if line.strip()]
        if lines:
            parts[part_of(line[1] for line in lines[1:] if len(line) > 1)] += int(lines[0][0])
    return parts


def code_saved(store):
    """Files and bytes"""
    sizes = [os.path.getsize(os.path.join(d, 'code')) for d, _, files in os.walk(store) if 'code' in files]
    return len(sizes), sum(sizes)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--seconds', default='20')
    p.add_argument('--hz', default='1000')
    p.add_argument('--image', default='web')
    p.add_argument('--ram', default='memfd', choices=['memfd', 'plain'])
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out, data = os.path.join(scratch, 'out'), os.path.join(scratch, 'perf.data')
        vm('up', NAME, '--image', o.image, '--ram', o.ram)
        try:
            subprocess.run(['perf', 'record', '-q', '-e', 'cpu-clock', '-F', str(HZ), '--call-graph', 'dwarf,4096',
                            '-o', data, '--', os.path.join(BUILD, 'vmprof'), 'record', '-q', '-g', '-F', o.hz,
                            '--vm', NAME, '-o', out, '--duration', o.seconds], check=True)
        finally:
            vm('down', NAME)
        parts, (files, size) = read(data), code_saved(out + '.debug')
    total = sum(parts.values())
    print(f'{o.image}, {o.ram}, {o.hz} Hz, {o.seconds} s: recorder {total / 1e6:.0f} ms of CPU; '
          f'{size / 1024:.0f} KiB of code of {files} files saved')
    for part, ns in sorted(parts.items(), key=lambda item: -item[1]):
        print(f'  {part:20} {ns / 1e6:7.1f} ms {100 * ns / total:5.1f} %')


if __name__ == '__main__':
    sys.exit(main())
