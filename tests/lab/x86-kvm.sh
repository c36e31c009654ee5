#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The lab of KVM on x86-64: its VMs run under KVM, by name, and perf samples their vCPUs.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"

# stands VM: whether all its samples are of one address. QEMU's SVM was once seen to leave a guest at an address of
# its host, where it stays: such a run says nothing of vmprof.
stands() {
	"$VMPROF" report --timeline -i "$tmp/out/vmprof.data" 2>/dev/null |
		awk -v vm="$1" '$3 == vm { seen[$5]++ } END { exit !(length(seen) == 1) }'
}

kvm_run x86-kvm basics "$tmp/out"
if stands web1 || stands db1; then
	rm -rf "$tmp/out"
	FRESH=1 kvm_run x86-kvm basics "$tmp/out"
fi
kvm_basics x86-kvm "$tmp/out"
kvm_record x86-kvm "$tmp/out"
kvm_processes x86-kvm "$tmp/out"
