#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Direct delivery to VMs that mean harm: the host has its counters, its interrupts and its time.
# Steady: its clock counts instructions.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"
# shellcheck source=tests/lab/lib/direct.sh
. "$lab/lib/direct.sh"

if ((!LONG)); then
	skip direct-hostile "storms of interrupts take minutes under translation: LONG=1"
	exit 0
fi
direct_begin direct-hostile
aarch64-linux-gnu-gcc -nostdlib -static -Wl,--build-id=none -Wl,-Ttext=0x40200000 -o "$tmp/built/hostile" \
	"$lab/guest/hostile-arm64.S"
direct_run arm64-kvm direct-hostile "$tmp/built/hostile"

tame=$(number tame fixed ticks)
for vm in tame silent masked storm greedy unanswered grasping; do
	# The two have the CPU in turns; a turn is some percent of this.
	ticks=$(number $vm fixed ticks)
	expect "$vm: the host has its half of the CPU" "${ticks:-none} ticks, ${tame:-none} with a tame VM" \
		test "${ticks:-0}" -gt 0 -a $((${ticks:-0} * 100)) -lt $((${tame:-0} * 110))
	read -r before after < <(sed -n "s/^$vm: beats //p" "$out")
	expect "$vm: it runs on afterwards" "${before:-0} ${after:-0}" test "${after:-0}" -gt "${before:-0}"
	registers_equal $vm before
done
expect "tame: it keeps the counters" "$(grep '^tame: status' "$out")" says "$out" '^tame: status: lent '
for vm in silent masked; do
	expect "$vm: taken back, since nothing is acknowledged" "$(grep "^$vm: status" "$out")" \
		says "$out" "^$vm: status: taken back .* not acknowledged"
done
expect "unanswered: no other interrupt is raised" "$(grep '^unanswered: raised' "$out")" \
	says "$out" '^unanswered: raised 1 held 0$'
for vm in tame silent storm greedy grasping; do
	expect "$vm: it is waited for at most a second" "$(grep "^$vm: closed" "$out")" \
		test "$(sed -n "s/^$vm: closed after //p" "$out")" -le 100
done
for vm in masked unanswered; do
	expect "$vm: it is waited for 5 seconds" "$(grep "^$vm: closed" "$out")" \
		test "$(sed -n "s/^$vm: closed after //p" "$out")" -ge 500
done
expect "the host says so of the two" "$(grep 'stands still' "$tmp/out/dmesg")" \
	test "$(grep -c 'vmprof: the VM of process [0-9]* stands still within its handler' "$tmp/out/dmesg")" -eq 2
expect "the host counts afterwards" "$(grep '^host' "$out")" says "$out" '^host: [1-9][0-9]{7,},,cycles:u,'
expect "the module is removed" "" says "$out" '^removed: at last'
expect "the host's kernel has nothing to complain of" "$(grep -E 'WARNING|BUG:|Oops|Call [Tt]race' "$tmp/out/dmesg")" \
	test "$(grep -cE 'WARNING|BUG:|Oops|Call [Tt]race' "$tmp/out/dmesg")" -eq 0
