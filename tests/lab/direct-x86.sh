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

if ((!LONG)); then
	skip direct-x86 "only with LONG=1: QEMU's SVM loses guests by itself"
	exit 0
fi

# build DIR: both modules and what goes with them to the script direct-x86
build() {
	local headers
	headers=$("$top/scripts/kernel-headers" 6.1-cloud amd64) || return
	make -s -C "$top" modules guest-module KDIR="$headers" BUILD="$1" >"$1/log" 2>&1 || {
		cat "$1/log" >&2
		return 1
	}
	cp "$1/modules/vmprof.ko" "$1/guest-module/guest/vmprof_guest.ko" "$1/"
	strip -g "$1"/*.ko
	gcc -O2 -static -I"$top" -o "$1/directtest" "$lab/host/directtest.c" "$top"/kernel/core/{ring,log}.c
	gcc -O2 -static -o "$1/fixed" "$lab/guest/fixed_x86.c"
	: >"$1/own-guests"
	: >"$1/storm"
}

# number RUN LINE WORD: the number behind WORD in the last line of RUN that begins with LINE
number() {
	sed -n "s/^$1: $2/&/p" "$out" | tail -n 1 | grep -o "\b$3 [0-9]*" | cut -d ' ' -f 2
}

# accounted RUN: every NMI that was sent
accounted() {
	local sent guest host guard forwarded merged
	for word in sent guest host guard forwarded merged; do
		printf -v "$word" %s "$(number "$1" nmis: "$word")"
	done
	expect "$1: each NMI that was sent is accounted for" "$(grep "^$1: nmis" "$out" | tail -n 1)" \
		test "${sent:-0}" -ge 100 -a $((guest + host + guard + forwarded + merged)) -eq "${sent:-0}"
	expect "$1: nothing is bad or out of order" "$(grep "^$1: kernel" "$out")" says "$out" "^$1: kernel .* bad 0 .* late 0 "
}

# sampled RUN
sampled() {
	local guest samples lost
	guest=$(number "$1" nmis: guest) samples=$(number "$1" 'event 0' samples) lost=$(number "$1" kernel lost)
	expect "$1: each that the guest has taken is a sample" "${guest:-0} and ${samples:-0} + ${lost:-0}" \
		test "${guest:-0}" -eq $((${samples:-0} + ${lost:-0}))
}

# changes RUN: by how much the counts of exits, exits by an NMI, the host's NMIs and the guest's have gone up
changes() {
	sed -n "s/^$1: before \(.*\) after \(.*\)/\1 \2/p" "$out" | awk '{ print $5 - $1, $6 - $2, $7 - $3, $8 - $4 }'
}

# clean RUN WORDS: neither kernel complains in these words
clean() {
	expect "$1: the host's kernel has nothing to complain of" "$(grep -E "$2" "$dir/host.dmesg" | head -n 5)" \
		test "$(grep -cE "$2" "$dir/host.dmesg")" -eq 0
	expect "$1: nor has the guest's" "$(grep '^@bad' "$out")" test "$(grep -cE "^@bad.*($2)" "$out")" -eq 0
	expect "$1: nothing went wrong" "$(grep WRONG "$out" | head -n 5)" test "$(grep -c WRONG "$out")" -eq 0
	expect "$1: the VM was killed and the module removed" "" says "$out" '^removed: at last'
}

# refused NAME WORDS: a record by vmprof that is not made
refused() {
	expect "record: refused: $1" "$(grep "^$1: " "$out" | one_line /dev/stdin)" says "$out" "^$1: vmprof record: .*$2"
	expect "record: refused: $1: status 1 and no file" "$(grep "^$1: status" "$out")" \
		test "$(grep -c "^$1: status 1$" "$out")" -eq 1 -a ! -e "$dir/$1.data"
}

# recorded NAME -eq|-le: by vmprof, of whose samples 75 % are in hot75; they are as many as NMIs that the guest has
# taken, or fewer where not all modes were asked for
recorded() {
	local samples lost taken hot75 hot25 mode=$2
	samples=$(kmod_stat "$dir/$1.data" vm samples) lost=$(kmod_stat "$dir/$1.data" vm lost)
	taken=$(sed -n "s/^$1: .*: of [0-9]* NMIs the guest has taken \([0-9]*\);.*/\1/p" "$out")
	expect "$1: status" "$(grep "^$1: " "$out" | one_line /dev/stdin)" says "$out" "^$1: status 0"
	expect "$1: each NMI that the guest has taken is a sample" "${taken:-all}, ${samples:-none}, ${lost:-none} lost" \
		test "${samples:-0}" -ge 50 -a $((${samples:-0} + ${lost:-0})) "$mode" "${taken:-${samples:-0}}"
	read -r hot75 hot25 < <(folded "$dir/$1.data" | awk '
		/^vm;fixed;(.*;)?hot75 [0-9]*$/ { a += $NF }
		/^vm;fixed;(.*;)?hot25 [0-9]*$/ { b += $NF }
		END { print a + 0, b + 0 }')
	expect "$1: 75 % in hot75, four standard deviations" "${hot75:-0} and ${hot25:-0}" three_quarters "${hot75:-0}" "${hot25:-0}"
	echo "# $1: ${samples:-no} samples, ${lost:-0} lost, hot75 ${hot75:-0} hot25 ${hot25:-0}; $(grep -o 'of [0-9]* NMIs.*' "$out" |
		grep "^of .* ${taken:-none};")"
}

# in_time BEGAN ENDED: the samples of the timeline are of this time, each of another one, and over most of ten seconds
in_time() {
	awk -v began="$1" -v ended="$2" '
		/^#/ { next }
		{ wrong += $1 < began || $1 > ended || $1 <= last; last = $1; first = n++ ? first : $1 }
		END { exit !(n && !wrong && last - first > 5 && last - first < 11) }' "$tmp/timeline"
}

# three_quarters A B: of both, A is that share
three_quarters() {
	awk -v a="$1" -v b="$2" 'BEGIN { n = a + b; d = a - 0.75 * n; exit !(n >= 50 && d * d <= 16 * 0.1875 * n) }'
}

no_reason() {
	:
}

mkdir "$tmp/built"
build "$tmp/built" || {
	not_ok direct-x86 "its modules are not built"
	exit 1
}
files=("$tmp"/built/{own-guests,directtest,fixed,vmprof.ko,vmprof_guest.ko} "$lab/guest/l2-nmi")

dir=$tmp/plain out=$tmp/plain/stdout
kvm_run_sound x86-kvm direct-x86 "$dir" no_reason "${files[@]}"
expect "it is there for who asks for what is experimental" "$(grep ^info "$out")" \
	says "$out" '^info: deliveries 1 experimental 4 why direct delivery on x86 is experimental'
expect "not with the NMI watchdog on" "$(grep ^watchdog "$out")" \
	says "$out" "^watchdog: deliveries 1 experimental 0 why the host's NMI watchdog is on"
expect "what must be refused is refused" "$(grep '^refuse: WRONG' "$out")" \
	test "$(grep -c '^refuse: refused' "$out")" -eq 12
for run in direct chains; do
	accounted $run
	sampled $run
	read -r _ nmi_exits host_nmis guest_nmis < <(changes $run)
	expect "$run: no exit by an NMI but the guard's" "${nmi_exits:-none}" test "${nmi_exits:--1}" -eq "$(number $run nmis: guard)"
	# KVM and /proc/interrupts have counted them too.
	expect "$run: the guest's kernel counts as many" "${guest_nmis:-none}" \
		test "${guest_nmis:--1}" -eq $(($(number $run nmis: guest) + $(number $run nmis: foreign)))
	wanted=$(($(number $run nmis: host) + $(number $run nmis: guard) + $(number $run nmis: foreign) + $(number $run nmis: late)))
	expect "$run: and so does the host's" "${host_nmis:-none}, $wanted wanted" test "${host_nmis:--1}" -eq "$wanted"
done
hot75=$(sed -n "s/^direct: place 0 $(sed -n 's/^@work .* hot75 \([0-9a-f]*\) .*/\1/p' "$dir/vm.log" | tail -n 1) //p" "$out")
hot25=$(sed -n "s/^direct: place 0 $(sed -n 's/^@work .* hot25 \([0-9a-f]*\) .*/\1/p' "$dir/vm.log" | tail -n 1) //p" "$out")
expect "direct: 75 % in hot75, four standard deviations" "${hot75:-0} and ${hot25:-0}" three_quarters "${hot75:-0}" "${hot25:-0}"
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

# Two vCPUs, one of which sends the other one NMIs of the guest's own, which KVM injects, as fast as it can. The
# translator stands still for half a minute now and then; the VM may lose its NMIs for that.
dir=$tmp/storm out=$tmp/storm/stdout
kvm_run_sound x86-kvm direct-x86 "$dir" no_reason "${files[@]}" "$tmp/built/storm"
accounted storm
expect "storm: the guest's backtraces" "$(grep '@backtraces' "$out")" says "$out" '^@backtraces [0-9]{2,}'
clean storm 'WARNING|BUG: [^s]|Oops|Uhhuh|panic'
grep -E '^storm: (status|nmis)|^@' "$out" | sed 's/^/# /'
