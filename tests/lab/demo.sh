#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# README's command as a newcomer gives it, and what it promises: real services by their own names, both
# VMs in one profile, a flame graph, no VM left behind.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

status=0
"$top/scripts/demo" --seconds 6 >"$tmp/out" 2>&1 </dev/null || status=$?
expect "scripts/demo" "status $status: $(tail -n 5 "$tmp/out" | tr '\n' ' ')" test "$status" -eq 0
data=$VMPROF_LAB/perf.data
for text in 'web1 .*apache2' 'db1 .*redis-server' '\[g\] [a-z_]+' 'Captured and wrote'; do
	expect "its output has $text" "it has not" says "$tmp/out" "$text"
done
expect "its flame graph is there" "no $VMPROF_LAB/flamegraph.svg" says "$VMPROF_LAB/flamegraph.svg" '</svg>'
expect "it leaves no VM behind" "$(vm status | one_line /dev/stdin)" test -z "$(vm status)"

# The VMs are gone; the profile has all names.
folded "$data" >"$tmp/folded" || exit 1
named() { # named VM COMM PATTERN: share of its user samples (per cent) whose leaf has such a name
	awk -F';' -v vm="$1" -v comm="$2" -v pattern="$3" '
		$1 == vm && $2 == comm {
			n = $0; sub(/.* /, "", n)
			leaf = $NF; sub(/ [0-9]+$/, "", leaf)
			if (leaf ~ /_\[k\]$/) next
			all += n
			if (leaf ~ pattern) good += n
		}
		END { print all ? int(100 * good / all) : -1 }' "$tmp/folded"
}
# Static functions have no names in what Debian ships, and get none.
share=$(named db1 redis-server '^[a-z_][A-Za-z0-9_@.]*$')
expect "Redis' own functions by name" "$share % of the samples in them" test "$share" -ge 60
share=$(named web1 apache2 '^[a-z_][A-Za-z0-9_@.]*$')
expect "Apache's and its libraries' functions by name" "$share % of the samples in them" test "$share" -ge 50
expect "a Redis function that everybody knows" "none" says "$tmp/folded" '^db1;redis-server;.*(processCommand|dictFind|lookupKey|addReply)'
expect "an Apache function that everybody knows" "none" says "$tmp/folded" '^web1;apache2;.*\bap_[a-z_]+'
expect "the kernel's network path" "none" says "$tmp/folded" '^web1;.*tcp_[a-z_]*_\[k\]'
