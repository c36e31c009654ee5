#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What inlined functions cost: CPU seconds of vmprof report --folded and vmprof script beside perf script,
with what is inlined into frames of perf record --call-graph dwarf, of a C++ program with much DWARF.

usage: tests/bench/inline.py [--units N] [--pairs N] [--program FILE]

The program is made here (8 units of templates with 24 types each, 50 MB of DWARF; some minutes of g++),
unless one is given. perf asks addr2line, whose time it does not wait for: it is taken by a wrapper, and
counted as perf's. Both run alternating; printed are medians. Then, on the distinct addresses in the program
that were recorded: the reader of vmprof, addr2line and, on 100 of them, eu-addr2line, each with -f -i.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from symbols import BUILD, cpu

VMPROF = os.path.join(BUILD, 'vmprof')
LOOKUP = os.path.join(BUILD, 'tests/unit/dwarfinfo')
HEAD = '''#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
inline long mix(long a, long b) { return (a * 31) ^ (b >> 3); }
template <int N> struct Item {
	long key; int pad[N % 5 + 1];
	bool operator<(const Item &o) const { return mix(key, N) < mix(o.key, N); }
};
template <int N> struct Job {
	std::map<std::string, Item<N>> index;
	std::vector<Item<N>> items;
	std::function<long(long)> fn = [this](long x) { return mix(x, items.size() + N); };
	long run(long n)
	{
		for (long i = 0; i < n; i++) {
			items.push_back({mix(i, N), {}});
			index["k" + std::to_string(i % 13)] = items.back();
		}
		std::sort(items.begin(), items.end());
		std::stable_sort(items.begin(), items.end(),
				 [](const Item<N> &a, const Item<N> &b) { return a.key > b.key; });
		long s = 0;
		std::for_each(index.begin(), index.end(), [&](auto &p) { s += fn(p.second.key); });
		return s;
	}
};
'''
TYPES = 24
WRAPPER = '''#!/bin/bash
TIMEFORMAT='%U %S'
{ time /usr/bin/addr2line "$@" 2>&3; } 3>&2 2>>"$A2L_LOG"
'''


def make_program(directory, units):
    path = lambda name: os.path.join(directory, name)
    for u in range(units):
        with open(path(f'u{u}.cc'), 'w', encoding='ascii') as f:
            f.write(HEAD + f'long unit{u}(long n)\n{{\n\tlong s = 0;\n')
            for t in range(TYPES):
                f.write(f'\ts += std::make_unique<Job<{u * TYPES + t}>>()->run(n);\n')
            f.write('\treturn s;\n}\n')
    with open(path('main.cc'), 'w', encoding='ascii') as f:
        f.write('#include <cstdlib>\n' + ''.join(f'long unit{u}(long n);\n' for u in range(units)))
        f.write('int main(int argc, char **argv)\n{\n\tlong s = 0;\n'
                '\tfor (int r = 0; r < atoi(argv[1]); r++)\n\t\ts += ' +
                ' + '.join(f'unit{u}(60)' for u in range(units)) + ';\n\treturn s == 1;\n}\n')
    objects = []
    for name in [f'u{u}' for u in range(units)] + ['main']:
        subprocess.run(['g++', '-g', '-O2', '-c', '-o', path(name + '.o'), path(name + '.cc')],
                       check=True)
        objects.append(path(name + '.o'))
    subprocess.run(['g++', '-o', path('program'), *objects], check=True)
    return path('program')


def dwarf_size(program):
    out = cpu(['readelf', '-SW', program])[1].decode()
    return sum(int(m[1], 16) for m in re.finditer(r'\.debug_\w+ +\S+ +\S+ +\S+ +(\S+)', out))


def perf_cpu(data, directory, env):
    """Of perf script and of each addr2line that it has started, when they all have ended."""
    log = os.path.join(directory, 'times')
    open(log, 'w').close()
    used = cpu(['env', *env, f'A2L_LOG={log}', 'perf', 'script', '-i', data])[0]
    # an addr2line ends when perf's end of its pipe is closed
    while subprocess.run(['pgrep', '-f', '^/usr/bin/addr2line -e'], capture_output=True).returncode == 0:
        time.sleep(0.2)
    time.sleep(0.5)
    with open(log, encoding='ascii') as f:
        helpers = sum(float(v) for v in f.read().split())
    return used, helpers


def addresses_of(data, program):
    out = cpu([VMPROF, 'script', '--no-inline', '-i', data, '-F', 'ip,dso'])[1].decode()
    return sorted(set(re.findall(r'^\s+([0-9a-f]+) \(%s\)$' % re.escape(program), out, re.M)))


def lookup_cpu(argv, addresses, directory):
    path = os.path.join(directory, 'addresses')
    with open(path, 'w', encoding='ascii') as f:
        f.writelines(a + '\n' for a in addresses)
    return cpu(['sh', '-c', 'f=$1; shift; exec "$@" <"$f"', 'sh', path, *argv])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--units', type=int, default=8)
    parser.add_argument('--pairs', type=int, default=3)
    parser.add_argument('--program')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.realpath(args.program or make_program(directory, args.units))
        data = os.path.join(directory, 'data')
        wrapper = os.path.join(directory, 'addr2line')
        with open(wrapper, 'w', encoding='ascii') as f:
            f.write(WRAPPER)
        os.chmod(wrapper, 0o755)
        subprocess.run(['perf', 'record', '-q', '-N', '-e', 'cpu-clock', '-F', '1000', '--call-graph',
                        'dwarf,4096', '-o', data, program, '400'], check=True)
        env = [f'PATH={directory}:{os.environ["PATH"]}']
        folded, script, perf, helpers = [], [], [], []
        for _ in range(args.pairs):
            folded.append(cpu([VMPROF, 'report', '-i', data, '--folded'])[0])
            script.append(cpu([VMPROF, 'script', '-i', data])[0])
            used, helper = perf_cpu(data, directory, env)
            perf.append(used + helper)
            helpers.append(helper)
        bare = cpu([VMPROF, 'report', '-i', data, '--folded', '--no-inline'])[0]
        samples = cpu([VMPROF, 'script', '-i', data, '-G'])[1].count(b'\n')
        ratio = statistics.median(p / f for p, f in zip(perf, folded))
        print(f'{dwarf_size(program) / 1e6:.0f} MB of DWARF, {samples} samples; CPU seconds: '
              f'report --folded {statistics.median(folded):.2f} (--no-inline {bare:.2f}), script '
              f'{statistics.median(script):.2f}, perf script {statistics.median(perf):.1f}, of that '
              f'addr2line {statistics.median(helpers):.1f}')
        addresses = addresses_of(data, program)
        few = addresses[::max(1, len(addresses) // 100)][:100]
        print(f'{len(addresses)} addresses: vmprof '
              f'{lookup_cpu([LOOKUP, "lookup", program], addresses, directory):.2f} s, addr2line '
              f'{lookup_cpu(["addr2line", "-f", "-i", "-e", program], addresses, directory):.2f} s; '
              f'{len(few)} of them: eu-addr2line '
              f'{lookup_cpu(["eu-addr2line", "-f", "-i", "-e", program], few, directory):.2f} s')
        print(f'perf script takes {ratio:.0f} times what report --folded takes; the goal is 20')
        sys.exit(ratio < 20)


if __name__ == '__main__':
    main()
