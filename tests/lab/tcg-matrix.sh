#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The same known programs under each of Debian's kernels, with four and five levels of page tables,
# page table isolation, RAM above 4 GiB, as a shared mapping or not, one to four vCPUs; KASLR is always
# on. In short form a few of each; LONG=1 takes all combinations.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

chain='main,first,second,third,hot_a|hot_b'

# config KERNEL CPU MEM RAM SMP MACHINE
config() {
	local name="$*" append=truth kernel=$1
	[[ $2 = max ]] || append='truth pti=on'
	if ! vm up "$t" --load split:0,hash --append "$append" --kernel "$1" --cpu "$2" --mem "$3" \
		--ram "$4" --smp "$5" --machine "$6" 2>"$tmp/up.err"; then
		not_ok "$name: boot" "$(one_line "$tmp/up.err")"
		return
	fi
	truth "$name" 2000 3 \
		split:split:hot_a:hot_b:500 "whole:split:$chain:spin:98" \
		'leaf:hash:^wp512_.*_\[k\]$:50' 'in:hash:^call_hash$:97' only:split:hot_ only:hash:wp512_
	expect "$name: kernel" "$(one_line "$tmp/data.err")" says "$tmp/data.err" "Linux ${kernel%-cloud}\."
	[[ $2 = max ]] || expect "$name: PTI" "$(one_line "$tmp/data.err")" says "$tmp/data.err" ', PTI'
	[[ $2 != max ]] || expect "$name: LA57" "$(one_line "$tmp/data.err")" says "$tmp/data.err" ', LA57'
	vm down "$t"
}

if ((LONG)); then
	for kernel in 6.1 6.1-cloud 6.12 6.12-cloud; do
		for cpu in max Skylake-Client; do
			for mem in 512M 3G 6G; do
				config $kernel $cpu $mem memfd 2 q35
				config $kernel $cpu $mem plain 2 pc
			done
			config $kernel $cpu 512M plain 1 q35
			config $kernel $cpu 6G memfd 4 q35
		done
	done
else
	config 6.1-cloud max 512M plain 2 q35
	config 6.1 Skylake-Client 3G memfd 1 pc
	config 6.1 max 6G plain 4 pc
	config 6.12-cloud max 6G memfd 2 q35
	config 6.12-cloud Skylake-Client 512M plain 4 q35
	config 6.12 Skylake-Client 6G memfd 2 pc
	config 6.12 max 3G plain 1 q35
fi
