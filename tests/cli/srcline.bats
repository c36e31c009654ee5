#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Source lines and inlined functions, beside addr2line, eu-addr2line and perf.
# Steady: it compiles, and compares what programs print.

load helper

setup_file() {
	"$VMPROF" version --build-options | grep -q 'libdw: \[ on' || skip "built without libdw"
	UNIT=$(realpath "${BUILD:-build}")/tests/unit
	export UNIT
	cd "$BATS_FILE_TMPDIR" || return
	cat >shapes.cc <<-'END'
		#include <algorithm>
		#include <cstdio>
		#include <cstdlib>
		#include <functional>
		#include <map>
		#include <string>
		#include <vector>
		inline int mix(int a, int b) { return (a * 31) ^ (b >> 3); }
		template <class T> struct Sum {
			T v = 0;
			void add(T x) { v = mix(v, x); }
			template <class F> void each(const std::vector<T> &q, F f) { for (T x : q) f(x); }
		};
		template <class T> __attribute__((noinline)) T work(std::vector<T> &v, std::map<std::string, T> &m)
		{
			std::sort(v.begin(), v.end(), [](const T &a, const T &b) { return mix(a, 1) < mix(b, 2); });
			Sum<T> sum;
			sum.each(v, [&](T x) { sum.add(x); });
			for (auto &p : m)
				sum.add(p.second);
			struct Local {
				static T twice(T x) { std::vector<T> q(x & 15, x); return q.size() ? q[0] * 2 : 1; }
			};
			return sum.v + Local::twice(sum.v);
		}
		int main(int argc, char **argv)
		{
			std::map<std::string, int> m;
			long t = 0;
			for (int r = 0; r < strtol(argv[1], 0, 10); r++) {
				std::vector<int> v;
				for (int i = 0; i < 3000; i++)
					v.push_back(mix(i * r, r));
				m["k" + std::to_string(r % 97)] += r;
				std::function<int(int)> f = [&](int x) { return mix(x, r) + (int)m.size(); };
				t += work(v, m) + f(r);
			}
			printf("%ld\n", t);
		}
	END
	g++ -g -O2 -fno-omit-frame-pointer -o shapes shapes.cc || return 0
	! command -v perf >/dev/null || perf record -q -e cpu-clock -F 2000 -g -o chains ./shapes 6000 \
		>/dev/null 2>&1 || rm -f chains
	! command -v perf >/dev/null || perf record -q -e cpu-clock -F 500 --call-graph dwarf -o stacks \
		./shapes 6000 >/dev/null 2>&1 || rm -f stacks
}

setup() {
	cd "$BATS_FILE_TMPDIR" || return
	[ -x shapes ] || skip "no C++ compiler, or no libdw"
}

lookup() { # lookup FILE [--debug DEBUG]: is it addr2line's?
	command -v eu-addr2line >/dev/null || skip "no eu-addr2line"
	command -v python3 >/dev/null || skip "no python3"
	python3 "$BATS_TEST_DIRNAME/srcline_random.py" "$UNIT/dwarfinfo" "$@"
}

@test "srcline: functions and lines of a C++ program are addr2line's" {
	lookup "$PWD/shapes"
}

@test "srcline: so are those of libc, in its separate and compressed debug file" {
	local libc id
	libc=$(ldd shapes | sed -n 's/.*=> \(.*libc\.so\.6\) .*/\1/p')
	id=$(readelf -n "$libc" 2>/dev/null | sed -n 's/.*Build ID: //p')
	[ -e "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ] || skip "no libc6-dbg"
	lookup "$libc" --debug "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
}

has_chains() {
	[ -e chains ] || skip "perf is not installed, or may not record here"
}

# Of the function that others are inlined into, perf prints what DWARF calls it; which one that is it finds out
# by the name.
without_outermost() {
	sed 's/ ([^ ]*)$//' | awk '/^\t/ { if (ip != "" && $1 != ip) print "\t" ip; else if (ip != "") print line
			ip = $1; line = $0; next }
		{ if (ip != "") print "\t" ip; ip = ""; print }'
}

# Samples that were taken below main(), where all of perf's frames have a name. Of some slots of PLTs it has none,
# or that of the symbol before them; of a program that begins or ends, its chains lack frames (dwarf.bats).
below_main() { # below_main FILE [HEADS]: HEADS are the first lines of those that count
	awk -v heads="${2:-}" 'BEGIN {
			while (heads != "" && (getline line < heads) > 0) wanted[line] = 1
			RS = ""; FS = "\n" }
		heads != "" { if ($1 in wanted) print $0 "\n"; next }
		/ main\+/ && !/\[unknown\]|@plt|[ \t]_init\+|\[vdso\]/ { print $0 "\n" }' "$1"
}

@test "srcline: script has perf's lines of copies of the stack, with what is inlined" {
	[ -e stacks ] || skip "perf is not installed, or may not record here"
	perf script -i stacks 2>/dev/null >all
	"$VMPROF" script -i stacks >ours
	below_main all >theirs
	grep '^[^[:space:]]' theirs >heads
	[ "$(wc -l <heads)" -gt $(($(grep -c '^shapes ' all) / 2)) ]
	[ "$(grep -c ' (inlined)$' theirs)" -gt 50 ]
	diff <(without_outermost <theirs) <(below_main ours heads | without_outermost)
	cmp <("$VMPROF" script -i stacks --no-inline) <(grep -v ' (inlined)$' ours)
}

frames() { # of the program, with the lines behind them
	# of slots of the PLT there is none; perf says their address
	grep -A 1 '/shapes)$' | grep -v -e '^--$' -e '/[^/]*)$' -e '^$' -e '^	' -e '^  shapes\['
}

@test "srcline: script -F +srcline has perf's lines" {
	has_chains
	perf script --no-inline -i chains -F +srcline 2>/dev/null | frames >theirs
	"$VMPROF" script -i chains -F +srcline | frames >ours
	[ "$(grep -c '^  shapes.cc:[0-9]*$' ours)" -gt 10 ]
	diff theirs ours
	"$VMPROF" script -i chains -F +srcline --full-source-path | grep -q "^  $PWD/shapes.cc:[0-9]*$"
}

# Without rows of a PLT's slots, with the lines below them: perf leaves some without a name and gives others that of
# the symbol before them, _init; and without those of what has no name, or was there before main().
named() {
	sed -e '/^#/d' -e '/^$/d' -e 's/ *$//' |
		awk '/^ *[0-9.]+%/ { drop = /@plt|_init|0x[0-9a-f]+$|\[[0-9a-f]+\]$|\?\?:0$|crtstuff|%$/ } !drop'
}

rows() { # rows FILE OPTION...: of perf and of ours
	perf report --stdio -i "$@" 2>/dev/null | named >theirs
	"$VMPROF" report -i "$@" | named >ours
	[ "$(grep -c . ours)" -gt 3 ]
	diff theirs ours
}

@test "srcline: report's keys srcline, srcfile, parent and weight have perf's rows" {
	has_chains
	rows chains --no-children -g none --dso shapes --sort srcline
	rows chains --no-children -g none --dso shapes --sort srcfile
	rows chains --no-children -g none --dso shapes --sort sym,srcline
	rows chains --no-children -g caller --dso shapes --sort sym,srcline
	rows chains --no-children -g none -p 'sort|^main'
	rows chains --children -g none -p ^main
	rows chains --no-children -g none --sort local_weight,weight,ins_lat,sym
	run "$VMPROF" report -i chains -p '('
	[ "$status" -eq 2 ]
	[[ "$output" == *"--parent '('"* ]]
}

@test "srcline: slots of the PLT are their names and offsets, as perf has them, or addresses" {
	has_chains
	command -v objdump >/dev/null && command -v python3 >/dev/null || skip "no objdump, or no python3"
	objdump -d -j .plt shapes | sed -nE 's/^0*([0-9a-f]+) <(.*@plt)>:$/\1/p' >slots
	[ "$(wc -l <slots)" -gt 5 ]
	perf record -q -e cpu-clock -F 2000 -o here ./shapes 1000 >/dev/null 2>&1
	python3 - here moved slots <<-'EOF'
		import struct, sys
		data, slots = bytearray(open(sys.argv[1], 'rb').read()), [int(line, 16) for line in open(sys.argv[3])]
		attrs, = struct.unpack_from('<Q', data, 24)
		sample_type, = struct.unpack_from('<Q', data, attrs + 24)
		at, size = struct.unpack_from('<QQ', data, 40)
		ip, stop, base, n = 16 if sample_type & 1 << 16 else 8, at + size, None, 0
		while at < stop:  # in the program's own code, each but the first few goes to a slot
		    kind, misc, length = struct.unpack_from('<IHH', data, at)
		    if kind == 10 and data[at + 72:at + length].split(b'\0')[0].endswith(b'/shapes'):
		        base, space, offset = struct.unpack_from('<QQQ', data, at + 16)
		    addr, = struct.unpack_from('<Q', data, at + ip)
		    if kind == 9 and base is not None and base <= addr < base + space:
		        n += 1
		        if n > 10:
		            struct.pack_into('<Q', data, at + ip, base - offset + slots[n % len(slots)])
		    at += length
		open(sys.argv[2], 'wb').write(data)
	EOF
	perf report --stdio -i moved --dso shapes --sort srcline 2>/dev/null | grep '@plt' | sed 's/ *$//' | sort >theirs
	"$VMPROF" report -i moved --dso shapes --sort srcline | grep '@plt' | sort >ours
	[ "$(grep -c '%  [^ ].*@plt+0$' ours)" -gt 5 ]
	# ours are all, perf's those that it knows
	[ "$(grep -c . theirs)" -gt 3 ]
	comm -23 theirs ours >only
	cat only
	[ ! -s only ]
	"$VMPROF" script -i moved -F +srcline | grep -A 1 '@plt' | grep -q '^  shapes\[[0-9a-f]*\]$'
}

@test "srcline: --inline has functions that are inlined as frames of their own" {
	has_chains
	cmp <("$VMPROF" script -i chains) <("$VMPROF" script -i chains --no-inline)
	"$VMPROF" script -i chains --inline >lines
	grep -q '^	 *[0-9a-f]* mix+0x[0-9a-f]* (inlined)$' lines
	# without them it is what it was
	cmp <(grep -v '(inlined)$' lines) <("$VMPROF" script -i chains)
	"$VMPROF" report -i chains --folded --inline >folded
	grep -q 'std::sort<[^;]*_\[i\];' folded
	cmp <(sed 's/;[^;]*_\[i\]//g' folded | grep -c .) <(grep -c . folded)
	"$VMPROF" report -i chains --no-children -g --inline | grep -q 'mix (inlined)$'
	"$VMPROF" report -i chains --children -g none --inline | grep -q '\[\.\] mix (inlined)'
}

@test "srcline: an alternate file that dwz has made is found, but not one of another build id" {
	has_chains
	command -v dwz >/dev/null || skip "no dwz"
	cp shapes a && cp shapes b
	dwz -m alt.debug a b
	readelf -SW a | grep -q gnu_debugaltlink
	"$UNIT/dwarfinfo" lookup shapes <<<"$(nm shapes | sed -n 's/ T main$//p')" >whole
	"$UNIT/dwarfinfo" lookup a alt.debug <<<"$(nm a | sed -n 's/ T main$//p')" >with
	cmp whole with
	perf record -q -e cpu-clock -F 2000 -g -o alt ./a 4000 >/dev/null 2>&1
	"$VMPROF" script -i alt --inline --buildid-dir none | grep -q ' mix.*(inlined)$'
	cp shapes alt.debug
	! "$VMPROF" script -i alt --inline --buildid-dir none | grep ' mix.*(inlined)$' || false
}

# Without the numbers of lines, which perf counts on from the middle of what objdump shows, without the text
# of instructions, and without the lines that say whose the source is: perf has them with types.
# A summary's lines stand at the end: those of equal weight are in no order.
annotated() {
	sed -E 's/^( *): +[0-9]+ {1,}/\1: /; s/ +/ /g; s/ *$//' | grep -v -e ':$' -e '^ : [0-9a-f]* <' |
		awk '{ said = match($0, / \/\/ [^ ]*$/) ? substr($0, RSTART) : "" }
			/^ ?[0-9.]+ [^ :]+:[0-9]+$/ { print | "sort"; next }
			match($0, /^[^:]*: [0-9a-f]+:/) { $0 = substr($0, 1, RLENGTH) said } { print }'
}

@test "srcline: annotate has the source between instructions, and -l its lines, as perf has them" {
	has_chains
	command -v objdump >/dev/null || skip "no objdump"
	"$VMPROF" version --build-options | grep -q 'libcapstone: \[ on' || skip "built without libcapstone"
	local option
	for option in --source --print-line --no-source; do
		perf annotate --stdio "$option" -i chains main 2>/dev/null | annotated >theirs
		"$VMPROF" annotate --no-jumps "$option" -i chains main | annotated >ours
		[ "$(grep -c . ours)" -gt 100 ]
		diff theirs ours
	done
	"$VMPROF" annotate -i chains main | grep -qE '^ +: +[0-9]+ +std::map<std::string, int> m;$'
}

@test "srcline: sources are only read where they are files, and escaped" {
	has_chains
	command -v objdump >/dev/null || skip "no objdump"
	"$VMPROF" version --build-options | grep -q 'libcapstone: \[ on' || skip "built without libcapstone"
	mv shapes.cc away
	mkfifo shapes.cc
	timeout 20 "$VMPROF" annotate -i chains main >ours
	grep -q 'main():' ours
	rm shapes.cc
	sed 's/std::map<std::string, int> m;/&\x1b[31m/' away >shapes.cc
	"$VMPROF" annotate -i chains main >ours
	grep -qF 'm;\x1b[31m' ours
	mv away shapes.cc
}

looked_up() { # looked_up PROGRAM: functions and lines of all of its code
	local start size
	read -r start size < <(readelf -SW "$1" | sed -n 's/^.* \.text *PROGBITS *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/\1 \2/p')
	for ((i = 0; i < 0x$size; i += 3)); do printf '%x\n' $((0x$start + i)); done |
		"$UNIT/dwarfinfo" program "$PWD/$1"
}

@test "srcline: functions that the compiler put into files of their own, or into a package, are the program's" {
	cat >third.cc <<-'END'
		#include <algorithm>
		#include <vector>
		static inline long third(long n) { return n / 3 + 1; }
		long other(std::vector<long> &v) { std::sort(v.begin(), v.end()); long s = 0; for (long x : v) s += third(x); return s; }
	END
	local cc version tool
	for cc in g++ clang++; do
		command -v $cc >/dev/null || continue
		for version in 4 5; do
			rm -rf split.dwp ./*.dwo
			$cc -g -gdwarf-$version -O2 -o whole shapes.cc third.cc
			$cc -g -gdwarf-$version -O2 -gsplit-dwarf -c shapes.cc third.cc
			$cc -o split shapes.o third.o
			looked_up whole >wanted
			looked_up split >got
			grep -q '^_Z5thirdl\|third' got
			cmp wanted got
			# a package in place of the files; not each tool can read each compiler's
			for tool in dwp llvm-dwp; do
				command -v $tool >/dev/null || continue
				[ "$tool-$version" != dwp-5 ] || continue
				rm -f split.dwp
				timeout 60 $tool -e split -o split.dwp >/dev/null 2>&1 || continue
				[ -s split.dwp ] || continue
				mkdir away && mv ./*.dwo away
				looked_up split >got
				mv away/*.dwo . && rmdir away
				cmp wanted got
				echo "$cc $version $tool" >>packages
			done
		done
	done
	# beside the program, wherever it was compiled
	mkdir beside && mv split shapes.dwo third.dwo beside
	rm -f split.dwp
	mkdir -p elsewhere && cd elsewhere
	looked_up ../beside/split >../got
	cd ..
	cmp wanted got
	# those of another build do not count
	cp beside/third.dwo beside/shapes.dwo
	looked_up beside/split >got
	[ "$(grep -c '^_Z\|^main' got)" -gt 100 ]
	! cmp wanted got || false
}

@test "srcline: -v says once that a file is missing that functions were put into" {
	has_chains
	g++ -g -O2 -gsplit-dwarf -fno-omit-frame-pointer -o lonely shapes.cc
	perf record -q -e cpu-clock -F 2000 -g -o lone ./lonely 4000 >/dev/null 2>&1
	"$VMPROF" report -i lone -g --inline -v >said
	! grep 'were split off' said || false
	"$VMPROF" report -i lone -g --inline | grep -q 'mix (inlined)$'
	rm -f ./*.dwo
	"$VMPROF" report -i lone -g --inline -v >said
	[ "$(grep -c 'were split off' said)" -eq 1 ]
	grep -q '^# [^ ]*/lonely: .*there is no [^ ]*shapes\.dwo of this build, and no lonely\.dwp' said
	! "$VMPROF" report -i lone -g --inline | grep 'mix (inlined)$' || false
	"$VMPROF" script -i lone -F +srcline | grep -q '^  shapes.cc:[0-9]*$'
}

@test "srcline: sections in GNU's old compression are read" {
	objcopy --compress-debug-sections=zlib-gnu shapes old 2>/dev/null
	readelf -SW old | grep -q ' \.zdebug_info ' || skip "objcopy does not write them"
	looked_up shapes >wanted
	looked_up old >got
	[ "$(grep -c '^_Z' got)" -gt 100 ]
	cmp wanted got
}

@test "srcline: functions and lines of a guest's kernel, which runs elsewhere than its vmlinux was linked" {
	cat >kernel.c <<-'END'
		static inline int third(int n) { return n * 3 / 7; }
		static inline int half(int n) { if (n & 1)
			n += third(n);
			return n / 2 + 1; }
		int work(int n) { int s = 0; while (n > 1) { s += n; n = half(n) - 1; } return s; }
		void _start(void) { work(9); }
	END
	gcc -g -O2 -fno-pic -no-pie -mcmodel=kernel -nostdlib -static -Wl,--build-id=none \
		-Wl,-Ttext=0xffffffff81000000 -Wl,--defsym=_text=0xffffffff81000000 -o vmlinux kernel.c
	nm vmlinux | sed -n 's/ T \(work\|_start\)$//p' | while read -r at; do
		for ((i = 0; i < 40; i++)); do printf '%x\n' $((0x$at + i)); done
	done >addresses
	"$UNIT/dwarfinfo" kernel vmlinux <addresses >ours
	addr2line -a -f -i -e vmlinux <addresses | sed 's/ (disc.*//; s/^??:?$/??:0/' >theirs
	[ "$(grep -c '^third$' ours)" -gt 0 ]
	[ "$(grep -c '^half$' ours)" -gt "$(grep -c '^third$' ours)" ]
	diff theirs ours
}
