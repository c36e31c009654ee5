# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For the test of machines that record themselves, beside tap.sh and direct.sh. $out is what the host's script printed.

# within_folded NAME: samples of the fixed work in hot75 and hot25 of a record that the machine has made of itself, and
# those with a whole chain
within_folded() {
	folded "$tmp/out/$1.data" | awk '
		/^fixed;(.*;)?hot75 [0-9]*$/ { a += $NF }
		/^fixed;(.*;)?hot25 [0-9]*$/ { b += $NF }
		/^fixed;_start;.*;main;hot(75|25) [0-9]*$/ { w += $NF }
		END { print a + 0, b + 0, w + 0 }'
}

# within_share NAME AT_LEAST: three in four are in hot75
within_share() {
	local hot75 hot25 whole
	read -r hot75 hot25 whole < <(within_folded "$1")
	expect "$1: 75 % in hot75" "$hot75 and $hot25" awk -v a="$hot75" -v b="$hot25" -v least="$2" \
		'BEGIN { n = a + b; d = a - 0.75 * n; exit !(n >= least && d * d <= 16 * 0.1875 * n) }'
	echo "# $1: hot75 $hot75, hot25 $hot25, $whole with a whole chain"
}

# direct_within: what a machine has recorded of itself by vmprof_guest.ko alone
direct_within() {
	local hot75 hot25 whole kernel perf75 perf25
	expect "within: this machine, by its own module" "$(grep '^within: ' "$out" | one_line /dev/stdin)" \
		says "$out" '^within: vmprof record: this machine: self backend, cycles every 100000, 1 CPU, Linux 6\.1'
	expect "within: nothing lost, status 0" "$(grep '^within: ' "$out" | one_line /dev/stdin)" \
		test "$(grep -cE '^within: (\[ vmprof record: this machine: [0-9]+ samples \]|status 0)$' "$out")" -eq 2
	within_share within 3200
	read -r hot75 hot25 whole < <(within_folded within)
	expect "within: chains are whole, from the program's start to main and its functions" "$whole of $((hot75 + hot25))" \
		test $((whole * 100)) -ge $(((hot75 + hot25) * 99))
	kernel=$(folded "$tmp/out/within.data" | grep -c ';do_el0_svc.*_\[k\] [0-9]*$')
	expect "within: the kernel's functions by name, called by programs" "$kernel" test "$kernel" -gt 0
	if command -v perf >/dev/null; then
		perf --buildid-dir "$tmp/out/within.data.debug" report --stdio -i "$tmp/out/within.data" --no-children -g none \
			-n --comm fixed >"$tmp/perf" 2>"$tmp/perf.err"
		perf75=$(awk '$NF == "hot75" { print $2 }' "$tmp/perf") perf25=$(awk '$NF == "hot25" { print $2 }' "$tmp/perf")
		expect "within: perf report says the same" "${perf75:-none} and ${perf25:-none}: $(one_line "$tmp/perf.err")" \
			test "$perf75 $perf25" = "$hot75 $hot25"
	else
		skip "within: perf report" "no perf"
	fi
	expect "within: a user who may not is told so" "$(grep '^within-user' "$out")" \
		says "$out" '^within-user: vmprof record: .*run as root or with CAP_PERFMON'
	expect "within: direct delivery is asked for on the host" "$(grep '^within-direct' "$out")" \
		says "$out" '^within-direct: vmprof record: no VM runs here: .*on the host'
	expect "within: one at a time" "$(grep '^within-second' "$out")" \
		says "$out" '^within-second: vmprof record: another program records this machine'
	"$VMPROF" report -i "$tmp/out/within-killed.data" --sort comm -g none >"$tmp/killed" 2>"$tmp/killed.err"
	expect "within: what a killed recorder leaves is a whole file" "$(one_line "$tmp/killed.err")" says "$tmp/killed" '%.* fixed'
	within_share within-after 100
}

# direct_owned: a VM is recorded by its host or by its own user
direct_owned() {
	expect "owned: its own user is refused while the host records" "$(grep '^@own during' "$out")" \
		says "$out" '^@own during the run: own state 2 the host is recording this machine'
	expect "owned: its own user records, with no host" "$(grep '^own' "$out")" \
		says "$out" '^own state 1 *.?$'
	expect "owned: the host is refused meanwhile" "$(grep '^owned' "$out" | one_line /dev/stdin)" \
		says "$out" "^owned: vmprof record: .*the guest of a refuses: the guest's own user is recording it"
}
