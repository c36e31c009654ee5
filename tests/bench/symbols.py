#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What loading a symbol table costs: CPU seconds of vmprof's reader beside those of nm.

usage: tests/bench/symbols.py [--pairs N] [FILE...]

Both run as programs on the same file, alternating (nm -D where there is no .symtab); each sorts its
symbols, and nm prints them, to /dev/null. Printed are medians of user and system time and of the
ratio of neighbours. The time of an empty program (true) and of nm --version are
printed too, since the figures have them in them. One file is made here: 300,000 C++ functions,
each tenth with an alias, for which the readable names are compared.
"""
import argparse
import glob
import os
import resource
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build'))
SYMLOAD = os.path.join(BUILD, 'tests/bench/symload')
FILES = ['/usr/lib/x86_64-linux-gnu/libc.so.6', '/usr/lib/x86_64-linux-gnu/libstdc++.so.6',
         '/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1', '/usr/bin/python3', '/usr/lib/go/bin/go']


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, out.stdout


def debug_files():
    """The largest separate debug file there is."""
    files = glob.glob('/usr/lib/debug/.build-id/*/*.debug')
    return sorted(files, key=os.path.getsize)[-1:]


def made_file(directory):
    source, path = os.path.join(directory, 'made.s'), os.path.join(directory, 'made.so')
    with open(source, 'w', encoding='ascii') as f:
        for i in range(300000):
            name = f'_ZN5space4nameILi{i}EE3fooEv'
            names = [name] if i % 10 else [name, f'_Z9other_{i:07d}i'.replace('9o', '13o')]
            for n in names:
                f.write(f'.globl {n}\n.type {n},@function\n{n}:\n')
            f.write('ret\n')
            f.writelines(f'.size {n},1\n' for n in names)
    subprocess.run(['gcc', '-shared', '-nostdlib', '-o', path, source], check=True)
    return path


def measure(path, pairs):
    has_symtab = b'.symtab' in cpu(['readelf', '-SW', path])[1]
    # a shell, so that what nm prints goes nowhere
    nm = ['sh', '-c', 'exec nm %s "$0" >/dev/null' % ('' if has_symtab else '-D'), path]
    ours, theirs = [], []
    for _ in range(pairs):
        used, out = cpu([SYMLOAD, path])
        ours.append(used)
        theirs.append(cpu(nm)[0])
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    print(f'{path}: {int(out)} symbols, vmprof {1000 * statistics.median(ours):.0f} ms, '
          f'nm {1000 * statistics.median(theirs):.0f} ms, ratio {ratio:.2f}')
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--pairs', type=int, default=5)
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    files = args.files or [f for f in FILES + debug_files() + [os.path.join(BUILD, 'vmprof')]
                           if os.path.exists(f)]
    empty = [1000 * statistics.median(cpu(command)[0] for _ in range(args.pairs))
             for command in (['true'], ['nm', '--version'])]
    print('load %.1f; true takes %.0f ms, nm --version %.0f ms' % (os.getloadavg()[0], *empty))
    with tempfile.TemporaryDirectory() as directory:
        if not args.files:
            files.append(made_file(directory))
        worst = max(measure(os.path.realpath(f), args.pairs) for f in files)
    print(f'the worst ratio is {worst:.2f}; the goal is 2')
    sys.exit(worst > 2)


if __name__ == '__main__':
    main()
