#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# scripts/demo direct as it is given, and what it shows.
# Steady: its clock counts instructions.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

if ((!LONG)); then
	skip "scripts/demo direct" "LONG=1 runs it"
	exit 0
fi
status=0
"$top/scripts/demo" direct >"$tmp/out" 2>&1 </dev/null || status=$?
expect "scripts/demo direct" "status $status: $(tail -n 5 "$tmp/out" | tr '\n' ' ')" test "$status" -eq 0
for text in 'device ivshmem-plain,memdev=log' 'web1: direct backend, direct delivery, cycles every 100000' \
	'^ +[0-9.]+%  web1  fixed .* hot75' '^ +[0-9.]+%  web1  fixed .* hot25' '^ +[0-9]+\.[0-9]+  v00  web1 '; do
	expect "its output has $text" "it has not" says "$tmp/out" "$text"
done
