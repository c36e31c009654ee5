#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Slots of procedure linkage tables, of each kind that linkers make, beside objdump's names.
# Steady: it compiles, and compares what programs print.

setup() {
	UNIT=${BUILD:-build}/tests/unit
	dir=$(mktemp -d "${BATS_TMPDIR:-/tmp}/plt.XXXXXX")
	command -v objdump >/dev/null || skip "objdump is not installed"
	cat >"$dir/p.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	puts(argv[0]);
	return strlen(argv[0]) + atoi(argv[0]) + (strchr(argv[0], 'x') != 0);
}
END
}

teardown() {
	rm -rf "$dir"
}

# ours FILE: "ADDRESS NAME" of the slots, addresses as objdump has them
ours() {
	local line shift
	# the code's offset and address
	line=$(readelf -lW "$1" | awk '$1 == "LOAD" && / R E / { print $3 " - " $2; exit }')
	shift=$((line))
	"$UNIT/symtab" list "$1" | while read -r start _ name; do
		[[ $name != *@plt ]] || printf '%x %s\n' $((0x$start + shift)) "$name"
	done | sort
}

# theirs OBJDUMP FILE
theirs() {
	"$1" -d -j .plt -j .plt.sec -j .plt.got "$2" 2>/dev/null |
		sed -nE 's/^0*([0-9a-f]+) <(.*@plt)>:$/\1 \2/p' | sort
}

same_names() {
	theirs "$1" "$2" >"$dir/theirs"
	ours "$2" | diff "$dir/theirs" -
	[ "$(wc -l <"$dir/theirs")" -ge "$3" ]
}

@test "symbols: PLT slots have the names that objdump gives them" {
	[ "$(uname -m)" = x86_64 ] || skip "not an x86-64 machine"
	local options
	for options in "-Wl,-z,lazy" "-Wl,-z,now" "-fcf-protection -Wl,-z,ibtplt" "-no-pie" \
		"-fuse-ld=gold" "-fuse-ld=lld"; do
		# shellcheck disable=SC2086 # several options
		"${CC:-cc}" $options -o "$dir/p" "$dir/p.c" 2>/dev/null || continue
		echo "$options"
		same_names objdump "$dir/p" 4
	done
	# .plt.got alone
	"${CC:-cc}" -fno-plt -o "$dir/p" "$dir/p.c"
	same_names objdump "$dir/p" 1
}

@test "symbols: PLT slots of static programs are named after their indirect functions" {
	[ "$(uname -m)" = x86_64 ] || skip "not an x86-64 machine"
	local options relocations
	for options in -static -static-pie; do
		"${CC:-cc}" "$options" -o "$dir/p" "$dir/p.c" 2>/dev/null || skip "no static libc"
		relocations=$(readelf -rW "$dir/p" | grep -c R_X86_64_IRELATIV)
		"$UNIT/symtab" list "$dir/p" >"$dir/list"
		grep '@plt$' "$dir/list" >"$dir/slots"
		echo "$options: $relocations"
		cat "$dir/slots"
		[ "$(wc -l <"$dir/slots")" -eq "$relocations" ]
		grep -q 'strchr.*@plt$' "$dir/slots"
		run grep 'ABS' "$dir/slots"
		[ "$status" -eq 1 ]
	done
}

@test "symbols: PLT slots of arm64 programs" {
	command -v clang >/dev/null && command -v ld.lld >/dev/null && command -v llvm-objdump >/dev/null ||
		skip "no clang with lld and llvm-objdump"
	echo 'int one(int); int two(void); int f(int x) { return one(x) + two() * one(3); }' >"$dir/q.c"
	local options
	for options in -O1 -mbranch-protection=standard; do
		clang --target=aarch64-linux-gnu -shared -fPIC $options -nostdlib -fuse-ld=lld -o "$dir/q" \
			"$dir/q.c" 2>/dev/null || skip "clang makes no code for arm64"
		same_names llvm-objdump "$dir/q" 2
	done
}
