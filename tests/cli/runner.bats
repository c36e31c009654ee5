#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# tests/run itself: the second chance of a program that fails, its limit, and what is said of it.

setup() {
	dir=$BATS_TEST_TMPDIR
	mkdir -p "$dir/tests/cli" "$dir/tests/lab"
	cp "$BATS_TEST_DIRNAME/../run" "$dir/tests/"
	printf '#!/bin/sh\n' >"$dir/tests/lab/vm"
	chmod +x "$dir/tests/lab/vm"
}

# run_there KIND...: the copy of tests/run, without a variable of this run; bats has put its insides
# into PATH, one of which is called bats, too
run_there() {
	run env -i PATH="$(tr : '\n' <<<"$PATH" | grep -v '/bats-core$' | paste -sd :)" HOME="$dir" "$dir/tests/run" "$@"
	echo "$output"
}

# cli_test NAME FAILURES, lab_test NAME FAILURES: a program that fails so many times
cli_test() {
	printf '@test "%s: first" { :; }\n@test "%s: second" { echo x >>%s; [ "$(wc -l <%s)" -gt %s ]; }\n' \
		"$1" "$1" "$dir/$1.runs" "$dir/$1.runs" "$2" >"$dir/tests/cli/$1.bats"
}

lab_test() {
	cat >"$dir/tests/lab/$1.sh" <<-END
		#!/bin/sh
		echo "ok $1: first"
		echo "run with FRESH=\${FRESH:-0}" >>"$dir/$1.runs"
		if [ "\$(wc -l <"$dir/$1.runs")" -gt $2 ]; then
			echo "ok $1: second"
		else
			echo "not ok $1: second: not yet"
		fi
	END
	chmod +x "$dir/tests/lab/$1.sh"
}

@test "tests/run: a program that fails once passes, and that is said" {
	cli_test sound 0
	cli_test once 1
	lab_test lab-once 1
	run_there cli lab
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "6 passed, 0 failed, 0 skipped" ]
	[ "${lines[-2]}" = "programs that passed only when run again: 2" ]
	grep -qE '^cli/sound +2 passed, 0 failed, 0 skipped \(' <<<"$output"
	grep -qE '^cli/once +2 passed, 0 failed, 0 skipped: failed at first, passed when run again \(' <<<"$output"
	grep -qx 'failed at first: 2 once: second' <<<"$output"
	grep -qx 'failed at first: lab-once: second: not yet' <<<"$output"
	grep -qx 'not ok 2 once: second' <<<"$output"
	[ "$(wc -l <"$dir/sound.runs")" -eq 1 ]
	# what a lab has kept is not taken for the second run's
	[ "$(cat "$dir/lab-once.runs")" = $'run with FRESH=0\nrun with FRESH=1' ]
}

@test "tests/run: a program that fails twice has failed" {
	cli_test twice 2
	run_there cli
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "1 passed, 1 failed, 0 skipped" ]
	grep -qE '^cli/twice +1 passed, 1 failed, 0 skipped: failed twice \(' <<<"$output"
	[ "$(grep -cx 'not ok 2 twice: second' <<<"$output")" -eq 2 ]
	[ "$(wc -l <"$dir/twice.runs")" -eq 2 ]
}

@test "tests/run: at most three programs have a second chance" {
	local name
	for name in a b c d; do cli_test $name 1; done
	run_there cli
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "7 passed, 1 failed, 0 skipped" ]
	grep -qE '^cli/d +1 passed, 1 failed, 0 skipped \(' <<<"$output"
	grep -qx 'programs that passed only when run again: 3' <<<"$output"
}

@test "tests/run: a program that ends early, or says nothing, has failed" {
	printf '#!/bin/sh\necho ok something; exit 3\n' >"$dir/tests/lab/dies.sh"
	printf '#!/bin/sh\n:\n' >"$dir/tests/lab/silent.sh"
	chmod +x "$dir"/tests/lab/*.sh
	run_there lab
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "1 passed, 2 failed, 0 skipped" ]
	grep -qE '^lab/dies +1 passed, 1 failed, 0 skipped: exit status 3: failed twice' <<<"$output"
	grep -qE '^lab/silent +0 passed, 1 failed, 0 skipped: it tested nothing: failed twice' <<<"$output"
}

@test "tests/run: steady labs run beside the others, and are counted with them" {
	lab_test other 0
	lab_test steady 1
	sed -i '3i echo "# start 1 of it: lost a guest"' "$dir/tests/lab/other.sh"
	sed -i '2i # Steady: it waits for the other one.\nuntil [ -s '"$dir"'/other.runs ]; do sleep 0.1; done' "$dir/tests/lab/steady.sh"
	lab_test waits 0
	sed -i '2i until [ -s '"$dir"'/steady.runs ]; do sleep 0.1; done' "$dir/tests/lab/waits.sh"
	run_there lab
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "6 passed, 0 failed, 0 skipped" ]
	[ "${lines[-2]}" = "programs that passed only when run again: 1" ]
	[ "$(grep -c 'passed,' <<<"$output")" -eq 4 ]
	grep -qE '^lab/steady +2 passed, 0 failed, 0 skipped: failed at first, passed when run again' <<<"$output"
	grep -qx 'started again after start 1 of it: lost a guest' <<<"$output"
}

@test "tests/run: a steady lab that fails, and one alone" {
	lab_test steady 2
	sed -i '2i # Steady' "$dir/tests/lab/steady.sh"
	lab_test other 0
	run_there lab
	[ "$status" -eq 1 ]
	[ "${lines[-1]}" = "3 passed, 1 failed, 0 skipped" ]
	rm "$dir/tests/lab/other.sh"
	run_there lab
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "2 passed, 0 failed, 0 skipped" ]
}

@test "tests/run: steady programs are shared by both runs, and each runs once" {
	local name
	for name in a b c d; do cli_test $name 0; done
	# a is taken by the run beside, which waits in it for b, c and d, that are left to the other one
	sed -i '2i # Steady' "$dir"/tests/cli/[bcd].bats
	printf '# Steady\n@test "a: waits" { until [ -s %s/b.runs -a -s %s/c.runs -a -s %s/d.runs ]; do sleep 0.1; done; }\n' \
		"$dir" "$dir" "$dir" >"$dir/tests/cli/a.bats"
	run_there cli
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "7 passed, 0 failed, 0 skipped" ]
	[ "$(wc -l <"$dir/b.runs")" -eq 1 ]
	[ "$(wc -l <"$dir/d.runs")" -eq 1 ]
}
