#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof record by vmprof.ko on a KVM host of arm64, whose PMU counts exactly: counts and samples, each VM's own
# events, more events than counters within one VM and over three on one CPU.
# Steady: its clock counts instructions.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"
# shellcheck source=tests/lab/lib/kmod.sh
. "$lab/lib/kmod.sh"

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		skip kmod-arm64 "no $program"
		exit 0
	fi
done

# counts RUN VM: count, enabled, running of its event (of several of one name their sums)
counts() {
	"$lab/lib/counts.py" "$tmp/out/$1.data" | awk -v vm="$2" '$1 == vm { print $3, $4, $5 }'
}

# rate RUN VM: events in a million ns on a counter; so runs of unequal length can be compared
rate() {
	counts "$1" "$2" | awk '$3 { printf "%d\n", $1 / $3 * 1e6 }'
}

# near NAME A B PER-MILLE
near() {
	local a=${2:-0} b=${3:-0}
	expect "$1" "$a and $b" test "$b" -gt 0 -a $(((a - b) * 1000)) -le $((b * $4)) -a $(((b - a) * 1000)) -le $((b * $4))
}

# whole RUN VM: its events had their counters all the time
whole() {
	local count enabled running
	read -r count enabled running < <(counts "$1" "$2")
	expect "arm64-kvm: $1: $2 is not multiplexed" "${count:-none} $enabled $running" \
		test "${running:-0}" -gt 0 -a "${enabled:-1}" = "${running:-0}"
	expect "arm64-kvm: $1: $2: and that is said" "$(grep "^$1: .*$2" "$out" | one_line /dev/stdin)" \
		says "$out" "^$1: vmprof record: $2: not multiplexed: "
}

kmod_run arm64-kvm arm64
kmod_split "arm64-kvm: web1" "$tmp/out/web1.data" web1 ''
for run in web1 two; do
	read -r count _ < <(counts $run web1)
	samples=$(kmod_stat "$tmp/out/$run.data" web1 samples)
	expect "arm64-kvm: $run: as many samples as periods" "$samples of ${count:-0} cycles" \
		test $((samples - ${count:-0} / 1000000)) -ge -1 -a $((samples - ${count:-0} / 1000000)) -le 1
done
whole web1 web1
whole db1 db1
whole two web1
whole two db1
# Recording web1 alone copies stacks, and the time for that is the guest's: 1 % is between them already.
near "arm64-kvm: web1's cycles, with db1's instructions and alone" "$(rate two web1)" "$(rate web1 web1)" 20
near "arm64-kvm: db1's instructions, with web1's cycles and alone" "$(rate two db1)" "$(rate db1 db1)" 10
expect "arm64-kvm: more is counted with the host's work for the VM" "$(rate domain web1) and $(rate web1 web1)" \
	test "$(rate domain web1)" -gt "$(rate web1 web1)"
expect "arm64-kvm: too many events" "$(grep '^eight' "$out" | one_line /dev/stdin)" \
	says "$out" '^eight: vmprof record: web1 asks for 8 events, this CPU has 7 counters'
whole seven web1
read -r count enabled running < <(counts turns web1)
expect "arm64-kvm: eight events in turns share their time" "$count $enabled $running" \
	test "${running:-0}" -gt 0 -a "${enabled:-0}" -gt "${running:-0}"
# Each overflow takes its time from the guest: against a run with as many events.
near "arm64-kvm: scaled counts of events in turns" "$(rate turns web1)" "$(rate seven web1)" 30
for vm in web1 db1 web2; do
	whole three $vm
	# Against a run of as many events, as each overflow takes its time here, too.
	near "arm64-kvm: $vm of three VMs with nine events for seven counters" "$(rate three $vm)" "$(rate seven web1)" 30
done

# counted RUN VM: what stat has counted in a million ns; nothing if one of the three events has shared its counter
counted() {
	sed -nE "s/^$1: $2,([0-9]+),,r11,([0-9]+),100\.00,.*/\1 \2/p" "$out" |
		awk '{ n++; count += $1; time += $2 } END { if (n == 3 && time) printf "%d\n", count / time * 1e6 }'
}

# Counts without overflows, of all three at once and of each alone, when the other two run but are not counted.
for vm in web1 db1 web2; do
	near "arm64-kvm: counts of $vm, with two VMs more and six events more than fit, and alone" \
		"$(counted counts $vm)" "$(counted counts-$vm $vm)" 30
done
# stat leaves to perf events what the module has no counters for, unless the module alone is asked.
expect "arm64-kvm: stat of more events than counters" "$(grep '^full:' "$out" | one_line /dev/stdin)" \
	says "$out" '^full: .*web1 asks for 8 events, this CPU has 7 counters: ask for fewer; counted by perf events'
expect "arm64-kvm: they take turns then" "$(grep '^full:' "$out" | one_line /dev/stdin)" \
	test "$(grep -cE '^full: web1,[1-9][0-9]*,,r11,[0-9]+,[1-9][0-9]?\.[0-9]+,' "$out")" -eq 8
expect "arm64-kvm: stat of more events than counters by the module alone" \
	"$(grep '^full-only' "$out" | one_line /dev/stdin)" \
	says "$out" '^full-only: vmprof stat: .*web1 asks for 8 events, this CPU has 7 counters: ask for fewer$'
expect "arm64-kvm: stat of a VM that another program has" "$(grep '^taken' "$out" | one_line /dev/stdin)" \
	says "$out" '^taken: .*web1 is being profiled .*; counted by perf events'
expect "arm64-kvm: and its counts" "$(grep '^taken' "$out" | one_line /dev/stdin)" \
	says "$out" '^taken: web1,[1-9][0-9]*,,r11,[0-9]+,100\.00'
