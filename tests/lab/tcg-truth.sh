#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The tcg backend, processes and call chains against programs whose profile is known: how the time is
# split, that chains are whole, that nothing lands in a wrong process; with an idle and with a
# loaded host.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

chain='main,first,second,third,hot_a|hot_b'
x_chain='main,x_first,x_second,x_third,x_hot_a|x_hot_b'
nopie_chain='main,nopie_first,nopie_second,nopie_third,nopie_hot_a|nopie_hot_b'
nofp_chain='main,nofp_first,nofp_second,nofp_third,nofp_hot_a|nofp_hot_b'
libsplit_chain='main,outer,own_hot|plugin_work,plugin_spin|plugin_hot'

vm up "$t" --load split:0,split_x:1 --ram memfd --append truth || die "$t does not come up"
vm log "$t" >"$tmp/console"
truth "two processes" 4000 8 \
	split:split:hot_a:hot_b split:split_x:x_hot_a:x_hot_b \
	"whole:split:$chain:spin:99" "whole:split_x:$x_chain:x_spin:99" \
	only:split:hot_ only:split_x:x_

# The guest's own words: process ids, and where its kernel is.
for comm in split split_x; do
	pid=$(sed -n "s/^@pid \([0-9]*\) $comm\r*$/\1/p" "$tmp/console")
	"$VMPROF" report -i "$tmp/data" --sort pid,comm -g none >"$tmp/pids"
	expect "pid of $comm is the guest's" "not $pid: $(grep -w "$comm" "$tmp/pids" | head -n 2)" \
		says "$tmp/pids" "\b$pid\b.*\b$comm\b|\b$comm\b.*\b$pid\b"
done

# perf reads it, and counts the same.
if command -v perf >/dev/null; then
	samples=$("$VMPROF" report -i "$tmp/data" --stats | sed -n 's/.*SAMPLE events: *\([0-9]*\).*/\1/p' | head -n 1)
	perf script -i "$tmp/data" -F comm,pid,time,ip,sym >"$tmp/script" 2>"$tmp/script.err"
	expect "perf script reads it without a word" "$(one_line "$tmp/script.err")" test ! -s "$tmp/script.err"
	count=$(grep -c '^[^[:space:]]' "$tmp/script")
	expect "perf script shows as many samples" "$count of ${samples:-?}" test "$count" = "$samples"
	perf report --stdio -i "$tmp/data" >"$tmp/report" 2>"$tmp/report.err"
	expect "perf report reads it without a word" "$(one_line "$tmp/report.err")" test ! -s "$tmp/report.err"
else
	skip "perf reads it" "no perf"
fi

# QEMU's monitor tells registers of the same VM, some hundred times a second.
record_options=(--backend qmp)
truth "by QEMU's monitor" 200 8 \
	share:split:hot_a:hot_b:75:150 share:split_x:x_hot_a:x_hot_b:75:150 \
	"whole:split:$chain:spin:70" "whole:split_x:$x_chain:x_spin:70" \
	only:split:hot_ only:split_x:x_
record_options=()

# The host's CPUs are taken: a clock that ran on while the vCPU does not would repeat one state.
for ((i = 0; i < 2 * $(nproc); i++)); do
	(while :; do :; done) &
	busy[i]=$!
done
truth "two processes, loaded host" 4000 20 \
	split:split:hot_a:hot_b split:split_x:x_hot_a:x_hot_b \
	"whole:split:$chain:spin:99" "whole:split_x:$x_chain:x_spin:99" \
	only:split:hot_ only:split_x:x_
kill "${busy[@]}"
wait "${busy[@]}" 2>/dev/null
vm down "$t"

vm up "$t" --load libsplit:0,hash:1 || die "$t does not come up"
truth "library and module" 4000 8 \
	split:libsplit:own_hot:plugin_hot "whole:libsplit:$libsplit_chain:spin:99" only:libsplit:plugin_ \
	'leaf:hash:^wp512_.*_\[k\]$:50' 'in:hash:^hash_sendmsg_\[k\]$:95' 'in:hash:^call_hash$:99' only:hash:wp512_
vm down "$t"

# As most programs are: optimized, without frame pointers.
vm up "$t" --load split_nofp --smp 1 || die "$t does not come up"
truth "no frame pointers" 4000 5 \
	"whole:split_nofp:$nofp_chain:nofp_spin:99" in:split_nofp:^_start$:99 \
	split:split_nofp:nofp_hot_a:nofp_hot_b:10000
vm down "$t"

# What is missing is the loop itself, and a moment in the entry code.
vm up "$t" --load getpid:0,read:1 --ram memfd || die "$t does not come up"
truth "system calls" 4000 5 \
	'in:getpid:^call_getpid$:98' 'in:getpid:_\[k\]$:50' 'leaf:read:_\[k\]$:95' 'in:read:^call_read$:99' \
	'in:read:^(do_syscall_64|entry_SYSCALL_64.*)_\[k\]$:98' only:getpid:call_getpid
vm down "$t"

vm up "$t" --load threads,split_nopie || die "$t does not come up"
truth "threads, fixed addresses" 4000 8 \
	"whole:split_nopie:$nopie_chain:nopie_spin:99" only:split_nopie:nopie_ \
	split:split_nopie:nopie_hot_a:nopie_hot_b:1000 'comms:^thread-[0-9]+$:16'
vm down "$t"

# BPF programs are in no table of the kernel's symbols. The tag in a name is a hash of the code.
vm up "$t" --load bpfwork --smp 1 || die "$t does not come up"
a="bpf_prog_444f8d8263e86c71_bpf_hot_a_[k]" b="bpf_prog_be1d47f1f21cbb88_bpf_hot_b_[k]"
truth "BPF programs of the guest" 4000 6 "split:bpfwork:$a:$b:5000" in:bpfwork:^bpf_test_run_:90 \
	in:bpfwork:^_start$:95 only:bpfwork:bpf_prog_
vm down "$t"

# Code that programs make themselves: names out of the guest's /tmp/perf-PID.map; what the second one
# has written lies in a root directory and has the number of a pid namespace of its own.
vm up "$t" --load jit:0,jit_apart:1 || die "$t does not come up"
truth "perf-PID.map in the guest" 4000 6 \
	split:jit:jit_hot_a:jit_hot_b:5000 split:jit_apart:apart_hot_a:apart_hot_b:5000 \
	in:jit:^jit_hot_:95 in:jit_apart:^apart_hot_:95 \
	only:jit:jit_hot only:jit_apart:apart_hot
vm down "$t"
if command -v perf >/dev/null; then
	perf --buildid-dir "$tmp/data.debug" report -i "$tmp/data" --stdio --no-children -g none 2>/dev/null >"$tmp/report"
	expect "perf shows the names, too" "$(grep -m 2 JIT "$tmp/report" | one_line /dev/stdin)" \
		says "$tmp/report" 'JIT. tid [0-9]+ +\[u\] apart_hot_a'
else
	skip "perf shows the names, too" "no perf"
fi

vm up "$t" --load reuse || die "$t does not come up"
truth "a process id that is used again" 4000 8 only:split:hot_ only:split_x:x_
