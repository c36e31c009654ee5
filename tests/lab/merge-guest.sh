#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A guest's own perf record, merged with what vmprof record has seen of that guest at the same time:
# the clocks are brought together by what record has measured, and a program that changes its function
# at known places does so at the same time in both.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

# start_record FILE: vmprof record in the background, until stop_record
start_record() {
	"$VMPROF" record -g -e cpu-clock -F 999 --vm "$t" -o "$1" 2>"$1.err" </dev/null &
	recorder=$!
	for ((i = 0; i < 300; i++)); do
		[[ ! -s $1 ]] || return 0
		sleep 0.1
	done
	die "record has written nothing: $(one_line "$1.err")"
}

stop_record() {
	local status=0
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	((status == 130)) || die "record ended with status $status"
}

# begin_guest SECONDS OPTIONS..., end_guest FILE: a perf record in the guest
begin_guest() {
	rounds=$((rounds + 1))
	sent=$(stat -c %s "$tmp/out")
	echo "$* -e cpu-clock -F 999 -g" >"$tmp/go.in"
	vm wait "$t" "recording $rounds" 60 || exit 1
}

end_guest() {
	vm wait "$t" "sent $rounds" 120 || exit 1
	tail -c "+$((sent + 1))" "$tmp/out" >"$1"
}

# merged OUT ARGUMENTS...: a merge that must succeed
merged() {
	local out=$1
	shift
	"$VMPROF" merge -o "$out" "$@" 2>"$out.err" </dev/null || die "merge failed: $(one_line "$out.err")"
}

samples_in() { # samples_in FILE
	"$VMPROF" report -i "$1" --stats | sed -n 's/.*SAMPLE events: *\([0-9]*\).*/\1/p' | head -n 1
}

phases() { # phases FILE: what lib/phases.py reads
	"$VMPROF" script -i "$1" -F comm,cpu,time,ip,sym
}

# compare MERGED ERROR: changes of phase in it and in the host's profile, and how many of them agree
compare() {
	phases "$1" >"$tmp/guest.txt"
	"$lab/lib/phases.py" "$tmp/host.txt" "$tmp/guest.txt" "$2"
}

# same_time NAME MERGED PERCENT: guest's and host's samples change over at one time, within what merge
# has said
same_time() {
	local name=$1 file=$2 percent=$3 error n agree
	error=$(sed -n 's/.*aligned as recorded on the host .*within \([0-9]*\)\.\([0-9]*\) ms.*/\1\2/p' "$file.err")
	expect "$name: aligned by what record has measured" "$(one_line "$file.err")" test -n "$error"
	# us are what times are printed in
	error=$((10#${error:-0} * 1000 + 2000))
	read -r n agree < <(compare "$file" "$error")
	expect "$name: changes of phase in both profiles" "$n of them" test "$n" -ge 4
	expect "$name: they are of the same time" "$agree of $n agree within $error ns" \
		test "$((100 * agree))" -ge "$((percent * n))"
}

boot() { # boot OPTIONS...
	rounds=0
	vm up "$t" --image perf "$@" -- -debugcon "file:$tmp/out" -serial "pipe:$tmp/go" || die "$t does not come up"
}

# A guest that does not trust its TSC, as most do under translation: each CPU has a clock of its own.
mkfifo "$tmp/go.in" "$tmp/go.out"
boot

start_record "$tmp/host"
if command -v perf >/dev/null; then
	perf record -q -a -k CLOCK_MONOTONIC -e cpu-clock -F 99 -o "$tmp/system" -- sleep 600 2>"$tmp/system.err" &
	system=$!
fi
begin_guest 4
end_guest "$tmp/default"
begin_guest 2 -k CLOCK_MONOTONIC
end_guest "$tmp/monotonic"
[[ -z ${system:-} ]] || kill -INT "$system"
stop_record
phases "$tmp/host" >"$tmp/host.txt"

for clock in default monotonic; do
	merged "$tmp/$clock.merged" "$tmp/host" "$t=$tmp/$clock"
done
# perf's default clock of this guest stands still while a tick is late.
same_time "default clock" "$tmp/default.merged" 75
same_time "monotonic clock" "$tmp/monotonic.merged" 100
# An alignment that is wrong fails: on a host so busy that samples are far apart, too.
offset=$(sed -n 's/.*aligned as recorded on the host (\([+-][0-9]*\) ns.*/\1/p' "$tmp/default.merged.err")
merged "$tmp/moved" --clock-offset "$t=$((offset + 50000000))" "$tmp/host" "$t=$tmp/default"
read -r n agree < <(compare "$tmp/moved" 1000000)
expect "50 ms are seen" "$agree of $n agree" test "$((100 * agree))" -lt "$((75 * n + 1))"

# Each sample counts once. The guest's file lies within the host's.
host=$(samples_in "$tmp/host") guest=$(samples_in "$tmp/default")
out=$(sed -n 's/.*: \([0-9]*\) samples of .* left out.*/\1/p' "$tmp/default.merged.err")
total=$(samples_in "$tmp/default.merged")
expect "the guest's samples instead of the host's" "$host of the host, ${out:-none} left out, $guest of the guest: $total" \
	test "${out:-0}" -gt 0 -a "$total" -eq "$((host - ${out:-0} + guest))"
merged "$tmp/host.merged" --prefer host "$tmp/host" "$t=$tmp/default"
total=$(samples_in "$tmp/host.merged")
expect "the host's samples instead of the guest's" "$host of the host, $total merged" test "$total" -eq "$host"

# All views of one profile of host and guest.
inputs=("$tmp/host" "$t=$tmp/default")
if [[ -s $tmp/system ]]; then
	inputs=("$tmp/system" "${inputs[@]}")
else
	skip "the host's own samples" "no perf"
fi
merged "$tmp/all" "${inputs[@]}"
"$VMPROF" report -i "$tmp/all" --sort vm,comm -g none >"$tmp/report"
expect "report: the VM's programs" "$(one_line "$tmp/report")" says "$tmp/report" "$t +phases"
[[ ! -s $tmp/system ]] || expect "report: the host's programs" "$(one_line "$tmp/report")" \
	says "$tmp/report" '\[host\] +(qemu|CPU [01]/TCG)'
"$VMPROF" report -i "$tmp/all" --vm "$t" --sort vm -g none >"$tmp/report"
expect "report --vm: the VM alone" "$(grep '%' "$tmp/report" | one_line /dev/stdin)" \
	test "$(grep -c '^ *[0-9.]*%' "$tmp/report")" -eq 1
folded "$tmp/all" >"$tmp/folded"
for phase in a b; do
	expect "folded: phase_$phase" "it is not there" says "$tmp/folded" "^$t;phases;.*main;phase_$phase;spin "
done
"$VMPROF" report -i "$tmp/all" --timeline | grep -v '^#' >"$tmp/timeline"
late=$(sed -n 's/.*: \([0-9]*\) records came later than its order allows.*/\1/p' "$tmp/all.err" | awk '{ n += $1 } END { print n + 0 }')
back=$(awk '$1 < last { n++ } { last = $1 } END { print n + 0 }' "$tmp/timeline")
expect "timeline: in the order of time" "$back go back, $late said" test "$back" -le "$late"
expect "timeline: host and guest" "not both" says "$tmp/timeline" " $t .* spin \("
if command -v perf >/dev/null; then
	total=$(samples_in "$tmp/all")
	count=$(perf script -i "$tmp/all" -F comm,time,ip,sym 2>"$tmp/script.err" | grep -c '^[^[:space:]]')
	expect "perf script: as many samples" "$count of $total: $(one_line "$tmp/script.err")" test "$count" = "$total"
	perf --buildid-dir "$tmp/all.debug" report --stdio -i "$tmp/all" --no-children -g none >"$tmp/report" 2>"$tmp/report.err"
	expect "perf report reads it without a word" "$(one_line "$tmp/report.err")" test ! -s "$tmp/report.err"
	expect "perf report: the guest's programs" "$(one_line "$tmp/report")" says "$tmp/report" "$t:phases .* spin"
fi

# A VM that is paused has a clock that stands still; when, nobody knows.
start_record "$tmp/paused.host"
begin_guest 2
vm qmp "$t" stop >/dev/null
sleep 1
vm qmp "$t" cont >/dev/null
end_guest "$tmp/paused"
stop_record
"$VMPROF" merge -o "$tmp/no" "$tmp/paused.host" "$t=$tmp/paused" 2>"$tmp/no.err"
expect "a paused guest's file is refused" "$(one_line "$tmp/no.err")" says "$tmp/no.err" "the clock of $t stood still"
vm down "$t"

# One that does: all its clocks are made of the TSC.
boot --append tsc=reliable
start_record "$tmp/host"
begin_guest 2 -k CLOCK_MONOTONIC
end_guest "$tmp/tsc"
stop_record
phases "$tmp/host" >"$tmp/host.txt"
merged "$tmp/tsc.merged" "$tmp/host" "$t=$tmp/tsc"
same_time "TSC" "$tmp/tsc.merged" 100
