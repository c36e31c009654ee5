# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For tests of vmprof stat in the labs of KVM, beside tap.sh and kvm.sh.

# stat_why_not DIR: a run in which perf itself has lost something, or VMs have not run
stat_why_not() {
	says "$1/stdout" '^exits [1-9]' || echo "web1 has not left guest mode"
	grep -h Lost "$1/exits"
}

# kvm_stat LAB DIR: what the script stat has counted, beside perf's counts of the same thread and time
kvm_stat() {
	local name=$1 dir=$2 out=$2/stdout exits sum vm
	expect "$name: stat hands through the command's exit status" "$(one_line "$out")" says "$out" '^status 7$'
	sed '/^#/d; /^$/d; s/,[0-9]*,100\.00,.*//' "$dir/perf.csv" | grep -v ':G' >"$dir/perf.counts"
	sed '/^#/d; /^$/d; s/,[0-9]*,100\.00,.*//; s/^web1,//' "$dir/vmprof.csv" | grep -v ':G' >"$dir/vmprof.counts"
	expect "$name: counts of tracepoints and software events are perf's" \
		"$(diff "$dir/perf.counts" "$dir/vmprof.counts" | one_line /dev/stdin)" \
		cmp -s "$dir/perf.counts" "$dir/vmprof.counts"
	exits=$(sed -n 's/^\([0-9]*\),,kvm:kvm_exit.*/\1/p' "$dir/vmprof.counts")
	expect "$name: KVM has counted as many exits" "$exits, $(grep '^exits' "$out")" says "$out" "^exits $exits$"
	# The last one has no entry.
	sum=$(awk -F, '/^web1,/ { n += $3 } END { print n + 1 }' "$dir/exits.csv")
	expect "$name: the exits by reason are all but the last" "$exits, with the last $sum" test "$exits" = "$sum"
	expect "$name: none is lost" "$(one_line "$dir/exits")" test "$(grep -c Lost "$dir/exits")" -eq 0
	"$VMPROF" stat --exits -i "$dir/kvm.data" >"$dir/file.exits" 2>&1
	expect "$name: exits out of perf's file of the same time are the same" \
		"$(diff <(reasons "$dir/exits") <(reasons "$dir/file.exits") | one_line /dev/stdin)" \
		cmp -s <(reasons "$dir/exits") <(reasons "$dir/file.exits")
	for vm in web1 db1; do
		expect "$name: a block for $vm" "$(one_line "$out")" \
			says "$out" "^default  Performance counter stats for VM '$vm':"
	done
	expect "$name: two intervals" "$(grep '^interval' "$out" | one_line /dev/stdin)" \
		test "$(grep -c '^interval .* web1 .* cpu-clock' "$out")" -eq 2
	expect "$name: interrupted, it prints the exits that it has" "$(grep '^interrupted' "$out" | one_line /dev/stdin)" \
		says "$out" "^interrupted Total Samples:[1-9]"
}

# reasons FILE: each reason and its number, of perf's table or ours
reasons() {
	sed -nE 's/^ *(.*[^ ]) +([0-9]+) +[0-9.]+% .*/\1 \2/p' "$1" | sort
}

# table FILE: the rows of a table, perf's or ours, to the last figure
table() {
	grep -E 'us +\( \+-' "$1" | tr -s ' ' | sort
}

# kvm_exits_as_perf LAB DIR: perf's own table of the same time, which it prints to standard error
kvm_exits_as_perf() {
	local name=$1 dir=$2
	if ! command -v perf >/dev/null || ! perf kvm -i "$dir/kvm.data" stat report >"$dir/perf.exits" 2>&1; then
		skip "$name: the exits' reasons are perf kvm stat's" "no perf, or none that reads this"
		return
	fi
	expect "$name: the exits' reasons are perf kvm stat's" \
		"$(diff <(reasons "$dir/perf.exits") <(reasons "$dir/exits") | one_line /dev/stdin)" \
		cmp -s <(reasons "$dir/perf.exits") <(reasons "$dir/exits")
	expect "$name: of its own file every figure is perf kvm stat's" \
		"$(diff <(table "$dir/perf.exits") <(table "$dir/file.exits") | one_line /dev/stdin)" \
		cmp -s <(table "$dir/perf.exits") <(table "$dir/file.exits")
	expect "$name: and so is the headline" "$(grep Samples% "$dir/exits" | one_line /dev/stdin)" \
		cmp -s <(grep Samples% "$dir/perf.exits") <(grep Samples% "$dir/exits")
}
