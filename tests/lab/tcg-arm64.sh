#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# aarch64 guests of QEMU's translator: processes, modules and call chains against programs whose profile
# is known, as tcg-truth.sh has them for x86-64. With authenticated return addresses (max), and a CPU
# that has none.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	if ! command -v $program >/dev/null; then
		skip tcg-arm64 "no $program"
		exit 0
	fi
done

chain='_start,__libc_start_main_impl|__libc_start_main@@GLIBC_2.34,__libc_start_call_main,main,first,second,third,hot_a|hot_b'
x_chain='main,x_first,x_second,x_third,x_hot_a|x_hot_b'

vm up "$t" --arch arm64 --image arm64 --kernel 6.1 --cpu max,pauth-impdef=on --load split:0,split_x:1 \
	--append truth || die "$t does not come up"
vm log "$t" >"$tmp/console"
truth "aarch64, two processes" 2000 8 \
	split:split:hot_a:hot_b:4000 split:split_x:x_hot_a:x_hot_b:4000 \
	"whole:split:$chain:spin:99" "whole:split_x:$x_chain:x_spin:99" \
	only:split:hot_ only:split_x:x_

# The guest's own words.
for comm in split split_x; do
	pid=$(sed -n "s/^@pid \([0-9]*\) $comm\r*$/\1/p" "$tmp/console")
	"$VMPROF" report -i "$tmp/data" --sort pid,comm -g none >"$tmp/pids"
	expect "aarch64: pid of $comm is the guest's" "not $pid: $(grep -w "$comm" "$tmp/pids" | head -n 2)" \
		says "$tmp/pids" "\b$pid\b.*\b$comm\b|\b$comm\b.*\b$pid\b"
done
"$VMPROF" report -i "$tmp/data" --stats >"$tmp/stats"
# A task that ends just now, or a switch between registers and memory where a snapshot failed.
# shellcheck disable=SC2016 # awk's
expect "aarch64: nearly each sample is some process's" "$(grep -E 'no_|samples' "$tmp/stats" | one_line /dev/stdin)" \
	awk '$1 == "samples:" { n = $2 } $1 == "no_kernel:" || $1 == "no_process:" { lost += $2 }
		END { exit !(n && lost <= n / 200 + 2) }' "$tmp/stats"
vm down "$t"

# A module by name, in the kernel's chains over the system call into it; and another kernel.
t=${t}b
vm up "$t" --arch arm64 --image arm64 --kernel 6.12 --cpu cortex-a72 --smp 1 --load hash || die "$t does not come up"
truth "aarch64, a module" 2000 6 \
	'leaf:hash:^wp512_.*_\[k\]$:50' 'in:hash:^hash_sendmsg_\[k\]$:90' 'in:hash:^call_hash$:98' only:hash:wp512_
"$VMPROF" report -i "$tmp/data" --sort dso -g none >"$tmp/report"
expect "aarch64: the module is named" "$(one_line "$tmp/report")" says "$tmp/report" '%.*\[wp512\]'
vm down "$t"
