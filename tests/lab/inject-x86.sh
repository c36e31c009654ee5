#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# NMIs that KVM injects on a host of x86-64: the VM's own handler takes one for each interrupt of the host's timer, and
# each that was sent is accounted for.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/kmod.sh
. "$lab/lib/kmod.sh"
# shellcheck source=tests/lab/lib/nmi.sh
. "$lab/lib/nmi.sh"

if ((!LONG)); then
	skip inject-x86 "only with LONG=1: QEMU's SVM loses guests by itself"
	exit 0
fi

nmi_begin inject-x86
dir=$tmp/out out=$tmp/out/stdout
kvm_run_sound x86-kvm inject-x86 "$dir" no_reason "${files[@]}" "$tmp/built/storm"
expect "it needs nothing experimental" "$(grep ^info "$out")" says "$out" '^info: deliveries 3 '
for run in inject chains; do
	accounted $run
	sampled $run
	split $run
	read -r _ nmi_exits host_nmis guest_nmis < <(changes $run)
	expect "$run: the guest's kernel counts as many" "${guest_nmis:-none}" test "${guest_nmis:--1}" -eq "$(number $run nmis: guest)"
	expect "$run: none on the host" "${nmi_exits:-none} and ${host_nmis:-none}" test "${nmi_exits:--1}" -eq 0 -a "${host_nmis:--1}" -eq 0
done
expect "chains: of the kernel and of programs" "$(grep '^chains: kernel' "$out")" \
	test "$(number chains kernel chained)" -gt 0 -a "$(number chains kernel user)" -gt 0
expect "record: by injected interrupts, which is said" "$(grep '^record' "$out" | one_line /dev/stdin)" \
	says "$out" '^record: vmprof record: vm: inject backend, inject delivery, cpu-clock every 1000000, 1 vCPU, Linux 6\.1'
recorded record -eq
expect "starts and stops" "" says "$out" '^cycles: cycles [0-9]+ done'
expect "an owner is killed while it has the VM" "" says "$out" '^hold: status: lent'
# The guest's kernel says of the one that comes when the handler has gone that it knows no reason.
expect "a guest that takes no NMI gets one only" "$(grep ^silent "$out" | one_line /dev/stdin)" \
	test "$(number silent nmis: sent)" -eq 1 -a "$(number silent nmis: guest)" -eq 0 -a "$(number silent nmis: merged)" -eq 1
expect "and no more after a second" "$(grep '^silent: status' "$out")" \
	says "$out" '^silent: status: taken back .*has not taken an NMI'

# Two vCPUs, of which one also makes the other's backtraces, as many as it can. Linux asks all its handlers at each
# NMI: a profiler's that comes before a backtrace's own leaves that one without a reason.
accounted storm
sampled storm
expect "storm: the guest's backtraces" "$(grep '@backtraces' "$out")" says "$out" '^@backtraces [0-9]{2,}'
expect "storm: nothing else that the guest has to complain of" "$(grep '^storm: @bad' "$out")" \
	test "$(grep '^storm: @bad' "$out" | grep -vc 'Uhhuh')" -eq 0 -a "$(grep -c '^storm: @bad' "$out")" -le 5
clean inject 'WARNING|BUG:|Oops|Uhhuh|stall|Kernel panic'
grep -E '^(inject|chains|storm): (status|nmis)|^@backtraces' "$out" | sed 's/^/# /'
