#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof agent: its options, and what it says where there is no Xen. What it does is in tests/unit/agent and the lab of Xen.

load helper

@test "agent: --help, wrong options and arguments" {
	run "$VMPROF" agent --help
	[ "$status" -eq 0 ]
	[[ "$output" == *"--max-time"* ]]
	run "$VMPROF" agent
	[ "$status" -eq 2 ]
	[[ "$output" == *"vmprof-agent(1)"* ]]
	run "$VMPROF" agent -o "$BATS_TEST_TMPDIR/a" web1
	[ "$status" -eq 2 ]
	run "$VMPROF" agent -o "$BATS_TEST_TMPDIR/a" --max-time 0
	[ "$status" -eq 2 ]
	[[ "$output" == *"--max-time '0' is not a time"* ]]
	run "$VMPROF" agent -o "$BATS_TEST_TMPDIR/a" --max-size 0
	[ "$status" -eq 2 ]
	[[ "$output" == *"--max-size '0' is not a size"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/a" ]
}

@test "agent: without Xen it says so and leaves nothing behind" {
	! grep -qs control_d /proc/xen/capabilities || skip "this is dom0"
	run "$VMPROF" agent -o "$BATS_TEST_TMPDIR/a"
	[ "$status" -eq 1 ]
	[[ "$output" == *"vmprof agent: this "*"Xen"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/a" ]
}
