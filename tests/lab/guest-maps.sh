#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Executable mappings as vmprof finds them in a guest's memory, against the guest's own
# /proc/PID/maps: in what the guest layer hands over (with device and inode), and in the file.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

dump=$BUILD/tests/bench/guest
[[ -x $dump ]] || die "no $dump: run make bench-programs"

for kernel in 6.1-cloud 6.12-cloud; do
	vm up "$t" --load maps,libsplit,split,split_nopie --append truth --kernel "$kernel" ||
		die "$t does not come up"
	vm log "$t" >"$tmp/console"
	"$dump" -d -p -F 1000 -t 3 "$t" >"$tmp/dump" || die "$dump failed"
	"$lab/lib/maps.py" "$tmp/console" seen "$tmp/dump" >"$tmp/result"
	take "$tmp/data" -F 1000 --vm "$t" --duration 3
	if command -v perf >/dev/null; then
		perf script -i "$tmp/data" --show-mmap-events >"$tmp/script" 2>/dev/null
		"$lab/lib/maps.py" "$tmp/console" file "$tmp/script" >>"$tmp/result"
	else
		skip "$kernel: mappings in the file" "no perf"
	fi
	sed "s/ok /&$kernel: /" "$tmp/result"
	expect "$kernel: all four programs" "not all have said their maps" \
		test "$(grep -c 'seen' "$tmp/result")" = 4
	vm down "$t"
done
