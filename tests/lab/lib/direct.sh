# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For tests of direct delivery, beside tap.sh, kvm.sh and module.sh. $out is what the host's script printed.

# direct_begin NAME: builds into $tmp/built, or ends the test where that cannot be
direct_begin() {
	local program
	for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
		if ! command -v $program >/dev/null; then
			skip "$1" "no $program"
			exit 0
		fi
	done
	mkdir "$tmp/built"
	build_direct arm64 "$tmp/built" || {
		not_ok "$1" "its modules are not built"
		exit 1
	}
	out=$tmp/out/stdout
}

# direct_run LAB SCRIPT [FILE...]: runs tests/lab/host/SCRIPT, as kvm_run does
direct_run() {
	local name=$1 script=$2
	shift 2
	APPEND=kvm-arm.vgic_v3_group0_trap=1 kvm_run "$name" "$script" "$tmp/out" \
		"$tmp"/built/{own-guests,directtest,fixed,short} "$lab"/guest/l2-direct "$lab/host/directlib" \
		"$tmp"/built/{regs,masked,vmprof,vmprof_guest}.ko "$@"
}

# number RUN LINE WORD: the number behind WORD in the line of RUN that begins so
number() {
	sed -n "s/^$1: $2/&/p" "$out" | grep -o "\b$3 [0-9]*" | head -n 1 | cut -d ' ' -f 2
}

# made RUN: what the fixed work of RUN has counted itself, on all CPUs
made() {
	sed -n "s/^$1: .* made \([0-9]*\).*/\1/p" "$out" | awk '{ n += $1 } END { print n + 0 }'
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

# registers_equal WHEN BEFORE: of all CPUs
registers_equal() {
	expect "registers are the same: $1 as $2" "$(grep '^registers' "$out")" test \
		"$(sed -n "s/^registers $1: //p" "$out")" = "$(sed -n "s/^registers $2: //p" "$out")"
	says "$out" "^registers $1: cpu 0" || not_ok "registers $1" "they are not there"
}

# kernels_content: neither the host's nor a guest's kernel has said what it should not
kernels_content() {
	expect "the host's kernel has nothing to complain of" \
		"$(grep -E 'WARNING|BUG:|Oops|Call [Tt]race|vmprof:' "$tmp/out/dmesg")" \
		test "$(grep -cE 'WARNING|BUG:|Oops|Call [Tt]race|vmprof:' "$tmp/out/dmesg")" -eq 0
	expect "nor has the guest's" "$(grep '@bad' "$out")" test "$(grep -c '@bad' "$out")" -eq 0
}
