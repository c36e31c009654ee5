#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof report beside perf report, on files that perf records here and now, then what perf has not:
# VMs, folded lines, the flame graph in a browser, JSON. The made-up recording of two VMs is that of
# tests/unit/perfdata_scenario.h.
# shellcheck disable=SC2154,SC2016 # run sets stderr; sh -c has its own $0

load helper
bats_require_minimum_version 1.5.0

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	# Chains that are known, a share of recursion, some kernel, several commands and threads. Static:
	# whether the C library's functions have names depends on the machine.
	cat >"$DATA/work.c" <<-'EOF'
		#include <pthread.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/prctl.h>
		#include <sys/wait.h>
		#include <unistd.h>
		volatile unsigned long sum;
		static __attribute__((noinline)) void leaf_a(int n) { while (n--) sum += n; __asm__(""); }
		static __attribute__((noinline)) void leaf_b(int n) { while (n--) sum ^= n; __asm__(""); }
		static __attribute__((noinline)) void both(int n) { leaf_a(3 * n); leaf_b(n); __asm__(""); }
		static __attribute__((noinline)) void rec(int d, int n)
		{
			if (d)
				rec(d - 1, n);
			else
				both(n);
			__asm__("");
		}
		static __attribute__((noinline)) void maps(void)
		{
			char line[4096];
			FILE *f = fopen("/proc/self/maps", "r");
			while (fgets(line, sizeof(line), f)) {}
			fclose(f);
		}
		static void *thread(void *p) { for (int i = 0; i < 150; i++) rec(3, 20000); return p; }
		int main(void)
		{
			pthread_t t;
			if (!fork())
				prctl(PR_SET_NAME, "helper");
			pthread_create(&t, NULL, thread, NULL);
			for (int i = 0; i < 150; i++) { rec(i % 4, 20000); maps(); }
			pthread_join(t, NULL);
			wait(NULL);
			return 0;
		}
	EOF
	command -v perf >/dev/null && command -v gcc >/dev/null || return 0
	gcc -O1 -g -static -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread \
		-o "$DATA/work" "$DATA/work.c"
	record flat cpu-clock --sample-cpu || rm -f "$DATA/flat"
	record chains cpu-clock -g || rm -f "$DATA/chains"
	record two cpu-clock,task-clock -g || rm -f "$DATA/two"
	record group '{cpu-clock,page-faults,task-clock}' -g || rm -f "$DATA/group"
}

record() { # record FILE EVENTS [OPTIONS]
	local file=$1 events=$2
	shift 2
	# The system's programs have no frame pointers: their chains are made of chance.
	[[ " $* " != *" -g "* ]] || set -- "$@" -- "$DATA/work"
	[[ " $* " = *" -- "* ]] ||
		set -- "$@" -- sh -c '"$0/work"; find /usr/share/doc -name "x*" | sort | gzip' "$DATA"
	perf record -q -e "$events" -F 2500 -o "$DATA/$file" "$@" >/dev/null 2>&1
}

setup() {
	dir=$BATS_TEST_TMPDIR
	UNIT=${BUILD:-build}/tests/unit
}

recorded() {
	[ -e "$DATA/$1" ] || skip "perf is not installed, or may not record here"
}

# Entries of a procedure linkage table have names of their own in perf ("@plt"), that of the symbol before
# them (_init), or none (.plt.got): rows of these, and of what has no name, are not compared.
no_plt() {
	sed -E -e '/@plt( |$)/d' -e '/\[\.\] _init( |$)/d' -e '/\[[.k]\] 0x[0-9a-f]{16}( |$)/d' "$@"
}

# Without perf's tip; its "(inlined)" behind "[...]" comes of memory that it has not set. BPF programs
# of others come and go while this runs.
as_perf() { # as_perf FILE OPTIONS...
	local file=$1
	shift
	perf report --stdio -i "$DATA/$file" "$@" 2>/dev/null |
		no_plt -e 's/\[\.\.\.\] \(inlined\)$/[...]/' -e '/^# \(.*\)$/d' >"$dir/perf"
	# the two lines around the tip
	[[ $(tail -n 2 "$dir/perf") != $'#\n#' ]] || sed -i -e '$d' "$dir/perf"
	[[ $(tail -n 1 "$dir/perf") != '#' ]] || sed -i -e '$d' "$dir/perf"
}

same_as_perf() { # same_as_perf FILE OPTIONS...: byte for byte
	as_perf "$@"
	local file=$1
	shift
	"$VMPROF" report -i "$DATA/$file" "$@" >"$dir/all" 2>"$dir/err"
	cat "$dir/err"
	[ ! -s "$dir/err" ] || return 1
	no_plt "$dir/all" >"$dir/ours"
	[ "$(wc -l <"$dir/ours")" -gt 8 ] || return 1
	if ! diff "$dir/perf" "$dir/ours" >"$dir/diff"; then
		echo "perf report $*: differs"
		head -n 30 "$dir/diff"
		return 1
	fi
}

scenario() { # the made-up recording with its store of symbols: $dir/vms
	"$UNIT/perfdata_write" file "$dir/vms" "${1:-4}"
	"$UNIT/elfstore" scenario "$dir/vms.debug"
}

@test "report: flat tables are perf's, byte for byte" {
	recorded flat
	local sort
	for sort in comm dso sym pid cpu comm,dso dso,sym sym,comm overhead,comm +cpu; do
		same_as_perf flat --sort "$sort"
		same_as_perf flat --sort "$sort" -n --show-total-period
	done
	same_as_perf flat
	same_as_perf flat -F overhead,sample,period,comm
	same_as_perf flat -F +sample --percent-limit 1
	same_as_perf flat --show-cpu-utilization
	same_as_perf flat --time 20%-60%
	same_as_perf flat --time 10%/2 --sort sym
	same_as_perf flat --header
}

@test "report: without the call graph the tables of a file with chains are perf's too" {
	recorded chains
	local sort
	for sort in comm dso sym pid cpu comm,dso,sym; do
		same_as_perf chains --no-children -g none --sort "$sort"
		same_as_perf chains -g none --sort "$sort"
	done
}

# Branches of equal weight in different objects stand in the order of perf's heap: a threshold
# leaves them out.
@test "report: call graphs are perf's, in caller and callee order" {
	recorded chains
	local tree
	for tree in graph,3 graph,3,caller graph,3,callee graph,3,count graph,5,2,period; do
		same_as_perf chains --percent-limit 2 -g "$tree"
		same_as_perf chains --percent-limit 2 --no-children -g "$tree"
	done
	for tree in fractal,10 fractal,10,callee; do
		same_as_perf chains --percent-limit 15 -g "$tree"
		same_as_perf chains --percent-limit 15 --no-children -g "$tree"
	done
	same_as_perf chains --percent-limit 3
	same_as_perf chains --percent-limit 3 --no-children -G
	same_as_perf chains --percent-limit 3 --sort sym
	same_as_perf chains --percent-limit 3 --sort sym --no-children
	same_as_perf chains --percent-limit 3 --max-stack 4
	same_as_perf chains --no-children -g folded,3
	same_as_perf chains --no-children -g flat,3,count
}

@test "report: filters are perf's" {
	recorded chains
	same_as_perf chains -g none --comms work
	same_as_perf chains -g none --comms work,sort --percentage relative
	same_as_perf chains -g none --no-children --dsos '[kernel.kallsyms]'
	same_as_perf chains -g none --no-children --symbols leaf_a,leaf_b --percentage relative
	same_as_perf chains -g none --no-children --symbols leaf_a
	same_as_perf chains -g none -U
	cpu=$(perf script -i "$DATA/flat" -F cpu 2>/dev/null | sort | uniq -c | sort -rn |
		sed -n '1s/.*\[0*\([0-9]\+\)\].*/\1/p')
	same_as_perf flat -C "$cpu"
	run "$VMPROF" report -i "$DATA/chains" -C "$cpu"
	[ "$status" -eq 1 ]
	[[ $output == *"carry no CPU"* ]]
	tid=$(perf script -i "$DATA/flat" -F tid 2>/dev/null | sort | uniq -c | sort -rn |
		awk 'NR == 1 { print $2 }')
	same_as_perf flat --tid "$tid" --sort pid,sym
}

@test "report: compressed files, data addresses and user stacks are perf's in flat tables" {
	recorded flat
	local sort how
	for how in "-z -g" "-d -W --sample-cpu" "--call-graph dwarf,4096"; do
		# shellcheck disable=SC2086 # options
		record other cpu-clock $how -- "$DATA/work"
		for sort in comm dso,sym pid; do
			same_as_perf other --no-children -g none --sort "$sort"
		done
	done
}

@test "report: a section for each event, and statistics, as perf has them" {
	recorded two
	same_as_perf two --percent-limit 3
	same_as_perf two -g none --sort comm
	same_as_perf two --stats
	"$VMPROF" report -i "$DATA/two" --event task-clock -g none --sort comm >"$dir/out"
	grep -q "of event 'task-clock'" "$dir/out"
	run grep "of event 'cpu-clock'" "$dir/out"
	[ "$status" -eq 1 ]
}

@test "report: events of a group stand side by side, as in perf" {
	recorded group
	local sort
	for sort in comm dso pid comm,dso,sym; do
		same_as_perf group --no-children -g none --sort "$sort" -n --show-total-period
	done
	# with children by symbol, chains that went astray have rows whose order is chance
	same_as_perf group -g none --sort comm,dso
	same_as_perf group -g none --no-children --percent-limit 1
	same_as_perf group --no-children --percent-limit 3
	grep -q "of events 'anon group { cpu-clock, page-faults, task-clock }'" "$dir/ours"
	same_as_perf two --group -g none --sort comm,dso
	same_as_perf two --group -g none --no-children
	# perf calls one event "events" then
	"$VMPROF" report -i "$DATA/group" --no-group -g none --sort comm >"$dir/out"
	[ "$(grep -c "^# Samples: .* of event '" "$dir/out")" -eq 3 ]
	"$VMPROF" report -i "$DATA/group" --event page-faults -g none --sort comm >"$dir/out"
	[ "$(grep "^# Samples: " "$dir/out")" = "$(grep "of event 'page-faults'" "$dir/out")" ]
}

@test "report: the timeline has every sample, in perf's order of time" {
	recorded flat
	"$VMPROF" report -i "$DATA/flat" --timeline >"$dir/out"
	perf script -i "$DATA/flat" --ns -F pid,cpu,time,ip,sym,dso 2>/dev/null |
		sed -E 's/^ +//; s/ +/ /g; s/^([0-9]+) \[([0-9]+)\] ([0-9.]+): /\3 \2 [host] \1 /' >"$dir/perf"
	sed -E '/^#/d; s/^ +//; s/ +/ /g' "$dir/out" >"$dir/ours"
	[ "$(wc -l <"$dir/ours")" -gt 100 ]
	diff <(cut -d ' ' -f 1-5 "$dir/perf") <(cut -d ' ' -f 1-5 "$dir/ours")
	diff <(grep -vE '@plt| _init |\[unknown\]' "$dir/perf") <(grep -vE '@plt| _init |\[unknown\]' "$dir/ours")
	[ "$(head -n 1 "$dir/out" | tr -s ' ')" = "# Time CPU VM Pid Address Symbol" ]
	recorded group
	"$VMPROF" report -i "$DATA/group" --timeline --event page-faults -q >"$dir/out"
	[ "$(wc -l <"$dir/out")" -eq "$(perf script -i "$DATA/group" -G -F event 2>/dev/null | grep -c page-faults)" ]
	run grep -v ' page-faults ' "$dir/out"
	[ "$status" -eq 1 ]
	# chains were recorded without the CPU
	run "$VMPROF" report -i "$DATA/chains" --timeline -C 0
	[ "$status" -eq 1 ]
	[[ $output == *"carry no CPU"* ]]
}

@test "report: the timeline has the samples of all VMs, as the filters leave them" {
	scenario
	"$VMPROF" report -i "$dir/vms" --timeline -q >"$dir/out"
	[ "$(wc -l <"$dir/out")" -eq 24 ]
	sort -c -k1,1 -k2,2n "$dir/out"
	head -n 1 "$dir/out" | grep -qE '^ +1\.001000000  000  web1 +100  ffffffff81002010  alpha_sys_read \(.*web1.kernel'
	"$VMPROF" report -i - --timeline -q <"$dir/vms" >"$dir/pipe"
	sed -E 's/  [^ ]+ \(.*//' "$dir/out" >"$dir/plain"
	sed -E 's/  [^ ]+ \(.*//' "$dir/pipe" | diff "$dir/plain" -
	"$VMPROF" report -i "$dir/vms" --timeline -q --vm db1 --cpu 1 >"$dir/out"
	[ "$(wc -l <"$dir/out")" -eq 6 ]
	run grep -v '  001  db1 ' "$dir/out"
	[ "$status" -eq 1 ]
	"$VMPROF" report -i "$dir/vms" --timeline -q -S handle -c nginx >"$dir/out"
	[ "$(wc -l <"$dir/out")" -eq 4 ]
	rm -r "$dir/vms.debug"
	"$VMPROF" report -i "$dir/vms" --timeline -q | grep -q '  \[unknown\] ('
	"$VMPROF" report -i "$dir/vms" --timeline -q -U >"$dir/out"
	[ ! -s "$dir/out" ]
	run "$VMPROF" report -i "$dir/vms" --timeline --vm web2
	[ "$status" -eq 1 ]
	[[ $output == *"no VM 'web2'"* ]]
	run "$VMPROF" report -i "$dir/vms" --timeline --json
	[ "$status" -eq 2 ]
}

# A file as perf kvm writes it: samples of a guest kernel, and nothing of the kernel itself.
kvm_file() {
	command -v python3 >/dev/null || skip "no python3"
	python3 - "$dir/kvm" <<-'EOF'
		import struct, sys
		ip, tid, time, cpu, period = 1, 2, 4, 0x80, 0x100
		attr = struct.pack('<IIQQQQQ', 1, 128, 0, 1000000, ip | tid | time | cpu | period, 0, 1 << 18)
		data = b''
		for i, ip in enumerate([0xffffffff81001010] * 4 + [0xffffffff81002020] * 2 +
		                       [0xffffffffc0000110] * 2 + [0x401000]):
		    body = struct.pack('<QIIQIIQ', ip, 4242, 4242, 1000 + i, 0, 0, 1000000)
		    data += struct.pack('<IHH', 9, 5 if ip < 1 << 40 else 4, 8 + len(body)) + body
		head = struct.pack('<9Q', 0x32454c4946524550, 104, 144, 104, 144, 248, len(data), 0, 0)
		open(sys.argv[1], 'wb').write(head + bytes(32) + attr.ljust(144, b'\0') + data)
	EOF
	mkdir -p "$dir/mnt/4242/proc"
	printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81001000 T guest_alpha' \
		'ffffffff81002000 t guest_beta' 'ffffffff81003000 T _etext' \
		$'ffffffffc0000100 t net_poll\t[virtio_net]' >"$dir/mnt/4242/proc/kallsyms"
	echo 'virtio_net 16384 0 - Live 0xffffffffc0000000' >"$dir/mnt/4242/proc/modules"
}

@test "report: guests of perf kvm have the symbols of --guestkallsyms, --guestmodules, --guestmount" {
	kvm_file
	local proc=$dir/mnt/4242/proc
	"$VMPROF" report -i "$dir/kvm" -q -s vm,dso,sym >"$dir/out"
	grep -qE '^ +44\.44%  guest pid 0  \[unknown\] +\[g\] 0xffffffff81001010$' "$dir/out"
	"$VMPROF" report -i "$dir/kvm" -q -s vm,dso,sym --guestkallsyms "$proc/kallsyms" \
		--guestmodules "$proc/modules" >"$dir/out"
	grep -qE '^ +44\.44%  guest pid 0  \[guest.kernel.kallsyms\]  \[g\] guest_alpha$' "$dir/out"
	grep -qE '^ +22\.22%  guest pid 0  \[virtio_net\] +\[g\] net_poll$' "$dir/out"
	"$VMPROF" report -i "$dir/kvm" -q -s vm,dso,sym --guestmount "$dir/mnt" >"$dir/out"
	grep -qE '^ +44\.44%  guest pid 4242  \[guest.kernel.kallsyms.4242\]  \[g\] guest_alpha$' "$dir/out"
	grep -qE '^ +22\.22%  guest pid 4242  \[virtio_net\] +\[g\] net_poll$' "$dir/out"
	"$VMPROF" script -i "$dir/kvm" --guestmount "$dir/mnt" -F ip,sym | grep -q guest_beta
	run "$VMPROF" report -i "$dir/kvm" --guestmount "$dir/none"
	[ "$status" -eq 2 ]
	[[ $output == *"--guestmount $dir/none cannot be read"* ]]
}

@test "report: standard input is perf's pipe" {
	recorded chains
	perf record -q -e cpu-clock -F 2000 -o - -- "$DATA/work" >"$dir/pipe" 2>/dev/null ||
		skip "perf may not record to a pipe here"
	perf report --stdio -i - <"$dir/pipe" 2>/dev/null | grep -v '^#' | no_plt >"$dir/perf"
	"$VMPROF" report -i - <"$dir/pipe" | grep -v '^#' | no_plt >"$dir/ours"
	grep -q leaf_a "$dir/ours"
	diff "$dir/perf" "$dir/ours"
}

@test "report: every sample is in a folded line, as perf script and stackcollapse have it" {
	recorded chains
	"$VMPROF" report -i "$DATA/chains" --folded >"$dir/folded"
	perf script -i "$DATA/chains" --no-inline -F comm,ip,sym,dso 2>/dev/null | awk '
		!NF { if (comm != "") print comm ";" stack; comm = stack = ""; next }
		comm == "" { comm = $1; next }
		{
			name = $2
			if (name == "[unknown]") {
				name = $NF
				gsub(/.*\/|[()]/, "", name)
				name = name ~ /^\[/ ? name : "[" name "]"
			}
			stack = stack == "" ? name : name ";" stack
		}' | sort | uniq -c | sed -E 's/^ *([0-9]+) (.*)$/\2 \1/' |
		grep -E ';rec;leaf_[ab] [0-9]+$' | sort >"$dir/perf"
	[ -s "$dir/perf" ]
	grep -E ';rec;leaf_[ab] [0-9]+$' "$dir/folded" | sort >"$dir/ours"
	diff "$dir/perf" "$dir/ours"
	[ "$(awk '{ n += $NF } END { print n }' "$dir/folded")" -eq \
		"$(perf script -i "$DATA/chains" -F time 2>/dev/null | grep -c .)" ]
	grep -qE '^work;.*_\[k\] [0-9]+$' "$dir/folded"
}

@test "report: VMs have a summary, a column, and tables of their own" {
	scenario
	"$VMPROF" report -i "$dir/vms" --no-children -g none >"$dir/out"
	cat "$dir/out"
	grep -qE '^# web1 +50\.00% +12 +2 .* 66\.67% +33\.33%' "$dir/out"
	grep -qE '^# Overhead  VM    Command   Shared Object  Symbol' "$dir/out"
	grep -qE '^ +16\.67%  db1   postgres  \[db1\.kernel\]   \[g\] beta_sys_read$' "$dir/out"
	grep -qE '^ +16\.67%  web1  nginx     nginx          \[u\] handle$' "$dir/out"
	"$VMPROF" report -i "$dir/vms" --by-vm --sort comm --no-children -q >"$dir/out"
	[ "$(grep -c '100.00%' "$dir/out")" -eq 2 ]
	"$VMPROF" report -i "$dir/vms" --vm web1 --no-children -g none >"$dir/out"
	grep -q '^# vm: web1$' "$dir/out"
	run grep -E '^ .*postgres' "$dir/out"
	[ "$status" -eq 1 ]
	"$VMPROF" report -i "$dir/vms" --sort vcpu --no-children -g none -q >"$dir/out"
	[ "$(grep -c '50.00%' "$dir/out")" -eq 2 ]
	"$VMPROF" report -i "$dir/vms" --sort pid --no-children -q >"$dir/out"
	grep -qE '^ +50\.00% +[0-9]+:web1:nginx +$' "$dir/out"
	"$VMPROF" report -i "$dir/vms" --sort vm,tgid --no-children -q >"$dir/out"
	grep -qE '^ +50\.00%  web1 +[0-9]+:nginx +$' "$dir/out"
	"$VMPROF" report -i "$dir/vms" --folded >"$dir/out"
	grep -qx 'web1;nginx;alpha_main;handle;alpha_libc_read;alpha_entry_SYSCALL_64_\[k\];alpha_sys_read_\[k\] 4' \
		"$dir/out"
	"$VMPROF" report -i "$dir/vms" -g caller >"$dir/out"
	grep -qE '^ +33\.33% +0\.00%  web1  nginx +nginx +\[u\] alpha_main' "$dir/out"
}

@test "report: the summary and the flame graph's subtitle are of what the filters leave" {
	command -v python3 >/dev/null || skip "no python3"
	scenario
	local filter n
	for filter in --vm=web1 --comms=nginx "--dsos=nginx,[virtio_net]" --symbols=handle --tid=100 \
		--symbol-filter=alpha -C1 "-U --symbols=alpha_sys_read"; do
		# shellcheck disable=SC2086 # several words
		set -- -i "$dir/vms" $filter
		"$VMPROF" report "$@" --json --no-children >"$dir/json"
		"$VMPROF" report "$@" -g none --no-children --percentage relative >"$dir/out"
		"$VMPROF" report "$@" --flamegraph "$dir/svg" -q
		n=$(python3 - "$dir/json" "$dir/svg" <<-'EOF'
			import json, sys
			(event,) = json.load(open(sys.argv[1]))["events"]
			rows, svg = event["rows"], open(sys.argv[2]).read()
			for vm in event["vms"]:
			    here = [row["samples"] for row in rows if row["vm"] == vm["name"]]
			    assert vm["samples"] == sum(here), (vm, here)
			total = sum(vm["samples"] for vm in event["vms"])
			assert 0 < total <= 24, total
			shares = [f"{vm['name']} {100 * vm['samples'] / total:.1f}%"
			          for vm in event["vms"] if vm["samples"]]
			assert f">cpu-clock, {total} samples: {', '.join(shares)}<" in svg, shares
			print(total)
		EOF
		)
		[ "$(awk '/^# (web1|db1) / { n += $4; share += $3 } END { print n, share }' "$dir/out")" = "$n 100" ]
	done
	"$VMPROF" report -i "$dir/vms" --vm web1 >"$dir/out"
	run -1 grep -E '^# db1 ' "$dir/out"
	grep -qE '^# web1 +50\.00% +12 ' "$dir/out"
}

@test "report: a VM that is not there is named with those that are" {
	scenario 1
	run "$VMPROF" report -i "$dir/vms" --vm web2
	echo "$output"
	[ "$status" -eq 1 ]
	[[ $output == *"no VM 'web2' is in $dir/vms; there are: host, web1, db1"* ]]
	run "$VMPROF" report -i "$dir/vms" --vmlinux web2="$VMPROF"
	[ "$status" -eq 1 ]
	[[ $output == *"--vmlinux: no VM 'web2' is in"* ]]
}

@test "report: a VM with a comma in its name can be chosen, alone and in a list" {
	local list
	"$UNIT/perfdata_odd" stray "$dir/p"
	cp "$dir/p" "$dir/q"
	"$VMPROF" merge -q --no-align -o "$dir/m" "a,b=$dir/p" "c=$dir/q"
	for list in 'a,b' 'a\,b' 'x,a\,b'; do
		"$VMPROF" report -i "$dir/m" --vm "$list" -s vm -g none -q 2>/dev/null >"$dir/out"
		[ "$(grep -c 'a,b' "$dir/out")" -eq 1 ]
		run -1 grep -w c "$dir/out"
	done
	"$VMPROF" report -i "$dir/m" --vm 'c,a\,b' -s vm -g none -q 2>/dev/null >"$dir/out"
	[ "$(grep -cE '^ +50.00%  (a,b|c) *$' "$dir/out")" -eq 2 ]
	run "$VMPROF" report -i "$dir/m" --vm a
	[ "$status" -eq 1 ]
	[[ $output == *"no VM 'a'"* ]]
}

@test "report: a path of symbols that cannot be read is an error, whatever is in its name" {
	scenario 1
	local args
	for args in "-k $dir" "-k web1=$dir/none" "--kallsyms $dir/none" "--symfs $dir/vms" "--symfs db1=$dir/none"; do
		# shellcheck disable=SC2086 # two words
		run "$VMPROF" report -i "$dir/vms" $args
		[ "$status" -eq 2 ]
		[[ $output == *" cannot be read: "* ]]
	done
	run "$VMPROF" report -i "$dir/vms" -k $'no\033such'
	[[ $output == *'no\x1bsuch cannot be read: No such file'* ]]
	run "$VMPROF" report -i $'no\033such'
	[ "$status" -eq 1 ]
	[[ $output == *'no\x1bsuch'* ]]
}

@test "report: symbols of a saved pipe are in the store that its recorder named" {
	mkdir "$dir/there" "$dir/here"
	"$UNIT/perfdata_write" file - 4 >"$dir/there/saved"
	"$UNIT/perfdata_write" file "$dir/here/vms" 4
	"$UNIT/elfstore" scenario "$dir/there/perf.data.debug"
	cd "$dir/here"
	"$VMPROF" report -i ../there/saved --folded | grep -q alpha_sys_read
	mv ../there/perf.data.debug .
	"$VMPROF" report -i ../there/saved --folded | grep -q alpha_sys_read
	"$VMPROF" script -i ../there/saved -F ip,sym | grep -q alpha_sys_read
	"$VMPROF" report -i - --folded <../there/saved | grep -q alpha_sys_read
	mv perf.data.debug ../there/saved.debug
	"$VMPROF" report -i ../there/saved --folded | grep -q alpha_sys_read
	# not of a file, whose name is known
	mv ../there/saved.debug perf.data.debug
	"$VMPROF" report -i vms --folded >out
	run -1 grep alpha_sys_read out
}

@test "report: JSON has the table's numbers" {
	command -v python3 >/dev/null || skip "no python3"
	scenario
	"$VMPROF" report -i "$dir/vms" --json --no-children >"$dir/json"
	python3 - "$dir/json" <<-'EOF'
		import json, sys
		report = json.load(open(sys.argv[1]))
		assert report["vmprof_report"] == 1 and report["complete"], report
		(event,) = report["events"]
		assert event["samples"] == 24 and len(event["rows"]) == 6
		assert sum(row["samples"] for row in event["rows"]) == 24
		vms = {vm["name"]: vm for vm in event["vms"]}
		assert vms["web1"]["samples"] == 12 and vms["web1"]["vcpus"] == 2
		row = event["rows"][0]
		assert row["overhead"] == 16.67 and row["vm"] == "db1" and row["mark"] == "g", row
	EOF
}

@test "report: JSON is JSON with every key" {
	command -v python3 >/dev/null || skip "no python3"
	scenario
	local key file
	for file in "$dir/vms" "$DATA/flat"; do
		[ -e "$file" ] || continue
		for key in vm comm dso symbol pid tid tgid cpu vcpu cgroup; do
			"$VMPROF" report -i "$file" --json -s "$key" >"$dir/json"
			python3 - "$dir/json" "$key" <<-'EOF'
				import json, sys
				(event,) = json.load(open(sys.argv[1]))["events"]
				kind = int if sys.argv[2] in ("cpu", "vcpu") else (str, type(None))
				assert event["rows"], event
				assert all(isinstance(row[sys.argv[2]], kind) for row in event["rows"]), event
			EOF
		done
	done
	"$VMPROF" report -i "$dir/vms" --json -s vcpu | grep -q '"vcpu": 0,'
}

# In the page the script below plays a user; what it saw is the page's data-result.
browse() { # browse SVG SCRIPT [OPTIONS]: prints the result
	local browser
	browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
		skip "no chromium"
	sed '$d' "$1" >"$dir/page.svg" # </svg>
	printf '<script><![CDATA[\n%s\n]]></script>\n</svg>\n' "$2" >>"$dir/page.svg"
	timeout 400 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$dir/chromium" "${@:3}" --dump-dom "file://$dir/page.svg" >"$dir/dom" 2>/dev/null
	sed -n 's/.*data-result="\([^"]*\)".*/\1/p' "$dir/dom" | head -n 1
}

@test "report: the flame graph is well-formed, the same each time, and works in a browser" {
	recorded chains
	"$VMPROF" report -i "$DATA/chains" --flamegraph "$dir/a.svg"
	"$VMPROF" report -i "$DATA/chains" --flamegraph - >"$dir/b.svg"
	cmp "$dir/a.svg" "$dir/b.svg"
	! command -v python3 >/dev/null ||
		python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$dir/a.svg"
	run browse "$dir/a.svg" "
		const q = s => document.querySelector(s), root = document.documentElement;
		const frames = Array.from(document.querySelectorAll('.f'));
		const named = n => frames.find(f => f.querySelector('title').textContent.startsWith(n + '\n'));
		const width = f => Math.round(+f.querySelector('rect').getAttribute('width'));
		const shown = () => frames.filter(f => f.style.display !== 'none').length;
		const rec = named('rec'), before = width(rec), all = shown(), seen = [];
		q('#search').value = 'LEAF_A';
		q('#search').dispatchEvent(new Event('input', {bubbles: true}));
		seen.push(q('#matched').textContent.startsWith('matched '));
		seen.push(document.querySelectorAll('.hit').length > 0);
		rec.dispatchEvent(new MouseEvent('click', {bubbles: true}));
		seen.push(before < width(frames[0]) && width(rec) === width(frames[0]), shown() < all);
		seen.push(q('#reset').style.display !== 'none');
		rec.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
		seen.push(q('#details').textContent.includes('rec'));
		window.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
		seen.push(width(rec) === before && shown() === all, !document.querySelector('.hit'));
		root.setAttribute('data-result', seen.join(' '));"
	echo "$output"
	[ "$output" = "true true true true true true true true" ]
}

@test "report: the flame graph has the window's width, its root is in sight, its title says of whom" {
	scenario
	"$VMPROF" report -i "$dir/vms" --flamegraph "$dir/a.svg" -q
	grep -q '>Flame graph of vms: web1, db1<' "$dir/a.svg"
	run -1 grep -F "$dir" "$dir/a.svg"
	grep -q '>guest kernel<' "$dir/a.svg"
	run -1 grep -q '>host kernel<' "$dir/a.svg"
	"$VMPROF" report -i "$dir/vms" --flamegraph - --vm db1 | grep -q '>Flame graph of vms: db1<'
	local look="window.addEventListener('load', () => {
		const box = s => document.querySelector(s).getBoundingClientRect();
		const root = box('.f rect'), head = box('#head'), width = window.innerWidth;
		document.documentElement.setAttribute('data-result', [
			width > 1500 && root.width > width - 40 && root.right <= width,
			root.bottom <= window.innerHeight && root.top > head.bottom,
			head.top >= 0 && box('#foot').bottom <= window.innerHeight,
			window.scrollY > 0].join(' ')); });"
	run browse "$dir/a.svg" "$look" --window-size=1600,900
	echo "$output"
	[ "$output" = "true true true false" ]
	# more rows than fit
	run browse "$dir/a.svg" "$look" --window-size=1600,290
	echo "$output"
	[ "$output" = "true true true true" ]
}

@test "report: a flame graph of nothing is an error" {
	scenario 1
	local filter
	for filter in --vm=host --symbols=none -C7; do
		run "$VMPROF" report -i "$dir/vms" --flamegraph "$dir/none.svg" "$filter"
		[ "$status" -eq 1 ]
		[[ $output == *"no flame graph was written: $dir/vms has no samples, or none that the filters leave"* ]]
		[ ! -e "$dir/none.svg" ]
	done
}

@test "report: names cannot break out of the flame graph or onto the terminal" {
	recorded chains
	cat >"$dir/evil.c" <<-'EOF'
		#include <sys/prctl.h>
		int main(void)
		{
			prctl(PR_SET_NAME, "<b>]]>\"\033[31m");
			for (volatile long i = 0; i < 300000000; i++) {}
			return 0;
		}
	EOF
	gcc -O1 -o "$dir/&<img onerror=x>" "$dir/evil.c"
	perf record -q -e cpu-clock -F 2000 -o "$dir/evil.data" -- "$dir/&<img onerror=x>" \
		>/dev/null 2>&1
	"$VMPROF" report -i "$dir/evil.data" >"$dir/out"
	grep -qF '<b>]]>"\x1b[31m' "$dir/out"
	run grep $'\x1b' "$dir/out"
	[ "$status" -eq 1 ]
	"$VMPROF" report -i "$dir/evil.data" --flamegraph "$dir/evil.svg"
	! command -v python3 >/dev/null ||
		python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$dir/evil.svg"
	run browse "$dir/evil.svg" "
		const bad = document.querySelectorAll('img, b, .f script').length;
		const names = Array.from(document.querySelectorAll('.f title'), t => t.textContent);
		document.documentElement.setAttribute('data-result',
			bad + ' ' + names.some(n => n.startsWith('<b>')));"
	echo "$output"
	[ "$output" = "0 true" ]
}

@test "report: a damaged file is reported as far as it is whole" {
	recorded flat
	size=$(stat -c %s "$DATA/flat")
	head -c $((size / 2)) "$DATA/flat" >"$dir/cut"
	run --separate-stderr "$VMPROF" report -i "$dir/cut"
	[ "$status" -eq 1 ]
	[[ $stderr == "vmprof report: "*"$dir/cut"* ]]
	[[ $output == *leaf_a* ]]
	run "$VMPROF" report -i "$dir/cut" --json
	[[ $output == *'"complete": false'* ]]
	run --separate-stderr "$VMPROF" report -i "$dir/cut" --timeline
	[ "$status" -eq 1 ]
	[[ $stderr == "vmprof report: "*"$dir/cut"* && $output == *leaf_a* ]]
}

@test "report: what cannot be done is said in one line" {
	run "$VMPROF" report -i "$dir/none"
	[ "$status" -eq 1 ]
	[ "$output" = "vmprof report: failed to open $dir/none: No such file or directory (try 'vmprof record' first)" ]
	scenario 1
	run "$VMPROF" report -i "$dir/vms" --sort nonsense
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	run "$VMPROF" report -i "$dir/vms" --folded --json
	[ "$status" -eq 2 ]
	run "$VMPROF" report -i "$dir/vms" --no-such-option
	[ "$status" -eq 2 ]
	local option
	for option in --pid=a --pid=1, --tid=1,b --pid=99999999999 -Cx; do
		run "$VMPROF" report -i "$dir/vms" "$option"
		[ "$status" -eq 2 ]
		[[ $output == *" is no list of "* ]]
	done
	run "$VMPROF" report -i "$dir/vms" --flamegraph /nowhere/x.svg
	[ "$status" -eq 1 ]
	[[ $output == *"cannot write /nowhere/x.svg: No such file or directory"* ]]
	[ ! -c /dev/full ] || run "$VMPROF" report -i "$dir/vms" >/dev/full
	"$VMPROF" report -i "$dir/vms" --json >/dev/full 2>"$dir/err" && return 1
	grep -q 'No space left on device' "$dir/err"
	recorded flat
	run "$VMPROF" report -i "$DATA/flat" -g caller
	[ "$status" -eq 1 ]
	[[ $output == *"has no call chains"* ]]
}

@test "report: a file without samples says so, as perf does" {
	command -v perf >/dev/null || skip "perf is not installed"
	perf record -q -e cpu-clock:u -F 1 -o "$dir/empty" -- true >/dev/null 2>&1 ||
		skip "perf may not record here"
	run --separate-stderr "$VMPROF" report -i "$dir/empty"
	[ "$status" -eq 0 ]
	[ "$stderr" = "The $dir/empty data has no samples!" ]
}

@test "report: a reader that goes away ends it quietly" {
	scenario 400
	"$VMPROF" report -i "$dir/vms" --timeline 2>"$dir/err" | head -n 1 >"$dir/out"
	[ ! -s "$dir/err" ]
	"$VMPROF" report -i "$dir/vms" --folded 2>"$dir/err" | head -n 1 >"$dir/out"
	[ ! -s "$dir/err" ]
	[ -s "$dir/out" ]
}
