#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vmprof.ko on a KVM host of x86-64.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"
# shellcheck source=tests/lab/lib/module.sh
. "$lab/lib/module.sh"

fuzz=20
if ((LONG)); then
	fuzz=600
	export LIMIT=1250
fi
module_lab x86-kvm amd64 $fuzz
