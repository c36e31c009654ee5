#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof buildid-list, beside perf's.

load helper

CORPUS=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}

setup() {
	UNIT=${BUILD:-build}/tests/unit
	dir=$BATS_TEST_TMPDIR
}

# same_as_perf FILE: with and without -H; perf 6.1 names a vDSO without a build id after a file in /tmp
same_as_perf() {
	local hits
	for hits in "" -H; do
		timeout 20 perf buildid-list $hits -i "$1" 2>/dev/null |
			sed 's,/tmp/perf-vdso\.so-.*,[vdso],' >"$dir/perf"
		[ -s "$dir/perf" ] || continue
		"$VMPROF" buildid-list $hits -i "$1" >"$dir/ours"
		diff "$dir/perf" "$dir/ours" || return 1
		compared=$((compared + 1))
	done
}

@test "buildid-list: the lists of a file of VMs are perf's" {
	command -v perf >/dev/null || skip "perf is not installed"
	"$UNIT/perfdata_write" file "$dir/data" 4
	compared=0
	same_as_perf "$dir/data"
	# perf finds no hits of guests, and prints nothing
	[ "$compared" -ge 1 ]
	# all and what was hit are not the same
	[ "$("$VMPROF" buildid-list -i "$dir/data" | wc -l)" -eq 8 ]
	[ "$("$VMPROF" buildid-list -H -i "$dir/data" | wc -l)" -eq 6 ]
}

@test "buildid-list: the lists of perf's files are perf's" {
	[ -d "$CORPUS" ] || skip "no corpus of perf.data files beside the checkout"
	command -v perf >/dev/null || skip "perf is not installed"
	local file
	compared=0
	for file in "$CORPUS"/*perf.data*; do
		# perf cuts the names of true.v2, and gives up at the damage in the other
		[[ $file != *true.v2 && $file != *zero_size_sample* ]] || continue
		echo "$file"
		same_as_perf "$file"
	done
	[ "$compared" -gt 30 ]
}

@test "buildid-list: one VM's alone, and a VM that is not there" {
	"$UNIT/perfdata_write" file "$dir/data" 1
	run "$VMPROF" buildid-list --vm web1 -i "$dir/data"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 4 ]
	[ "${lines[0]}" = "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0 /boot/[web1.kernel]" ]
	[[ "$output" != *postgres* ]]
	run "$VMPROF" buildid-list --vm nobody -i "$dir/data"
	[ "$status" -eq 1 ]
	[[ "$output" == *"no VM 'nobody'"* ]]
}

@test "buildid-list: an ELF file's, the running kernel's, and wrong usage" {
	command -v readelf >/dev/null || skip "readelf is not installed"
	local id
	id=$(readelf -n /bin/ls | sed -n 's/.*Build ID: //p')
	[ "$("$VMPROF" buildid-list -i /bin/ls)" = "$id" ]
	if command -v perf >/dev/null && id=$(perf buildid-list -k 2>/dev/null) && [ -n "$id" ]; then
		[ "$("$VMPROF" buildid-list -k)" = "$id" ]
	fi
	# who may not see addresses cannot see where modules are
	if command -v perf >/dev/null && perf buildid-list -m 2>/dev/null | grep -q ' ffff'; then
		diff <(perf buildid-list -m 2>/dev/null) <("$VMPROF" buildid-list -m)
	fi
	run "$VMPROF" buildid-list -i /no/such
	[ "$status" -eq 1 ]
	run "$VMPROF" buildid-list --nonsense
	[ "$status" -eq 2 ]
	run "$VMPROF" buildid-list word
	[ "$status" -eq 2 ]
	"$VMPROF" buildid-list --help | grep -q with-hits
}

@test "buildid-list: of a damaged file what is whole, and status 1" {
	"$UNIT/perfdata_write" file - 2 >"$dir/data"
	head -c $(($(stat -c %s "$dir/data") - 5)) "$dir/data" >"$dir/cut"
	run "$VMPROF" buildid-list -i "$dir/cut"
	[ "$status" -eq 1 ]
	[[ "$output" == *nginx* ]]
	[[ "$output" == *"$dir/cut"* ]]
	# a list that is in the header, where the header's end is missing
	"$UNIT/perfdata_write" file "$dir/data" 2
	head -c $(($(stat -c %s "$dir/data") - 5)) "$dir/data" >"$dir/cut"
	run "$VMPROF" buildid-list -i "$dir/cut"
	[ "$status" -eq 1 ]
	[[ "$output" == *nginx* ]]
	[[ "$output" == *"leaves the file"* ]]
}
