# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
# For benchmarks that run in a lab of arm64: $lab, $dir (taken away at the end), and what builds the modules.

# shellcheck source=tests/lab/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
lab=$top/tests/lab
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"
for program in qemu-system-aarch64 aarch64-linux-gnu-gcc; do
	command -v $program >/dev/null || {
		echo "bench/$(basename "$0" .sh): no $program, nothing measured"
		exit 0
	}
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/vmprof-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
