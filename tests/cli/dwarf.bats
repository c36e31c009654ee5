#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Call chains out of copies of the stack (perf record --call-graph dwarf), of programs whose chains are
# known, and beside perf script --no-inline.
# shellcheck disable=SC2154,SC2086 # run sets status; options

load helper
bats_require_minimum_version 1.5.0

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	# Frames of all kinds: of fixed and of variable size, aligned (counted from r10, then rbp), a leaf.
	cat >"$DATA/six.c" <<-'EOF'
		#include <stdlib.h>
		volatile unsigned long sum;
		#define FUNCTION __attribute__((noinline, noclone))
		FUNCTION void f6(int n) { for (int i = 0; i < 5000; i++) sum += (unsigned long)(n * i); __asm__(""); }
		FUNCTION int f5(int n) { f6(n); __asm__(""); return (int)sum + n; }
		FUNCTION int f4(int n) { volatile char b[64]; b[n & 63] = (char)n; f5(n + 1); return b[sum & 63]; }
		FUNCTION int f3(int n)
		{
			_Alignas(64) volatile char b[128];
			volatile char *p = __builtin_alloca(n & 63);
			p[0] = b[n & 127] = 1;
			return f4(n) * 2 + b[sum & 127] + p[0];
		}
		FUNCTION int f2(int n) { volatile char *p = __builtin_alloca(n & 127); p[0] = 1; return f3(n) + p[0]; }
		FUNCTION int f1(int n) { int r = f2(n); __asm__(""); return r + 1; }
		int main(int argc, char **argv)
		{
			int n = argc > 1 ? atoi(argv[1]) : 60000;
			for (int i = 0; i < n; i++)
				f1(i & 1023);
			return 0;
		}
	EOF
	# A signal's handler; threads; code made at run time, which has a frame pointer, and nobody
	# else has; the vDSO.
	cat >"$DATA/odd.c" <<-'EOF'
		#include <pthread.h>
		#include <signal.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <sys/time.h>
		#include <time.h>
		volatile unsigned long sum;
		static volatile int handled;
		#define FUNCTION __attribute__((noinline, noclone))
		FUNCTION void spin(int n) { while (n--) sum += (unsigned long)n; __asm__(""); }
		static void handler(int sig) { spin(1000000); handled++; }
		FUNCTION void interrupted(void) { while (handled < 100) sum++; __asm__(""); }
		FUNCTION void *thread(void *arg) { spin(200000000); __asm__(""); return arg; }
		FUNCTION void jitted(void) { spin(100000000); __asm__(""); }
		FUNCTION void clocks(void)
		{
			struct timespec t;
			for (int i = 0; i < 4000000; i++)
				clock_gettime(CLOCK_MONOTONIC, &t);
			__asm__("");
		}
		int main(void)
		{
			/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
			static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
			struct itimerval every = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
			void *jit = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			pthread_t t;
			signal(SIGALRM, handler);
			setitimer(ITIMER_REAL, &every, NULL);
			interrupted();
			setitimer(ITIMER_REAL, &never, NULL);
			pthread_create(&t, NULL, thread, NULL);
			pthread_join(t, NULL);
			memcpy(jit, code, sizeof(code));
			((void (*)(void (*)(void)))jit)(jitted);
			clocks();
			return 0;
		}
	EOF
	[ "$(uname -m)" = x86_64 ] && command -v perf >/dev/null && command -v gcc >/dev/null || return 0
	build six six.c && record six "$DATA/six" || rm -f "$DATA/six.data"
	build odd odd.c -pthread && record odd "$DATA/odd" || rm -f "$DATA/odd.data"
}

build() { # build NAME SOURCE OPTION...
	local name=$1 source=$2
	shift 2
	gcc -O2 -fomit-frame-pointer "$@" -o "$DATA/$name" "$DATA/$source"
}

record() { # record NAME PROGRAM ARGUMENT...
	local name=$1
	shift
	# no buildid cache of the user's is touched, and none helps
	# and the buffer has room for the time that perf may have to wait for a CPU
	perf record -q -N -m 4096 --call-graph "dwarf,${SIZE:-8192}" -e cpu-clock -F 1000 -o "$DATA/$name.data" -- "$@" \
		>/dev/null 2>&1
}

setup() {
	dir=$BATS_TEST_TMPDIR
	CORPUS=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}
	export HOME=$dir
}

recorded() {
	[ -e "$DATA/$1.data" ] || skip "perf and gcc are not there, or perf may not record here"
}

folded() {
	"$VMPROF" report --folded -i "$1" >"$dir/folded"
}

# share PART WHOLE: of the samples in stacks that match WHOLE, how many in a thousand match PART
share() {
	awk -v part="$1" -v whole="$2" '
		$0 ~ whole { all += $NF; if ($0 ~ part) good += $NF }
		END { print (all < 20 ? "too few samples: " all : int(good * 1000 / all)) }' "$dir/folded"
}

# The whole chain of six, in 99 % of samples.
six_are_whole() {
	folded "$1"
	run share ';main;f1;f2;f3;f4;f5;f6' ';f6'
	echo "$output"
	[ "$output" -ge 990 ]
}

beside_perf() { # beside_perf FILE [OPTION]: of tests/cli/dwarf.py
	local file=$1
	shift
	command -v python3 >/dev/null || skip "no python3"
	perf script --no-inline -i "$file" >"$dir/perf" 2>/dev/null
	"$VMPROF" script --no-inline -i "$file" >"$dir/ours"
	python3 "$BATS_TEST_DIRNAME/dwarf.py" "$dir/perf" "$dir/ours" "$@"
}

@test "dwarf: a chain of six without frame pointers is whole, to where the process began" {
	recorded six
	six_are_whole "$DATA/six.data"
	run share '^six;_start;.*;main' ';main'
	[ "$output" -ge 990 ]
	"$VMPROF" report --stats -i "$DATA/six.data" >"$dir/out"
	grep -qx 'user stacks (--call-graph dwarf) stats:' "$dir/out"
	awk '/^user stacks/ { on = 1; next } on { n += $NF } on && $1 == "outermost:" { good = $NF }
		END { print good, n; exit !(n && good >= n * 0.99) }' "$dir/out"
	run grep -c 'not unwound' <("$VMPROF" report -i "$DATA/six.data")
	[ "$output" -eq 0 ]
}

@test "dwarf: report, script and export have the same chains" {
	recorded six
	folded "$DATA/six.data"
	"$VMPROF" script -i "$DATA/six.data" -F comm,ip,sym >"$dir/script"
	[ "$(grep -c ' f6$' "$dir/script")" -eq "$(awk '/;f6/ { n += $NF } END { print n }' "$dir/folded")" ]
	"$VMPROF" report -i "$DATA/six.data" -s sym >"$dir/report"
	grep -qE '^ +(9[0-9]|100)\.[0-9]+% +[0-9.]+% +\[\.\] f1' "$dir/report"
	"$VMPROF" export --format speedscope -i "$DATA/six.data" -o "$dir/export.json"
	grep -q '"name": *"f3"' "$dir/export.json"
	"$VMPROF" report --max-stack 3 --folded -i "$DATA/six.data" | grep -qx 'six;f4;f5;f6 [0-9]*'
}

# unwound FILE: 99 % of the chains reach the outermost frame or the end of what perf has copied, most the former
unwound() {
	"$VMPROF" report --stats -i "$1" | awk '/^user stacks/ { on = 1; next } on { n += $NF }
		on && $1 == "outermost:" { whole = $NF } on && /not copied:/ { cut = $NF }
		END { print whole, cut, n; exit !(n && whole + cut >= n * 0.99 && whole >= n * 0.8) }'
}

# Of a hundred chains not more than one ends where there is no rule: the first and last steps of a program have none.
ruled() {
	"$VMPROF" report --stats -i "$1" | awk '/^user stacks/ { on = 1; next } on { n += $NF }
		on && /no_rule|bad_frame/ { bad += $NF } END { print bad + 0, n; exit !(n && bad * 100 <= n) }'
}

@test "dwarf: chains beside perf's" {
	recorded six
	beside_perf "$DATA/six.data" --same 95
	record sh sh -c 'i=0; while [ $i -lt 100000 ]; do case $i in *7) x=a$i ;; esac; i=$((i + 1)); done'
	beside_perf "$DATA/sh.data" --same 80
	if command -v perl >/dev/null; then
		SIZE=32768 record perl perl -e 'for my $i (1..300000) { $h{$i % 1000} .= "x$i"; ($s = $i) =~ s/(.)(.)/$2$1/g }'
		beside_perf "$DATA/perl.data" --same 80
	fi
	SIZE=65528 record python3 /usr/bin/python3 -c 'import json
for i in range(20): json.loads(json.dumps([{"a": i, "b": str(i)} for i in range(3000)]))
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
f(20)'
	beside_perf "$DATA/python3.data" --same 80
	unwound "$DATA/python3.data"
}

@test "dwarf: programs that start others, of which perf loses much" {
	recorded six
	record forks sh -c 'for i in 1 2 3; do ls -lR /usr/share/doc | sort | tail -n 1; done'
	unwound "$DATA/forks.data"
}

@test "dwarf: static and stripped programs, and frame information in .debug_frame" {
	recorded six
	local debug="-g -fno-asynchronous-unwind-tables -fno-unwind-tables" form
	if build static six.c -static; then
		record static "$DATA/static"
		six_are_whole "$DATA/static.data"
		strip "$DATA/static"
		record stripped "$DATA/static"
		"$VMPROF" report --stats -i "$DATA/stripped.data" | grep -qE '^ +outermost: +[1-9]'
		ruled "$DATA/stripped.data"
	fi
	for form in "" -gz=zlib -gz=zlib-gnu; do
		build debug six.c $debug $form || continue
		record debug "$DATA/debug"
		six_are_whole "$DATA/debug.data"
	done
	objcopy --only-keep-debug "$DATA/debug" "$DATA/debug.debug"
	objcopy --strip-debug --add-gnu-debuglink="$DATA/debug.debug" "$DATA/debug"
	record debug "$DATA/debug"
	six_are_whole "$DATA/debug.data"
	rm "$DATA/debug.debug"
	folded "$DATA/debug.data"
	[ "$(share ';main;f1;f2;f3;f4;f5;f6' ';f6')" -lt 990 ]
}

@test "dwarf: signal frames, threads, code made at run time, the vDSO" {
	recorded odd
	folded "$DATA/odd.data"
	# where the timer is set, or behind it
	[ "$(share ';main(;[^;]*)?;__restore_rt;handler' ';handler')" -ge 990 ]
	[ "$(share ';main;interrupted;__restore_rt;handler;spin' ';handler')" -ge 500 ]
	[ "$(share '^odd;(__)?clone3?;start_thread;thread;spin' ';thread')" -ge 990 ]
	[ "$(share '_start;.*;main;[^;]*JIT[^;]*;jitted;spin' ';jitted')" -ge 990 ]
	[ "$(share '_start;.*;main;clocks' ';clocks')" -ge 970 ]
	beside_perf "$DATA/odd.data"
}

# beside_gdb COMMAND...: the chains of a process that gdb has stopped, as gdb has them
beside_gdb() {
	local pid ticks=0
	"$@" >/dev/null 2>&1 3>&- &
	pid=$!
	# it is at work, and no more being loaded
	until ((ticks >= 20)); do
		kill -0 "$pid"
		sleep 0.1
		read -r ticks < <(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 12)
	done
	OUT=$dir/gdb STOPS=8 timeout 120 gdb -nx -batch -p "$pid" -x "$BATS_TEST_DIRNAME/gdb_stacks.py" \
		>"$dir/out" 2>&1 || :
	kill -KILL "$pid" 2>/dev/null || :
	[ -e "$dir/gdb.frames" ] || skip "gdb may not attach to a process, or knows no Python: $(tail -n 1 "$dir/out")"
	"$VMPROF" script --no-inline -i "$dir/gdb.data" -F ip | awk '
		NF { line = line (line == "" ? "" : " ") $1 }
		!NF && line != "" { print line; line = "" }
		END { if (line != "") print line }' >"$dir/ours"
	diff "$dir/gdb.frames" "$dir/ours"
}

@test "dwarf: a stopped process has gdb's backtrace" {
	recorded six
	command -v gdb >/dev/null || skip "no gdb"
	beside_gdb "$DATA/six" 100000000
	beside_gdb perl -e 'while (1) { $h{$i++ % 1000} = "x$i"; ($s = "$i") =~ s/(.)(.)/$2$1/g }'
	beside_gdb bash -c 'while :; do case $i in *7) x=a$i ;; esac; i=$((i + 1)); done'
}

@test "dwarf: what is not there is said: the rest of the stack, the program's file" {
	recorded six
	SIZE=256 record short "$DATA/six"
	"$VMPROF" report --stats -i "$DATA/short.data" | grep -qE '^ +not copied: +[1-9]'
	mv "$DATA/six" "$DATA/six.away"
	"$VMPROF" report --stats -i "$DATA/six.data" >"$dir/out"
	mv "$DATA/six.away" "$DATA/six"
	grep -qE '^ +no file: +[1-9]' "$dir/out"
}

@test "dwarf: a damaged program file ends chains, not the report" {
	recorded six
	cp "$DATA/six" "$dir/keep"
	local size at
	size=$(stat -c %s "$DATA/six")
	for at in 64 1000 5000 "$((size / 2))" "$((size - 100))"; do
		head -c "$at" "$dir/keep" >"$DATA/six"
		"$VMPROF" report --stats -i "$DATA/six.data" >/dev/null
		cp "$dir/keep" "$DATA/six"
		head -c 300 /dev/urandom | dd of="$DATA/six" bs=1 seek="$at" conv=notrunc 2>/dev/null
		"$VMPROF" report --stats -i "$DATA/six.data" >/dev/null
	done
	cp "$dir/keep" "$DATA/six"
}

@test "dwarf: files of the corpus" {
	[ -d "$CORPUS" ] || skip "no corpus of perf.data files beside the checkout"
	"$VMPROF" report --stats -i "$CORPUS/perf.data.true.v2" >"$dir/out"
	# of a system that is not here: the address of the sample is all that is certain
	grep -qE '^ +no file: +1$' "$dir/out"
}
