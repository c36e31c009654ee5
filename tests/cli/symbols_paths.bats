#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# --symfs, --vmlinux and --kallsyms that are of no use, or of something else: refused, and said.

load helper

setup() {
	UNIT=${BUILD:-build}/tests/unit
	dir=$(mktemp -d "${BATS_TMPDIR:-/tmp}/paths.XXXXXX")
	"$UNIT/perfdata_write" file "$dir/data" 1
	"$UNIT/elfstore" scenario "$dir/data.debug"
	echo 'int main(void) { return 0; }' >"$dir/p.c"
	"${CC:-cc}" -g -Wl,--build-id=0x0123456789 -o "$dir/elf" "$dir/p.c"
}

teardown() {
	rm -rf "$dir"
}

# says COMMAND... : its messages, which must be one line; what it prints in $dir/out
says() {
	"$VMPROF" "$@" -i "$dir/data" >"$dir/out" 2>"$dir/err" || true
	cat "$dir/err"
	[ "$(wc -l <"$dir/err")" -eq 1 ]
}

@test "symbols: a vmlinux with another build id is refused, and that is said" {
	says report --stdio --vmlinux "$dir/elf" | grep -q -- "--vmlinux .*/elf is not used: .* is another file: its build id is 0123456789"
	grep -q alpha_sys_read "$dir/out"
	says script -k "web1=$dir/elf" | grep -q "is not used"
	grep -q alpha_sys_read "$dir/out"
	says export --format speedscope -o "$dir/x" --vmlinux "$dir/elf" | grep -q "is not used"
	"$VMPROF" annotate alpha_sys_read --vmlinux "$dir/elf" -i "$dir/data" 2>&1 | grep -q "is not used"
	# one that is another VM's
	run "$VMPROF" report --stdio --vmlinux "nobody=$dir/elf" -i "$dir/data"
	[[ $output == *"no VM 'nobody'"* ]]
}

@test "symbols: kallsyms of another kernel than the recorded one are refused, and that is said" {
	printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000100 T wrong' 'ffffffff82000000 T last' >"$dir/kallsyms"
	says report --stdio --kallsyms "$dir/kallsyms" --vm web1 | grep -q "is not used: .*kallsyms is of another kernel"
	grep -q alpha_sys_read "$dir/out"
	run grep wrong "$dir/out"
	[ "$status" -eq 1 ]
	says report --stdio --kallsyms "$dir/p.c" --vm web1 | grep -q "is not used: .* has no symbols in the form"
}

@test "symbols: what may never end, or never begin, is no file of symbols" {
	local option
	mkfifo "$dir/fifo"
	for option in --kallsyms --vmlinux --guestkallsyms --guestmodules --guestvmlinux; do
		run timeout 60 "$VMPROF" report -i "$dir/data" "$option" "$dir/fifo"
		[ "$status" -eq 2 ]
		[[ $output == *"$option $dir/fifo cannot be read: it is a pipe or a device, and not a file" ]]
		run timeout 60 "$VMPROF" report -i "$dir/data" "$option" /dev/zero
		[ "$status" -eq 2 ]
	done
	# none at all, as perf's users say it
	"$VMPROF" report -i "$dir/data" --kallsyms /dev/null 2>&1 | grep -q alpha_sys_read
	mkdir -p "$dir/mnt/4242/proc"
	mkfifo "$dir/mnt/4242/proc/kallsyms" "$dir/mnt/4242/proc/modules"
	run timeout 60 "$VMPROF" report -i "$dir/data" --guestmount "$dir/mnt"
	[ "$status" -eq 0 ]
}

@test "symbols: a directory for --buildid-dir that is not there is said" {
	local command
	for command in report script "export --format speedscope -o $dir/x" "annotate alpha_sys_read"; do
		# shellcheck disable=SC2086 # words
		"$VMPROF" $command -i "$dir/data" --buildid-dir "$dir/none" 2>&1 >/dev/null |
			grep -c -- "--buildid-dir $dir/none is not used: there is no such directory" >"$dir/count"
		[ "$(cat "$dir/count")" -eq 1 ]
	done
	says report --stdio --buildid-dir $'no\033such' | grep -qF -- '--buildid-dir no\x1bsuch is not used'
	grep -q alpha_sys_read "$dir/out"
	"$VMPROF" report -i "$dir/data" --buildid-dir "$dir" 2>"$dir/err" >/dev/null
	[ ! -s "$dir/err" ]
}

@test "symbols: a directory for --symfs without files, or with others, is said" {
	mkdir -p "$dir/none" "$dir/other/usr/sbin"
	says report --stdio --symfs "$dir/none" | grep -q -- "--symfs .*/none is not used: it has no file that was looked for"
	cp "$dir/elf" "$dir/other/usr/sbin/nginx"
	says report --stdio --symfs "web1=$dir/other" | grep -q "nginx is another file"
	grep -q 'handle' "$dir/out"
}
