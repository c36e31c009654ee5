# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For the test of vmprof record with direct delivery, beside tap.sh and kmod.sh. $out is what the host's script printed.

# all_between BEGAN ENDED TIMELINE: the samples of fixed are of these ten seconds at most
all_between() {
	awk -v began="$1" -v ended="$2" '
		/hot(75|25)/ { n++; wrong += $1 < began || $1 > ended }
		END { exit !(n && !wrong && ended - began < 10) }' "$3"
}

# record_share NAME VM: three in four of the samples of that VM's program fixed are in hot75
record_share() {
	local hot75 hot25 all
	folded "$tmp/out/$1.data" | grep "^$2;fixed;" >"$tmp/$1.folded"
	read -r hot75 hot25 < <(awk '
		/;hot75 [0-9]*$/ { a += $NF }
		/;hot25 [0-9]*$/ { b += $NF }
		END { print a + 0, b + 0 }' "$tmp/$1.folded")
	all=$((hot75 + hot25))
	# Four standard deviations.
	expect "$1: 75 % in hot75" "$hot75 of $all" awk -v a="$hot75" -v n="$all" \
		'BEGIN { d = a - 0.75 * n; exit !(n >= 6300 && d * d <= 16 * 0.1875 * n) }'
}

# direct_record: what tests/lab/host/direct-record has found
direct_record() {
	local samples whole sum began ended
	expect "record: by direct delivery, which is said" "$(grep '^record' "$out" | one_line /dev/stdin)" \
		says "$out" '^record: vmprof record: a: direct backend, direct delivery, cycles every 100000, 1 vCPU, Linux 6\.1'
	samples=$(kmod_stat "$tmp/out/record.data" a samples)
	expect "record: samples" "${samples:-none}" test "${samples:-0}" -ge 6400
	expect "record: nothing lost" "$(grep '^record: \[' "$out" | one_line /dev/stdin)" \
		test "$(kmod_stat "$tmp/out/record.data" a lost)" = 0 -a "$(kmod_stat "$tmp/out/record.data" a unreadable)" = 0
	record_share record a
	read -r whole sum < <(awk '
		/;hot(75|25) [0-9]*$/ { n += $NF }
		/;_start;.*;main;hot(75|25) [0-9]*$/ { w += $NF }
		END { print w + 0, n + 0 }' "$tmp/record.folded")
	expect "record: chains are whole, from the program's start to main and its functions" "$whole of $sum" \
		test "$sum" -gt 0 -a $((whole * 100)) -ge $((sum * 98))
	expect "record: how far times may be wrong is in the file" "$(kmod_stat "$tmp/out/record.data" a clock_error)" \
		test "$(kmod_stat "$tmp/out/record.data" a clock_error)" -gt 0
	"$VMPROF" report -i "$tmp/out/record.data" --timeline >"$tmp/timeline" 2>&1 </dev/null
	expect "record: the timeline has the guest's CPU" "$(head -n 3 "$tmp/timeline" | one_line /dev/stdin)" \
		test "$(grep -cE '^ +[0-9]+\.[0-9]+  v00  a .* hot(75|25)' "$tmp/timeline")" -ge 6000
	began=$(sed -n 's/^record: began //p' "$out") ended=$(sed -n 's/^record: ended //p' "$out")
	expect "record: times are the host's" "$(grep -E 'hot(75|25)' "$tmp/timeline" | sed -n '1p;$p' | one_line /dev/stdin): $began to $ended" \
		all_between "${began:-0}" "${ended:-0}" "$tmp/timeline"
	expect "record: the timeline is in the order of time" "" sort -C -n -k 1,1 <(grep -v '^#' "$tmp/timeline")
	expect "record: a log has one owner" "$(grep '^second' "$out")" \
		says "$out" '^second: vmprof record: .*the log of a is used by another program'
	expect "record: --deliver and --backend" "$(grep '^named' "$out")" says "$out" '^named: .*leave out --backend'
	expect "record: no frequencies" "$(grep '^rate' "$out")" says "$out" '^rate: .*has no frequencies: give a period with -c'
	expect "record: within a VM" "$(grep '^within' "$out")" \
		says "$out" '^within: vmprof record: no VM runs here: the module vmprof_guest samples this system for its host'
	expect "record: a guest that does not answer" "$(grep '^stopped' "$out" | one_line /dev/stdin)" \
		says "$out" "^stopped: vmprof record: a: the guest of a does not answer: .*; taking the host's delivery"
	expect "record: is sampled by the host" "$(grep '^stopped' "$out" | one_line /dev/stdin)" \
		says "$out" '^stopped: vmprof record: a: kmod backend, host delivery, cycles every 1000000'
}

# exits_and_ticks RUN: exits and ticks of a phase, from its line
exits_and_ticks() {
	sed -n "s/^$1: before \([0-9]*\) .* after \([0-9]*\) .* ticks \([0-9]*\) .*/\1 \2 \3/p" "$out" |
		awk '{ print $2 - $1, $3 }'
}

# cost NAME SAMPLES RUN PLAIN: what the samples cost, as RUN went beside PLAIN, where nothing was sampled
cost() {
	awk -v name="$1" -v n="$2" '
		NR == 1 { exits = $1; ticks = $2 }
		NR == 2 { printf "# %s: %d samples, %.2f exits and %d instructions a sample\n", name, n,
			(exits - $1) / n, 4 * (ticks - $2) / n }' <(exits_and_ticks "$3") <(exits_and_ticks "$4")
}

# direct_table: the same work by all deliveries
direct_table() {
	record_share host a
	share vpmu 0 6000
	expect "a VM with a virtual PMU is refused" "$(grep '^virtual' "$out")" \
		says "$out" '^virtual: vmprof record: .*p cannot be lent counters: .*PMU'
	cost direct "$(number direct 'event 0' samples)" "direct: run1" plain
	cost record "$(kmod_stat "$tmp/out/record.data" a samples)" "record: run3" plain
	cost host "$(kmod_stat "$tmp/out/host.data" a samples)" "host: run4" plain
	cost vpmu "$(number vpmu 'event 0' samples)" "vpmu: run1" "p: plain"
}
