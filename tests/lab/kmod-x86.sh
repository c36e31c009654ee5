#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof record by vmprof.ko on a KVM host of x86-64: processes, whole chains, modes; what it says when it cannot.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"
# shellcheck source=tests/lab/lib/kmod.sh
. "$lab/lib/kmod.sh"

# modes FILE VM: samples in user mode with a kernel's address, or the other way round
modes() {
	"$VMPROF" report -i "$1" --folded --no-children 2>/dev/null </dev/null | awk -v vm="^$2;" '
		$0 ~ vm && (/;(x_)?(spin|hot_a|hot_b)_\[k\]/ || /;(asm_)?sysvec_apic_timer_interrupt [0-9]*$/) { n += $NF }
		END { print n + 0 }'
}

kmod_run x86-kvm amd64
for vm in web1 db1; do
	prefix=
	[[ $vm = web1 ]] || prefix=x_
	kmod_split "x86-kvm: $vm" "$tmp/out/both.data" $vm "$prefix"
	expect "x86-kvm: $vm: no sample of the other VM" "" \
		test "$(folded "$tmp/out/both.data" | grep "^$vm;" | grep -c ";$([[ $vm = db1 ]] || echo x_)spin [0-9]*$")" -eq 0
	for part in user kernel; do
		read -r all whole < <(kmod_sum "$tmp/out/both.data" $vm ${part}_end)
		# Of few, one may be what is less than one in a hundred of many.
		expect "x86-kvm: $vm: whole $part chains" "$whole of $all" \
			test "$all" -ge 20 -a $(((all - whole) * 100)) -le $((all > 100 ? all : 100))
	done
	expect "x86-kvm: $vm: modes" "" test "$(modes "$tmp/out/both.data" $vm)" -eq 0
	expect "x86-kvm: $vm: nothing lost" "$(grep "both: .*$vm: .*samples" "$tmp/out/stdout")" \
		test "$(kmod_stat "$tmp/out/both.data" $vm lost)" = 0
done
# Without chains the task is that of the sample's moment, but whether an interrupt's stack is its own is looked up later.
samples=$(kmod_stat "$tmp/out/plain.data" web1 samples)
expect "x86-kvm: processes without -g" "$(grep '^plain: .*samples' "$out")" \
	test "${samples:-0}" -ge 20 -a "$(kmod_stat "$tmp/out/plain.data" web1 no_process)" -le $((3 + samples / 20))
expect "x86-kvm: an event of the host goes to the perf backend" "$(grep '^fallback' "$out" | one_line /dev/stdin)" \
	says "$out" '^fallback: .*page-faults.*taking the perf backend'
expect "x86-kvm: and is recorded" "$(grep '^fallback' "$out" | one_line /dev/stdin)" says "$out" '^fallback: status 0'
expect "x86-kvm: a VM that another one has" "$(grep '^busy' "$out" | one_line /dev/stdin)" \
	says "$out" '^busy: .*web1 is being profiled .* by another program'
