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

@test "vmprof: --help has what the commands alone take" {
	"$VMPROF" annotate --help | grep -q -- '--source '
	"$VMPROF" export --help | grep -q -- '--inline '
}

@test "vmprof: no command and an unknown one are status 2" {
	run "$VMPROF"
	[ "$status" -eq 2 ]
	run "$VMPROF" recrod
	[ "$status" -eq 2 ]
	[[ "$output" == *"'recrod' is not a vmprof command"* ]]
}

@test "vmprof: options that getopt refuses are named, escaped" {
	local name
	for name in agent annotate buildid-list export list merge record report script stat version; do
		run "$VMPROF" "$name" $'--no\033[31msuch=x'
		[ "$status" -eq 2 ]
		[[ "$output" == "vmprof $name: option '--no\\x1b[31msuch=x' is not known"* ]]
		run "$VMPROF" "$name" $'-\033'
		[ "$status" -eq 2 ]
		[[ "$output" == "vmprof $name: option '-\\x1b' is not known"* ]]
	done
	says() { # says SENTENCE ARGUMENT...
		run "$VMPROF" "${@:2}"
		[ "$status" -eq 2 ]
		[ "${lines[0]}" = "vmprof $2: option $1" ]
	}
	says "'-i' needs an argument" report --header -i
	says "'--sort' needs an argument" report --sort
	says "'--header=1' takes no argument" report --header=1
	says "'--s' is the beginning of several" report --s
	says "'-Z' is not known" report --header -qZ
	says "'--vm' needs an argument" list --json --vm
	says "'-F' needs an argument" record -F
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
