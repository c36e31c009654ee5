# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For the test of vmprof record with delivery to the guest, beside tap.sh and kmod.sh. $out is what the host's script printed.

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

# record_chains NAME: of the same samples
record_chains() {
	local whole sum
	read -r whole sum < <(awk '
		/;hot(75|25) [0-9]*$/ { n += $NF }
		/;_start;.*;main;hot(75|25) [0-9]*$/ { w += $NF }
		END { print w + 0, n + 0 }' "$tmp/$1.folded")
	expect "$1: chains are whole, from the program's start to main and its functions" "$whole of $sum" \
		test "$sum" -gt 0 -a $((whole * 100)) -ge $((sum * 98))
}

# record_counts NAME DELIVERY: which one it was is said, and nothing is missing
record_counts() {
	local samples
	expect "$1: by which delivery is said" "$(grep "^$1" "$out" | one_line /dev/stdin)" \
		says "$out" "^$1: vmprof record: a: $2 backend, $2 delivery, cycles every 100000, 1 vCPU, Linux 6\\.1"
	samples=$(kmod_stat "$tmp/out/$1.data" a samples)
	expect "$1: samples" "${samples:-none}" test "${samples:-0}" -ge 6400
	expect "$1: nothing lost" "$(grep "^$1: \[" "$out" | one_line /dev/stdin)" \
		test "$(kmod_stat "$tmp/out/$1.data" a lost)" = 0 -a "$(kmod_stat "$tmp/out/$1.data" a unreadable)" = 0
}

# worked RUN: all exits, those by interrupts, the host's interrupts of a counter, and ticks, of a phase by its line
worked() {
	sed -n "s/^$1: before \(.*\) after \(.*\) fixed .* ticks \([0-9]*\) .*/\1 \2 \3/p" "$out" |
		awk '{ print $4 - $1, $5 - $2, $6 - $3, $7 }'
}

# direct_inject: the same work with interrupts that the host raises, as tests/lab/host/direct has it
direct_inject() {
	local plain_all plain_irq plain_ticks all irq pmu ticks samples raised held sum
	read -r plain_all plain_irq _ plain_ticks < <(worked plain)
	read -r all irq pmu ticks < <(worked "inject: run3")
	samples=$(number inject 'event 0' samples)
	share inject 0 6400
	expect "inject: nothing lost, bad or out of order" "$(grep '^inject: kernel' "$out")" \
		says "$out" '^inject: kernel [0-9]+ lost 0 bad 0 tasks [1-9][0-9]* late 0 chained 0 '
	# masked.ko has 2,000,000 cycles in one piece: the sample comes behind them and stands for all.
	expect "inject: a sample that was late has its periods" "$(grep '^inject: event' "$out")" \
		test "$(number inject 'event 0' longest)" -ge 1900000
	# When it is stopped the last one may be under way.
	read -r raised held < <(sed -n 's/^inject: raised \([0-9]*\) held \([0-9]*\)$/\1 \2/p' "$out" | tail -n 1)
	expect "inject: an interrupt a sample" "raised $raised, held back $held; $samples samples" \
		test "$raised" -ge "$samples" -a "$raised" -le $((samples + 1)) -a "$held" -eq 0
	expect "inject: the host's PMU sees none of them" "$pmu" test "$pmu" -eq 0
	all=$((all - plain_all)) irq=$((irq - plain_irq))
	expect "inject: an exit a sample, by an interrupt" "$all more, $irq of them interrupts; $samples samples" \
		test $((all * 100)) -ge $((samples * 95)) -a $((all * 100)) -le $((samples * 105)) -a \
		$((irq * 100)) -ge $((samples * 95))
	ticks=$(((ticks - plain_ticks) * 4 / samples))
	echo "# inject: $samples samples, $all exits more, $ticks instructions a sample"
	expect "inject: instructions a sample" "$ticks" test "$ticks" -lt 5000

	# An overflow a microsecond: 20 us are between two interrupts, and the work is hardly longer.
	read -r _ _ _ ticks < <(worked "storm: run4")
	raised=$(number storm raised raised) held=$(number storm raised held) sum=$(number storm 'event 0' sum)
	expect "storm: interrupts are held back" "raised $raised, held back $held" test "$held" -gt 50
	expect "storm: there is time between them" "$raised in $ticks ticks of 16 ns" \
		test "$raised" -gt 0 -a $((raised * 20000)) -le $((ticks * 16 + 4000000000))
	expect "storm: the work is done in time" "$ticks ticks, $plain_ticks without" \
		test $((ticks * 100)) -le $((plain_ticks * 110))
	expect "storm: no event is lost" "$sum" test "$sum" -ge $((ticks * 16 * 9 / 10))
}

# in_file NAME COMM DSO: samples of that command in that file; DSO may be a pattern of awk
in_file() {
	"$VMPROF" report -i "$tmp/out/$1.data" --stdio -g none --no-children -s comm,dso -F sample,comm,dso 2>/dev/null </dev/null |
		awk -v comm="$2" -v dso="$3" '$2 == comm && $3 ~ dso { n += $1 } END { print n + 0 }'
}

# short_processes NAME: those of l2-direct, a few milliseconds each
short_processes() {
	local own other shell strange first second
	own=$(in_file "$1" short '^short$') other=$(in_file "$1" short '^[^[s]|unknown')
	shell=$(in_file "$1" init '^busybox$') strange=$(in_file "$1" init '^[^[b]|unknown')
	echo "# $1: short processes: $own samples in their program, $other not; the shell: $shell and $strange"
	expect "$1: short processes are in their program" "$own in it, $other not" test "$own" -ge 3000 -a "$other" -eq 0
	expect "$1: so is the shell that forks and waits for none" "$shell in it, $strange not" \
		test "$shell" -ge 1000 -a "$strange" -eq 0
	read -r first second < <(folded "$tmp/out/$1.data" | awk '
		/^a;short;(.*;)?short75 [0-9]*$/ { a += $NF }
		/^a;short;(.*;)?short25 [0-9]*$/ { b += $NF }
		END { print a + 0, b + 0 }')
	expect "$1: and their functions are named, 75 % of one" "$first and $second of $own" awk -v a="$first" -v b="$second" \
		-v n="$own" 'BEGIN { d = a - 0.75 * (a + b); exit !(100 * (a + b) >= 95 * n && d * d <= 16 * 0.1875 * (a + b)) }'
}

# direct_record: what tests/lab/host/direct-record has found
direct_record() {
	local began ended
	record_counts record direct
	record_share record a
	record_chains record
	short_processes record
	record_counts injected inject
	record_share injected a
	record_chains injected
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
	expect "record: a guest that does not answer" "$(grep '^stopped' "$out" | one_line /dev/stdin)" \
		says "$out" "^stopped: vmprof record: a: the guest of a does not answer: .*; taking the host's delivery"
	expect "record: is sampled by the host" "$(grep '^stopped' "$out" | one_line /dev/stdin)" \
		says "$out" '^stopped: vmprof record: a: kmod backend, host delivery, cycles every 1000000'
}

# cost NAME SAMPLES RUN PLAIN: what the samples cost, as RUN went beside PLAIN, where nothing was sampled
cost() {
	awk -v name="$1" -v n="$2" '
		NR == 1 { exits = $1; ticks = $4 }
		NR == 2 { printf "# %s: %d samples, %.2f exits and %d instructions a sample\n", name, n,
			(exits - $1) / n, 4 * (ticks - $4) / n }' <(worked "$3") <(worked "$4")
}

# direct_table: the same work by all deliveries
direct_table() {
	record_share host a
	share vpmu 0 6000
	expect "a VM with a virtual PMU is refused" "$(grep '^virtual' "$out")" \
		says "$out" '^virtual: vmprof record: .*p cannot be lent counters: .*PMU'
	expect "and sampled by the host where that will do" "$(grep '^instead' "$out" | one_line /dev/stdin)" \
		says "$out" "^instead: vmprof record: p: p cannot be lent counters: .*PMU.*; taking the host's delivery"
	cost direct "$(number direct 'event 0' samples)" "direct: run1" plain
	cost inject "$(number inject 'event 0' samples)" "inject: run3" plain
	cost record "$(kmod_stat "$tmp/out/record.data" a samples)" "record: run5" plain
	cost injected "$(kmod_stat "$tmp/out/injected.data" a samples)" "injected: run6" plain
	cost host "$(kmod_stat "$tmp/out/host.data" a samples)" "host: run7" plain
	cost vpmu "$(number vpmu 'event 0' samples)" "vpmu: run1" "p: plain"
}
