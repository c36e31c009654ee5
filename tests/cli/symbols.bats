#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Names of functions, beside those of other tools: stock perf with the store of symbols beside a
# profile, stock perf on a host, nm.

setup() {
	UNIT=${BUILD:-build}/tests/unit
	dir=$(mktemp -d "${BATS_TMPDIR:-/tmp}/symbols.XXXXXX")
}

teardown() {
	rm -rf "$dir"
}

# "SYMBOL+OFFSET (DSO)" of each address of perf script's output
perf_addresses() {
	sed -nE 's/^\s+[0-9a-f]+ (.*\))$/\1/p'
}

@test "symbols: stock perf takes a guest's names out of the store, and they are ours" {
	command -v perf >/dev/null || skip "perf is not installed"
	"$UNIT/perfdata_write" file "$dir/out" 4
	"$UNIT/elfstore" scenario "$dir/out.debug"
	perf --buildid-dir "$dir/out.debug" script -i "$dir/out" -F comm,ip,sym,symoff,dso \
		>"$dir/script" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	perf_addresses <"$dir/script" | sort | uniq -c >"$dir/perf"
	"$UNIT/session" resolve "$dir/out" "$dir/out.debug" | sort | uniq -c >"$dir/ours"
	cat "$dir/perf"
	grep -q 'alpha_sys_read+0x10 (/boot/\[web1.kernel\])' "$dir/perf"
	grep -q 'beta_main+0x10 (/usr/bin/postgres)' "$dir/perf"
	grep -q ' handle+0x10 (/usr/sbin/nginx)' "$dir/perf"
	grep -q 'alpha_virtnet_poll+0x10 (/lib/modules/6.1.0/virtio_net.ko)' "$dir/perf"
	run grep unknown "$dir/perf"
	[ "$status" -eq 1 ]
	diff "$dir/perf" "$dir/ours"
	perf --buildid-dir "$dir/out.debug" report --stdio -i "$dir/out" >"$dir/report" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	grep -qE 'web1:nginx +\[web1.kernel\] +\[g\] alpha_sys_read' "$dir/report"
}

@test "symbols: without the store nothing is named, least of all by the host's files" {
	command -v perf >/dev/null || skip "perf is not installed"
	"$UNIT/perfdata_write" file "$dir/out" 1
	"$UNIT/session" resolve "$dir/out" >"$dir/ours"
	[ -s "$dir/ours" ]
	run grep -v '^\[unknown\]' "$dir/ours"
	[ "$status" -eq 1 ]
}

@test "symbols: a profile of the host has perf's names" {
	command -v perf >/dev/null || skip "perf is not installed"
	perf record -q -e cpu-clock -F 2000 -g -o "$dir/host" -- sh -c \
		'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; find /usr/share -xdev |
		 sort | gzip >/dev/null; sha256sum /usr/lib/*/libc.so.6 /bin/bash /usr/bin/perf' \
		>/dev/null 2>&1 || skip "perf may not record here"
	perf script -i "$dir/host" --no-inline --max-stack 1024 -F ip,sym,symoff,dso 2>/dev/null |
		perf_addresses >"$dir/perf"
	"$UNIT/session" resolve "$dir/host" >"$dir/ours"
	total=$(wc -l <"$dir/perf")
	[ "$total" -gt 500 ] || skip "too few samples: $total"
	# perf 6.1 leaves PLT slots of indirect functions without a name, others without a symbol, and gives
	# some that of the symbol before them.
	diff "$dir/perf" "$dir/ours" | tee "$dir/diff" | head -40
	differ=$(awk '/^> [^ ]*@plt/ { slots++ } /^</ && !/^< ([^ ]*@plt|_init\+)/ { n++ } /^< \[unknown\]/ { none++ }
		END { print n - (slots < none ? slots : none) + 0 }' "$dir/diff")
	echo "$differ of $total differ"
	[ $((differ * 100)) -le "$total" ]
	named=$(grep -vc '^\[unknown\]' "$dir/ours")
	[ $((named * 100)) -ge $((total * 50)) ]
}

# nm_functions FILE: "ADDRESS NAME" of the functions of its best table, all aliases
nm_functions() {
	if nm -f sysv "$1" 2>/dev/null | grep -q '|\s*FUNC|'; then
		nm -f sysv "$1"
	else
		nm -D -f sysv "$1"
	fi 2>/dev/null | awk -F'|' '
		$4 ~ /FUNC|IFUNC/ && $7 !~ /UND/ && $2 ~ /[0-9a-f]/ {
			gsub(/ /, "", $1); gsub(/ /, "", $2); sub(/@.*/, "", $1)
			print $2, $1
		}'
}

@test "symbols: each function that nm knows is found, under one of its names" {
	command -v nm >/dev/null || skip "nm is not installed"
	local file files=0
	for file in /usr/lib/x86_64-linux-gnu/libc.so.6 /usr/lib/x86_64-linux-gnu/libstdc++.so.6 \
		/usr/bin/python3 /usr/bin/redis-server /usr/sbin/apache2 "$UNIT/session"; do
		file=$(readlink -f "$file")
		[ -r "$file" ] || continue
		# addresses that are file offsets, as the linker leaves code of PIEs and libraries
		readelf -lW "$file" | awk '/LOAD.* R E / && $2 != substr($3, 1, 2) substr($3, 13) {
			exit 1 }' || continue
		files=$((files + 1))
		nm_functions "$file" >"$dir/nm"
		[ -s "$dir/nm" ]
		"$UNIT/symtab" list "$file" | awk '{ sub(/@.*/, "", $3); print $1, $3 }' >"$dir/ours"
		awk 'NR == FNR { names[$1] = names[$1] " " $2 " "; next }
			$1 in names && !seen[$1]++ { n++; if (!index(names[$1], " " $2 " ")) bad++ }
			END { for (a in names) total++
				printf "%d functions, %d missing, %d misnamed\n", total, total - n, bad
				exit n != total || bad != 0 }' "$dir/nm" "$dir/ours"
	done
	[ "$files" -ge 2 ]
}

# A C++ program with inlined functions, templates, aliases and a part that is seldom run.
cplusplus_program() {
	cat >"$dir/p.cc" <<'END'
#include <algorithm>
#include <map>
#include <string>
#include <vector>
struct shape { virtual ~shape() {} virtual double area(int) const = 0; };
template <int N> struct square : shape {
	double area(int x) const override { return x < 0 ? throw N : N * x; }
};
static std::map<std::string, std::vector<int>> table;
__attribute__((noinline)) static long work(int n)
{
	for (int i = 0; i < n; i++)
		table[std::to_string(i % 10)].push_back(i);
	for (auto &e : table)
		std::sort(e.second.begin(), e.second.end(), [](int a, int b) { return a > b; });
	return table.size();
}
int main(int argc, char **)
{
	square<2> a;
	square<3> b;
	shape *s = argc > 1 ? (shape *)&a : &b;
	return s->area(argc) > work(argc);
}
END
	"${CXX:-g++}" -g -O2 -o "$dir/p" "$dir/p.cc"
}

@test "symbols: 10,000 random addresses of the running kernel have perf's names" {
	command -v perf >/dev/null && command -v python3 >/dev/null || skip "no perf, or no python3"
	perf record -q -e cpu-clock -F 4000 -o "$dir/data" -- timeout 2 sh -c 'while :; do :; done' \
		2>/dev/null || [ "$?" -eq 124 ] || skip "perf may not record here"
	run "$BATS_TEST_DIRNAME/symbols_kernel.py" "${VMPROF:-build/vmprof}" "$dir/data"
	echo "$output"
	[ "$status" -ne 77 ] || skip "$output"
	[ "$status" -eq 0 ]
}

@test "symbols: readable names of C++ are those of c++filt" {
	command -v c++filt >/dev/null || skip "c++filt is not installed"
	"${VMPROF:-build/vmprof}" version --build-options | grep -q 'libiberty: \[ on' || skip "built without libiberty"
	local lib
	lib=$(ldconfig -p | sed -n 's/.*libstdc++\.so\.6 (.*x86-64.*) => //p' | head -n 1)
	[ -r "$lib" ] || skip "no libstdc++"
	nm -D --format=posix --defined-only "$lib" | awk '/^_Z/ { sub(/@.*/, "", $1); print $1 }' | sort -u >"$dir/names"
	[ "$(wc -l <"$dir/names")" -gt 3000 ]
	c++filt -p -i <"$dir/names" >"$dir/theirs"
	"$UNIT/symtab" demangle <"$dir/names" | diff "$dir/theirs" -
}

@test "symbols: 10,000 random addresses of libc, python3 and a C++ program, beside nm and addr2line" {
	local tool libc id debug python random=$BATS_TEST_DIRNAME/symbols_random.py
	for tool in nm addr2line objdump readelf python3 g++; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
	libc=$(ldconfig -p | sed -n 's/.*libc\.so\.6 (.*x86-64.*) => //p' | head -n 1)
	id=$(readelf -n "$libc" | sed -n 's/.*Build ID: //p')
	debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
	if [ -r "$debug" ]; then
		"$random" "$UNIT/symtab" "$libc" --symbols "$debug" --dwarf
	else
		"$random" "$UNIT/symtab" "$libc"
	fi
	python=$(readlink -f /usr/bin/python3)
	"$random" "$UNIT/symtab" "$python"
	cplusplus_program
	"$random" "$UNIT/symtab" "$dir/p" --dwarf
}
