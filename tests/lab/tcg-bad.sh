#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What may go wrong while a VM is recorded: the VM ends, reboots, pauses or is killed, the recorder is
# interrupted or killed, the disk is full, permission is missing, the guest is no Linux.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"

# rec ARGUMENTS...: records $t to $tmp/data; status in $status, messages in $tmp/err. A recorder that
# does not come to an end is stopped, which is status 124.
rec() {
	status=0
	timeout -k 5 400 "$VMPROF" record -g -F 1000 --vm "$t" -o "$tmp/data" "$@" 2>"$tmp/err" </dev/null || status=$?
}

# outcome NAME STATUS TEXT: it ended so and said this
outcome() {
	expect "$1" "status $status, $2 wanted: $(one_line "$tmp/err")" test "$status" -eq "$2"
	expect "$1: said" "no '$3' in: $(one_line "$tmp/err")" says "$tmp/err" "$3"
}

samples() { # samples FILE: how many it has
	"$VMPROF" report -i "$1" --stats 2>/dev/null </dev/null | sed -n 's/.*SAMPLE events: *\([0-9]*\).*/\1/p' |
		head -n 1
}

has_samples() { # has_samples NAME AT-LEAST
	local n
	n=$(samples "$tmp/data")
	expect "$1" "${n:-no report} samples, $2 wanted" test "${n:-0}" -ge "$2"
}

up() {
	rm -rf "$tmp/data"*
	vm up "$t" --load split "$@" || die "$t does not come up"
}

up --append poweroff_after=4
rec --duration 300
outcome "VM ends" 0 "$t.*(ended|gone|exited)"
has_samples "VM ends: what was recorded is there" 100

up --append reboot_after=4
"$VMPROF" record -g -F 1000 --vm "$t" -o "$tmp/data" --duration 300 2>"$tmp/err" </dev/null &
recorder=$!
vm wait "$t" ready 1
# The console file goes on: the second "@ready" is the rebooted guest's.
for ((i = 0; i < 1200 && $(vm log "$t" | grep -c '^@ready') < 2; i++)); do
	sleep 0.1
done
sleep 3
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
outcome "VM reboots" 130 "$t.*reboot"
folded "$tmp/data" | "$lab/lib/truth.py" "VM reboots" 'whole:split:main,first,second,third,hot_a|hot_b:spin:95'

vm qmp "$t" stop >/dev/null
rec --duration 2
outcome "VM is paused" 0 '0 samples \(its vCPUs used no CPU time'
vm qmp "$t" cont >/dev/null
"$VMPROF" record -g -F 1000 --vm "$t" -o "$tmp/data" --duration 4 2>"$tmp/err" </dev/null &
recorder=$!
sleep 1
vm qmp "$t" stop >/dev/null
sleep 1
vm qmp "$t" cont >/dev/null
status=0
wait "$recorder" || status=$?
outcome "VM pauses for a while" 0 'Captured and wrote'
has_samples "VM pauses for a while: the rest is there" 100
vm down "$t"

# A recorder that is stopped. The file is complete at each flush, so that it can be watched.
record_till() { # record_till SAMPLES: leaves it running as $recorder
	local i n
	rm -f "$tmp/data"
	"$VMPROF" record -g -F 1000 --vm "$t" -o "$tmp/data" 2>"$tmp/err" </dev/null &
	recorder=$!
	for ((i = 0; i < 120; i++)); do
		n=$(samples "$tmp/data")
		((${n:-0} < $1)) || return
		sleep 0.5
	done
}

up
record_till 500
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
outcome "SIGINT" 130 'Captured and wrote'
expect "SIGINT: perf's lines" "$(one_line "$tmp/err")" says "$tmp/err" 'Woken up'
has_samples "SIGINT: the file is whole" 500
record_till 600
kill -KILL "$recorder"
read -r now _ </proc/uptime
wait "$recorder" 2>/dev/null
has_samples "kill -9: the file can be read" 500
if command -v perf >/dev/null; then
	perf script -i "$tmp/data" -F time >"$tmp/script" 2>"$tmp/err"
	last=$(tail -n 1 "$tmp/script" | tr -d ' :')
	expect "kill -9: all but the last seconds is there, for perf too" \
		"killed at $now, last sample at ${last:-?}: $(one_line "$tmp/err")" \
		awk -v now="$now" -v last="${last:-0}" 'BEGIN { exit !(now - last < 5) }'
fi

# Where to write.
rec --duration 1 -o "$tmp/no/such/folder/data"
outcome "output not writable" 1 "$tmp/no/such/folder/data"
# Room for the kernel's symbols (2 MiB, saved first) and some flushes, however fast the host is: each
# has up to half a second of samples.
if ((EUID == 0)) && mkdir "$tmp/full" && mount -t tmpfs -o size=8m lab "$tmp/full" 2>/dev/null; then
	rec -F 4000 --duration 300 -o "$tmp/full/data"
	outcome "disk full" 1 'No space left on device'
	mv "$tmp/full/data" "$tmp/data"
	has_samples "disk full: what was written can be read" 500
	umount "$tmp/full"
else
	skip "disk full" "a file system can be mounted by root only"
fi

# Who may look.
if ((EUID == 0)); then
	chmod 755 "$tmp"
	install -d -o 65534 "$tmp/nobody"
	install -m 755 "$VMPROF" "$tmp/nobody/vmprof"
	status=0
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$tmp/nobody/vmprof" record \
		--vm "$(vm pid "$t")" --duration 1 -o "$tmp/nobody/data" 2>"$tmp/err" </dev/null || status=$?
	outcome "no permission" 1 'CAP_SYS_PTRACE'
	status=0
	setpriv --bounding-set=-bpf,-sys_admin "$VMPROF" record -g -F 1000 --vm "$t" --duration 2 -o "$tmp/data" \
		2>"$tmp/err" </dev/null || status=$?
	outcome "no BPF programs" 0 'read while the vCPU goes on.*CAP_BPF'
	has_samples "no BPF programs: samples all the same" 100
else
	skip "no permission" "root gives it up in this test"
fi

# Which VM.
rec --vm nosuch --duration 1
outcome "unknown VM" 1 "nosuch.*$t|$t.*nosuch"
sleep 60 &
rec --vm $! --duration 1
outcome "not a VM" 1 "$!"

# It is killed.
record_till 600
kill -KILL "$(vm pid "$t")"
status=0
wait "$recorder" || status=$?
outcome "QEMU is killed" 0 "$t.*(ended|gone|exited|killed)"
has_samples "QEMU is killed: what was recorded is there" 500

# A program with names that do harm: path, command and function.
harmless() { # harmless NAME FILE: no control character but line ends, and the names are in it
	expect "$1" "$(grep -a -m 1 -P '[\x00-\x08\x0b-\x1f\x7f]' "$2" | cat -v | cut -c 1-200)" \
		eval "grep -q -a -E 'x1b.31mred|own.x07' '$2' && ! grep -q -a -P '[\x00-\x08\x0b-\x1f\x7f]' '$2'"
}

up --load hostile
rec --duration 2
outcome "hostile names" 0 'Captured and wrote'
for how in "--stdio -v" --folded --json "--flamegraph -"; do
	# shellcheck disable=SC2086 # words
	"$VMPROF" report -i "$tmp/data" $how >"$tmp/shown" 2>&1 </dev/null
	harmless "hostile names: report $how" "$tmp/shown"
	case $how in
	--json) check='import json, sys; json.load(sys.stdin)' ;;
	--flamegraph*) check='import sys, xml.dom.minidom as m; m.parse(sys.stdin)' ;;
	*) continue ;;
	esac
	expect "hostile names: $how can be parsed" "it cannot" python3 -c "$check" <"$tmp/shown"
done
folded "$tmp/data" | grep -a -v -E '^[^; ]+;.* [0-9]+$' >"$tmp/shown"
expect "hostile names: one line a chain" "$(one_line "$tmp/shown")" test ! -s "$tmp/shown"
if command -v perf >/dev/null; then
	perf --buildid-dir "$tmp/data.debug" script -i "$tmp/data" 2>&1 | tr -d '\t' >"$tmp/shown"
	harmless "hostile names: perf script" "$tmp/shown"
fi
vm down "$t"

# A guest without Linux: a loop in protected mode.
vm up "$t" --image bare --no-wait || die "$t does not come up"
sleep 2
rec --duration 2
outcome "no Linux" 0 'addresses only'
has_samples "no Linux: samples all the same" 100
vm down "$t"
