#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof.ko on a KVM host of arm64, whose PMU counts exactly.
# Steady: its clock counts instructions.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		skip module-arm64 "no $program"
		exit 0
	fi
done
# Where the clock counts instructions a second of calls takes longer than a second.
module_lab arm64-kvm arm64 20
deferred=$(sed -n 's/^deferred: //p' "$tmp/out/stdout")
expect "arm64-kvm: samples are completed by their own interrupts" \
	"$deferred more interrupts for $(module_samples alone samples) samples" \
	test "${deferred:-999999}" -lt $(($(module_samples alone samples) / 4))
# Every period of counted cycles is a sample, but for the one that is not over.
for run in alone both-web1 both-db1; do
	count=$(module_count $run)
	samples=$(module_samples $run samples)
	expect "arm64-kvm: $run: as many samples as periods" "$samples of $count cycles" \
		test $((samples - count / 1000000)) -ge -1 -a $((samples - count / 1000000)) -le 1
done
