#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Delivery to two VMs with different events, directly and by injection, and perf on the host, on one CPU at the same time.
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

direct_begin direct-two
direct_run arm64-kvm direct-two

# near NAME GOT WANTED: to 1 %
near() {
	expect "$1" "${2:-none} of $3" awk -v a="${2:-0}" -v b="$3" 'BEGIN { d = a - b; exit !(b && d * d <= b * b / 10000) }'
}

share one 0 6336
near "one: cycles of programs: samples" "$(($(place one 0 hot75) + $(place one 0 hot25)))" 6400
near "other: events of its program" "$(number other 'event 0' sum)" "$(made other)"
for run in one other; do
	expect "$run: nothing lost, bad or out of order" "$(grep "^$run: kernel" "$out")" \
		says "$out" "^$run: kernel 0 lost 0 bad 0 tasks [1-9][0-9]* late 0 "
done
for what in counted sampled; do
	near "perf on the host: cycles: $what" "$(number beside '' $what)" "$(number alone '' $what)"
done
near "perf on the host: samples" "$(number beside '' sampled)" 19200
read -r before after < <(sed -n 's/^one: run1: before [0-9]* [0-9]* \([0-9]*\) after [0-9]* [0-9]* \([0-9]*\) .*/\1 \2/p' "$out")
expect "perf on the host samples while the VMs do" "$before $after" test "${after:-0}" -gt "${before:-0}"
registers_equal both alone
registers_equal cycled alone
expect "a hundred starts and stops" "" says "$out" '^cycles: cycles 100 done'
expect "the module is removed" "" says "$out" '^removed: at last'
kernels_content
