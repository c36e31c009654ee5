#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof stat: counts of a VM that QEMU translates, beside perf stat's of the same thread; options,
# messages, exit statuses. Counts under KVM, and its exits, are tested in tests/lab.

# shellcheck disable=SC2016,SC2030,SC2031 # sh -c has its own variables; a test is a subshell, and so are its
load helper

bats_require_minimum_version 1.5.0

# vcpu_thread: of the VM that start_vm has started
vcpu_thread() {
	local task
	for task in /proc/"$VM_PID"/task/*; do
		if [ "$(cat "$task/comm")" = "CPU 0/TCG" ]; then
			echo "${task##*/}"
		fi
	done
}

# stand: lets a VM do nothing, while it can still be counted
stand() {
	kill -STOP "$VM_PID"
	until grep -q '^State:.T' "/proc/$VM_PID/task/$thread/status"; do
		sleep 0.05
	done
}

# count_both OPTION...: perf's counts of the VM's vCPU to perf.out, ours to vmprof.out. Nothing of the VM happens but
# while the innermost command lets it.
count_both() {
	stand
	perf stat "$@" -o perf.out -e "$events" -t "$thread" -- "$VMPROF" stat "$@" -o vmprof.out -e "$events" --vm "$VM_UUID" \
		-- bash -c "VM_PID=$VM_PID thread=$thread; $(declare -f stand); kill -CONT $VM_PID; sleep 0.5; stand"
	cat perf.out vmprof.out
}

@test "stat: --help, wrong options and what does not go together" {
	run "$VMPROF" stat --help
	[ "$status" -eq 0 ]
	[[ "$output" == *"--interval-count"*"vmprof-stat(1)"* ]]
	local args
	while read -r args; do
		# shellcheck disable=SC2086 # words
		run "$VMPROF" stat ${args%%|*}
		[ "$status" -eq 2 ]
		[[ "$output" == *"${args#*|}"* ]]
	done <<-'END'
		--frob|vmprof-stat(1)
		-I 9|-I '9' is not a number from 10
		-I -100|is not a number
		-I 100 --interval-count 0|--interval-count '0' is not a number from 1
		--interval-count 3|--interval-count wants -I
		-r 0 true|-r '0' is not a number from 1
		-r 3|-r wants a command
		-r 3 -I 100 true|do not go together
		-x , -j|one of them
		--append|--append wants -o
		--exits -e cycles|no -e
		--exits --per-vcpu|use --vcpu
		--vcpu 0|--vcpu is for --exits
		-i x.data|-i FILE is for --exits
		--exits -i x.data true|of a time that is over
		--exits -i x.data -I 100|of a time that is over
		--sort size|it is time or count
		-e cyclez:u|did you mean 'cycles'
		-e bogus|'bogus': no such event
		--timeout soon|--timeout 'soon' is not a number
	END
}

@test "stat --exits -i: a file that is not there, is none, or has no exits" {
	cd "$BATS_TEST_TMPDIR"
	run "$VMPROF" stat --exits -i no-such-file
	[ "$status" -eq 1 ]
	[[ "$output" == "vmprof stat: "*no-such-file*"No such file"* ]]
	echo "no file of perf" >text
	run "$VMPROF" stat --exits -i text
	[ "$status" -eq 1 ]
	perf record -q -e page-faults -o faults.data true
	run "$VMPROF" stat --exits -i faults.data
	[ "$status" -eq 1 ]
	[[ "$output" == "vmprof stat: faults.data has no records of kvm:kvm_exit"* ]]
}

@test "stat: a VM that is not there, and two of a name" {
	run "$VMPROF" stat --vm no-such-vm true
	[ "$status" -eq 1 ]
	[[ "$output" == *"no-such-vm"* ]]
	start_vm twin
	start_vm twin
	run "$VMPROF" stat --vm twin true
	[ "$status" -eq 1 ]
	[[ "$output" == *"twin"*"$VM_UUID"* ]]
	run "$VMPROF" stat true
	[ "$status" -eq 1 ]
	[[ "$output" == *"name one or more with --vm"* ]]
}

@test "stat: counts are perf stat's of the same thread, and so is their layout" {
	start_vm cnt1
	local events=task-clock,context-switches,cpu-migrations,page-faults,cs thread
	cd "$BATS_TEST_TMPDIR"
	thread=$(vcpu_thread)
	count_both
	grep "Performance counter stats for VM 'cnt1':" vmprof.out
	# all but the numbers that a clock is in
	sed -n 's/^ *\([0-9][0-9]* *[a-z-]* *#\).*/\1/p' perf.out | sort >perf.counts
	sed -n 's/^ *\([0-9][0-9]* *[a-z-]* *#\).*/\1/p' vmprof.out | sort >vmprof.counts
	diff perf.counts vmprof.counts
	[ "$(wc -l <perf.counts)" -eq 4 ]
	# Clocks are read one after the other: the other one's reading lies between.
	python3 - perf.out vmprof.out <<-'END'
		import re, sys
		a, b = (float(re.search(r'([0-9.]+) msec task-clock', open(f).read())[1]) for f in sys.argv[1:])
		sys.exit(not (a > 0 and abs(a - b) < 1 + a / 10))
	END
	# The same line, but for digits: from 6.1 on perf's columns are these.
	perf --version | grep -q ' 6\.1\.' || skip "another perf's columns"
	shape() {
		sed -E '/(msec|page-faults|time elapsed)/!d; s/[0-9]+\.[0-9]+ +[KM]?\/sec *$/RATE/; s/[0-9]/0/g; s/ +0/ 0/; s/0+\./0./g; s/# +0/# 0/' "$1"
	}
	diff <(shape perf.out) <(shape vmprof.out)
}

@test "stat -x and -j: perf stat's fields behind the VM's name" {
	start_vm sep1
	local events=task-clock,page-faults,cycles thread
	cd "$BATS_TEST_TMPDIR"
	thread=$(vcpu_thread)
	shape() {
		sed -E 's/[0-9]+(\.[0-9]+)?/0/g; s/,([KM]?\/sec)/,RATE/; s/"([KM]?\/sec)"/"RATE"/; /^#|^$/d' "$1"
	}
	count_both -x,
	diff <(shape perf.out) <(sed 's/^sep1,//' vmprof.out | shape /dev/stdin)
	count_both -j
	diff <(shape perf.out) <(sed 's/"vm" : "sep1", //' vmprof.out | shape /dev/stdin)
	kill -CONT "$VM_PID"
	"$VMPROF" stat -j --per-vcpu -I 50 --interval-count 2 --vm sep1 2>&1 | python3 -c 'if True:
		import json, sys
		rows = [json.loads(line) for line in sys.stdin]
		assert len(rows) >= 16 and all(r["vm"] == "sep1" and r["vcpu"] == "0" for r in rows), rows
		assert len({r["interval"] for r in rows}) == 2, rows'
}

@test "stat: what a PMU would count is not supported without one" {
	perf stat -e cycles true 2>&1 | grep -q 'not supported' || skip "this machine has a PMU"
	start_vm pmu1
	run "$VMPROF" stat --vm pmu1 -- sleep 0.2
	[ "$status" -eq 0 ]
	[[ "$output" == *"<not supported>      cycles"*"<not supported>      branch-misses"* ]]
	[[ "$output" == *"msec task-clock"*"CPUs utilized"*"seconds time elapsed"* ]]
	# A translated guest has no guest mode.
	run "$VMPROF" stat --vm pmu1 -e page-faults:G -e '{cycles,page-faults}' -x, -- true
	[ "$status" -eq 0 ]
	[ "$(grep -c '^pmu1,<not supported>,,' <<<"$output")" -eq 3 ]
}

@test "stat: each VM has a block, and its own events" {
	start_vm own1
	cd "$BATS_TEST_TMPDIR"
	start_vm own2
	"$VMPROF" stat -x, -o own.csv -e dummy --vm own1 -e page-faults --vm own2 -e cs,faults --vm own1 -e cpu-clock \
		-- sleep 0.2
	cat own.csv
	[ "$(sed '1,2d' own.csv | cut -d, -f 1,4 | tr '\n' ' ')" = \
		"own1,dummy own1,page-faults own1,cpu-clock own2,dummy own2,cs own2,faults " ]
	run "$VMPROF" stat --vm own1 --vm own2 -e task-clock -- true
	[ "$status" -eq 0 ]
	[ "$(grep -c 'Performance counter stats for VM' <<<"$output")" -eq 2 ]
	run "$VMPROF" stat --vm own1 -e "$(printf 'cs,%.0s' {1..32})cs" -- true
	[ "$status" -eq 2 ]
	[[ "$output" == *"more than 32 events"* ]]
}

@test "stat --per-vcpu: a line for each vCPU" {
	start_vm per1 -smp 2
	run "$VMPROF" stat --vm per1 --per-vcpu -e task-clock -- sleep 0.5
	[ "$status" -eq 0 ]
	[[ "$output" == *$'\nvCPU0 '*$'\nvCPU1 '* ]]
}

@test "stat -I: rounds with their time, the last one in part" {
	start_vm int1
	run "$VMPROF" stat --vm int1 -I 100 --interval-count 3 -e cpu-clock
	[ "$status" -eq 0 ]
	[ "$(grep -c 'cpu-clock' <<<"$output")" -eq 3 ]
	[[ "$output" == "#           time VM "*"counts unit events"* ]]
	run "$VMPROF" stat --vm int1 -I 60000 -e cpu-clock -- sleep 0.2
	[ "$status" -eq 0 ]
	[ "$(grep -c 'int1 .*cpu-clock' <<<"$output")" -eq 1 ]
	run "$VMPROF" stat --vm int1 --timeout 200 -I 60000 -e cpu-clock
	[ "$status" -eq 0 ]
	[ "$(grep -c 'int1 .*cpu-clock' <<<"$output")" -eq 1 ]
}

@test "stat -r: the command is repeated, means have their spread" {
	start_vm rep1
	run "$VMPROF" stat --vm rep1 -r 3 -e task-clock -- sh -c "echo x >>$BATS_TEST_TMPDIR/ran; sleep 0.1"
	[ "$status" -eq 0 ]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/ran")" -eq 3 ]
	[[ "$output" == *"for VM 'rep1' (3 runs):"*" +- "*"seconds time elapsed  ( +-"* ]]
}

@test "stat: the command's exit status, its absence, its own signal" {
	start_vm cmd1
	run "$VMPROF" stat --vm cmd1 -e dummy sh -c 'exit 3'
	[ "$status" -eq 3 ]
	run "$VMPROF" stat --vm cmd1 -e dummy -- sh -c 'kill -9 $$'
	[ "$status" -eq 137 ]
	run "$VMPROF" stat --vm cmd1 -e dummy -- no-such-command-here
	[ "$status" -eq 1 ]
	[[ "$output" == *"cannot run 'no-such-command-here'"* ]]
	[[ "$output" != *"Performance counter"* ]]
}

@test "stat: interrupted, it prints what it has and ends by the signal" {
	start_vm sig1
	stopped INT 130 "$VMPROF" stat --vm sig1 -e cpu-clock
	[ "$status" -eq 130 ]
	[[ "$output" == *"cpu-clock"*"seconds time elapsed"* ]]
}

@test "stat: a VM that ends while it is counted ends the count" {
	start_vm end1
	cd "$BATS_TEST_TMPDIR"
	"$VMPROF" stat --vm end1 -e cpu-clock -I 20 -o rounds 3>&- &
	local pid=$!
	until grep -qs cpu-clock rounds; do
		sleep 0.05
	done
	kill -KILL "$VM_PID"
	wait "$pid"
}

@test "stat -o: a file with the time, appended to, or none that can be written" {
	start_vm out1
	cd "$BATS_TEST_TMPDIR"
	"$VMPROF" stat --vm out1 -o counts -e dummy -- true
	[[ "$(head -n 1 counts)" == "# started on "* ]]
	"$VMPROF" stat --vm out1 -o counts --append -e dummy -- true
	[ "$(grep -c 'seconds time elapsed' counts)" -eq 2 ]
	run "$VMPROF" stat --vm out1 -o /nonexistent/x -- touch ran
	[ "$status" -eq 1 ]
	[[ "$output" == *"/nonexistent/x: cannot be written"* ]]
	[ ! -e ran ]
	run "$VMPROF" stat --vm out1 -o /dev/full -e dummy -- true
	[ "$status" -eq 1 ]
	[[ "$output" == *"cannot write to /dev/full: No space left"* ]]
	run "$VMPROF" stat --vm out1 -o /dev/full -I 20 -e dummy
	[ "$status" -eq 1 ]
	# counts are not for standard output
	run sh -c "'$VMPROF' stat --vm out1 -e dummy -- true >&-"
	[ "$status" -eq 0 ]
	run sh -c "'$VMPROF' stat --vm out1 -e dummy -- true 2>&-"
	[ "$status" -eq 1 ]
}

@test "stat: a VM's name and an event's are escaped" {
	start_vm $'e\e[31m,,"x'
	run "$VMPROF" stat --vm "$VM_UUID" -e dummy -- true
	[ "$status" -eq 0 ]
	[[ "$output" == *"for VM 'e\\x1b[31m,\"x':"* ]]
	run "$VMPROF" stat --vm "$VM_UUID" -x, -e dummy -- true
	[[ "$output" == 'e\x1b[31m\x2c\x22x,'* ]]
	run "$VMPROF" stat --vm "$VM_UUID" -j -e dummy -- true
	[ "$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["vm"])' "$output")" = 'e\x1b[31m,"x' ]
}

@test "stat: a user who may not look into the kernel counts user mode, as with perf" {
	[ "$EUID" -eq 0 ] || skip "root gives it up in this test"
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -eq 2 ] || skip "perf_event_paranoid is not 2"
	local nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
	command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64"
	install -d -m 755 /tmp/vmprof-nobody.$$
	install -m 755 "$VMPROF" /tmp/vmprof-nobody.$$/vmprof
	$nobody qemu-system-x86_64 -name guest=nob1,debug-threads=on -accel tcg,thread=multi -m 32M \
		-nodefaults -display none </dev/null >/dev/null 2>&1 3>&- &
	vm_pids+=($!)
	until grep -qs '^CPU 0/TCG' /proc/$!/task/*/comm; do
		kill -0 $!
		sleep 0.05
	done
	run $nobody /tmp/vmprof-nobody.$$/vmprof stat --vm nob1 -e task-clock,page-faults -- sleep 0.2
	rm -rf /tmp/vmprof-nobody.$$
	[ "$status" -eq 0 ]
	[[ "$output" == *"msec task-clock:u "*" page-faults:u "* ]]
}

@test "stat: a VM whose threads are not known is named once" {
	fake_qemu -name nothreads -accel kvm -m 1G
	run "$VMPROF" stat --vm nothreads -e task-clock -- true
	[ "$status" -eq 1 ]
	[[ "$output" == "vmprof stat: VM 'nothreads': which threads run its vCPUs is not known: start QEMU with -name ...,debug-threads=on"* ]]
}

@test "stat --exits: a VM without KVM has none" {
	start_vm ex1
	run "$VMPROF" stat --exits --vm ex1 -- true
	[ "$status" -eq 1 ]
	[[ "$output" == *"VM 'ex1': it runs under tcg: only KVM has exits"* ]]
}
