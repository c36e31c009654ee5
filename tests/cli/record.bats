#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof record: options, messages and exit statuses that need no guest that does anything. What it
# records is tested in tests/lab.

load helper

@test "record: --help shows the usage and succeeds" {
	run "$VMPROF" record --help
	[ "$status" -eq 0 ]
	[[ "$output" == *"--duration"* ]]
}

@test "record: an unknown option is status 2 and names the manual" {
	run "$VMPROF" record --no-such-option
	[ "$status" -eq 2 ]
	[[ "$output" == *"vmprof-record(1)"* ]]
}

@test "record: wrong values are status 2 and say what is right" {
	local args
	for args in "-F 0" "-F 10001" "-F ten" "-F -5" "-F 1e3"; do
		# shellcheck disable=SC2086 # two words
		run "$VMPROF" record $args
		[ "$status" -eq 2 ]
		[[ "$output" == *"is not a frequency from 1 to 10000 Hz"* ]]
	done
	run "$VMPROF" record -c 18446744073709551615
	[ "$status" -eq 2 ]
	[[ "$output" == *"-c '18446744073709551615' is not a period"* ]]
	run "$VMPROF" record -o ''
	[ "$status" -eq 2 ]
	[[ "$output" == *"-o ''"* ]]
	for args in 0 65529 99999 many 1x ''; do
		run "$VMPROF" record --call-graph "dwarf,$args"
		[ "$status" -eq 2 ]
		[[ "$output" == *"--call-graph dwarf,BYTES: '$args' is not "*" from 1 to 65528" ]]
	done
	run "$VMPROF" record --call-graph lbr
	[ "$status" -eq 2 ]
	[[ "$output" == *"'fp'"* ]]
	run "$VMPROF" record --duration soon
	[ "$status" -eq 2 ]
	[[ "$output" == *"10s, 500ms, 2m"* ]]
	run "$VMPROF" record -e bogus
	[ "$status" -eq 2 ]
	[[ "$output" == *"'bogus': no such event"* ]]
	run "$VMPROF" record -e cyclez:u
	[ "$status" -eq 2 ]
	[[ "$output" == *"did you mean 'cycles'"* ]]
}

@test "record: an unknown VM is an error" {
	run "$VMPROF" record --vm no-such-vm
	[ "$status" -eq 1 ]
	[[ "$output" == *"no-such-vm"* ]]
}

@test "record: an unknown backend is named" {
	start_vm bk1
	run "$VMPROF" record --vm "$VM_UUID" --backend abacus --duration 1
	[ "$status" -eq 1 ]
	[[ "$output" == *"no backend 'abacus'"* ]]
}

@test "record: an output that cannot be written is named, and the command is not run" {
	start_vm out1
	run "$VMPROF" record --vm "$VM_UUID" -o /nonexistent/dir/x -- touch "$BATS_TEST_TMPDIR/ran"
	[ "$status" -eq 1 ]
	[[ "$output" == *"/nonexistent/dir/x"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "record: the command's exit status is returned" {
	start_vm st1
	cd "$BATS_TEST_TMPDIR"
	run "$VMPROF" record --vm "$VM_UUID" -- sh -c 'exit 3'
	[ "$status" -eq 3 ]
	[[ "$output" == *"Captured and wrote"*"perf.data"* ]]
}

@test "record: a command that does not exist is an error" {
	start_vm nx1
	cd "$BATS_TEST_TMPDIR"
	run "$VMPROF" record --vm "$VM_UUID" -- no-such-command-here
	[ "$status" -eq 1 ]
	[[ "$output" == *"no-such-command-here"* ]]
}

@test "record: -q is silent" {
	start_vm q1
	cd "$BATS_TEST_TMPDIR"
	run "$VMPROF" record -q --vm "$VM_UUID" --duration 200ms
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "record: SIGINT ends it by that signal, with a complete file" {
	start_vm int1
	cd "$BATS_TEST_TMPDIR"
	stopped INT 130 "$VMPROF" record --vm "$VM_UUID"
	[ "$status" -eq 130 ]
	[[ "$output" == *"Woken up"*"Captured and wrote"* ]]
	perf script -i perf.data >/dev/null 2>err
	[ ! -s err ]
}

@test "record: cycles fall back to cpu-clock with one line, other events do not" {
	start_vm fb1
	cd "$BATS_TEST_TMPDIR"
	run "$VMPROF" record -e cycles --vm "$VM_UUID" --duration 200ms
	[ "$status" -eq 0 ]
	[ "$(grep -c "falling back to cpu-clock" <<<"$output")" -eq 1 ]
	run "$VMPROF" record -e instructions --vm "$VM_UUID" --duration 200ms
	[ "$status" -eq 1 ]
	[[ "$output" == *"'instructions'"*"it has cpu-clock and task-clock"* ]]
	run "$VMPROF" record -e cpu-clock:H --vm "$VM_UUID" --duration 200ms
	[ "$status" -eq 1 ]
	[[ "$output" == *"and not the host"* ]]
	run "$VMPROF" record -c 10 --vm "$VM_UUID"
	[ "$status" -eq 1 ]
	[[ "$output" == *"below 100000 ns"* ]]
}

@test "record: -e before any --vm is of all VMs, behind one of that VM" {
	local first second
	start_vm own1
	first=$VM_UUID
	start_vm own2
	second=$VM_UUID
	cd "$BATS_TEST_TMPDIR"
	run "$VMPROF" record -e cpu-clock --vm "$first" --vm "$second" -e task-clock:u -o x.data --duration 200ms
	[ "$status" -eq 0 ]
	[[ "$output" == *"own1: tcg backend, host delivery, cpu-clock at"* ]]
	[[ "$output" == *"own2: tcg backend, host delivery, cpu-clock,task-clock:u at"* ]]
	# The default is for those that were given none.
	run "$VMPROF" record --vm "$first" --vm "$second" -e task-clock -o x.data --duration 200ms
	[ "$status" -eq 0 ]
	[[ "$output" == *"own2: tcg backend, host delivery, task-clock at"* ]]
	[ "$(grep -c "falling back to cpu-clock" <<<"$output")" -eq 1 ]
	run "$VMPROF" report -i x.data --stats
	[[ "$output" == *"cpu-clock stats:"* ]]
	[[ "$output" == *"task-clock stats:"* ]]
}

@test "record: what needs the module says so" {
	start_vm domain1
	run "$VMPROF" record --count domain -e cpu-clock --vm "$VM_UUID" --duration 200ms
	[ "$status" -eq 1 ]
	[[ "$output" == *"--count domain needs vmprof.ko"* ]]
	run "$VMPROF" record --backend kmod -e cpu-clock --vm "$VM_UUID" --duration 200ms
	[ "$status" -eq 1 ]
	[[ "$output" == *"the kmod backend samples guests that KVM runs"* ]]
	run "$VMPROF" record --count cpu -e cpu-clock --vm "$VM_UUID" -o "$BATS_TEST_TMPDIR/x.data" --duration 200ms
	[ "$status" -eq 0 ]
	run "$VMPROF" record --count often
	[ "$status" -eq 2 ]
	[[ "$output" == *"--count 'often' is neither a period nor 'cpu' or 'domain'" ]]
}

@test "record: a file that is there is kept as FILE.old" {
	start_vm old1
	cd "$BATS_TEST_TMPDIR"
	echo before >x.data
	"$VMPROF" record -q --vm "$VM_UUID" -o x.data --duration 200ms
	[ "$(cat x.data.old)" = before ]
	[ "$(head -c 8 x.data)" = PERFILE2 ]
}

@test "record: an output that fails in the course is an error with its place" {
	start_vm out2
	cd "$BATS_TEST_TMPDIR"
	run sh -c "ulimit -f 1; '$VMPROF' record --vm $VM_UUID --duration 1 -o limited"
	[ "$status" -eq 1 ]
	[[ "$output" == *"limited: cannot write at offset "*": File too large"* ]]
	[[ "$output" != *"Captured"* ]]
	run sh -c "'$VMPROF' record --vm $VM_UUID --duration 1 -o - >&-"
	[ "$status" -eq 1 ]
	[[ "$output" == *"standard output: cannot write"*"Bad file descriptor"* ]]
	# A reader that is gone: nobody is left to read what the command was started for.
	run bash -c "'$VMPROF' record --vm $VM_UUID -o - -- sleep 60 | true; exit \${PIPESTATUS[0]}"
	[ "$status" -eq 1 ]
	[[ "$output" == *"standard output: cannot write"*"Broken pipe"* ]]
}

@test "record: nothing is saved beside a device" {
	start_vm dev1
	[ ! -e /dev/null.debug ]
	"$VMPROF" record -q --vm "$VM_UUID" --duration 200ms -o /dev/null
	[ -c /dev/null ]
	[ ! -e /dev/null.debug ]
}

@test "record: a reader that never comes or never reads does not keep it from ending" {
	start_vm pipe1
	cd "$BATS_TEST_TMPDIR"
	mkfifo fifo
	stopped TERM 143 "$VMPROF" record --vm "$VM_UUID" -o fifo
	[ "$status" -eq 1 ]
	[[ "$output" == *"fifo"* ]]
	run python3 - "$VMPROF" "$VM_UUID" <<-'END'
		import fcntl, os, subprocess, sys, time
		r, w = os.pipe()
		os.write(w, bytes(fcntl.fcntl(w, 1031, 4096)))  # F_SETPIPE_SZ; now it is full
		p = subprocess.Popen([sys.argv[1], "record", "--vm", sys.argv[2], "-o", "-"], stdout=w)
		caught = 1 << 14  # SIGTERM
		while not any(int(l.split()[1], 16) & caught for l in open("/proc/%d/status" % p.pid)
		              if l.startswith(("SigCgt:", "SigBlk:"))):
		    time.sleep(0.1)
		time.sleep(1)
		p.terminate()
		print("status", p.wait(100))
	END
	[[ "$output" == *"standard output: cannot write"*"status 1"* ]]
}

@test "record: a reader that opens a FIFO late gets all of it" {
	start_vm pipe2
	cd "$BATS_TEST_TMPDIR"
	mkfifo fifo
	"$VMPROF" record -q --vm "$VM_UUID" -o fifo --duration 300ms 3>&- &
	sleep 0.5
	run "$VMPROF" report -i - --stats <fifo
	[ "$status" -eq 0 ]
	[[ "$output" == *"FINISHED_ROUND"* ]]
	wait $!
}

@test "record: a command that does not end is ended" {
	start_vm cmd1
	cd "$BATS_TEST_TMPDIR"
	local script
	# shellcheck disable=SC2016 # for sh
	for script in 'trap "" TERM; while :; do sleep 0.1; done' 'kill -STOP $$; sleep 60'; do
		run timeout -k 5 200 "$VMPROF" record --vm "$VM_UUID" --duration 200ms -- sh -c "$script"
		[ "$status" -eq 0 ]
	done
}

@test "record: signals that the caller ignores" {
	start_vm sig1
	cd "$BATS_TEST_TMPDIR"
	env --ignore-signal=CHLD true 2>/dev/null || skip "env cannot ignore signals"
	run timeout 200 env --ignore-signal=CHLD "$VMPROF" record --vm "$VM_UUID" -- sleep 0.1
	[ "$status" -eq 0 ]
	stopped HUP 129 env --ignore-signal=HUP "$VMPROF" record --vm "$VM_UUID" --duration 3
	[ "$status" -eq 0 ]
}

# In a pid namespace of its own: -a takes all VMs that there are, and others may run here.
@test "record -a: VMs come and go, and when none is left it ends" {
	unshare --pid --fork --mount-proc true 2>/dev/null || skip "no pid namespace of its own can be made here"
	# shellcheck disable=SC2016 # for bash
	run timeout -k 5 300 unshare --pid --fork --kill-child --mount-proc \
		env BATS_TEST_TMPDIR="$BATS_TEST_TMPDIR" BATS_TEST_DIRNAME="$BATS_TEST_DIRNAME" bash -e -c '
		. "$BATS_TEST_DIRNAME/helper.bash"
		cd "$BATS_TEST_TMPDIR"
		until_says() { until grep -q "$1" out; do sleep 0.1; done; }
		start_vm first
		first=$VM_PID
		start_vm second
		"$VMPROF" record -a -o all.data >out 2>&1 &
		recorder=$!
		until_says "^vmprof record: second: tcg backend"
		start_vm late
		kill -KILL "$first"
		until_says "first: the VM ended"
		kill -0 "$recorder"
		kill -KILL "${vm_pids[1]}"
		status=0
		wait "$recorder" || status=$?
		cat out
		"$VMPROF" report -i all.data --stats | grep "^ *VM"
		echo "status $status"' 3>&-
	[ "$status" -eq 0 ]
	[[ "$output" == *"first: the VM ended"*"second: the VM ended"*"Captured and wrote"*"status 0"* ]]
	[[ "$output" == *"VM first stats:"*"VM second stats:"* ]]
	# It was not there when the record began.
	[[ "$output" != *"late: "* && "$output" != *"VM late"* ]]
}

@test "record: a limit of open files is what it says" {
	start_vm fds1
	cd "$BATS_TEST_TMPDIR"
	local n
	for n in 4 5 6 7; do
		run bash -c "exec 3>&- 4>&- 5>&-; ulimit -n $n; '$VMPROF' record --vm $VM_UUID --duration 100ms"
		[ "$status" -eq 1 ]
		[[ "$output" == *[Tt]"oo many open files"* ]]
	done
}

@test "record: many vCPUs need no higher limit of open files, and the command keeps its own" {
	start_vm fds2 -smp 16
	cd "$BATS_TEST_TMPDIR"
	run bash -c "exec 3>&-; ulimit -S -n 20; '$VMPROF' record --vm $VM_UUID -- sh -c 'ulimit -n'"
	[ "$status" -eq 0 ]
	[[ "$output" == *"16 vCPUs"* ]]
	grep -qx 20 <<<"$output"
}

@test "record: a VM's name is escaped in the file too, and cut if no record would hold it" {
	local long i
	start_vm $'es\033[31m\n<b>'
	cd "$BATS_TEST_TMPDIR"
	"$VMPROF" record -q --vm "$VM_UUID" --duration 200ms
	run grep -c -a -F $'\033[31m' perf.data
	[ "$output" = 0 ]
	run "$VMPROF" report --stats
	[[ "$output" == *'VM es\x1b[31m\x0a<b> stats:'* ]]
	for ((i = 0; i < 500; i++)); do long+=name-4000; done
	start_vm "$long"
	"$VMPROF" record -q --vm "$VM_UUID" --duration 200ms
	run "$VMPROF" report --stats
	[[ "$output" == *"VM ${long::200} stats:"* ]]
}

@test "record: delivery to the guest is asked for, and refused where it cannot be" {
	run "$VMPROF" record --deliver sideways
	[ "$status" -eq 2 ]
	[[ "$output" == *"--deliver 'sideways' is none of host, inject and direct"* ]]
	for delivery in inject direct; do
		run "$VMPROF" record --deliver $delivery --backend kmod
		[ "$status" -eq 2 ]
		[[ "$output" == *"leave out --backend"* ]]
	done
	run "$VMPROF" record --experimental
	[ "$status" -eq 2 ]
	[[ "$output" == *"--experimental is of delivery to the guest: give --deliver, too"* ]]
	run "$VMPROF" record --backend kmod --experimental
	[ "$status" -eq 2 ]
	run "$VMPROF" record --deliver direct --force
	[ "$status" -eq 2 ]
	[[ "$output" == *"--force is of what is experimental: give --experimental, too"* ]]
	start_vm dir1
	run "$VMPROF" record --deliver direct --vm "$VM_UUID" --duration 200ms -o "$BATS_TEST_TMPDIR/d"
	[ "$status" -eq 1 ]
	[[ "$output" == *"direct: "*" runs under tcg: counters are lent to guests that KVM runs"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/d" ]
	for by in --deliver --backend; do
		run "$VMPROF" record "$by" direct --experimental --force --vm "$VM_UUID" --duration 200ms -o "$BATS_TEST_TMPDIR/d"
		[ "$status" -eq 1 ]
		[[ "$output" == *"direct: "*" runs under tcg: counters are lent to guests that KVM runs"* ]]
	done
	run "$VMPROF" record --deliver host -e cpu-clock --vm "$VM_UUID" --duration 200ms -o "$BATS_TEST_TMPDIR/h"
	[ "$status" -eq 0 ]
	[[ "$output" == *": tcg backend, host delivery, cpu-clock at"* ]]
	run "$VMPROF" record --backend inject --vm "$VM_UUID" --duration 200ms -o "$BATS_TEST_TMPDIR/d"
	[ "$status" -eq 1 ]
	[[ "$output" == *"inject: "*" runs under tcg: counters are lent to guests that KVM runs"* ]]
}

@test "record: injected interrupts give way to the host's delivery, which is said" {
	start_vm inj1
	run "$VMPROF" record --deliver inject --vm "$VM_UUID" --duration 200ms -o "$BATS_TEST_TMPDIR/i"
	[ "$status" -eq 0 ]
	[[ "$output" == *" runs under tcg: counters are lent to guests that KVM runs; taking the host's delivery"* ]]
	[[ "$output" == *": tcg backend, host delivery, cpu-clock every 1000000"* ]]
	run "$VMPROF" record --deliver inject --pause --vm "$VM_UUID" --duration 200ms -o "$BATS_TEST_TMPDIR/i"
	[ "$status" -eq 1 ]
	[[ "$output" == *"the tcg backend never stops a VM"* ]]
}

@test "record: a machine that is to record itself, and cannot or is asked for what a host has" {
	[ ! -e /dev/vmprof_guest ] || skip "vmprof_guest.ko is loaded"
	run "$VMPROF" record --backend self -e cpu-clock -o "$BATS_TEST_TMPDIR/no.data" -- touch "$BATS_TEST_TMPDIR/ran"
	[ "$status" -eq 1 ]
	[[ "$output" == *"vmprof_guest.ko is not loaded (there is no /dev/vmprof_guest)"* ||
		"$output" == *"CAP_PERFMON"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/no.data" ]
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
	for args in "--vm web1" "--deliver direct" --multiplex --pause "--count domain"; do
		# shellcheck disable=SC2086 # two words
		run "$VMPROF" record --backend self $args -o "$BATS_TEST_TMPDIR/no.data" -- true
		[ "$status" -ne 0 ]
		[[ "$output" == *"leave out"* ]]
	done
	run "$VMPROF" record --backend self -e '{cpu-clock,cpu-clock:u}' -o "$BATS_TEST_TMPDIR/no.data" -- true
	[ "$status" -eq 1 ]
	[[ "$output" == *"the self backend has no groups: leave out the braces" ]]
	run "$VMPROF" record --backend self -e cpu-clock:G -o "$BATS_TEST_TMPDIR/no.data" -- true
	[ "$status" -eq 1 ]
	[[ "$output" == *"guests of this machine are not sampled by the self backend" ]]
	run "$VMPROF" record --backend self -e sched:sched_switch -o "$BATS_TEST_TMPDIR/no.data" -- true
	[ "$status" -ne 0 ]
}
