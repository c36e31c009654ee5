#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof report beside perf report on files of many versions of perf, byte for byte: layouts, pipes,
# groups, branch stacks, traces. Where perf is wrong the test says what is right.
# Steady: it reads files.
# shellcheck disable=SC2154

load helper

setup() {
	dir=$BATS_TEST_TMPDIR
	CORPUS=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}
	command -v perf >/dev/null || skip "perf is not installed"
	[ -d "$CORPUS" ] || skip "the corpus is not here"
}

# Without the tip, the notes on missing symbols, and comments at the end.
tables() {
	sed -e '/^# (.*)$/d' -e '/^# Not decoded: /,+1d' |
		sed -e ':a' -e '/^[#\n]*$/{$d;N;ba' -e '}'
}

# same_as_perf NAME OPTIONS...: of the corpus. perf would take the symbols of a kernel that did not
# make the file, where the file has no build id of its own, and make samples out of traces.
same_as_perf() {
	local name=$1 in=$CORPUS/$1
	shift
	[[ $name != *piped* ]] || in=-
	perf report --stdio --kallsyms /dev/null --ignore-vmlinux --no-itrace -i "$in" "$@" \
		<"$CORPUS/$name" 2>/dev/null | tables >"$dir/perf"
	"$VMPROF" report -i "$in" "$@" <"$CORPUS/$name" 2>"$dir/err" | tables >"$dir/ours"
	[ -s "$dir/ours" ] || return 1
	diff "$dir/perf" "$dir/ours" >"$dir/diff" && return
	echo "$name $*: differs"
	head -n 30 "$dir/diff"
	return 1
}

@test "corpus: tables by command, object, symbol, CPU and thread are perf's" {
	local file name sort
	for file in "$CORPUS"/*data*; do
		name=${file##*/}
		case $name in
		# attributes longer than perf 6.1's own: it refuses the file
		perf.data.PerfFormatLost) continue ;;
		# rows of perf's are the target's, but marked by where the sample was
		*branch*) continue ;;
		esac
		for sort in comm dso sym cpu,pid; do
			# perf takes the names of the vDSO that is here for the one that was there
			[[ $name$sort != *forkexit*sym ]] || continue
			same_as_perf "$name" --no-children -g none --sort "$sort"
		done
	done
}

@test "corpus: with children, by default, and call graphs" {
	local name
	for name in perf.data.callgraph-3.4 single-event-multi-process.perf.data; do
		same_as_perf "$name" -g none --sort sym
		same_as_perf "$name" -g none --sort comm
		same_as_perf "$name" --percent-limit 2
	done
}

@test "corpus: a group's events stand side by side" {
	same_as_perf perf.data.group_desc-4.14
	grep -q "of events 'anon group { cache-references, branch-misses }'" "$dir/ours"
	same_as_perf perf.data.lost_samples-4.4 -n
	same_as_perf perf.data.hw_and_sw-3.4 --group --sort comm,dso
	"$VMPROF" report -i "$CORPUS/perf.data.PerfFormatLost" --no-children -g none -s comm -q >"$dir/out"
	grep -qE '^ +79\.87% +87\.37%  python3 *$' "$dir/out"
}

@test "corpus: branch stacks are reported by branch" {
	local name sort
	for name in perf.data.branch-4.14 perf.data.branch_stack_hw_index \
		perf.data.callgraph_and_branch-3.4; do
		for sort in comm dso cpu,pid dso_to,dso_from comm,mispredict in_tx; do
			same_as_perf "$name" --sort "$sort"
		done
	done
	same_as_perf perf.data.branch_stack_hw_index
	same_as_perf perf.data.callgraph_and_branch-3.4
	same_as_perf perf.data.callgraph_and_branch-3.4 -s cycles
	same_as_perf perf.data.callgraph_and_branch-3.4 --no-branch-stack --no-children -g none
	same_as_perf perf.data.branch-4.14 --no-branch-stack
	# perf prints 42141 cycles as a negative number of 16 bits
	same_as_perf perf.data.branch-4.14 || [ "$(grep -c '^[<>]' "$dir/diff")" -eq 2 ]
	grep -qE '\[k\] 0xffffffffb420a56b  \[k\] 0xffffffffb420a582  42141 *$' "$dir/ours"
	# samples of the kernel that came out of a program's branches
	"$VMPROF" report -i "$CORPUS/perf.data.callgraph_and_branch-3.4" -s sym -q >"$dir/out"
	run grep -E '\[\.\] 0xffffffff|\[k\] 0x0000' "$dir/out"
	[ "$status" -eq 1 ]
	"$VMPROF" report -i "$CORPUS/perf.data.branch-4.14" --folded >"$dir/out"
	[ "$(awk '{ n += $NF } END { print n }' "$dir/out")" -eq 13 ]
}

@test "corpus: keys of branches need branches" {
	run "$VMPROF" report -i "$CORPUS/perf.data.callgraph-3.4" -s symbol_to
	[ "$status" -eq 1 ]
	[[ $output == *"'symbol_to' is of branches: it needs a file recorded with -b"* ]]
	run "$VMPROF" report -i "$CORPUS/perf.data.callgraph-3.4" -b
	[ "$status" -eq 1 ]
	[[ $output == *"has no branch stacks; record with -b"* ]]
}

@test "corpus: a trace is skipped with a word, the samples beside it are reported" {
	"$VMPROF" report -i "$CORPUS/perf.data.intel_pt-4.14" -s comm >"$dir/out"
	grep -qE '^# Not decoded: [0-9]+ bytes of processor traces \(AUX\)$' "$dir/out"
	grep -q "^# Samples: 15  of event 'cycles'" "$dir/out"
}
