# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# For tests of VMs of x86-64 whose handlers take the host's NMIs, beside tap.sh, kvm.sh and kmod.sh. $out is what the
# host's script printed, $dir what it left.

# build DIR: both modules and what goes with them to the scripts direct-x86 and inject-x86
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

# split RUN: of the samples of the fixed work
split() {
	hot75=$(sed -n "s/^$1: place 0 $(sed -n 's/^@work .* hot75 \([0-9a-f]*\) .*/\1/p' "$dir/vm.log" | tail -n 1) //p" "$out")
	hot25=$(sed -n "s/^$1: place 0 $(sed -n 's/^@work .* hot25 \([0-9a-f]*\) .*/\1/p' "$dir/vm.log" | tail -n 1) //p" "$out")
	expect "$1: 75 % in hot75, four standard deviations" "${hot75:-0} and ${hot25:-0}" three_quarters "${hot75:-0}" "${hot25:-0}"
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

# longest LOG: seconds between two lines that the guest prints each second, at most
longest() {
	awk '/^@nmis [0-9.]+ [0-9]+\r?$/ { gap = $2 - last; last = $2; most = gap > most && n++ ? gap : most } END { print int(most) }' "$1"
}

# three_quarters A B: of both, A is that share
three_quarters() {
	awk -v a="$1" -v b="$2" 'BEGIN { n = a + b; d = a - 0.75 * n; exit !(n >= 50 && d * d <= 16 * 0.1875 * n) }'
}

no_reason() {
	:
}

# nmi_begin NAME: builds what the host's script needs, $files, or ends the test
nmi_begin() {
	mkdir "$tmp/built"
	build "$tmp/built" || {
		not_ok "$1" "its modules are not built"
		exit 1
	}
	files=("$tmp"/built/{own-guests,directtest,fixed,vmprof.ko,vmprof_guest.ko} "$lab"/guest/l2-nmi "$lab"/host/nmilib)
}
