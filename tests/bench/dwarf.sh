#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tests/bench/dwarf.sh: what chains out of copies of the stack cost (perf record --call-graph dwarf):
# CPU microseconds a sample of ten frames of vmprof report --folded, less those of a report without
# chains, and of perf script --no-inline, in turns. PAIRS=5, SAMPLES=30000.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
vmprof=${BUILD:-build}/vmprof
for tool in perf gcc; do
	command -v "$tool" >/dev/null || { echo "bench/dwarf: no $tool, nothing measured"; exit 0; }
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/vmprof-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT

cat >"$dir/six.c" <<'EOF'
volatile unsigned long sum;
#define FUNCTION __attribute__((noinline, noclone))
FUNCTION void f6(int n) { for (int i = 0; i < 5000; i++) sum += (unsigned long)(n * i); __asm__(""); }
FUNCTION void f5(int n) { f6(n); __asm__(""); }
FUNCTION void f4(int n) { f5(n); __asm__(""); }
FUNCTION void f3(int n) { f4(n); __asm__(""); }
FUNCTION void f2(int n) { f3(n); __asm__(""); }
FUNCTION void f1(int n) { f2(n); __asm__(""); }
int main(void) { for (;;) f1((int)sum); }
EOF
gcc -O2 -fomit-frame-pointer -o "$dir/six" "$dir/six.c"
# -N: the user's cache of files is none of ours
perf record -q -N --call-graph dwarf,2048 -e cpu-clock -F 10000 -o "$dir/data" -- \
	timeout "$((${SAMPLES:-30000} / 10000 + 1))" "$dir/six" >/dev/null 2>&1 || :
samples=$("$vmprof" report --stats -i "$dir/data" | awk '$1 == "SAMPLE" { n = $3 } END { print n }')

cpu() { # cpu COMMAND...: its CPU time in microseconds
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ printf "%d\n", ($1 + $2) * 1e6 }'
}

echo "$samples samples, CPU us a sample"
for ((i = 0; i < ${PAIRS:-5}; i++)); do
	folded=$(cpu "$vmprof" report --folded -i "$dir/data")
	flat=$(cpu "$vmprof" report --no-children -g none -i "$dir/data")
	script=$(cpu "$vmprof" script -i "$dir/data")
	perf=$(cpu perf script --no-inline -i "$dir/data")
	awk -v n="$samples" -v a="$folded" -v b="$flat" -v c="$script" -v d="$perf" 'BEGIN {
		printf "report --folded %.2f (chains %.2f), script %.2f; perf script %.2f, %.1f times that\n",
			a / n, (a - b) / n, c / n, d / n, d / c }'
done
