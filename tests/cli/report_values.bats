#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof report by what samples have besides their address: time, transaction, what an access to memory
# found; beside perf, of made-up samples (samples.py), as few machines have the hardware.
# Steady: it reads files.
# shellcheck disable=SC2154 # run sets output, stderr

load helper
bats_require_minimum_version 1.5.0

setup() {
	dir=$BATS_TEST_TMPDIR
	python3 "$BATS_TEST_DIRNAME/samples.py" "$dir/made" x86_64
}

rows() {
	sed -n '/^# Samples/,$p' | grep -v Tip: | sed 's/ *$//' | grep -v '^#*$'
}

same_as_perf() { # same_as_perf LEAST-ROWS OPTIONS...
	local least=$1
	shift
	perf report --stdio -i "$dir/made" "$@" 2>/dev/null | rows >"$dir/perf"
	"$VMPROF" report --stdio -i "$dir/made" "$@" | rows >"$dir/ours"
	[ "$(grep -c % "$dir/perf")" -ge "$least" ]
	diff "$dir/perf" "$dir/ours"
}

@test "report: by time, transaction and page size, as perf" {
	command -v perf >/dev/null || skip "perf is not installed"
	same_as_perf 2 --no-branch-stack --sort time,dso
	same_as_perf 30 --no-branch-stack --sort time --time-quantum 20us
	same_as_perf 8 --no-branch-stack --sort transaction
	same_as_perf 2 --no-branch-stack --sort code_page_size
}

@test "report: --mem-mode has perf's weights, rows and words" {
	command -v perf >/dev/null || skip "perf is not installed"
	local key
	for key in mem snoop tlb locked blocked phys_daddr data_page_size locked,snoop,tlb mem,dso; do
		same_as_perf 3 --mem-mode --sort "$key"
	done
	same_as_perf 2 --mem-mode --sort time --time-quantum 1ms
}

@test "report: keys of memory, time quanta and long lists of keys" {
	run -0 "$VMPROF" report -i "$dir/made" --mem-mode
	[[ $output == *"# Sort order   : local_weight,mem,symbol,"* && $output == *"Memory access"* ]]
	run -2 --separate-stderr "$VMPROF" report -i "$dir/made" --no-branch-stack --sort comm,tlb
	[[ $stderr == *"'tlb' is of accesses to memory: it needs --mem-mode"* ]]
	for quantum in '' 0 -1 1h 1.5s 99999999999999999999s 99999999999999999999; do
		run ! --separate-stderr "$VMPROF" report -i "$dir/made" --sort time --time-quantum "$quantum"
		[[ $stderr == *"is not a time as 100ms"* ]]
	done
	# more keys than there is sense in
	run ! --separate-stderr "$VMPROF" report -i "$dir/made" --no-branch-stack --sort \
		"pid,comm,dso,symbol,parent,cpu,srcline,srcfile,local_weight,weight,transaction,symbol_size,cgroup,time,code_page_size,local_ins_lat,ins_lat,local_p_stage_cyc,p_stage_cyc,vm,vcpu,tid,tgid,dso_from,dso_to,symbol_from,symbol_to,srcline_from,srcline_to,mispredict,in_tx,abort,cycles,locked,tlb,mem,snoop,phys_daddr,data_page_size,blocked"
	[[ $stderr == *"needs"* ]]
}
