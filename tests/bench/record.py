#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What recording costs: the recorder's CPU time, and the work that the guest loses.

usage: tests/bench/record.py [--pairs N] [--seconds S] [--hz HZ] [--ram memfd|plain]

Boots a VM whose one process counts its own rounds of work. Windows without a recorder, with vmprof, and
with stock perf on the same thread at the same rate (host samples, no chains: what the timer and a
reader cost on this machine whatever is read) alternate; in each one the guest's work is divided by the
CPU time of the vCPU's thread, so that what else the host does cancels out. Prints the medians of the
ratios to the neighbouring window without a recorder, and the recorders' CPU time as a share of the
vCPU's.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build'))
NAME = 'benchvm'


def vm(*args):
    return subprocess.run([os.path.join(TOP, 'tests/lab/vm'), *args], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


class Guest:
    """The VM: its console, and the CPU time of the vCPU that works."""

    def __init__(self, ram):
        vm('up', NAME, '--ram', ram, '--smp', '1', '--load', 'rounds')
        self.pid = int(vm('pid', NAME))
        log = subprocess.run([os.path.join(TOP, 'tests/lab/vm'), 'log', NAME], check=True,
                             stdout=subprocess.PIPE).stdout
        path = [a for a in open(f'/proc/{self.pid}/cmdline').read().split('\0')
                if a.startswith('file:')][0][5:]
        self.log = open(path, 'rb')
        self.log.seek(len(log))
        self.tid = [t for t in os.listdir(f'/proc/{self.pid}/task')
                    if open(f'/proc/{self.pid}/task/{t}/comm').read().startswith('CPU 0')][0]

    def cpu_ns(self):
        return int(open(f'/proc/{self.pid}/task/{self.tid}/schedstat').read().split()[0])

    def next_count(self):
        """Waits for the next line of the guest: (rounds, CPU time when the line came)."""
        line = b''
        while True:
            line += self.log.readline()
            found = re.search(rb'@rounds (\d+)\r?\n', line)
            if found:
                return int(found.group(1)), self.cpu_ns()
            if line.endswith(b'\n'):
                line = b''
            time.sleep(0.001)

    def window(self, seconds):
        """Rounds a CPU second, and CPU seconds used."""
        self.log.seek(0, os.SEEK_END)
        self.next_count()
        rounds, cpu = self.next_count()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rounds2, cpu2 = self.next_count()
        return (rounds2 - rounds) / (cpu2 - cpu) * 1e9, (cpu2 - cpu) / 1e9


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--pairs', type=int, default=10)
    p.add_argument('--seconds', type=float, default=5)
    p.add_argument('--hz', default='1000')
    p.add_argument('--ram', default='memfd', choices=['memfd', 'plain'])
    o = p.parse_args()
    guest = Guest(o.ram)
    scratch = tempfile.TemporaryDirectory()
    out = os.path.join(scratch.name, 'data')
    vmprof = [os.path.join(BUILD, 'vmprof'), 'record', '-g', '-F', o.hz, '--vm', NAME, '-o', out]
    perf = ['perf', 'record', '-q', '-e', 'task-clock', '-c', str(1000000000 // int(o.hz)),
            '-t', guest.tid, '-o', out]
    results = {'vmprof': ([], []), 'perf': ([], [])}
    try:
        for _ in range(o.pairs):
            for name, command in (('vmprof', vmprof), ('perf', perf)):
                ratio, share = measure(guest, command, o.seconds)
                results[name][0].append(ratio)
                results[name][1].append(share)
    finally:
        vm('down', NAME)
    print(f'{o.ram}, {o.hz} Hz, {o.pairs} pairs of {o.seconds:g} s windows each')
    for name, (ratios, shares) in results.items():
        print(f'  {name}: guest work a CPU second, recorded / not: median '
              f'{statistics.median(ratios):.4f} (min {min(ratios):.4f}, max {max(ratios):.4f}); '
              f'recorder CPU / vCPU CPU: median {100 * statistics.median(shares):.2f} % '
              f'(min {100 * min(shares):.2f}, max {100 * max(shares):.2f})')


def measure(guest, command, seconds):
    """One window without the recorder, one with it: ratio of the guest's work, share of CPU."""
    off, _ = guest.window(seconds)
    rec = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if command[0] != 'perf':  # until the guest's kernel was found and read
        while ' backend, ' not in rec.stderr.readline():
            pass
    time.sleep(1.5)  # and its symbols are saved
    before = sum(times(rec.pid))
    on, cpu = guest.window(seconds)
    used = sum(times(rec.pid)) - before
    rec.terminate()
    rec.communicate()
    return on / off, used / cpu


def times(pid):
    """User and system time of a process, in seconds, by its threads' exact clocks."""
    return [int(open(f'/proc/{pid}/task/{t}/schedstat').read().split()[0]) / 1e9
            for t in os.listdir(f'/proc/{pid}/task')]


if __name__ == '__main__':
    sys.exit(main())
