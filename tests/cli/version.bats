#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof itself: version, help, unknown commands.

load helper

@test "version: prints one line; --build-options one a library" {
	run "$VMPROF" version
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^vmprof\ version\ [0-9]+\.[0-9]+$ ]]
	run "$VMPROF" version --build-options
	[ "$status" -eq 0 ]
	[[ "$output" == *"libzstd: [ "* ]]
	[[ "$output" == *"libiberty: [ "* ]]
}

@test "vmprof: help lists the commands, each with a man page" {
	run "$VMPROF" help
	[ "$status" -eq 0 ]
	local name names
	names=$(sed -n 's/^  \([a-z-]*\) .*/\1/p' <<<"$output")
	[ -n "$names" ]
	for name in $names; do
		[ -f "$BATS_TEST_DIRNAME/../../docs/man/vmprof-$name.1" ]
	done
}

@test "vmprof: no command and an unknown one are status 2" {
	run "$VMPROF"
	[ "$status" -eq 2 ]
	run "$VMPROF" recrod
	[ "$status" -eq 2 ]
	[[ "$output" == *"'recrod' is not a vmprof command"* ]]
}

@test "vmprof: output that cannot be written is an error" {
	[ -c /dev/full ] || skip "no /dev/full"
	local args
	for args in version help "list --help" "list --json"; do
		run sh -c "'$VMPROF' $args >/dev/full"
		[ "$status" -eq 1 ]
		[[ "$output" == *"No space left on device"* ]]
		run sh -c "'$VMPROF' $args >&-"
		[ "$status" -eq 1 ]
		[[ "$output" == *"Bad file descriptor"* ]]
	done
}
