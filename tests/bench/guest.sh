#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tests/bench/guest.sh [KERNEL]: microseconds that completing a sample costs (process, maps, call
# chain), for user work and for kernel work, with RAM mapped and with process_vm_readv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=benchguest
trap 'tests/lab/vm down "$name" >/dev/null 2>&1' EXIT
for load in split:0,split:1 read:0,hash:1; do
	tests/lab/vm up "$name" --kernel "${1:-6.12-cloud}" --ram memfd --load "$load" >/dev/null
	echo "load $load"
	"${BUILD:-build}/tests/bench/guest" -t "${SECONDS_EACH:-5}" "$name"
	tests/lab/vm down "$name" >/dev/null
done
