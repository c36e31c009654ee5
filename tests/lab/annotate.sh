#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Annotated code of a guest that is gone: the kernel's as it had patched itself in memory, which QEMU
# was asked for, a program's as it is in its file, and what a program has made itself.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

# Instructions' addresses, one a line, of the function NAME
annotated() { # annotated NAME DSO
	"$VMPROF" annotate -i "$tmp/data" --dsos "$2" "$1" >"$tmp/annotate" 2>"$tmp/annotate.err"
	sed -n 's/^ *[0-9.]* [^:0-9]*: *\([0-9a-f]*\):.*/\1/p' "$tmp/annotate"
}

disassembled() { # disassembled START STOP OBJDUMP'S OPTIONS...
	objdump --start-address="$1" --stop-address="$2" "${@:3}" |
		sed -n 's/^ *\([0-9a-f]*\):\t.*\t.*/\1/p'
}

symbol() { # symbol ELF NAME: its address and size
	readelf -s -W "$1" | awk -v name="$2" '$8 == name { print "0x" $2, $3, $8; exit }'
}

vm up "$t" --load getpid:0,split:1,jit:1 --append nokaslr || die "$t does not come up"
take "$tmp/data" -F 1000 --vm "$t" --duration 4
kernel=$(find "$tmp/data.debug/$t" -path '*/boot/*' -name code)
program=$(find "$tmp/data.debug/$t" -path '*/split/*' -name code)
expect "code is saved" "kernel: ${kernel:-none}, program: ${program:-none}" test -s "$kernel" -a -s "$program"
[[ -s $kernel && -s $program ]] || exit 0

text=0xffffffff81000000
read -r start size < <("$lab/lib/code.py" hull "$kernel")
vm qmp "$t" memsave "val=$((text + start))" "size=$size" "filename=$tmp/memory" >/dev/null
vm down "$t"
mapfile -t files < <(vm fetch 6.1-cloud truth)
"$lab/lib/code.py" kernel "$kernel" "$tmp/memory" "${files[0]}" >"$tmp/result"
grep -v '^#' "$tmp/result"
cpio -i --quiet --to-stdout '*srv/lab/split' <"${files[1]}" >"$tmp/split" 2>/dev/null
"$lab/lib/code.py" file "$program" "$tmp/split"

if ! "$VMPROF" version --build-options | grep -q 'libcapstone: \[ on'; then
	skip "annotate" "built without capstone"
	exit 0
fi

# A function that has samples, among those that had a no-op written over their call of the tracer.
read -r -a patched < <(sed -n 's/^# patched //p' "$tmp/result")
for at in ${patched[@]+"${patched[@]}"}; do
	name=$(readelf -s -W "${kernel%code}elf" | awk -v at="^0*$at\$" '$2 ~ at { print $8; exit }')
	annotated "$name" "[$t.kernel]" >"$tmp/have"
	[[ ! -s $tmp/have ]] || break
done
expect "kernel, $name: a no-op at the beginning" "$(one_line "$tmp/annotate")" \
	test "$(grep -E -m 2 '^ *[0-9.]+ .*:\s' "$tmp/annotate" | grep -c nop)" -eq 1
expect "kernel, $name: out of the guest's memory" "$(one_line "$tmp/annotate")" \
	says "$tmp/annotate" "Disassembly of the guest's memory:"
expect "kernel, $name: the header has what addresses are" "$(head -n 1 "$tmp/annotate")" \
	says "$tmp/annotate" '^ Percent .*addresses are starts of blocks of code'
read -r at size _ < <(symbol "${kernel%code}elf" "$name")
printf -v from '%#x' $((text + at))
printf -v to '%#x' $((text + at + size))
printf -v vma '%#x' $((text + start))
disassembled "$from" "$to" -D -b binary -m i386:x86-64 --adjust-vma="$vma" "$tmp/memory" >"$tmp/want"
expect "kernel, $name: the same instructions as objdump's" "$(diff "$tmp/want" "$tmp/have" | one_line /dev/stdin)" \
	cmp -s "$tmp/want" "$tmp/have"

annotated spin "split" >"$tmp/have"
expect "program, spin: out of the guest's memory" "$(one_line "$tmp/annotate")" \
	says "$tmp/annotate" "Disassembly of the guest's memory:"
read -r at size _ < <(symbol "$tmp/split" spin)
disassembled "$((at))" "$((at + size))" -d "$tmp/split" >"$tmp/want"
expect "program, spin: the same instructions as objdump's" "$(diff "$tmp/want" "$tmp/have" | one_line /dev/stdin)" \
	cmp -s "$tmp/want" "$tmp/have"
share=$(sed -n 's/^ *\([0-9.]*\) .*: *[0-9a-f]*:.*/\1/p' "$tmp/annotate" | awk '{ s += $1 } END { printf "%.0f", s }')
expect "program, spin: shares of all samples" "$share %" test "${share:-0}" -ge 99

# Code that a program has made is in no file: what the lab's jit.c puts there.
"$VMPROF" annotate --no-jumps -i "$tmp/data" jit_hot_a >"$tmp/annotate" 2>"$tmp/annotate.err"
sed -n 's/^ *[0-9.]* [^:0-9]*: *[0-9a-f]*:[[:space:]]*\([a-z]*\).*/\1/p' "$tmp/annotate" >"$tmp/have"
printf '%s\n' push mov dec jne pop ret >"$tmp/want"
expect "made code, jit_hot_a: its instructions" "$(one_line "$tmp/have") $(one_line "$tmp/annotate.err")" \
	cmp -s "$tmp/want" "$tmp/have"
expect "made code, jit_hot_a: out of the guest's memory" "$(one_line "$tmp/annotate")" \
	says "$tmp/annotate" "Disassembly of the guest's memory:"
