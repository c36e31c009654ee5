#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tests/bench/share.sh: the share of a CPU that vmprof record takes at 4 kHz of two VMs, by perf events and by vmprof.ko,
# on the lab's KVM host of arm64: of a CPU of 250 million instructions a second, and in instructions a sample.
set -euo pipefail
# shellcheck source=tests/lab/lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lib/bench.sh"

build_module arm64 "$dir" || die "the module is not built"
TIMEOUT=1200 "$lab/run" arm64-kvm "$lab/host/share" "$dir/vmprof.ko" >"$dir/out" || die "the lab failed: $(cat "$dir/out")"
awk 'NF == 4 && $2 ~ /^[0-9]+$/ && $4 {
	printf "%-6s %5.2f %% of a CPU, %.0f samples a second, %.0f instructions a sample\n",
		$1, 100 * $2 / $3, $4 / $3 * 1e9, $2 / 4 / $4 }' "$dir/out"
