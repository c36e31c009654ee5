#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Delivery to the guest with four CPUs and a VM of four vCPUs, which go from one CPU to another while they are profiled.
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

direct_begin direct-smp
runs="injected moved hotplug"
marks=()
if ((LONG)); then
	runs+=" still"
	marks=("$tmp/built/long")
	touch "${marks[@]}"
fi
direct_run arm64-smp direct-smp ${marks[@]+"${marks[@]}"}

for run in $runs; do
	share "$run" 0 400
	# Each vCPU may have begun a period at the end.
	made=$(made "$run") sum=$(number "$run" 'event 1' sum)
	expect "$run: all events of the program are counted, each once" "$sum of $made" \
		test "$made" -ge 400000 -a "${sum:-0}" -le "$made" -a $((made - ${sum:-0})) -le $((4 * 1009 + 4))
	expect "$run: nothing lost, bad or out of order" "$(grep "^$run: kernel" "$out")" \
		says "$out" "^$run: kernel [0-9]+ lost 0 bad 0 tasks [1-9][0-9]* late 0 "
	[[ $run != injected ]] || expect "$run: an interrupt a sample of cycles, and some of the other event's" \
		"$(grep "^$run: raised" "$out" | head -n 1)" \
		test "$(number "$run" raised raised)" -ge "$(number "$run" 'event 1' samples)"
	expect "$run: samples of each vCPU" "$(grep "^$run: cpu" "$out" | one_line /dev/stdin)" \
		test "$(grep -c "^$run: cpu" "$out")" -eq 4
done
expect "the vCPUs have been on several CPUs each" "$(grep '^moves' "$out" | one_line /dev/stdin)" \
	test "$(grep -c '^moves' "$out")" -ge 12
for when in moved plugged removed; do
	registers_equal $when before
done
expect "the module is removed" "" says "$out" '^removed: at last'
kernels_content
