#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The lab of KVM on x86-64: its VMs run under KVM, by name, and perf samples their vCPUs,
# QEMU's monitor tells their registers.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/kmod.sh
. "$lab/lib/kmod.sh"

# why_not DIR: a VM all of whose samples are of one address, or samples that this slow machine has lost
why_not() {
	local vm
	for vm in web1 db1; do
		"$VMPROF" report --timeline -i "$1/vmprof.data" 2>/dev/null | awk -v vm="$vm" '
			$3 == vm { seen[$5]++; n++ }
			END { if (length(seen) < 2) printf "%s stands still: its %d samples are of %d addresses. ", vm, n, length(seen) }'
	done
	grep -E '^record .* lost' "$1/stdout"
}

kvm_run_sound x86-kvm basics "$tmp/out" why_not
kvm_basics x86-kvm "$tmp/out"
kvm_record x86-kvm "$tmp/out"
kvm_processes x86-kvm "$tmp/out"
kvm_monitor x86-kvm "$tmp/out"
