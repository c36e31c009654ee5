#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Call chains of a guest that is stopped, beside gdb's backtrace of it over QEMU's stub: of programs with
# and without frame pointers, in libraries, too.
# VMLINUX=FILE, the lab's kernel with its debugging information: stops in the kernel, too.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

dump=$BUILD/tests/bench/guest
[[ -x $dump ]] || die "no $dump: run make bench-programs"
if ! command -v gdb >/dev/null || ! gdb -nx -batch -ex 'python print(1)' 2>&1 | grep -q '^1$'; then
	skip "chains beside gdb's" "no gdb, or it knows no Python"
	exit 0
fi
: "${VMLINUX:=}"
loads=(split_nofp libsplit split)
stops=36
((LONG == 0)) || stops=300
[[ -z $VMLINUX ]] || loads+=(read)

mapfile -t files < <(vm fetch 6.1-cloud truth)
mkdir "$tmp/root"
(cd "$tmp/root" && cpio -i -d --quiet --no-absolute-filenames <"${files[1]}" 2>/dev/null)
vm up "$t" --load "$(IFS=, && echo "${loads[*]}")" --smp 1 --append "truth ${VMLINUX:+nokaslr}" -- \
	-chardev "socket,id=gdb0,path=$tmp/gdb.sock,server=on,wait=off" -gdb chardev:gdb0 ||
	die "$t does not come up"
vm log "$t" | tr -d '\r' >"$tmp/console"
# What each process has mapped, for gdb
declare -A load_of count
for load in "${loads[@]}"; do
	pid=$(sed -n "s/^@pid \([0-9]*\) $load$/\1/p" "$tmp/console")
	load_of[${pid:-0}]=$load
	count[$load]=0
	sed -n "s/^@maps ${pid:-0} //p" "$tmp/console" | "$lab/lib/gdb_objects.py" "$tmp/root" >"$tmp/objects.${pid:-0}"
	[[ -s $tmp/objects.${pid:-0} ]] || die "no mapping of $load on the console"
done

# frames_of_gdb PID: innermost first; of a kernel without debugging information there are none
frames_of_gdb() {
	local symbols=(-x "$tmp/objects.$1")
	[[ -z $VMLINUX ]] || symbols+=(-ex "add-symbol-file $VMLINUX")
	rm -f "$tmp/frames"
	OUT=$tmp/frames timeout 100 gdb -nx -batch "${symbols[@]}" -ex "target remote $tmp/gdb.sock" \
		-x "$lab/lib/gdb_frames.py" >"$tmp/gdb.out" 2>&1
	[[ -s $tmp/frames ]] || die "gdb failed: $(one_line "$tmp/gdb.out")"
	cat "$tmp/frames"
}

coproc CHAINS { "$dump" -s "$t"; }
read -r _ <&"${CHAINS[0]}" || die "$dump failed"
user=0 kernel=0 wrong=0
for ((i = 0; i < stops; i++)); do
	sleep "0.0$((RANDOM % 100))"
	vm qmp "$t" stop >/dev/null || die "the VM does not stop"
	echo >&"${CHAINS[1]}"
	read -r pid mode ours <&"${CHAINS[0]}" || die "$dump failed"
	load=${load_of[$pid]:-}
	if [[ -n $load && $mode = user ]]; then
		theirs=$(frames_of_gdb "$pid")
		: $((user++)) $((count[$load]++))
	elif [[ -n $load && -n $VMLINUX ]]; then
		# gdb does not go on to user mode, nor from the stack of interrupts to the one below it
		ours=${ours%% user*}
		theirs=$(frames_of_gdb "$pid" | cut -d ' ' -f "1-$(wc -w <<<"$ours")")
		[[ "$ours " != "$theirs "* ]] || ours=$theirs
		: $((kernel++))
	else
		vm qmp "$t" cont >/dev/null # idle, or the kernel
		continue
	fi
	vm qmp "$t" cont >/dev/null
	if [[ $ours != "$theirs" ]]; then
		: $((wrong++))
		echo "# stop $i, $load: ours $ours"
		echo "# stop $i, $load: gdb  $theirs"
	fi
done
eval "exec ${CHAINS[1]}>&-"
vm down "$t"
expect "gdb's frames at each stop" "$wrong of $((user + kernel)) differ" test "$wrong" -eq 0
expect "stops in the programs" "$user of $stops" test "$user" -ge $((stops / 2))
for load in "${loads[@]}"; do
	echo "# $load: ${count[$load]} stops"
done
echo "# $((user + kernel)) stops, $kernel of them in the kernel, $wrong differ"
