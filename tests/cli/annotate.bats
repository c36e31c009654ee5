#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof annotate, beside perf annotate --stdio on the same files of the host.
# shellcheck disable=SC2154 # run sets stderr

load helper
bats_require_minimum_version 1.5.0

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	command -v perf >/dev/null && command -v gcc >/dev/null || return 0
	cat >"$DATA/busy.c" <<-'EOF'
		static volatile unsigned long sink;
		__attribute__((noinline)) static unsigned long mix(unsigned long x)
		{
			for (int i = 0; i < 50; i++)
				x = x & 1 ? x * 6364136223846793005ul + 1 : x ^ x >> 7;
			return x;
		}
		__attribute__((noinline)) static unsigned long divide(unsigned long x)
		{
			unsigned long s = 0;
			for (unsigned long i = 1; i < 20; i++)
				s += x / (i | 1);
			return s;
		}
		int main(void)
		{
			unsigned long x = 1;
			for (long i = 0; i < 3000000; i++) {
				x = mix(x);
				sink += divide(x);
			}
			return 0;
		}
	EOF
	gcc -O2 -g -o "$DATA/busy" "$DATA/busy.c"
	perf record -q -e cpu-clock,task-clock -F 999 -o "$DATA/busy.data" -- "$DATA/busy" >/dev/null 2>&1 ||
		rm -f "$DATA/busy.data"
}

setup() {
	dir=$BATS_TEST_TMPDIR
	UNIT=${BUILD:-build}/tests/unit
}

need_data() {
	[ -s "$DATA/busy.data" ] || skip "no perf or no gcc, or perf may not record here"
	"$VMPROF" version --build-options | grep -q 'libcapstone: \[ on' || skip "built without capstone"
}

# Header and "numbers : address" of each instruction of the program, in no order: functions of equal weight
# have none. What else ran in its process, the kernel above all, is chance.
numbers() {
	awk '/Source code & Disassembly of/ { sub(/^[^|]*\|\t/, ""); head = $0 }
	head ~ /Disassembly of busy for/ && /^ +[0-9. ]+ : +[0-9a-f]+:/ { match($0, / : +[0-9a-f]+:/)
		print head " | " substr($0, 1, RSTART + RLENGTH - 1) }' | sort
}

@test "annotate: addresses and numbers are those of perf annotate --stdio" {
	need_data
	local options
	for options in "" -n --show-total-period "--percent-type global-period" "--percent-type local-hits"; do
		# shellcheck disable=SC2086
		perf annotate --stdio $options -i "$DATA/busy.data" 2>/dev/null | numbers >"$dir/perf"
		# shellcheck disable=SC2086
		"$VMPROF" annotate $options -i "$DATA/busy.data" 2>/dev/null | numbers >"$dir/ours"
		[ "$(wc -l <"$dir/perf")" -gt 50 ]
		diff "$dir/perf" "$dir/ours"
	done
}

@test "annotate: several events side by side, as perf has them" {
	need_data
	perf annotate --stdio --group -i "$DATA/busy.data" divide 2>/dev/null | numbers >"$dir/perf"
	"$VMPROF" annotate --group -i "$DATA/busy.data" divide | numbers >"$dir/ours"
	[ "$(wc -l <"$dir/perf")" -gt 5 ]
	diff "$dir/perf" "$dir/ours"
}

@test "annotate: instructions read as objdump prints them" {
	need_data
	local text
	text=$("$VMPROF" annotate -i "$DATA/busy.data" -s mix --no-jumps --event cpu-clock)
	objdump -d --no-show-raw-insn "$DATA/busy" | sed -n '/<mix>:/,/^$/p' |
		sed -nE 's/^ *([0-9a-f]+:)\t/\1 /p' | sed -E 's/ +/ /g; s/ $//' >"$dir/objdump"
	sed -nE 's/^ +[0-9.]+ : +([0-9a-f]+:)/\1/p' <<<"$text" | sed -E 's/ +/ /g; s/ $//' >"$dir/ours"
	# a no-op's operand is nothing that matters
	diff <(grep -v nop "$dir/objdump" | head -n "$(grep -cv nop "$dir/ours")") <(grep -v nop "$dir/ours")
	grep -qE 'j[a-z]+ [0-9a-f]+ <mix\+0x[0-9a-f]+>$' "$dir/ours"
}

@test "annotate: an arrow leads from each jump to its target" {
	need_data
	"$VMPROF" annotate -i "$DATA/busy.data" -s divide --event cpu-clock >"$dir/text"
	local jump target
	jump=$(grep -E 'j[a-z]+ +[0-9a-f]+ <divide\+0x' "$dir/text")
	[ "$(wc -l <<<"$jump")" -eq 1 ]
	target=$(sed -nE 's/.* ([0-9a-f]+) <divide.*/\1/p' <<<"$jump")
	[[ "$jump" == *"└─j"* ]]
	grep -E " : +$target: +┌→" "$dir/text"
	[ "$(grep -c '│ ' "$dir/text")" -gt 2 ]
	run -1 grep -E '┌|└|│' <("$VMPROF" annotate -i "$DATA/busy.data" -s divide --no-jumps)
}

@test "annotate: shares of all samples stay so when one symbol is asked for" {
	need_data
	"$VMPROF" annotate -i "$DATA/busy.data" --percent-type global-hits --event cpu-clock >"$dir/all" 2>/dev/null
	"$VMPROF" annotate -i "$DATA/busy.data" --percent-type global-hits --event cpu-clock mix >"$dir/mix"
	numbers <"$dir/mix" >"$dir/numbers"
	[ -s "$dir/numbers" ]
	run comm -13 <(numbers <"$dir/all") "$dir/numbers"
	[ -z "$output" ]
	awk '/^ +[0-9.]+ :/ { sum += $1 } END { exit !(sum > 50 && sum < 101) }' "$dir/all"
}

@test "annotate: what is not there is said, with status 1; wrong options are 2" {
	need_data
	run --separate-stderr "$VMPROF" annotate -i "$DATA/busy.data" nosuch
	[ "$status" -eq 1 ]
	[[ "$stderr" == *"no sample of nosuch is in "* ]]
	run --separate-stderr "$VMPROF" annotate -i "$DATA/busy.data" --percent-type local
	[ "$status" -eq 2 ]
	[[ "$stderr" == *"none of local-period"* ]]
	run "$VMPROF" annotate -i "$DATA/busy.data" one two
	[ "$status" -eq 2 ]
	# the program is gone, or another one
	cp "$DATA/busy.data" "$dir/moved"
	mv "$DATA/busy" "$DATA/away"
	run --separate-stderr "$VMPROF" annotate -i "$dir/moved" --buildid-dir "$dir" -d busy
	mv "$DATA/away" "$DATA/busy"
	[ "$status" -eq 1 ]
	run --separate-stderr "$VMPROF" annotate -i "$DATA/busy.data" --vm web9
	[ "$status" -eq 1 ]
	[[ "$stderr" == *"no VM 'web9'"* ]]
}

@test "annotate: code that a program of the host made was not recorded, which is said" {
	need_data
	gcc -O2 -DTAG=jit_ -fno-omit-frame-pointer -o "$dir/jit" "$BATS_TEST_DIRNAME/../lab/guest/jit.c"
	perf record -q -e cpu-clock -F 999 -o "$dir/jit.data" -- timeout 2 "$dir/jit" >/dev/null 2>&1 || :
	"$VMPROF" report -i "$dir/jit.data" --sort sym | grep -q jit_hot_a || skip "too few samples of it"
	run --separate-stderr "$VMPROF" annotate -i "$dir/jit.data" jit_hot_a
	rm -f "$(sed -n 's/.* only what \(\/tmp\/perf-[0-9]*\.map\) .*/\1/p' <<<"$stderr")"
	[ "$status" -eq 1 ]
	[[ "$stderr" == *"its program has made it, and perf records only what /tmp/perf-"*".map says of it"* ]]
}

@test "annotate: code of a guest's kernel is shown as it was patched in that VM" {
	"$VMPROF" version --build-options | grep -q 'libcapstone: \[ on' || skip "built without capstone"
	"$UNIT/perfdata_write" file "$dir/out" 4
	"$UNIT/elfstore" scenario "$dir/out.debug"
	run "$VMPROF" annotate -i "$dir/out" alpha_sys_read
	[ "$status" -eq 1 ]
	[[ "$output" == *"its code was not saved"* ]]
	"$UNIT/codestore" scenario "$dir/out.debug"
	"$VMPROF" annotate -i "$dir/out" --vm web1 alpha_sys_read >"$dir/web1"
	"$VMPROF" annotate -i "$dir/out" --vm db1 beta_sys_read >"$dir/db1"
	grep -q "Disassembly of web1:\[web1.kernel\] for " "$dir/web1"
	grep -q "Disassembly of the guest's memory:" "$dir/web1"
	grep -qE '^ +[0-9.]+ : +ffffffff81002000: +nopl ' "$dir/web1"
	grep -qE '^ +[0-9.]+ : +ffffffff9a002000: +┌─jmp +ffffffff9a002007 <beta_sys_read\+0x7>$' "$dir/db1"
	# stock perf goes on reading the store, and a merged profile has the code as well
	if command -v perf >/dev/null; then
		perf --buildid-dir "$dir/out.debug" report --stdio -i "$dir/out" 2>"$dir/err" | grep -q alpha_sys_read
		[ ! -s "$dir/err" ]
	fi
	"$VMPROF" merge -o "$dir/merged" "$dir/out" >/dev/null
	"$VMPROF" annotate -i "$dir/merged" --vm web1 alpha_sys_read | grep -E ' : ' >"$dir/again"
	diff <(grep -E ' : ' "$dir/web1") "$dir/again"
}

@test "annotate: the header says where addresses are only starts of blocks" {
	"$VMPROF" version --build-options | grep -q 'libcapstone: \[ on' || skip "built without capstone"
	"$UNIT/perfdata_write" file "$dir/out" 4
	"$UNIT/elfstore" scenario "$dir/out.debug"
	"$UNIT/codestore" scenario "$dir/out.debug"
	run -0 "$VMPROF" annotate -i "$dir/out" alpha_sys_read
	[[ "$output" == *"percent: local period, addresses are starts of blocks of code)"* ]]
	run -0 "$VMPROF" annotate -i "$dir/out" beta_sys_read
	[[ "$output" == *"percent: local period)"* ]]
	[[ "$output" != *"starts of blocks"* ]]
}

@test "annotate: what perf recorded elsewhere, and files of old perf, end in a sentence" {
	local file
	local corpus=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}
	[ -d "$corpus" ] || skip "no corpus of perf.data files at $corpus"
	for file in "$corpus"/perf.data.*; do
		run timeout 20 "$VMPROF" annotate -i "$file"
		[ "$status" -le 1 ]
		[ -n "$output" ]
	done
}
