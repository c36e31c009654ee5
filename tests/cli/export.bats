#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof export: that each format says what vmprof report says (export.py), and that the programs they
# are for read them: go tool pprof, speedscope in a browser, the Firefox Profiler's own command line.
# shellcheck disable=SC2154 # run sets stderr

load helper
load npm
bats_require_minimum_version 1.5.0

FORMATS=(pprof speedscope firefox)

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	command -v perf >/dev/null && command -v gcc >/dev/null || return 0
	# two commands, one of a name that is hostile in a way for each format
	cat >"$DATA/work.c" <<-'EOF'
		#include <sys/prctl.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static __attribute__((noinline)) void leaf(void) { for (volatile long i = 0; i < 100000000; i++) {} }
		static __attribute__((noinline)) void outer(void) { leaf(); __asm__(""); }
		int main(void)
		{
			if (!fork())
				prctl(PR_SET_NAME, "\"\\;</b>\033[m\xff\n");
			outer();
			wait(NULL);
			return 0;
		}
	EOF
	gcc -O1 -g -static -fno-omit-frame-pointer -o "$DATA/wo\"r;k" "$DATA/work.c"
	perf record -q -e cpu-clock,task-clock -F 999 -g -o "$DATA/two" -- "$DATA/wo\"r;k" >/dev/null 2>&1 ||
		rm -f "$DATA/two"
}

setup() {
	dir=$BATS_TEST_TMPDIR
	UNIT=${BUILD:-build}/tests/unit
}

recorded() {
	[ -e "$DATA/two" ] || skip "perf is not installed, or may not record here"
}

scenario() { # the made-up recording of two VMs whose processes have equal pids, with its symbols: $dir/vms
	"$UNIT/perfdata_write" file "$dir/vms" 4
	"$UNIT/elfstore" scenario "$dir/vms.debug"
}

# same_as_report FILE [FILTERS]: exports all formats that the file can be in, prints the event counts
same_as_report() {
	local file=$1 out=$dir/same format names made=() i=0
	shift
	command -v python3 >/dev/null || skip "no python3"
	rm -rf "$out"
	mkdir "$out"
	"$VMPROF" report -i "$file" --json --no-children "$@" >"$out/json"
	names=$(python3 -c 'if True:
		import json, sys
		for event in json.load(open(sys.argv[1]))["events"]:
		    if event["rows"]:
		        print(event["name"])' "$out/json")
	while read -r name; do
		"$VMPROF" report -i "$file" --folded --event "$name" "$@" >"$out/folded.$i"
		i=$((i + 1))
	done <<<"$names"
	for format in "${FORMATS[@]}"; do
		if "$VMPROF" export -q -i "$file" --format "$format" -o "$out/$format" "$@" 2>"$out/err"; then
			made+=("$format")
		else
			grep -q 'do not say when' "$out/err" || return 1
		fi
	done
	python3 "$BATS_TEST_DIRNAME/export.py" "$out" "${made[@]}"
}

@test "export: each format has the report's event counts and the folded lines' stacks" {
	scenario
	[ "$(same_as_report "$dir/vms")" = "cpu-clock 24000000" ]
	[ "$(same_as_report "$dir/vms" --vm web1)" = "cpu-clock 12000000" ]
	[ "$(same_as_report "$dir/vms" --comms postgres)" = "cpu-clock 12000000" ]
	[ "$(same_as_report "$dir/vms" --dsos nginx)" = "cpu-clock 4000000" ]
	[ "$(same_as_report "$dir/vms" -C 1)" = "cpu-clock 12000000" ]
}

@test "export: of several events, and of names that are hostile" {
	recorded
	run same_as_report "$DATA/two"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == "cpu-clock "*" task-clock "* ]]
	run same_as_report "$DATA/two" --event task-clock
	echo "$output"
	[ "$status" -eq 0 ]
	"$VMPROF" export -i "$DATA/two" --format speedscope | grep -qF '"name": "\"\\;</b>\\x1b[m\\xff\\x0a"'
}

@test "export: of what other people's perf recorded" {
	local corpus=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus} file
	[ -d "$corpus" ] || skip "the corpus is not here"
	# chains, six events, counts and times, a pipe, lost samples
	for file in callgraph-3.4 forkexit-3.4 hw_and_sw-3.4 piped.no_attr_ids-4.14 PerfFormatLost; do
		run same_as_report "$corpus/perf.data.$file"
		echo "$file: $output"
		[ "$status" -eq 0 ]
	done
}

@test "export: only what the filters leave, also of names" {
	scenario
	local format
	for format in "${FORMATS[@]}"; do
		"$VMPROF" export -i "$dir/vms" --format "$format" --vm web1 | gzip -dcf >"$dir/out"
		grep -qa alpha_sys_read "$dir/out"
		run -1 grep -aE 'postgres|db1|beta' "$dir/out"
	done
	"$VMPROF" export -i "$dir/vms" --format speedscope --max-stack 1 >"$dir/out"
	run -1 grep -E 'alpha_main|alpha_entry' "$dir/out"
}

@test "export: go tool pprof has the VMs, their commands and functions" {
	local pprof=(go tool pprof)
	command -v go >/dev/null || skip "no go (golang-go)"
	export HOME=$dir PPROF_TMPDIR=$dir
	scenario
	"$VMPROF" export -i "$dir/vms" --format pprof -o "$dir/vms.pb.gz"
	"${pprof[@]}" -top "$dir/vms.pb.gz" >"$dir/top"
	cat "$dir/top"
	grep -qx 'File: vms' "$dir/top"
	grep -qx 'Type: cpu-clock' "$dir/top"
	grep -q 'of 24ms total$' "$dir/top"
	grep -qE ' 12ms 50\.00%  db1$' "$dir/top"
	grep -qE '^ +4ms 16\.67% .* beta_sys_read_\[k\]$' "$dir/top"
	"${pprof[@]}" -top -tagfocus vm=web1 "$dir/vms.pb.gz" >"$dir/top"
	grep -qE '^ +4ms .* handle$' "$dir/top"
	run -1 grep -E 'beta|postgres' "$dir/top"
	"${pprof[@]}" -tags "$dir/vms.pb.gz" >"$dir/tags"
	grep -qE '12.0ms \(50.00%\): web1' "$dir/tags"
	grep -qE '24.0ms \(  100%\): 100' "$dir/tags"
	"${pprof[@]}" -raw "$dir/vms.pb.gz" >"$dir/raw"
	# one library of two VMs: two mappings
	grep -qE '/lib/libc.so.6 (a3){20} ' "$dir/raw"
	grep -qE '/lib/libc.so.6 (b3){20} ' "$dir/raw"
	[ ! -e "$DATA/two" ] || "$VMPROF" export -i "$DATA/two" --format pprof -o "$dir/two.pb.gz"
	[ ! -e "$DATA/two" ] || "${pprof[@]}" -sample_index=task-clock -top "$dir/two.pb.gz" | grep -q ' leaf$'
}

@test "export: speedscope draws a profile for each VM, and has its functions" {
	command -v python3 >/dev/null || skip "no python3"
	npm_package speedscope 1.25.0
	scenario
	"$VMPROF" export -q -i "$dir/vms" --format speedscope -o "$dir/vms.json.gz"
	look_into_speedscope "$dir/vms.json.gz" >"$dir/seen"
	cat "$dir/seen"
	[ "$(head -n 2 "$dir/seen")" = $'vms - speedscope: 3 canvases\nweb1, cpu-clock (1/2)' ]
	grep -qx '1|web1, cpu-clock|12.00ms' "$dir/seen"
	grep -qx 'db1, cpu-clock (2/2)' "$dir/seen"
	grep -qx '12.00ms (100%)|.*|nginx' "$dir/seen"
	grep -qx '8.00ms (67%)|4.00ms (33%)|handle' "$dir/seen"
	grep -qx '4.00ms (33%)|4.00ms (33%)|beta_virtnet_poll_\[k\]' "$dir/seen"
}

firefox() { # firefox ARGUMENTS...: the profiler's own command line
	node "$PACKAGE/dist/profiler-cli.js" "$@" --session test
}

# start_firefox FILE: it is loaded by a process that serves it to the command line
start_firefox() {
	local i
	export PROFILER_CLI_SESSION_DIR=$dir/session
	# not by the function: the process would be a shell's child
	node "$PACKAGE/dist/profiler-cli.js" --daemon "$1" --session test >"$dir/daemon" 2>&1 3>&- &
	firefox_pid=$!
	for ((i = 0; i < 100; i++)); do
		! firefox profile info >"$dir/info" 2>&1 || return 0
		kill -0 "$firefox_pid" 2>/dev/null || break
		sleep 0.2
	done
	cat "$dir/daemon" "$dir/info"
	return 1
}

teardown() {
	[ -z "${firefox_pid:-}" ] || kill "$firefox_pid" 2>/dev/null || :
	wait
}

@test "export: the Firefox Profiler has a process for each VM, its threads, samples and categories" {
	command -v python3 >/dev/null || skip "no python3"
	npm_package @firefox-devtools/profiler-cli 0.10.0
	node "$PACKAGE/dist/profiler-cli.js" --version >/dev/null 2>&1 ||
		skip "node $(node --version) does not run the Firefox Profiler's command line"
	scenario
	"$VMPROF" export -q -i "$dir/vms" --format firefox -o "$dir/vms.json.gz"
	start_firefox "$dir/vms.json.gz"
	firefox profile info --json >"$dir/info"
	firefox thread samples --thread t-1 --include-idle --json >"$dir/samples"
	cat "$dir/info" "$dir/samples"
	python3 - "$dir/info" "$dir/samples" <<-'EOF'
		import json, sys
		info, samples = (json.load(open(f)) for f in sys.argv[1:])
		assert info["name"] == "vms"
		assert [(p["name"], [(t["name"], t["tid"]) for t in p["threads"]]) for p in info["processes"]] == [
		    ("web1", [("nginx", "web1:100/100")]), ("db1", [("postgres", "db1:100/100")])]
		assert {c["name"]: c["samples"] for c in samples["categoryBreakdown"]["categories"]} == {
		    "Guest kernel": 8, "Guest user": 4}
		assert samples["weightType"] == "tracing-ms"
		self = {f["name"]: f["selfSamples"] for f in samples["topFunctionsBySelf"] if f["selfSamples"]}
		assert self == {"postgres!handle": 4, "[db1.kernel]!beta_sys_read_[k]": 4,
		                "[virtio_net]!beta_virtnet_poll_[k]": 4}, self
	EOF
}

@test "export: to standard output, from a pipe, gzipped by name, and the same each time" {
	scenario
	local format
	for format in "${FORMATS[@]}"; do
		"$VMPROF" export -i "$dir/vms" --format "$format" >"$dir/a"
		[ "$("$VMPROF" export -i "$dir/vms" --format "$format" -o "$dir/b")" = "[ vmprof export: wrote $dir/b ]" ]
		cmp "$dir/a" "$dir/b"
		# a pipe has neither the name nor its symbols
		"$UNIT/perfdata_write" file - 4 | "$VMPROF" export --format "$format" | gzip -dcf | grep -qa 'nginx'
	done
	"$VMPROF" export -q -i "$dir/vms" --format firefox -o "$dir/c.gz"
	zcat "$dir/c.gz" | cmp - "$dir/a"
}

@test "export: samples without times have no time line, but all else" {
	command -v perf >/dev/null || skip "perf is not installed"
	perf record -q -e cpu-clock -F 5000 --no-timestamp -o "$dir/data" -- \
		sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done' >/dev/null 2>&1 || skip "perf may not record here"
	run -1 "$VMPROF" export -i "$dir/data" --format firefox -o "$dir/out"
	[[ $output == "vmprof export: samples of cpu-clock in data do not say when"* ]]
	[ ! -e "$dir/out" ]
	run same_as_report "$dir/data"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "export: a damaged file is exported as far as it is whole" {
	command -v python3 >/dev/null || skip "no python3"
	"$UNIT/perfdata_write" file "$dir/vms" 100
	head -c 12000 "$dir/vms" >"$dir/cut"
	local format
	for format in "${FORMATS[@]}"; do
		run --separate-stderr "$VMPROF" export -i "$dir/cut" --format "$format" -o "$dir/out"
		[ "$status" -eq 1 ]
		[[ $stderr == "vmprof export: $dir/cut: "* ]]
		[ "${#stderr_lines[@]}" -eq 1 ]
		[ "$format" = pprof ] || python3 -m json.tool "$dir/out" >/dev/null
		gzip -dcf "$dir/out" | grep -qa nginx
	done
}

@test "export: what cannot be done is said in one line, and nothing is written" {
	scenario
	local args
	for args in "" "--format" "--format svg" "--format pprof x" "--format pprof --header" \
		"--format pprof --max-stack x" "--format pprof --no-such"; do
		# shellcheck disable=SC2086 # several words
		run "$VMPROF" export -i "$dir/vms" -o "$dir/out" $args
		[ "$status" -eq 2 ]
	done
	for args in "--vm web9" "--vm host" "--event x" "--symbols none"; do
		# shellcheck disable=SC2086 # two words
		run "$VMPROF" export -i "$dir/vms" -o "$dir/out" --format firefox $args
		echo "$output"
		[ "$status" -eq 1 ]
		[ "${#lines[@]}" -eq 1 ]
	done
	[ ! -e "$dir/out" ]
	run "$VMPROF" export -i "$dir/vms" -o "$dir/vms" --format speedscope
	[ "$status" -eq 1 ]
	[[ $output == *"is the file that is read"* ]]
	"$VMPROF" report -i "$dir/vms" --folded >/dev/null
	run "$VMPROF" export -i "$dir/vms" -o /nowhere/x --format speedscope
	[ "$status" -eq 1 ]
	[[ $output == *"cannot write /nowhere/x: No such file or directory" ]]
	[ ! -c /dev/full ] || for args in "${FORMATS[@]}"; do
		run "$VMPROF" export -i "$dir/vms" --format "$args" -o /dev/full
		[ "$status" -eq 1 ]
		[[ $output == *"cannot write /dev/full: No space left on device" ]]
	done
}
