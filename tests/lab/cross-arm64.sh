#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof built for arm64 on this machine, with every library, and its unit tests under QEMU's user-mode
# emulation: those that do not look into this machine.
# Steady: builds, and unit tests under translation, in the folder that the other labs of arm64 use.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

for program in aarch64-linux-gnu-gcc qemu-aarch64-static; do
	if ! command -v $program >/dev/null; then
		skip "vmprof for arm64" "no $program"
		exit 0
	fi
done

arm64=$BUILD/arm64
emulated=(qemu-aarch64-static -L "$arm64/sysroot")
# What is emulated has no BPF, no openat2, no signals of its own; and no stack of an x86 program.
tests=()
for source in "$top"/tests/unit/*.c; do
	name=$(basename "$source" .c)
	case $name in
	vm_* | tcg_* | tracepoint | session_symbols | symsave | cfi_rows) ;;
	*) tests+=("$name") ;;
	esac
done
((LONG)) || tests=(guest_chain guest_kernel guest_mm perfdata_read perfdata_write report_hist util)

cross_make() { # cross_make NAME TARGET...
	local name=$1 status=0
	shift
	make_arch arm64 aarch64-linux-gnu "$@" >"$tmp/make" 2>&1 || status=$?
	expect "$name" "$(tail -n 5 "$tmp/make" | one_line /dev/stdin)" test "$status" -eq 0
	((status == 0)) || exit 1
}

cross_make "vmprof for arm64 is built" all
"${emulated[@]}" "$arm64/vmprof" version --build-options >"$tmp/options" 2>&1
# scripts/cross-sysroot leaves Xen's out: its backend knows x86 only.
expect "with every library that this machine's has, but Xen's" "$(one_line "$tmp/options")" \
	diff <(grep -v ' xen: ' "$tmp/options") <("$VMPROF" version --build-options | grep -v ' xen: ')
cross_make "unit programs for arm64 are built" "${tests[@]/#/$arm64/tests/unit/}"
for name in "${tests[@]}"; do
	status=0
	timeout 300 "${emulated[@]}" "$arm64/tests/unit/$name" >"$tmp/unit" 2>&1 </dev/null || status=$?
	expect "unit/$name on arm64" "status $status: $(tail -n 3 "$tmp/unit" | one_line /dev/stdin)" \
		test "$status" -eq 0
done
