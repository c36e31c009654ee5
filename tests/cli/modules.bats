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

# dkms_build PACKAGE MODULE: as dkms builds it, by its dkms.conf, out of a copy of its sources
dkms_build() {
	local module=$1 module_version=0.1 kernel_source_dir dkms_tree=$BATS_TEST_TMPDIR/tree BUILT_MODULE_LOCATION=()
	cd "$BATS_TEST_DIRNAME/../.."
	kernel_source_dir=$(scripts/kernel-headers 6.1 amd64 2>"$BATS_TEST_TMPDIR/why") || skip "$(cat "$BATS_TEST_TMPDIR/why")"
	make dkms DESTDIR="$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/log" 2>&1
	mkdir -p "$dkms_tree/$1/0.1"
	cp -r "$BATS_TEST_TMPDIR/usr/src/$1-0.1" "$dkms_tree/$1/0.1/build"
	. "$dkms_tree/$1/0.1/build/dkms.conf"
	[ "$PACKAGE_NAME-$PACKAGE_VERSION" = "$1-0.1" ]
	${MAKE[0]} CONFIG_DEBUG_INFO_BTF_MODULES= >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
	[ -s "$dkms_tree/$1/0.1/build/${BUILT_MODULE_LOCATION[0]}/$BUILT_MODULE_NAME.ko" ]
}

@test "modules: the host's as dkms builds it" { dkms_build vmprof; }
@test "modules: the guest's as dkms builds it" { dkms_build vmprof-guest; }
