#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof merge with what perf records here and now (as the host, and as if it were in a VM) and with the
# made-up recording of two VMs (tests/unit/perfdata_scenario.h); what comes out is counted by vmprof and
# by perf. Clocks, duplicates and identities are in tests/unit/merge.c.
# shellcheck disable=SC2154,SC2016 # run sets stderr; sh -c has its own $i

load helper
bats_require_minimum_version 1.5.0

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	command -v perf >/dev/null || return 0
	record host -k CLOCK_MONOTONIC -g || rm -f "$DATA/host"
	record guest -k CLOCK_MONOTONIC || rm -f "$DATA/guest"
	record default || rm -f "$DATA/default"
}

record() { # record FILE PERF-OPTION...
	local file=$DATA/$1
	[[ $1 != - ]] || file=-
	shift
	perf record -q -e cpu-clock -F 2000 -o "$file" "$@" -- sh -c \
		'i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; ls -R /usr/share/doc | sort' \
		>"$DATA/piped" 2>/dev/null
}

setup() {
	dir=$BATS_TEST_TMPDIR
	out=$dir/out.data
	UNIT=${BUILD:-build}/tests/unit
	CORPUS=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}
}

recorded() {
	[ -e "$DATA/guest" ] || skip "perf is not installed, or may not record here"
}

merge() {
	"$VMPROF" merge -o "$out" "$@"
}

# samples FILE [VM]: VM host is the host
samples() {
	"$VMPROF" script -i "$1" -G -F vm,time | awk -v vm="${2:-}" '
		vm == "" || (vm == "host" && !/^VM:/) || $1 == "VM:" vm { n++ } END { print n + 0 }'
}

perf_samples() {
	perf script -i "$1" -G -F comm,time 2>"$dir/perf.err" | wc -l
	[ ! -s "$dir/perf.err" ]
}

@test "merge: a host and two VMs: each has its samples, and all have the sum" {
	recorded
	cp "$DATA/guest" "$dir/db1.data"
	run -0 --separate-stderr merge "$DATA/host" "web1=$DATA/guest" "db1=$dir/db1.data"
	[ -z "$output" ]
	[[ $stderr == *"web1, CLOCK_MONOTONIC, aligned by the time of day"* ]]
	h=$(samples "$DATA/host") g=$(samples "$DATA/guest")
	[ "$h" -gt 20 ] && [ "$g" -gt 20 ]
	[ "$(samples "$out" host)" = "$h" ]
	[ "$(samples "$out" web1)" = "$g" ]
	[ "$(samples "$out" db1)" = "$g" ]
	[ "$(samples "$out")" = $((h + g + g)) ]
	[[ $stderr == *"($((h + g + g)) samples, 2 VMs)"* ]]
	[ ! -e "$out.old" ]
	[ "$(echo "$dir"/out*)" = "$out" ]
}

@test "merge: perf reads what was merged, counts the same and says nothing" {
	recorded
	merge -q "$DATA/host" "web1=$DATA/guest"
	[ "$(perf_samples "$out")" = "$(samples "$out")" ]
	perf script -i "$out" -G -F +machine_pid,+vcpu >"$dir/text" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	[ "$(grep -c '^VM:4194305 VCPU:' "$dir/text")" = "$(samples "$out" web1)" ]
	grep -q 'web1:sh ' "$dir/text"
	# a sample without a chain beside others with one has its address
	perf script -i "$out" -F comm,ip,sym >"$dir/text" 2>"$dir/err"
	grep -q '^web1:' "$dir/text"
	awk '/^web1:/ && (getline next_line) && next_line == "" { bad = 1 } END { exit bad }' "$dir/text"
	run -0 --separate-stderr perf report -i "$out" --stdio
	[ -z "$stderr" ]
	[[ $output == *"web1:sh"*"[g]"* ]]
	[[ $output == *"[k]"* ]]
	run -0 --separate-stderr perf report -i "$out" --stdio --stats
	[ -z "$stderr" ]
}

@test "merge: groups of events stay groups, and the header has what the host's file says of its machine" {
	recorded
	local event group=cpu-clock,page-faults
	perf record -q -k CLOCK_MONOTONIC -e "{$group}" -e context-switches -o "$dir/a" -- \
		ls -R /usr/share/doc >/dev/null
	perf record -q -k CLOCK_MONOTONIC -e context-switches -e "{$group}:S" -o "$dir/b" -- \
		ls -R /usr/share/doc >/dev/null
	merge -q "web1=$dir/b" "$dir/a"
	perf report --stdio --group -s comm -i "$out" >"$dir/text" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	grep -q "of events 'anon group { cpu-clock, page-faults }'" "$dir/text"
	"$VMPROF" report -s comm -i "$out" >"$dir/text"
	grep -q "of events 'anon group { cpu-clock, page-faults }'" "$dir/text"
	for event in cpu-clock page-faults context-switches; do
		[ "$("$VMPROF" script -i "$out" -G -F event | grep -c "$event")" -eq \
			$(($("$VMPROF" script -i "$dir/a" -G -F event | grep -c "$event") + \
				$("$VMPROF" script -i "$dir/b" -G -F event | grep -c "$event"))) ]
	done
	machine() {
		perf report --header-only -I -i "$1" |
			grep -E '^# (hostname|os release|arch|nrcpus|cpu|total mem|sibling|CPU |node|pmu|  *L[0-9]|memory|bpf|btf|group)'
	}
	diff <(machine "$dir/a") <(machine "$out")
	perf report --header-only -I -i "$out" >"$dir/want"
	"$VMPROF" report --header-only -v -i "$out" | grep -v '^# merged' | diff "$dir/want" - | grep '^<' && return 1
	# a group that cannot be one beside another is said
	perf record -q -k CLOCK_MONOTONIC -e '{page-faults,context-switches}' -o "$dir/c" -- true
	run -0 --separate-stderr "$VMPROF" merge -o "$out" "$dir/a" "web1=$dir/c"
	[[ $stderr == *"c: its group of 2 events is none in the output: an event of it is in another group"* ]]
	grep -q "^# group: {cpu-clock,page-faults}$" <("$VMPROF" report --header-only -i "$out")
}

@test "merge: report shows VMs apart and together: table, folded, flame graph" {
	recorded
	merge -q "$DATA/host" "web1=$DATA/guest"
	run -0 --separate-stderr "$VMPROF" report -i "$out"
	[[ $output =~ "[host] "\ +[0-9.]+%\ +"$(samples "$DATA/host") " ]]
	[[ $output =~ "web1 "\ +[0-9.]+%\ +"$(samples "$DATA/guest") " ]]
	run -0 "$VMPROF" report -i "$out" --by-vm
	[[ $output == *web1* ]]
	"$VMPROF" report -i "$out" --folded >"$dir/folded"
	grep -q '^web1;sh;' "$dir/folded"
	grep -q '^host;sh;' "$dir/folded"
	run -0 "$VMPROF" report -i "$out" --flamegraph "$dir/all.svg"
	grep -q web1 "$dir/all.svg"
	run -0 "$VMPROF" report -i "$out" --vm web1 --folded
	[[ $output == *'web1;sh;'* && $output != *'host;'* ]]
}

@test "merge: a recording of several VMs, once more merged, is the same" {
	"$UNIT/perfdata_write" file "$dir/vms.data" 50
	merge -q "$dir/vms.data"
	"$VMPROF" merge -q -o "$dir/again.data" "$out"
	for f in "$out" "$dir/again.data"; do
		diff <("$VMPROF" script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso,vm,vcpu -i "$dir/vms.data") \
			<("$VMPROF" script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso,vm,vcpu -i "$f")
	done
	run -0 "$VMPROF" report -i "$dir/again.data" --header-only
	[[ $output == *"# merged : on one clock"* ]]
	[[ $output == *"vms.data (in $out)"* ]]
}

@test "merge: perf's default clock is refused with a sentence, and --clock-offset or --no-align do" {
	recorded
	run -1 --separate-stderr merge "$DATA/host" "web1=$DATA/default"
	[[ $stderr == *"default (perf's default clock) and "*"--clock-offset web1=NS"* ]]
	[ ! -e "$out" ]
	run -0 merge --clock-offset web1=1000000000 "$DATA/host" "web1=$DATA/default"
	[ "$(samples "$out" web1)" = "$(samples "$DATA/default")" ]
	first=$("$VMPROF" script -i "$DATA/default" -G --ns -F time | head -n 1 | tr -d ' :')
	moved=$("$VMPROF" script -i "$out" --vm web1 -G --ns -F time | head -n 1 | tr -d ' :')
	[ "$(python3 -c "from decimal import Decimal as D; print(D('$moved') - D('$first'))")" = 1.000000000 ]
	run -0 merge --no-align "$DATA/host" "web1=$DATA/default"
	run -0 "$VMPROF" report -i "$out" --stats
	[[ $output == *"# merged : NOT ALIGNED"* ]]
	[[ $output == *"recorded in VM web1"*"not aligned"* ]]
	run -2 --separate-stderr merge --no-align --clock-offset web1=1 "$DATA/host" "web1=$DATA/default"
	[[ $stderr == *"exclude each other"* ]]
}

@test "merge: chains out of copies of the stack are the same behind it, of the host and of a VM, and once more" {
	recorded
	command -v gcc >/dev/null || skip "gcc is not installed"
	cat >"$dir/three.c" <<-'EOF'
		volatile unsigned long sum;
		#define FUNCTION __attribute__((noinline, noclone))
		FUNCTION void f3(int n) { while (n--) sum += (unsigned long)n; __asm__(""); }
		FUNCTION int f2(int n) { f3(n); __asm__(""); return (int)sum; }
		FUNCTION int f1(int n) { int r = f2(n); __asm__(""); return r + 1; }
		int main(void) { for (int i = 0; i < 40000; i++) f1(20000); return 0; }
	EOF
	gcc -O2 -fomit-frame-pointer -o "$dir/three" "$dir/three.c"
	perf record -q -e cpu-clock:u -F 500 --call-graph dwarf,2048 -k CLOCK_MONOTONIC -o "$dir/copies" \
		-- "$dir/three"
	cp "$dir/copies" "$dir/again"
	run -0 --separate-stderr merge "$dir/copies" "web1=$dir/again"
	[[ $stderr != *STACK_USER* && $stderr != *REGS_USER* ]]
	# behind libc, whose names depend on where its debug file is
	chains() { sed -n 's/.*;main;/main;/p' | awk '{ n[$1] += $2 } END { for (c in n) print c, n[c] }' | sort; }
	"$VMPROF" report --folded -i "$dir/copies" | chains >"$dir/want"
	grep -q '^main;f1;f2;f3 ' "$dir/want"
	mv "$out" "$dir/once"
	run -0 --separate-stderr merge "$dir/once"
	for file in "$dir/once" "$out"; do
		for vm in host web1; do
			"$VMPROF" report --folded -i "$file" --symfs web1=/ |
				grep "^$vm;" | chains >"$dir/got"
			diff "$dir/want" "$dir/got"
		done
		[ "$("$VMPROF" script -i "$file" --symfs web1=/ | grep -c ' f2+')" -eq \
			"$((2 * $("$VMPROF" script -i "$dir/copies" | grep -c ' f2+')))" ]
	done
	# perf unwinds them, too
	[ "$(perf script -i "$out" --no-inline 2>/dev/null | grep -c ' f2+')" -gt 0 ]
}

@test "merge: pipes in and out" {
	recorded
	record - -k CLOCK_MONOTONIC
	mv "$DATA/piped" "$dir/piped"
	n=$(samples "$dir/piped")
	# the time of day is not in a pipe's header: the same clock cannot be known to be so
	"$VMPROF" merge -q -o - --no-align "$DATA/host" web1=- <"$dir/piped" | cat >"$out"
	[ "$(samples "$out" web1)" = "$n" ]
	[ "$(perf_samples "$out")" = $((n + $(samples "$DATA/host"))) ]
	# shellcheck disable=SC2002 # a pipe is what is wanted
	cat "$dir/piped" | "$VMPROF" merge -q -o "$out" --no-align "$DATA/host" web1=-
	[ "$(samples "$out" web1)" = "$n" ]
	"$VMPROF" merge -q -o "$out" --no-align "$DATA/host" web1=<(cat "$dir/piped")
	[ "$(samples "$out" web1)" = "$n" ]
}

@test "merge: a file that was cut off: what is whole of it, said, status 1" {
	recorded
	size=$(stat -c %s "$DATA/guest")
	head -c $((size * 2 / 3)) "$DATA/guest" >"$dir/cut"
	run -1 --separate-stderr merge --no-align "$DATA/host" "web1=$dir/cut"
	[[ $stderr == *"$dir/cut: offset "*"what is whole of it is merged"* ]]
	n=$(samples "$dir/cut" 2>/dev/null)
	[ "$n" -gt 0 ] && [ "$(samples "$out" web1)" = "$n" ]
	[ "$(perf_samples "$out")" = $((n + $(samples "$DATA/host"))) ]
	head -c 50 "$DATA/guest" >"$dir/head"
	run -1 --separate-stderr "$VMPROF" merge -o "$dir/none" "web1=$dir/head"
	[ ! -e "$dir/none" ]
}

@test "merge: files of other times, machines and byte orders" {
	[ -d "$CORPUS" ] || skip "no corpus beside the checkout"
	for f in "$CORPUS"/perf.data.*; do
		n=$(samples "$f" 2>/dev/null)
		run --separate-stderr merge --no-align "a=$f" "$DATA/host"
		[ "$status" -le 1 ]
		[ -e "$out" ] || { [ "$n" = 0 ] && continue; }
		[ "$(samples "$out" a)" = "$n" ]
		rm "$out"
	done
}

@test "merge: symbols that lie beside an input lie beside the output, and under the VM's new name" {
	"$UNIT/perfdata_write" file "$dir/vms.data" 5
	"$UNIT/elfstore" scenario "$dir/vms.data.debug"
	mkdir "$dir/vms.data.debug/web1/0123456789"
	ln -s /bin/true "$dir/vms.data.debug/web1/0123456789/elf"
	merge -q "$dir/vms.data"
	files() { (cd "$1" && find . -type f -exec cksum {} +); }
	[ "$(files "$out.debug" | wc -l)" -ge 8 ]
	diff <(files "$dir/vms.data.debug" | sort) <(files "$out.debug" | sort)
	[ -e "$(find "$out.debug/.build-id" -type l | head -n 1)/elf" ]
	diff <("$VMPROF" script -i "$dir/vms.data") <("$VMPROF" script -i "$out")
	perf --buildid-dir "$out.debug" script -i "$out" -F ip,sym >"$dir/text"
	grep -q alpha_sys_read "$dir/text" && grep -q beta_sys_read "$dir/text"
}

@test "merge: the output is never an input, is kept as .old, and is whole or not there" {
	recorded
	cp "$DATA/host" "$dir/in"
	ln "$dir/in" "$out"
	run -1 --separate-stderr merge "$dir/in"
	[[ $stderr == *"is an input and the output"* ]]
	cmp "$dir/in" "$DATA/host"
	rm "$out"
	merge -q "$dir/in"
	merge -q "$dir/in"
	[ -s "$out.old" ]
	run -1 --separate-stderr "$VMPROF" merge -o "$dir/none/out" "$dir/in"
	[[ $stderr == *"$dir/none/out: cannot be created"* ]]
	run -1 --separate-stderr bash -c "ulimit -f 16; exec '$VMPROF' merge -o '$dir/full' '$dir/in'"
	[[ $stderr == *"cannot write"* ]]
	[ ! -e "$dir/full" ]
	run -1 --separate-stderr "$VMPROF" merge -o /dev/full "$dir/in"
	# an input that does not come
	mkfifo "$dir/fifo"
	"$VMPROF" merge -o "$dir/never" "$dir/fifo" 2>"$dir/err" 3>&- &
	pid=$!
	sleep 0.3
	while kill -TERM "$pid" 2>/dev/null; do sleep 0.3; done # once may be too early
	wait "$pid" || :
	[ ! -e "$dir/never" ]
}

@test "merge: a link is written through: /dev/stdout stays what it is" {
	recorded
	ln -s /proc/self/fd/1 "$dir/stdout"
	ln -s target "$dir/link"
	"$VMPROF" merge -q -o "$dir/stdout" "$DATA/guest" >"$dir/file"
	echo "something is in it" >"$dir/target2"
	"$VMPROF" merge -q -o "$dir/stdout" "$DATA/guest" >>"$dir/target2"
	"$VMPROF" merge -q -o "$dir/link" "$DATA/guest"
	[ "$(readlink "$dir/stdout")" = /proc/self/fd/1 ]
	[ -L "$dir/link" ]
	[ "$(samples "$dir/target")" -eq "$(samples "$DATA/guest")" ]
	[ "$(samples "$dir/file")" -eq "$(samples "$DATA/guest")" ]
}

@test "merge: wrong options, and --help" {
	run -2 --separate-stderr "$VMPROF" merge a.data
	[[ $stderr == *"-o OUT"* ]]
	run -2 --separate-stderr "$VMPROF" merge -o "$dir/x"
	run -2 --separate-stderr "$VMPROF" merge -o "$dir/x" - web1=- </dev/null
	[[ $stderr == *"standard input (-) is given 2 times, and can be read once only" ]]
	run -2 --separate-stderr "$VMPROF" merge -o "$dir/x" --prefer both a
	run -2 --separate-stderr "$VMPROF" merge -o "$dir/x" --clock-offset web1=1s a
	run -2 --separate-stderr "$VMPROF" merge -o "$dir/x" --machine web1=0 a
	run -1 --separate-stderr "$VMPROF" merge -o "$dir/x" "$dir/none"
	[[ $stderr == *"$dir/none: cannot be opened: No such file"* ]]
	run -1 --separate-stderr "$VMPROF" merge -o "$dir/x" $'\e[31m=/dev/null'
	[[ $stderr != *$'\e'* ]]
	# what never ends is not copied to the disk first
	run -1 --separate-stderr timeout 100 "$VMPROF" merge -o "$dir/x" /dev/zero
	[[ $stderr == *"/dev/zero: not a perf.data file"* ]]
	run -0 --separate-stderr "$VMPROF" merge --help
	[[ $output == *"--no-align"* ]]
}
