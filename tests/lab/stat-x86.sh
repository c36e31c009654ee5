#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof stat on a KVM host of x86-64 without a PMU: software events, tracepoints, exits, beside perf's.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/stat.sh
. "$lab/lib/stat.sh"

kvm_run_sound x86-kvm stat "$tmp/stat" stat_why_not
kvm_stat x86-kvm "$tmp/stat"
kvm_exits_as_perf x86-kvm "$tmp/stat"
expect "x86-kvm: cycles are not supported without a PMU" "$(one_line "$tmp/stat/stdout")" \
	says "$tmp/stat/stdout" '^default +<not supported> +cycles'
