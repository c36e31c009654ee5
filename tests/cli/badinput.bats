#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Files that are damaged, odd or none at all, through every command that reads a profile: one line
# that names the file and the cause, and what is whole is shown. tests/unit/perfdata_cut has every
# length of a file, tests/unit/perfdata_damage and perfdata_odd what the reader makes of each lie.
# shellcheck disable=SC2154

load helper

setup() {
	dir=$BATS_TEST_TMPDIR
	UNIT=${BUILD:-build}/tests/unit
}

# every_command FILE FUNCTION: calls FUNCTION with the name of each command, once it has read FILE:
# its lines are in $dir/out and $dir/err, its status in $status
every_command() {
	local name
	for name in report script annotate buildid-list timeline folded export merge; do
		case $name in
		timeline | folded) set -- "$1" "$2" report "--$name" -i "$1" ;;
		export) set -- "$1" "$2" export --format speedscope -o "$dir/exported" -i "$1" ;;
		merge) set -- "$1" "$2" merge -q --no-align -o "$dir/merged" "$1" ;;
		*) set -- "$1" "$2" "$name" -i "$1" ;;
		esac
		status=0
		"$VMPROF" "${@:3}" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
		"$2" "$3" || { echo "vmprof ${*:3}: status $status"; cat "$dir/err"; return 1; }
	done
}

one_line_and_1() {
	[ "$status" -eq 1 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -s "$dir/out" ] &&
		grep -q "^vmprof $1: .*$why" "$dir/err"
}

@test "bad input: what is no perf.data is refused in one line by every command" {
	local file
	echo "no perf data, but long enough to be looked at" >"$dir/text"
	: >"$dir/nothing"
	mkdir "$dir/folder"
	for file in "$dir/text" "$dir/nothing" "$dir/folder" /dev/null "$dir/absent"; do
		why=$file
		[[ $file != *absent ]] || why='absent.*No such file'
		every_command "$file" one_line_and_1
	done
}

says_why() {
	[[ $1 == buildid-list ]] && return
	[ "$status" -eq "$want" ] && [ "$(grep -c "^vmprof $1: .*$why" "$dir/err")" -eq 1 ]
}

@test "bad input: samples without an attribute that says what is in them are an error" {
	"$UNIT/perfdata_odd" no-attributes "$dir/p"
	why='p: offset [0-9]*: a sample, and no attribute says what is in it' want=1
	says_why_or_no_events() {
		says_why "$1" || { [[ $1 == merge ]] && grep -q 'the inputs have no events' "$dir/err"; }
	}
	every_command "$dir/p" says_why_or_no_events
	"$VMPROF" report -i "$dir/p" >"$dir/out" 2>"$dir/err" || :
	[ "$(grep -c 'has no samples' "$dir/err")" -eq 0 ]
}

@test "bad input: what a later perf adds is passed over and said, and so is a sample of no event" {
	"$UNIT/perfdata_odd" unknown "$dir/p"
	"$VMPROF" script -i "$dir/p" >"$dir/out" 2>"$dir/err"
	[ "$(wc -l <"$dir/out")" -eq 6 ]
	[ "$(cat "$dir/err")" = "vmprof script: $dir/p: passed over: records of unknown types (3), unknown features of the header (2)" ]
	"$VMPROF" report -i "$dir/p" 2>"$dir/err" >"$dir/out"
	grep -q 'passed over: records of unknown types (3)' "$dir/err"
	"$VMPROF" buildid-list -i "$dir/p" 2>"$dir/err" >"$dir/out"
	grep -q '^vmprof buildid-list: .*passed over: ' "$dir/err"
	"$UNIT/perfdata_odd" empty "$dir/p"
	"$VMPROF" report -i "$dir/p" 2>"$dir/err" >"$dir/out"
	grep -q 'passed over: compressed records with nothing in them (2000)$' "$dir/err"
	"$VMPROF" merge -o "$dir/m" "$dir/p" 2>"$dir/err"
	grep -q 'left out: 2000 compressed with nothing in them$' "$dir/err"
	"$UNIT/perfdata_odd" stray "$dir/p"
	"$VMPROF" script -i "$dir/p" >"$dir/out" 2>"$dir/err"
	[ "$(wc -l <"$dir/out")" -eq 6 ]
	grep -q 'passed over: samples whose event it does not have (1)$' "$dir/err"
}

@test "bad input: losses that cannot be are a sum that stays, and said" {
	"$UNIT/perfdata_odd" lost "$dir/p"
	"$VMPROF" report -i "$dir/p" >"$dir/out" 2>"$dir/err"
	grep -q '^# Total Lost Samples: 18446744073709551615$' "$dir/out"
	[ "$(cat "$dir/err")" = "vmprof report: $dir/p: that 18446744073709551615 samples were lost makes no sense" ]
	"$VMPROF" merge -o "$dir/m" "$dir/p" 2>"$dir/err"
	grep -q '18446744073709551615 lost when it was recorded' "$dir/err"
}

@test "bad input: of a file that ends early the header is shown, and that it does, with status 1" {
	"$UNIT/perfdata_write" file "$dir/p" 50
	head -c 5000 "$dir/p" >"$dir/cut"
	local command
	for command in report script; do
		"$VMPROF" "$command" --header-only -i "$dir/p" >"$dir/out" 2>"$dir/err"
		[ ! -s "$dir/err" ]
		run "$VMPROF" "$command" --header-only -i "$dir/cut"
		[ "$status" -eq 1 ]
		[[ $output == *"# missing features: "* ]]
		[ "$(grep -c "^vmprof $command: .*/cut: offset 5000: the file ends here, its data should go on to [0-9]*$" <<<"$output")" -eq 1 ]
	done
}

@test "bad input: a recorder that was killed: what it wrote is shown, and that it did not end" {
	command -v perf >/dev/null || skip "perf is not installed"
	local pid seen
	perf record -q -F 20000 -m 2 -e cpu-clock -o "$dir/p" -- \
		sh -c 'echo $$ >"$1"; while :; do :; done' sh "$dir/pid" 2>"$dir/err" 3>&- &
	pid=$!
	until [ -s "$dir/p" ] && [ "$(stat -c %s "$dir/p")" -gt 60000 ]; do
		kill -0 "$pid" || skip "perf cannot record here"
		sleep 0.05
	done
	kill -9 "$pid" "$(cat "$dir/pid")"
	wait "$pid" || :
	why='p: offset 48: the size of the data is 0: the file was not closed (was the recorder killed?)' want=1
	every_command "$dir/p" says_why
	"$VMPROF" script -i "$dir/p" >"$dir/out" 2>/dev/null || :
	seen=$(wc -l <"$dir/out")
	[ "$seen" -gt 100 ]
	"$VMPROF" report --folded -i "$dir/p" >"$dir/out" 2>/dev/null || :
	[ "$(awk '{ n += $NF } END { print n + 0 }' "$dir/out")" -gt 0 ]
	# our own, of which only the header was written
	"$UNIT/perfdata_write" file "$dir/q" 5
	head -c 48 "$dir/q" >"$dir/killed"
	head -c 56 /dev/zero >>"$dir/killed"
	tail -c +105 "$dir/q" >>"$dir/killed"
	run "$VMPROF" report -i "$dir/killed"
	[ "$status" -eq 1 ]
	[[ $output == *"the file was not closed (was the recorder killed?)"* ]]
}

left_by() { # left_by NAMES COMMAND...: no sample is, and one line says by which options
	local names=$1
	shift
	"$VMPROF" "$@" -i "$dir/p" >"$dir/out" 2>"$dir/err"
	[ "$(cat "$dir/err")" = "vmprof $1: no sample of $dir/p is left by $names" ] && return
	cat "$dir/err"
	return 1
}

@test "bad input: filters that leave nothing are named by the commands that print nothing then" {
	local how
	"$UNIT/perfdata_write" file "$dir/p" 5
	for how in "script" "report" "report --folded" "report --timeline" "report --json"; do
		# shellcheck disable=SC2086 # a command and its option
		left_by "--comms nosuch" $how -c nosuch
		# shellcheck disable=SC2086
		left_by "--dsos nosuch, --pid 77" $how -d nosuch --pid 77
		# shellcheck disable=SC2086
		left_by "--cpu 99" $how --cpu 99
	done
	left_by "--time 900,901" script --time 900,901
	left_by "--symbol-filter nosuch" report --symbol-filter nosuch
	# what is left is not said to be missing
	"$VMPROF" script -i "$dir/p" -c nginx >"$dir/out" 2>"$dir/err"
	[ -s "$dir/out" ]
	[ ! -s "$dir/err" ]
	# commands that would write a file say it as an error
	for how in "annotate" "export --format pprof -o $dir/x" "report --flamegraph $dir/x"; do
		# shellcheck disable=SC2086
		run "$VMPROF" $how -c nosuch -i "$dir/p"
		[ "$status" -eq 1 ]
		[[ $output == *"filters leave"* ]]
	done
}
