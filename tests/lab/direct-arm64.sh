#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Delivery to the guest on a KVM host of arm64: the counters' interrupts go to the VM's own handler, by themselves or
# raised by the host. The clock counts instructions, so that each run is the same.
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
# shellcheck source=tests/lab/lib/direct.sh
. "$lab/lib/direct.sh"
# shellcheck source=tests/lab/lib/direct-record.sh
. "$lab/lib/direct-record.sh"
# shellcheck source=tests/lab/lib/direct-self.sh
. "$lab/lib/direct-self.sh"

direct_begin direct-arm64
marks=()
if ((LONG)); then
	marks=("$tmp/built/long")
	touch "${marks[@]}"
fi
direct_run arm64-kvm direct "$lab/host/direct-record" ${marks[@]+"${marks[@]}"}

expect "what must be refused is refused" "$(grep WRONG "$out" | head -n 5)" \
	test "$(grep -c '^refuse: refused' "$out")" -eq 11 -a "$(grep -c WRONG "$out")" -eq 0
share direct 0 6400
share modes 0 3200
expect "direct: nothing lost, bad or out of order" "$(grep '^direct: kernel' "$out")" \
	says "$out" '^direct: kernel [0-9]+ lost 0 bad 0 tasks [1-9][0-9]* late 0 chained 0 '
expect "each sample stands for its period" "$(grep ': event' "$out" | one_line /dev/stdin)" \
	test "$(grep -c '^direct: event 0 samples [0-9]* period 100[0-4].. ' "$out")" -eq 1 -a \
	"$(grep -c '^modes: event [01] samples [1-9][0-9]* period 200[0-9].. ' "$out")" -eq 2
expect "modes: chains, from the kernel to programs as well" "$(grep '^modes: kernel' "$out")" \
	test "$(number modes kernel chained)" -gt 0 -a "$(number modes kernel user)" -gt 0
# What the same work has taken with samples and without.
read -r plain_all plain_irq _ plain_ticks < <(worked plain)
read -r all irq pmu ticks < <(worked "direct: run1")
samples=$(number direct 'event 0' samples)
more=$((all - plain_all))
more_irq=$((irq - plain_irq))
expect "direct: the host takes no interrupt of a counter" "$pmu" test "$pmu" -eq 0
# Characters on the console are exits, too, and come before or behind a look at the counter.
expect "direct: exits are as many as without, but for a twentieth of the samples" \
	"$more more, $more_irq of them interrupts; $samples samples" \
	test "$more" -lt $((samples / 20)) -a "$more_irq" -lt $((samples / 20))
instructions=$(((ticks - plain_ticks) * 4 / samples))
echo "# direct: $samples samples, $more exits more, $instructions instructions a sample"
expect "direct: instructions a sample" "$instructions" test "$instructions" -lt 1000
direct_inject
direct_record
direct_within
direct_owned
((!LONG)) || direct_table
for when in refused cycled killed; do
	registers_equal $when before
done
registers_equal dead counted
expect "starts and stops" "" says "$out" '^cycles: cycles [0-9]+ done'
expect "starts and stops of what is injected" "" says "$out" '^injected: cycles [0-9]+ done'
expect "the host counts afterwards" "$(grep '^host' "$out")" says "$out" '^host: [1-9][0-9]{7,},,cycles:u,'
expect "the module is removed" "" says "$out" '^removed: at last'
kernels_content
