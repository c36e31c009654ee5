#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# BPF programs of a host, beside perf.

load helper

@test "symbols: BPF programs of a host have perf's names" {
	command -v perf >/dev/null || skip "perf is not installed"
	dir=$BATS_TEST_TMPDIR
	"${CC:-cc}" -O1 -o "$dir/bpfwork" "$BATS_TEST_DIRNAME/../lab/guest/bpfwork.c"
	run timeout 1 "$dir/bpfwork"
	[ "$status" -eq 124 ] || skip "BPF programs may not be loaded here: $output"
	perf record -q -e cpu-clock -F 2000 -g -o "$dir/data" -- timeout 1 "$dir/bpfwork" \
		2>"$dir/err" || [ "$?" -eq 124 ] || skip "perf may not record here: $(head -n 1 "$dir/err")"
	perf script -i "$dir/data" --no-inline -F comm,ip,sym,symoff,dso 2>/dev/null | grep bpf_prog_ >"$dir/perf"
	"$VMPROF" script -i "$dir/data" --no-inline -F comm,ip,sym,symoff,dso | grep bpf_prog_ >"$dir/ours"
	grep -qE 'bpf_prog_[0-9a-f]{16}_bpf_hot_a\+0x[0-9a-f]+ \(bpf_prog_' "$dir/perf" ||
		skip "perf saw no BPF program here"
	diff "$dir/perf" "$dir/ours"
	perf report -i "$dir/data" --stdio -g none --no-children 2>/dev/null | grep bpf_prog_ >"$dir/perf"
	"$VMPROF" report -i "$dir/data" --stdio -g none --no-children | grep bpf_prog_ >"$dir/ours"
	diff "$dir/perf" "$dir/ours"
}
