#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Direct delivery on a KVM host of x86-64 (SVM): the VM's own handler takes the host's NMIs, and each that was sent is
# accounted for.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/kmod.sh
. "$lab/lib/kmod.sh"
# shellcheck source=tests/lab/lib/nmi.sh
. "$lab/lib/nmi.sh"

if ((!LONG)); then
	skip direct-x86 "only with LONG=1: QEMU's SVM loses guests by itself"
	exit 0
fi

# refused NAME WORDS: a record by vmprof that is not made
refused() {
	expect "record: refused: $1" "$(grep "^$1: " "$out" | one_line /dev/stdin)" says "$out" "^$1: vmprof record: .*$2"
	expect "record: refused: $1: status 1 and no file" "$(grep "^$1: status" "$out")" \
		test "$(grep -c "^$1: status 1$" "$out")" -eq 1 -a ! -e "$dir/$1.data"
}

# in_time BEGAN ENDED: the samples of the timeline are of this time, each of another one, and over most of ten seconds
in_time() {
	awk -v began="$1" -v ended="$2" '
		/^#/ { next }
		{ wrong += $1 < began || $1 > ended || $1 <= last; last = $1; first = n++ ? first : $1 }
		END { exit !(n && !wrong && last - first > 5 && last - first < 11) }' "$tmp/timeline"
}

nmi_begin direct-x86

dir=$tmp/plain out=$tmp/plain/stdout
kvm_run_sound x86-kvm direct-x86 "$dir" no_reason "${files[@]}"
expect "it is there for who asks for what is experimental" "$(grep ^info "$out")" \
	says "$out" '^info: deliveries 3 experimental 4 why direct delivery on x86 is experimental'
expect "not with the NMI watchdog on" "$(grep ^watchdog "$out")" \
	says "$out" "^watchdog: deliveries 3 experimental 0 why the host's NMI watchdog is on"
expect "what must be refused is refused" "$(grep '^refuse: WRONG' "$out")" \
	test "$(grep -c '^refuse: refused' "$out")" -eq 12
for run in direct chains; do
	accounted $run
	sampled $run
	read -r _ nmi_exits host_nmis guest_nmis < <(changes $run)
	guard=$(number $run nmis: guard) late=$(number $run nmis: late)
	expect "$run: no exit by an NMI but the guard's, of those that are nobody's as well" \
		"${nmi_exits:-none}; guard ${guard:-none}, late ${late:-none}" \
		test "${nmi_exits:--1}" -ge "${guard:-0}" -a "${nmi_exits:-0}" -le $((${guard:-0} + ${late:-0}))
	# KVM and /proc/interrupts have counted them too.
	expect "$run: the guest's kernel counts as many" "${guest_nmis:-none}" \
		test "${guest_nmis:--1}" -eq $(($(number $run nmis: guest) + $(number $run nmis: foreign)))
	wanted=$(($(number $run nmis: host) + $(number $run nmis: guard) + $(number $run nmis: foreign) + $(number $run nmis: late)))
	expect "$run: and so does the host's" "${host_nmis:-none}, $wanted wanted" test "${host_nmis:--1}" -eq "$wanted"
done
split direct
expect "chains: of the kernel and of programs" "$(grep '^chains: kernel' "$out")" \
	test "$(number chains kernel chained)" -gt 0 -a "$(number chains kernel user)" -gt 0
refused unasked 'direct delivery on x86 is experimental: ask for it as such \(--experimental\)'
refused watched "the host's NMI watchdog is on"
refused rate 'has no frequencies: give a period with -c'
refused event "'instructions' cannot be delivered to the guest: it has cpu-clock"
refused two 'more than 1 event of one VM'
expect "forced: with the NMI watchdog on" "$(grep '^forced' "$out" | one_line /dev/stdin)" says "$out" '^forced: status 0'
expect "record: by direct delivery, which is said" "$(grep '^record' "$out" | one_line /dev/stdin)" \
	says "$out" '^record: vmprof record: vm: direct backend, direct delivery, cpu-clock every 1000000, 1 vCPU, Linux 6\.1'
expect "record: cycles become cpu-clock" "$(grep '^record' "$out" | one_line /dev/stdin)" \
	says "$out" '^record: .*the cycles event is not supported by the direct backend for this VM, falling back to cpu-clock'
recorded record -eq
"$VMPROF" report -i "$dir/record.data" --timeline >"$tmp/timeline" 2>&1 </dev/null
expect "record: times are the host's, ten seconds" \
	"$(grep -v '^#' "$tmp/timeline" | sed -n '1p;$p' | one_line /dev/stdin) $(grep -E '^record: (began|ended)' "$out" | one_line /dev/stdin)" \
	in_time "$(sed -n 's/^record: began //p' "$out")" "$(sed -n 's/^record: ended //p' "$out")"
recorded user -le
"$VMPROF" script -i "$dir/user.data" -G -F ip >"$tmp/addresses" 2>&1 </dev/null
expect "user: no sample of the kernel" "$(head -n 3 "$tmp/addresses" | one_line /dev/stdin)" \
	test "$(grep -cE '^ *[0-9a-f]{1,12}$' "$tmp/addresses")" -ge 50 -a "$(grep -c '^ *ffff' "$tmp/addresses")" -eq 0
expect "starts and stops" "" says "$out" '^cycles: cycles [0-9]+ done'
expect "the host's NMIs come back from the guest" "$(grep -E '^(forwarded|backtrace)' "$out" | one_line /dev/stdin)" \
	test "$(number forwarded nmis: foreign)" -gt 0 -a "$(grep -c '^backtrace direct: .* 1$' "$out")" -ge 1 -a \
	"$(grep -c '^backtrace .* 0$' "$out")" -eq 0
read -r _ before _ _ after _ < <(sed -n 's/^killed: before \(.*\) after \(.*\)/\1 \2/p' "$out")
expect "NMIs make the guest exit when the owner was killed" "$(grep ^killed "$out")" test "${after:-0}" -gt "${before:-0}"
expect "a guest that takes no NMI loses them after a second" "$(grep ^silent "$out" | one_line /dev/stdin)" \
	says "$out" '^silent: status: taken back .*has not acknowledged'
expect "and its NMI is accounted for" "$(grep '^silent: nmis' "$out")" \
	test "$(number silent nmis: sent)" -eq $(($(number silent nmis: guest) + $(number silent nmis: host) + \
		$(number silent nmis: guard) + $(number silent nmis: forwarded) + $(number silent nmis: merged)))
clean plain 'WARNING|BUG:|Oops|Uhhuh|stall'
echo "# direct: $(grep '^direct: nmis' "$out" | tail -n 1), hot75 ${hot75:-0} hot25 ${hot25:-0}"

# Two vCPUs, one of which sends the other one NMIs of the guest's own, which KVM injects, as fast as it can, and a host
# that asks all its CPUs for backtraces. Who waits for one of these waits ten seconds, in which neither the VM's other
# threads nor, for want of them, the exposed vCPU get on.
dir=$tmp/storm out=$tmp/storm/stdout
kvm_run_sound x86-kvm direct-x86 "$dir" no_reason "${files[@]}" "$tmp/built/storm"
accounted storm
expect "storm: the VM keeps its NMIs" "$(grep '^storm: status' "$out" | one_line /dev/stdin)" says "$out" '^storm: status: lent '
expect "storm: the guest's backtraces" "$(grep '@backtraces' "$out")" says "$out" '^@backtraces [0-9]{2,}'
expect "storm: the host's backtraces are all answered" "$(grep '^backtrace storm: .* 0$' "$out" | one_line /dev/stdin)" \
	test "$(grep -c '^backtrace storm: .* [1-9][0-9]*$' "$out")" -ge 20 -a "$(grep -c '^backtrace storm: .* 0$' "$out")" -eq 0
expect "storm: nobody stands still for as long as one that is not" "$(longest "$dir/vm.log")" \
	test "$(longest "$dir/vm.log")" -gt 0 -a "$(longest "$dir/vm.log")" -lt 10
clean storm 'WARNING|BUG: [^s]|Oops|Uhhuh|Kernel panic'
grep -E '^storm: (status|nmis)|^@' "$out" | sed 's/^/# /'
echo "# storm: $(grep -c '^backtrace storm' "$out") backtraces of the host, the guest silent for $(longest "$dir/vm.log") s at most"
