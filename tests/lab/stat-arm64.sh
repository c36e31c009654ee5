#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof stat on a KVM host of arm64 whose PMU counts exactly: by perf events and by the module.
# Steady: its clock counts instructions.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"
# shellcheck source=tests/lab/lib/stat.sh
. "$lab/lib/stat.sh"

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		skip stat-arm64 "no $program"
		exit 0
	fi
done

# counted LINE EVENT VM: what the script stat has counted of it
counted() {
	sed -n "s/^$1 $3,\([0-9]*\),,$2,.*/\1/p" "$tmp/stat/stdout" | head -n 1
}

# near A B PERCENT: whether they are as near as that
near() {
	awk -v a="${1:-0}" -v b="${2:-0}" -v p="$3" \
		'BEGIN { d = a - b; d = d < 0 ? -d : d; exit !(a > 0 && b > 0 && d * 100 <= p * b) }'
}

mkdir "$tmp/built"
build_module arm64 "$tmp/built" || {
	not_ok "arm64-kvm: module" "it is not built"
	exit 1
}
kvm_run arm64-kvm stat "$tmp/stat" "$tmp/built/vmprof.ko"
kvm_stat arm64-kvm "$tmp/stat"
for event in cycles instructions; do
	perf=$(sed -n "s/^\([0-9]*\),,$event:G,.*/\1/p" "$tmp/stat/perf.csv")
	ours=$(sed -n "s/^web1,\([0-9]*\),,$event:G,.*/\1/p" "$tmp/stat/vmprof.csv")
	expect "arm64-kvm: $event of the guest are perf's" "$ours, perf's $perf" near "$ours" "$perf" 0.1
done
for run in both module; do
	expect "arm64-kvm: $run: web1's cycles alone and beside another VM's" \
		"$(counted alone cycles web1), $(counted $run cycles web1)" \
		near "$(counted $run cycles web1)" "$(counted alone cycles web1)" 1
	expect "arm64-kvm: $run: db1's own events, 4 cycles an instruction" \
		"$(counted $run cycles db1), $(counted $run instructions db1)" \
		near "$(counted $run cycles db1)" "$(($(counted $run instructions db1) * 4))" 1
done
turns=$(sed -n 's/^turns web1,[0-9]*,,cycles:u,[0-9]*,\([0-9]*\)\..*/\1/p' "$tmp/stat/stdout" | sort -n | head -n 1)
expect "arm64-kvm: events that take turns say for how long" "$turns" test "${turns:-100}" -lt 100
expect "arm64-kvm: metrics" "$(one_line "$tmp/stat/stdout")" \
	says "$tmp/stat/stdout" '^default +[0-9]+ +instructions +# +0\.25 +insn per cycle'
