#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# perf.data as others see it: what the writer writes, read by stock perf; what perf writes, read by the
# reader and compared with perf sample by sample and header line by header line. The made-up recording
# of two VMs has six samples a round (tests/unit/perfdata_scenario.h).

setup() {
	command -v perf >/dev/null || skip "perf is not installed"
	UNIT=${BUILD:-build}/tests/unit
	CORPUS=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}
	dir=$(mktemp -d "${BATS_TMPDIR:-/tmp}/perfdata.XXXXXX")
}

teardown() {
	[[ -z ${mounted:-} ]] || umount "$mounted"
	rm -rf "$dir"
}

# quiet COMMAND...: it succeeds and says nothing on stderr; stdout goes to $dir/out
quiet() {
	"$@" >"$dir/out" 2>"$dir/err" </dev/null || { cat "$dir/err"; return 1; }
	[ ! -s "$dir/err" ] || { cat "$dir/err"; return 1; }
}

samples_of() { # samples_of FILE: as many as perf script has
	quiet perf script -i "$1" -F comm,tid,time,event
	wc -l <"$dir/out"
}

# same_as_perf FILE: header and samples are perf's; "-" in place of the file's name if it is a pipe's
same_as_perf() {
	local file=$1 in=$1 fields cut='s/ [0-9a-f]+$//'
	[[ $file != *pipe* ]] || in=-
	perf report --header-only -I -i "$in" <"${2:-$file}" >"$dir/want" 2>/dev/null
	"$UNIT/perfdata_read" full "$in" <"${2:-$file}" >"$dir/full" 2>/dev/null
	# perf prints a pipe's features as they come
	[[ $in != - ]] || sort -o "$dir/want" "$dir/want"
	[[ $in != - ]] || sort -o "$dir/full" "$dir/full"
	diff "$dir/want" "$dir/full" || return 1
	# fields that the file does not have are an error of perf's
	for fields in pid,tid,cpu,time,period,event pid,tid,cpu,time,event pid,tid,time,period,event \
		pid,tid,time,event; do
		perf script -F "$fields" --ns -i "$in" <"${2:-$file}" >"$dir/script" 2>"$dir/err" && break
	done
	sed -E 's/^ +//; s/ +$//; s/ +/ /g; /^$/d' "$dir/script" | grep -E ': |: *$' >"$dir/want"
	[[ $fields == *cpu* ]] || cut+='; s/ \[[0-9]+\]//'
	[[ $fields == *period* ]] || cut+='; s/(: )[0-9]+ /\1/'
	"$UNIT/perfdata_read" samples "$in" <"${2:-$file}" 2>/dev/null | sed -E "$cut" >"$dir/got"
	diff "$dir/want" "$dir/got" >"$dir/diff" || { head -n 20 "$dir/diff"; return 1; }
}

record() { # record FILE OPTION...: perf record of something that runs, starts programs and faults
	local file=$1
	shift
	# shellcheck disable=SC2016 # for sh
	perf record -q -o "$file" "$@" -- sh -c \
		'for i in $(seq 30000); do :; done; for i in 1 2 3; do ls -R /usr/share/doc >/dev/null; done' \
		>"$dir/piped" 2>"$dir/err"
}

# ------------------------------------------------------------------ written by us, read by perf

@test "perf reads a recording of two VMs without a word, and all of it" {
	"$UNIT/perfdata_write" file "$dir/p" 50
	quiet perf report --stdio -i "$dir/p"
	grep -q "Samples: 300  of event 'cpu-clock'" "$dir/out"
	grep -q "Event count (approx.): 300000000" "$dir/out"
	quiet perf report --stdio --no-children -g none -i "$dir/p"
	grep -qE '16\.67% +web1:nginx +\[web1.kernel\] +\[g\]' "$dir/out"
	grep -qE '16\.67% +db1:postgres +postgres +\[u\]' "$dir/out"
	[ "$(samples_of "$dir/p")" -eq 300 ]
	quiet perf script -F +machine_pid,+vcpu -i "$dir/p"
	[ "$(grep -c '^VM:3000001 VCPU:000 web1:nginx ' "$dir/out")" -eq 75 ]
	[ "$(grep -c '^VM:3000002 VCPU:001 db1:postgres ' "$dir/out")" -eq 75 ]
}

@test "perf finds guest symbols by build id, in chains across kernel and user" {
	"$UNIT/perfdata_write" file "$dir/p" 1
	"$UNIT/elfstore" scenario "$dir/p.debug"
	quiet perf --buildid-dir "$dir/p.debug" script -F ip,sym -i "$dir/p"
	tr -s ' \n\t' ' ' <"$dir/out" | grep -q 'alpha_sys_read ffffffff81003010 alpha_entry_SYSCALL_64 1010 alpha_libc_read 1110 handle 1010 alpha_main'
	tr -s ' \n\t' ' ' <"$dir/out" | grep -q 'beta_virtnet_poll ffffffff9a003010 beta_entry_SYSCALL_64'
}

@test "perf takes it apart and puts it together: buildid-list, inject, time slices, header" {
	"$UNIT/perfdata_write" file "$dir/p" 50
	quiet perf buildid-list -i "$dir/p"
	[ "$(grep -c . "$dir/out")" -eq 8 ]
	quiet perf inject -i "$dir/p" -o "$dir/q"
	[ "$(samples_of "$dir/q")" -eq 300 ]
	"$UNIT/perfdata_read" stats "$dir/q" >"$dir/stats"
	grep -q '^event cpu-clock 300$' "$dir/stats"
	quiet perf script --time 0%-50% -F time -i "$dir/p"
	[ "$(wc -l <"$dir/out")" -lt 200 ]
	[ "$(wc -l <"$dir/out")" -gt 100 ]
	quiet perf report --header-only -i "$dir/p"
	local feature
	for feature in hostname 'os release' 'perf version : vmprof' arch 'nrcpus online' cpudesc \
		'total memory' 'cmdline : vmprof record --all-vms' 'event : name = cpu-clock' \
		'time of first sample : 1.001000' 'clockid: monotonic' 'reference time'; do
		grep -qF "# $feature" "$dir/out"
	done
	same_as_perf "$dir/p"
}

@test "a killed recorder leaves what was flushed, with all features, and perf has no complaint" {
	local pid
	"$UNIT/perfdata_write" hang "$dir/p" 50 >"$dir/ready" &
	pid=$!
	until [ -s "$dir/ready" ]; do sleep 0.05; done
	kill -9 "$pid"
	wait "$pid" || true
	[ "$(samples_of "$dir/p")" -eq 300 ]
	quiet perf report --stdio -i "$dir/p"
	same_as_perf "$dir/p"
	grep -q '^# cmdline : vmprof record' "$dir/full"
}

@test "a pipe into perf" {
	"$UNIT/perfdata_write" file - 50 >"$dir/pipe"
	perf report --stdio -i - <"$dir/pipe" >"$dir/out" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	grep -q "Samples: 300  of event 'cpu-clock'" "$dir/out"
	perf script -i - -F comm,time,event <"$dir/pipe" >"$dir/out" 2>"$dir/err"
	[ ! -s "$dir/err" ]
	[ "$(grep -c 'cpu-clock: *$' "$dir/out")" -eq 300 ]
	same_as_perf "$dir/pipe"
}

@test "a reader that goes away is an error with the place, no crash" {
	{ "$UNIT/perfdata_write" file - 50000 || echo "$?" >"$dir/status"; } 2>"$dir/err" |
		head -c 1000 >/dev/null
	[ "$(cat "$dir/status")" -eq 1 ]
	grep -qE 'standard output: cannot write behind byte [0-9]+: Broken pipe' "$dir/err"
}

@test "a full disk is an error with the place, and perf reads what was flushed" {
	mkdir "$dir/small"
	mount -t tmpfs -o size=128k tmpfs "$dir/small" 2>/dev/null || skip "no mount allowed here"
	mounted=$dir/small
	run "$UNIT/perfdata_write" file "$dir/small/p" 5000
	[ "$status" -eq 1 ]
	[[ "$output" =~ small/p:\ cannot\ write\ at\ offset\ [0-9]+:\ No\ space\ left\ on\ device ]]
	cp "$dir/small/p" "$dir/p"
	local n
	n=$(samples_of "$dir/p")
	[ "$n" -gt 500 ]
	[ $((n % 6)) -eq 0 ]
	quiet perf report --stdio -i "$dir/p"
	same_as_perf "$dir/p"
}

# ------------------------------------------------------------------ written by perf, read by us

@test "files that perf records now: header and samples are perf's" {
	local how
	record "$dir/p" -e cpu-clock || skip "perf cannot record here"
	same_as_perf "$dir/p"
	for how in "-g" "--call-graph dwarf" "-z" "-z -g" "-d --phys-data --code-page-size -W" \
		"-T --switch-events --namespaces --clockid monotonic_raw" "--intr-regs=ax --user-regs=ip"; do
		echo "perf record -e cpu-clock $how"
		# shellcheck disable=SC2086 # options
		record "$dir/p" -e cpu-clock $how || { cat "$dir/err"; false; }
		same_as_perf "$dir/p"
	done
	record "$dir/p" -e cpu-clock,page-faults,context-switches
	same_as_perf "$dir/p"
	grep -q page-faults "$dir/got"
}

@test "BPF programs that were loaded: the header has perf's lines of them" {
	local loader
	command -v python3 >/dev/null || skip "no python3"
	mkfifo "$dir/hold"
	python3 "$BATS_TEST_DIRNAME/bpf.py" <"$dir/hold" >"$dir/loaded" 2>"$dir/err" 3>&- &
	loader=$!
	exec 9>"$dir/hold"
	until [ -s "$dir/loaded" ]; do
		kill -0 "$loader" 2>/dev/null || { exec 9>&-; skip "no BPF program can be loaded: $(cat "$dir/err")"; }
		sleep 0.05
	done
	record "$dir/p" -e cpu-clock || { exec 9>&-; skip "perf cannot record here"; }
	same_as_perf "$dir/p"
	grep -q '^# bpf_prog_info [0-9]*: bpf_prog_[0-9a-f]*_vmprof_plain addr ' "$dir/full"
	grep -q 'sub_prog 1: bpf_prog_[0-9a-f]*_F addr ' "$dir/full"
	grep -q 'sub_prog 1: bpf_prog_[0-9a-f]*_vmprof_sub addr ' "$dir/full"
	exec 9>&-
	wait "$loader"
}

@test "counters of a group: a sample for each event that has counted" {
	record "$dir/p" -e '{cpu-clock,page-faults}:S' || skip "perf cannot record here"
	same_as_perf "$dir/p"
	[ "$(grep -c page-faults "$dir/got")" -gt 3 ]
}

@test "pipes that perf records now, compressed too" {
	local how
	for how in "" "-z"; do
		# shellcheck disable=SC2086 # an option or none
		record - -e cpu-clock $how || skip "perf cannot record here"
		same_as_perf "$dir/piped"
	done
}

@test "a directory of perf record --threads" {
	record "$dir/d" -e cpu-clock -a --threads -z || skip "perf cannot record so here"
	same_as_perf "$dir/d" /dev/null
	[ -f "$dir/d/data.0" ]
}

@test "tracepoints: the tracer's bytes are found" {
	record "$dir/p" -e sched:sched_switch -a || skip "perf has no tracepoints here"
	same_as_perf "$dir/p"
	[ "$(wc -l <"$dir/got")" -gt 10 ]
}

@test "perf.data files of many versions: header and samples are perf's" {
	[ -d "$CORPUS" ] || skip "the corpus is not here"
	local file name
	for file in "$CORPUS"/*data*; do
		name=${file##*/}
		case $name in
		# perf 6.1 refuses attributes longer than its own; the file is sound
		perf.data.PerfFormatLost)
			"$UNIT/perfdata_read" stats "$file" >"$dir/stats"
			grep -q '^event cycles 34$' "$dir/stats"
			grep -q '^event instructions 34$' "$dir/stats"
			continue
			;;
		# perf makes samples out of the trace and mixes them with the file's
		perf.data.intel_pt-4.14) continue ;;
		# a record of no bytes: perf prints no sample, as there is none before it
		*zero_size*)
			run "$UNIT/perfdata_read" samples "$file"
			[ "$status" -eq 1 ]
			[[ "$output" == *"offset 49104: a record of 0 bytes"* ]]
			continue
			;;
		esac
		echo "$name"
		same_as_perf "$file"
		[ -s "$dir/got" ]
	done
}

@test "records of the corpus are counted as perf counts them" {
	[ -d "$CORPUS" ] || skip "the corpus is not here"
	local file
	for file in "$CORPUS"/*.{callgraph-3.4,lost_samples-4.4,ctx_switch_namespaces-4.14,intel_pt-4.14}; do
		perf report --stats -i "$file" 2>/dev/null |
			sed -nE 's/^ +(TOTAL|SAMPLE|MMAP2?|COMM|FORK|EXIT|FINISHED_ROUND) events: +([0-9]+) .*/\1 \2/p; s/^ +TOTAL events: +([0-9]+)$/TOTAL \1/p' |
			sort >"$dir/want"
		"$UNIT/perfdata_read" stats "$file" | sed -nE '
			s/^total /TOTAL /p; s/^type 9 /SAMPLE /p; s/^type 1 /MMAP /p; s/^type 10 /MMAP2 /p
			s/^type 3 /COMM /p; s/^type 7 /FORK /p; s/^type 4 /EXIT /p
			s/^type 68 /FINISHED_ROUND /p' | sort >"$dir/got"
		diff "$dir/want" "$dir/got"
	done
}
