#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tests/bench/overflow.sh: instructions from a counter's overflow in a VM until the sample's record is in the ring, by
# perf_event_open() and by vmprof.ko, on the lab's KVM host of arm64, where the clock counts instructions. PERIOD=100000
# cycles, of which an instruction takes 4.
#
# A way to sample makes fixed work of the VM longer; nothing reads the samples meanwhile. What that is a sample, less the
# same of an interrupt with nothing done in it (null), is what the way itself takes. The VM's own look at its clock tells
# how many instructions there are from the overflow until perf calls whoever takes the sample; all ways have these.
set -euo pipefail
# shellcheck source=tests/lab/lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab/lib/bench.sh"

build_cost arm64 "$dir" || die "its modules are not built"
echo "${PERIOD:-100000} plain null perf kmod regs chain" >"$dir/words"
"$lab/run" arm64-kvm "$lab/host/cost" "$dir"/{own-guests,words,costtest,l2-cost,vmprof.ko,null.ko} >"$dir/out" ||
	die "the lab failed: $(cat "$dir/out")"
awk '
	$1 == "plain" { plain[$2] = $3 }
	$1 != "plain" && $4 { all[$1, $2] = ($3 - plain[$2]) * 4 / $4 }
	$1 == "null" && $2 == "look" { before = $7 * 4 / $6 }
	$5 { printf "%s %s: %d lost\n", $1, $2, $5 }
	END {
		n = split("null perf kmod regs chain", modes)
		printf "from the overflow to the handler: %.0f\n", before
		print "mode   work    all  its own  from the overflow"
		for (i = 1; i <= n; i++)
			for (k = 1; k <= 2; k++) {
				kind = k == 1 ? "user" : "kernel"
				own = all[modes[i], kind] - all["null", kind]
				printf "%-6s %-6s %5.0f %8.0f %8.0f\n", modes[i], kind, all[modes[i], kind], own, before + own
			}
	}' "$dir/out"
