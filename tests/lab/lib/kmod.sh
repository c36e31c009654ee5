# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For tests of vmprof record with vmprof.ko in the labs of KVM, beside tap.sh, kvm.sh and module.sh.

# kmod_run LAB ARCH: runs tests/lab/host/kmod; what is the same on all hosts is tested
kmod_run() {
	local name=$1
	mkdir "$tmp/built"
	build_module "$2" "$tmp/built" || {
		not_ok "$name: module" "it is not built"
		exit 1
	}
	kvm_run "$name" kmod "$tmp/out" "$tmp/built/vmprof.ko" "$tmp/built/modtest"
	out=$tmp/out/stdout
	expect "$name: list shows the module" "$(grep '^list.*kmod' "$out")" \
		says "$out" '^list: .*kmod: .*cpu-clock.*processes and call chains'
	expect "$name: list says that it is not loaded" "$(grep '^unloaded.*kmod' "$out")" \
		says "$out" '^unloaded: .*kmod: cannot: vmprof.ko is not loaded'
	expect "$name: list looks into the guest without it, too" "$(grep '^unloaded.*guest' "$out")" \
		says "$out" '^unloaded: +guest +Linux 6'
	expect "$name: no other backend than asked for" "$(grep '^asked' "$out")" \
		says "$out" '^asked: vmprof record: .*vmprof.ko is not loaded'
	expect "$name: the kernel has nothing to complain of" \
		"$(grep -A 20 -E 'WARNING|BUG|Oops|Call [Tt]race' "$tmp/out/dmesg" | head -n 20)" \
		test "$(grep -cE 'WARNING|BUG:|Oops|Call [Tt]race|leak' "$tmp/out/dmesg")" -eq 0
}

# kmod_stat FILE VM WORD: a number of report --stats
kmod_stat() {
	"$VMPROF" report -i "$1" --stats 2>/dev/null </dev/null |
		awk -v vm="VM $2 stats:" -v word="$3:" '
			/^VM / { mine = $0 == vm }
			mine && index($0, word) && $0 ~ "^ *" word { print $NF }'
}

# kmod_sum FILE VM user_end|kernel_end: chains, and of these the whole ones
kmod_sum() {
	local end all=0 n
	for end in outermost depth unreadable no_rule bad_frame torn; do
		n=$(kmod_stat "$1" "$2" "$3 $end")
		all=$((all + ${n:-0}))
	done
	echo "$all $(kmod_stat "$1" "$2" "$3 outermost")"
}

# kmod_split NAME FILE VM PREFIX: its program's samples are 75 % under hot_a, each with its leaf's caller
kmod_split() {
	local a b sum share bound orphans
	folded "$2" | grep "^$3;" >"$tmp/folded"
	read -r a b orphans < <(awk -v p="$4" '
		$0 !~ ";" p "spin [0-9]*$" { next }
		$0 ~ ";" p "hot_a;" p "spin [0-9]*$" { a += $NF; next }
		$0 ~ ";" p "hot_b;" p "spin [0-9]*$" { b += $NF; next }
		{ orphans += $NF }
		END { print a + 0, b + 0, orphans + 0 }' "$tmp/folded")
	sum=$((a + b))
	share=$((sum ? 1000 * a / sum : 0))
	bound=$(awk -v n="$((sum + 1))" 'BEGIN { printf "%d", 4 * sqrt(0.1875 / n) * 1000 + 10 }')
	expect "$1: 75 % from hot_a" "$share per mille of $sum" \
		test "$sum" -ge 50 -a $((share - 750)) -le "$bound" -a $((750 - share)) -le "$bound"
	expect "$1: each leaf has its caller" "$orphans of $((sum + orphans)) have not" \
		test $((orphans * 100)) -le "$sum"
}
