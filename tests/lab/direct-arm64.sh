#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Direct delivery on a KVM host of arm64: the counters' interrupts go to the VM's own handler. The clock counts
# instructions, so that each run is the same.
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
# shellcheck source=tests/lab/lib/direct-record.sh
. "$lab/lib/direct-record.sh"

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		skip direct-arm64 "no $program"
		exit 0
	fi
done

# number RUN LINE WORD: the number behind WORD in the line of RUN that begins so
number() {
	sed -n "s/^$1: $2/&/p" "$out" | grep -o "\b$3 [0-9]*" | head -n 1 | cut -d ' ' -f 2
}

# place RUN EVENT FUNCTION: samples of the event in hot75 or hot25
place() {
	sed -n "s/^$1: place $2 $(sed -n "s/^$1: .* $3 \([0-9a-f]*\) .*/\1/p" "$out" | head -n 1) //p" "$out"
}

# share RUN EVENT WANTED: three in four of the program's samples are in hot75
share() {
	local hot75 hot25 all
	hot75=$(place "$1" "$2" hot75) hot25=$(place "$1" "$2" hot25)
	all=$((${hot75:-0} + ${hot25:-0}))
	expect "$1: event $2: samples of the fixed work" "$all of $3 wanted" test "$all" -ge "$3"
	# Four standard deviations; a place may be one period off at each end.
	expect "$1: event $2: 75 % in hot75" "${hot75:-0} of $all" awk -v a="${hot75:-0}" -v n="$all" \
		'BEGIN { d = a - 0.75 * n; exit !(d * d <= 16 * 0.1875 * n) }'
}

mkdir "$tmp/built"
build_direct arm64 "$tmp/built" || {
	not_ok direct-arm64 "its modules are not built"
	exit 1
}
marks=("$tmp/built/own-guests")
((!LONG)) || marks+=("$tmp/built/long")
touch "${marks[@]}"
APPEND=kvm-arm.vgic_v3_group0_trap=1 kvm_run arm64-kvm direct "$tmp/out" "${marks[@]}" "$tmp"/built/{directtest,fixed} \
	"$lab/guest/l2-direct" "$lab/host/direct-record" "$tmp"/built/{regs,vmprof,vmprof_guest}.ko
out=$tmp/out/stdout

expect "what must be refused is refused" "$(grep WRONG "$out" | head -n 5)" \
	test "$(grep -c '^refuse: refused' "$out")" -eq 8 -a "$(grep -c WRONG "$out")" -eq 0
share direct 0 6400
share modes 0 3200
expect "direct: nothing lost, bad or out of order" "$(grep '^direct: kernel' "$out")" \
	says "$out" '^direct: kernel [0-9]+ lost 0 bad 0 tasks [1-9][0-9]* late 0 chained 0 '
expect "each sample stands for its period" "$(grep ': event' "$out" | one_line /dev/stdin)" \
	test "$(grep -c '^direct: event 0 samples [0-9]* period 100[0-4]..$' "$out")" -eq 1 -a \
	"$(grep -c '^modes: event [01] samples [1-9][0-9]* period 200[0-9]..$' "$out")" -eq 2
expect "modes: chains, from the kernel to programs as well" "$(grep '^modes: kernel' "$out")" \
	test "$(number modes kernel chained)" -gt 0 -a "$(number modes kernel user)" -gt 0
# IRQ and all other exits, and the host's own PMU interrupts, in the same work with and without
read -r plain_all plain_irq _ plain_after plain_irq_after _ plain_ticks < <(
	sed -n 's/^plain: before \(.*\) after \(.*\) fixed .* ticks \([0-9]*\) .*/\1 \2 \3/p' "$out")
read -r all irq pmu after irq_after pmu_after ticks < <(
	sed -n 's/^direct: run1: before \(.*\) after \(.*\) fixed .* ticks \([0-9]*\) .*/\1 \2 \3/p' "$out")
samples=$(number direct 'event 0' samples)
more=$(((after - all) - (plain_after - plain_all)))
more_irq=$(((irq_after - irq) - (plain_irq_after - plain_irq)))
expect "direct: the host takes no interrupt of a counter" "$pmu $pmu_after" test "$pmu" -eq "$pmu_after"
# Characters on the console are exits, too, and come before or behind a look at the counter.
expect "direct: exits are as many as without, but for a twentieth of the samples" \
	"$more more, $more_irq of them interrupts; $samples samples" \
	test "$more" -lt $((samples / 20)) -a "$more_irq" -lt $((samples / 20))
instructions=$(((ticks - plain_ticks) * 4 / samples))
echo "# direct: $samples samples, $more exits more, $instructions instructions a sample"
direct_record
((!LONG)) || direct_table
for pair in refused:before cycled:before killed:before dead:counted; do
	expect "registers are the same: ${pair%:*} as ${pair#*:}" "$(grep '^registers' "$out")" test \
		"$(sed -n "s/^registers ${pair%:*}: //p" "$out")" = "$(sed -n "s/^registers ${pair#*:}: //p" "$out")"
done
expect "starts and stops" "" says "$out" '^cycles: cycles [0-9]+ done'
expect "the host counts afterwards" "$(grep '^host' "$out")" says "$out" '^host: [1-9][0-9]{7,},,cycles:u,'
expect "the module is removed" "" says "$out" '^removed: at last'
expect "the host's kernel has nothing to complain of" "$(grep -E 'WARNING|BUG:|Oops|Call [Tt]race|vmprof:' "$tmp/out/dmesg")" \
	test "$(grep -cE 'WARNING|BUG:|Oops|Call [Tt]race|vmprof:' "$tmp/out/dmesg")" -eq 0
expect "nor has the guest's" "$(grep '@bad' "$out")" test "$(grep -c '@bad' "$out")" -eq 0
