#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What reading costs: vmprof report and script beside perf's, in CPU seconds and peak memory.

usage: tests/bench/report.py [--pairs N] [--samples N] [--build-seconds N] [--perf-default SECONDS]
                             [--large GIB]

Three files: "few" is some programs at work, recorded with perf record -g, the samples repeated (walk.c)
up to that many; "many" is a build of this tree, recorded system-wide at 20 kHz and as it is: hundreds of
processes, hundreds of thousands of distinct call chains; "tracepoints" is sched:sched_switch and
sched:sched_waking of a pipe's two ends, repeated.
Runs of vmprof and perf alternate; printed are the medians of user and system time of each, of the
ratio of neighbours, and the largest peak memory. "walk" is a C program that maps the file and steps
over its record headers. "collapse" is perf script through collapse.pl, which does the least that
stackcollapse-perf.pl has to do. perf's default report with call graphs takes very long: it is stopped
after --perf-default CPU seconds, and its figure is then a lower bound. --large makes a file of so many
GiB in the directory for temporary files and reads it by vmprof only.
"""
import argparse
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build'))
VMPROF, WALK = os.path.join(BUILD, 'vmprof'), os.path.join(BUILD, 'tests/bench/walk')
# Half of the samples have chains of a program with frame pointers, the others those of Debian's.
PROGRAM = """
#include <stdio.h>
volatile unsigned long sum;
__attribute__((noinline)) void leaf(int n) { while (n--) sum += n; __asm__(""); }
__attribute__((noinline)) void deep(int d, int n) { d ? deep(d - 1, n) : leaf(n); __asm__(""); }
int main(void)
{
	char line[4096];
	for (int i = 0; i < 3000; i++) {
		FILE *f = fopen("/proc/self/maps", "r");
		deep(i % 24, 300000);
		while (fgets(line, sizeof(line), f)) {}
		fclose(f);
	}
}
"""
COLLAPSE = os.path.join(TOP, 'tests/bench/collapse.pl')
LOAD = '"$0"; find /usr/share /usr/include -xdev | sort | gzip; true'


class Use:
    """CPU seconds and MiB of one run; None if it was stopped."""

    def __init__(self, command, limit=None):
        pid = os.fork()
        if not pid:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            if limit:
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            os.execvp(command[0], command)
        _, status, use = os.wait4(pid, 0)
        self.cpu = use.ru_utime + use.ru_stime
        self.mib = use.ru_maxrss / 1024
        self.stopped = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
        if status and not self.stopped:
            sys.exit(f"{' '.join(command)}: status {status}")


def record(directory):
    path, program = os.path.join(directory, 'base'), os.path.join(directory, 'program')
    subprocess.run(['gcc', '-O1', '-fno-omit-frame-pointer', '-fno-optimize-sibling-calls', '-static',
                    '-x', 'c', '-o', program, '-'], check=True, input=PROGRAM, text=True)
    subprocess.run(['perf', 'record', '-q', '-g', '-e', 'cpu-clock', '-F', '4000', '-o', path, '--',
                    'sh', '-c', LOAD, program], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def record_build(directory, seconds):
    """What make does in that time, cold; it is built to a directory of its own."""
    path, build = os.path.join(directory, 'many'), os.path.join(directory, 'build')
    subprocess.run(['perf', 'record', '-q', '-a', '-g', '-e', 'cpu-clock', '-F', '20000', '-o', path, '--',
                    'timeout', '-s', 'INT', str(seconds), 'make', '-s', '-C', TOP, '-j2', f'BUILD={build}'],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(build, ignore_errors=True)
    return path


def record_tracepoints(directory):
    """None where the kernel has none, or does not let us."""
    path = os.path.join(directory, 'switches')
    done = subprocess.run(['perf', 'record', '-q', '-e', 'sched:sched_switch', '-e', 'sched:sched_waking',
                           '-o', path, '--', 'perf', 'bench', 'sched', 'pipe', '-l', '5000'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path if not done.returncode and walked(path) else None


def walked(path):
    out = subprocess.run([WALK, path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(out.split()[2])


def repeated(base, to, samples):
    subprocess.run([WALK, 'repeat', base, to, str(-(-samples // walked(base)))], check=True)
    return walked(to)


def pair(name, ours, theirs, pairs, limit=None):
    use = [(Use(ours), Use(theirs, limit)) for _ in range(pairs)]
    cpu = [statistics.median(u[i].cpu for u in use) for i in (0, 1)]
    mib = [max(u[i].mib for u in use) for i in (0, 1)]
    ratio = statistics.median(b.cpu / a.cpu for a, b in use)
    more = '>' if any(b.stopped for _, b in use) else ' '
    print(f'{name:34} {cpu[0]:7.2f} {mib[0]:7.0f} {more}{cpu[1]:7.2f} {mib[1]:7.0f} {more}{ratio:7.2f}', flush=True)


def heading(name, file, pairs):
    print(f'{name}: {walked(file)} samples, {os.path.getsize(file) / 1e6:.0f} MB, {pairs} pairs')
    print(f"{'':34} {'ours':>7} {'MiB':>7}  {'other':>7} {'MiB':>7} {'times':>8}")


def compare(name, file, args):
    flat = ['--stdio', '--no-children', '-g', 'none', '-i', file]
    pipe = ['sh', '-c', 'perf script -i "$0" | perl "$1"', file, COLLAPSE]
    heading(name, file, args.pairs)
    for what, ours, theirs in (
            ('report --folded / walk', ['report', '--folded', '-i', file], [WALK, file]),
            ('report --folded / collapse', ['report', '--folded', '-i', file], pipe),
            ('report -g none --no-children / perf', ['report', *flat], ['perf', 'report', *flat]),
            ('script / perf script', ['script', '-i', file], ['perf', 'script', '-i', file])):
        pair(what, [VMPROF, *ours], theirs, args.pairs)
    pair('report / perf report', [VMPROF, 'report', '-i', file],
         ['perf', 'report', '--stdio', '-i', file], 1, args.perf_default)


def tracepoints(directory, args):
    base = record_tracepoints(directory)
    if not base:
        print('tracepoints: cannot be recorded here')
        return
    file = os.path.join(directory, 'tracepoints')
    repeated(base, file, args.samples)
    heading('tracepoints', file, args.pairs)
    pair('script / perf script', [VMPROF, 'script', '-i', file], ['perf', 'script', '-i', file], args.pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--pairs', type=int, default=3)
    parser.add_argument('--samples', type=int, default=300000)
    parser.add_argument('--build-seconds', type=int, default=10)
    parser.add_argument('--perf-default', type=int, default=60)
    parser.add_argument('--large', type=float)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='vmprof-bench.') as directory:
        base = record(directory)
        file = os.path.join(directory, 'few')
        repeated(base, file, args.samples)
        size = os.path.getsize(file)
        compare('few', file, args)
        compare('many', record_build(directory, args.build_seconds), args)
        tracepoints(directory, args)
        for k in (1, 7):
            n = repeated(base, file, k * args.samples)
            print(f'{n} samples: peak ' + ', '.join(
                f'{" ".join(how)} {Use([VMPROF, *how, "-i", file]).mib:.0f} MiB'
                for how in (['report'], ['report', '--folded'], ['report', '--timeline'], ['script'])))
        if args.large:
            n = repeated(base, file, int(args.large * 2 ** 30 / size * args.samples))
            print(f'{n} samples, {os.path.getsize(file) / 2 ** 30:.2f} GiB: ' + ', '.join(
                f'{" ".join(how)} {u.cpu:.1f} s {u.mib:.0f} MiB'
                for how in (['report'], ['report', '--folded'], ['report', '--timeline'], ['script'])
                for u in [Use([VMPROF, *how, '-i', file])]))


main()
