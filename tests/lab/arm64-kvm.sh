#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The lab of KVM on arm64: its VMs run under KVM, by name, its PMU counts and samples their vCPUs, whose
# processes are told by memory alone, and each run is the same as the one before to the last cycle.
# Steady: its clock counts instructions.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		skip arm64-kvm "no $program"
		exit 0
	fi
done

kvm_run arm64-kvm basics "$tmp/out"
kvm_basics arm64-kvm "$tmp/out"
kvm_record arm64-kvm "$tmp/out"
kvm_processes arm64-kvm "$tmp/out"
count=$(sed -n 's/^stat \([0-9]*\),,cycles.*/\1/p' "$tmp/out/stdout")
# Two VMs share a CPU of 1 GHz.
expect "arm64-kvm: cycles of web1 in a second" "${count:-none}" \
	test "${count:-0}" -gt 300000000 -a "${count:-0}" -lt 700000000

FRESH=1 kvm_run arm64-kvm basics "$tmp/again"
expect "arm64-kvm: the same again" "$(diff "$tmp/out/stdout" "$tmp/again/stdout" | one_line /dev/stdin)" \
	cmp -s "$tmp/out/stdout" "$tmp/again/stdout"
expect "arm64-kvm: the same samples again" "the files differ" \
	cmp -s "$tmp/out/perf.data" "$tmp/again/perf.data"
