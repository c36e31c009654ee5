#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof.ko and vmprof_guest.ko build without a warning against the headers of Debian's kernels.
# Steady: it compiles.

build() { # build SERIES ARCH [MAKE-VARIABLE...]
	local headers module=$BATS_TEST_TMPDIR/modules/vmprof.ko
	cd "$BATS_TEST_DIRNAME/../.."
	headers=$(scripts/kernel-headers "$1" "$2" 2>"$BATS_TEST_TMPDIR/why") || skip "$(cat "$BATS_TEST_TMPDIR/why")"
	shift 2
	make modules guest-module KDIR="$headers" BUILD="$BATS_TEST_TMPDIR" "$@" W=1 >"$BATS_TEST_TMPDIR/log" 2>&1 ||
		{ cat "$BATS_TEST_TMPDIR/log"; return 1; }
	! grep -i 'warning:' "$BATS_TEST_TMPDIR/log"
	readelf -p .modinfo "$module" | grep -q "license=GPL"
	readelf -p .modinfo "${module%/*/*}/guest-module/guest/vmprof_guest.ko" | grep -q "license=GPL"
}

arm64() {
	command -v aarch64-linux-gnu-gcc >/dev/null || skip "no cross compiler for arm64"
	build "$1" arm64 ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
}

@test "modules: kernel 6.1, x86-64" { build 6.1 amd64; }
@test "modules: kernel 6.12, x86-64" { build 6.12 amd64; }
@test "modules: kernel 6.1, arm64" { arm64 6.1; }
@test "modules: kernel 6.12, arm64" { arm64 6.12; }
