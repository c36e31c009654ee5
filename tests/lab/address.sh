#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Whose samples are, told by their addresses alone, as it must be done for a guest whose registers are
# not to be had, against what registers say of the same samples. The guest has programs at addresses
# of their own and at the same ones, threads, and processes that come and go.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

compare=$BUILD/tests/bench/address
[[ -x $compare ]] || die "no $compare: run make bench-programs"

# count MODE WHAT: a number of the comparison
count() {
	sed -n "s/^$1 \(.*\)/ \1/;T;s/,.*//;s/.* $2 \([0-9]*\).*/\1/p" "$tmp/result"
}

# at_most PERCENT PART WHOLE: no more than chance makes of a right share, 999 times of 1000
at_most() {
	awk -v percent="$1" -v part="$2" -v whole="$3" 'BEGIN {
		mean = whole * percent / 100
		exit !(part <= mean + 3.1 * sqrt(mean) + 1) }'
}

vm up "$t" --load threads,split,split_nopie,getpid,reuse || die "$t does not come up"
for seconds in 6 20 60; do # until the host had time for enough samples
	"$compare" -F 1000 -t "$seconds" "$t" >"$tmp/result" || die "$compare failed"
	(($(count user samples) < 500)) || break
done
cat "$tmp/result"
user=$(count user samples) kernel=$(count kernel samples)
expect "enough samples" "$user in user mode, $kernel in kernel mode" \
	test "$user" -ge 500 -a "$kernel" -ge 20
expect "user mode: the process" "$(count user wrong) of $user wrong" at_most 2 "$(count user wrong)" "$user"
expect "user mode: some process" "$(count user none) of $user without one" at_most 2 "$(count user none)" "$user"
expect "kernel mode: the process or none" "$(count kernel wrong) of $kernel wrong" \
	at_most 1 "$(count kernel wrong)" "$kernel"
