# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034
# What every script of the lab needs: where things are, and how to say that something is wrong.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
BUILD=${BUILD:-build}
[[ $BUILD = /* ]] || BUILD=$top/$BUILD
# Downloaded packages, kernels and built images; may be deleted at any time.
cache=${VMPROF_CACHE:-$BUILD/cache}
# One set of files a running VM: NAME.pid, NAME.log (console), NAME.out (QEMU), NAME.qmp.
run=${VMPROF_LAB:-$BUILD/lab}

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

need() { # need PROGRAM... : stops with the way to get them if one is missing
	local p
	for p; do
		command -v "$p" >/dev/null || die "$p is missing: run scripts/install-deps"
	done
}

# make_arch ARCH TRIPLET TARGET...: of vmprof, built for ARCH, in $BUILD/ARCH; one at a time, as labs that
# run side by side use the same
make_arch() {
	local arch=$1 triplet=$2
	shift 2
	mkdir -p "$BUILD/$arch"
	VMPROF_CACHE=$cache flock "$BUILD/$arch/lock" \
		make -C "$top" CROSS_COMPILE="$triplet-" BUILD="$BUILD/$arch" -j"$(nproc)" "$@"
}
