#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof list: which VMs it finds, what it says of them, how they are named, and what it says of what
# it cannot see. The VMs have firmware only; what a guest runs is tested in tests/lab.

# shellcheck disable=SC2030,SC2031 # a test is a subshell, and so are its variables
load helper

# row NAME: that VM's line of the table
row() {
	"$VMPROF" list 2>/dev/null | grep "^$1 "
}

# json NAME PYTHON: prints an expression of VM v, by its UUID
json() {
	"$VMPROF" list --json --vm "$1" | python3 -c "import json, sys; v = json.load(sys.stdin)[0]; print(($2))"
}

as_nobody() {
	[ "$EUID" -eq 0 ] || skip "root gives it up in this test"
	install -d -m 755 /tmp/vmprof-nobody.$$
	install -m 755 "$VMPROF" /tmp/vmprof-nobody.$$/vmprof
	run setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
		/tmp/vmprof-nobody.$$/vmprof "$@"
	rm -rf /tmp/vmprof-nobody.$$
}

@test "list: --help, wrong options and arguments" {
	run "$VMPROF" list --help
	[ "$status" -eq 0 ]
	[[ "$output" == *"--json"* ]]
	run "$VMPROF" list --frob
	[ "$status" -eq 2 ]
	[[ "$output" == *"vmprof-list(1)"* ]]
	run "$VMPROF" list web1
	[ "$status" -eq 2 ]
}

@test "list: a VM's line has its name, UUID, pid, vCPUs, memory and backend" {
	start_vm lst1 -smp 2
	run row lst1
	[ "$status" -eq 0 ]
	# shellcheck disable=SC2206 # words
	local f=($output)
	[ "${f[1]}" = "$VM_UUID" ]
	[ "${f[2]}" = qemu/tcg ]
	[ "${f[3]}" = "$VM_PID" ]
	[ "${f[4]}" = 2 ]
	[ "${f[5]} ${f[6]}" = "32 MiB" ]
	[ "${f[7]}" = - ]
	[ "${f[8]}" = tcg ]
	[[ "$output" != *" " ]]
}

@test "list -v: threads, machine, memory, events, and why the guest is not known" {
	start_vm lst2 -smp 2 -M q35 -qmp "unix:$BATS_TEST_TMPDIR/q,,1,server=on,wait=off"
	run "$VMPROF" list -v --vm lst2
	[ "$status" -eq 0 ]
	local t
	for t in /proc/"$VM_PID"/task/*; do
		case $(cat "$t/comm") in
		"CPU 0/TCG") [[ "$output" == *"0: thread ${t##*/}"* ]] ;;
		"CPU 1/TCG") [[ "$output" == *"1: thread ${t##*/}"* ]] ;;
		esac
	done
	[[ "$output" == *"machine     q35, x86_64"* ]]
	[[ "$output" == *"QMP         $BATS_TEST_TMPDIR/q,1"* ]]
	[[ "$output" == *"guest       unknown: "* ]]
	[[ "$output" == *"tcg: cpu-clock, task-clock; "* ]]
	[[ "$output" == *"QEMU "[0-9]*", tcg"* ]]
}

# start_raw PROGRAM ARGUMENTS...: a VM that is not as start_vm starts them; until it can be listed
start_raw() {
	command -v "$1" >/dev/null || skip "no $1"
	"$@" -m 32 -nodefaults -display none </dev/null >/dev/null 2>&1 3>&- &
	VM_PID=$!
	vm_pids+=("$VM_PID")
	local threads=()
	until ((${#threads[@]} >= 3)); do # QEMU's own two, and a vCPU's
		kill -0 "$VM_PID"
		sleep 0.1
		threads=(/proc/"$VM_PID"/task/*)
	done
}

@test "list: threads are found without debug-threads, and for one thread of all vCPUs" {
	start_raw qemu-system-x86_64 -accel tcg,thread=multi -smp 3
	until [ "$(json "$VM_PID" 'len(set(c["tid"] for c in v["vcpus"]) - {None})')" = 3 ]; do
		sleep 0.1
	done
	[ "$(json "$VM_PID" '[c["index"] for c in v["vcpus"]]')" = "[0, 1, 2]" ]
	start_raw qemu-system-x86_64 -accel tcg,thread=single -smp 4
	until [ "$(json "$VM_PID" 'len(set(c["tid"] for c in v["vcpus"]) - {None})')" = 1 ]; do
		sleep 0.1
	done
	[ "$(json "$VM_PID" 'v["single_thread"], len(v["vcpus"])')" = "(True, 4)" ]
}

@test "list --json: everything, as JSON" {
	start_vm lst4 -object memory-backend-memfd,id=m,size=32M -machine q35,memory-backend=m -S
	[ "$(json lst4 'v["name"], v["uuid"], v["pid"], v["memory"], v["memory_by"]')" \
		= "('lst4', '$VM_UUID', $VM_PID, 33554432, 'memfd')" ]
	[ "$(json lst4 'v["guest"]["known"], bool(v["guest"]["why_not"])')" = "(False, True)" ]
	[ "$(json lst4 'v["backends"][0]["events"]')" = "['cpu-clock', 'task-clock']" ]
	[ "$(json lst4 'v["backends"][0]["usable"], v["machine"], v["version"][0].isdigit()')" \
		= "(True, 'q35', True)" ]
}

@test "list: two VMs of one name are both shown, and --vm asks for pid or UUID" {
	start_vm twin
	local first=$VM_PID first_uuid=$VM_UUID
	start_vm twin
	[ "$(row twin | wc -l)" -eq 2 ]
	run "$VMPROF" list --vm twin
	[ "$status" -eq 1 ]
	[[ "$output" == *"2 VMs match 'twin'"*"pid $first (UUID $first_uuid)"*"UUID $VM_UUID"* ]]
	[ "$(json "$first_uuid" 'v["pid"]')" = "$first" ]
	[ "$(json "${VM_UUID^^}" 'v["pid"]')" = "$VM_PID" ]
	[ "$(json "$VM_PID" 'v["uuid"]')" = "$VM_UUID" ]
}

@test "list: an exact name goes before a pid" {
	start_vm lst5
	local pid=$VM_PID
	start_vm "$pid"
	[ "$(json "$pid" 'v["pid"]')" = "$VM_PID" ]
}

@test "list: an unknown VM is an error that names those there are" {
	start_vm lst6
	run "$VMPROF" list --vm $'no\033such'
	[ "$status" -eq 1 ]
	[[ "$output" == *'no VM '"'"'no\x1bsuch'"'"*"lst6"* ]]
}

@test "list: a name is escaped, and a comma in it is no end" {
	start_vm $'es\033[31m,,cape'
	run "$VMPROF" list
	[ "$status" -eq 0 ]
	[[ "$output" == *'es\x1b[31m,cape'* ]]
	[[ "$output" != *$'\033'* ]]
	[ "$(json "$VM_PID" 'v["name"]')" = 'es\x1b[31m,cape' ]
}

@test "list: QEMU under another name is found, what only mentions QEMU is not" {
	command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64"
	cp "$(command -v qemu-system-x86_64)" "$BATS_TEST_TMPDIR/emulator"
	local dir data=() # it looks for its firmware beside itself
	for dir in $(qemu-system-x86_64 -L help); do data+=(-L "$dir"); done
	local modules=(/usr/lib/*/qemu/accel-tcg-x86_64.so)
	QEMU_MODULE_DIR=${modules[0]%/*} start_raw "$BATS_TEST_TMPDIR/emulator" -name renamed -accel tcg -S "${data[@]}"
	[ "$(json renamed 'v["pid"], v["arch"]')" = "($VM_PID, 'x86_64')" ]
	bash -c 'exec -a qemu-system-x86_64 sleep 60' 3>&- &
	local pid=$!
	vm_pids+=("$pid")
	until grep -qs qemu /proc/"$pid"/cmdline; do sleep 0.1; done
	run "$VMPROF" list --vm "$pid"
	[ "$status" -eq 1 ]
}

@test "list: a VM without a name is called by its pid" {
	start_raw qemu-system-x86_64 -accel tcg -S
	[ "$(json "qemu-$VM_PID" 'v["named"], v["uuid"]')" = "(False, None)" ]
}

@test "list: another architecture is shown, and why it cannot be profiled" {
	start_raw qemu-system-i386 -name lst8 -accel tcg -S
	[[ "$(row lst8)" == *"none (why: list -v)" ]]
	run "$VMPROF" list -v --vm lst8
	[[ "$output" == *"lst8 is a i386 guest"* ]]
}

@test "list: under KVM the tcg backend says that it cannot, and why" {
	fake_qemu -name fakekvm -accel kvm -m 1G
	run row fakekvm
	[[ "$output" == *"qemu/kvm"*"1 GiB"*"none (why: list -v)" ]]
	run "$VMPROF" list -v --vm fakekvm
	[[ "$output" == *"tcg: cannot: fakekvm runs under kvm"* ]]
}

@test "list: a process that is no QEMU after all is not guessed at" {
	fake_qemu -name fake -accel tcg -m 1G
	run "$VMPROF" list -v --vm fake
	[ "$status" -eq 0 ]
	[[ "$output" == *"guest       unknown: fake (pid $VM_PID) has no mapping that could be its 1024 MiB of RAM"* ]]
}

@test "list: QEMU without a machine is no VM" {
	fake_qemu -S -machine none,accel=kvm:tcg -nodefaults
	run "$VMPROF" list --vm "$VM_PID"
	[ "$status" -eq 1 ]
}

@test "list: without permission the VM is shown, and which capability is missing" {
	start_vm lst9
	as_nobody list
	[ "$status" -eq 0 ]
	[[ "$output" == *"lst9 "*"none (why: list -v)"* ]]
	as_nobody list -v --vm lst9
	[[ "$output" == *"CAP_SYS_PTRACE"* ]]
}

@test "list: no VM at all is no error" {
	unshare --pid --fork --mount-proc true 2>/dev/null || skip "no pid namespace of its own can be made here"
	run unshare --pid --fork --mount-proc "$VMPROF" list
	[ "$status" -eq 0 ]
	[[ "$output" == *"no VMs found"* ]]
	run unshare --pid --fork --mount-proc "$VMPROF" list --json
	[[ "$output" == "["*"]"* ]]
}
