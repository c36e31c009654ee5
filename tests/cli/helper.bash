# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# For bats files: "load helper" gives $VMPROF, start_vm and a teardown that ends what it started.

VMPROF=${VMPROF:-$BATS_TEST_DIRNAME/../../${BUILD:-build}/vmprof}
vm_pids=()

# start_vm NAME [QEMU ARGUMENTS]: a VM with firmware and nothing to boot; sets VM_PID and VM_UUID
start_vm() {
	local name=$1
	shift
	command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64"
	VM_UUID=$(cat /proc/sys/kernel/random/uuid)
	qemu-system-x86_64 -name "guest=$name,debug-threads=on" -uuid "$VM_UUID" -accel tcg,thread=multi \
		-m 32M -nodefaults -display none "$@" </dev/null >"$BATS_TEST_TMPDIR/${name::50}.out" 2>&1 3>&- &
	VM_PID=$!
	vm_pids+=("$VM_PID")
	until grep -qs '^CPU 0/TCG' /proc/"$VM_PID"/task/*/comm; do
		if ! kill -0 "$VM_PID"; then
			cat "$BATS_TEST_TMPDIR/${name::50}.out"
			return 1
		fi
		sleep 0.05
	done
}

# stopped SIGNAL STATUS COMMAND...: run's, of a command that is sent SIGNAL after a second, or after more if it
# had not come to catch it by then, which is STATUS
stopped() {
	local seconds signal=$1 early=$2
	shift 2
	for seconds in 1 5 25; do
		run timeout --preserve-status -k 60 -s "$signal" "$seconds" "$@"
		[[ $status -eq $early && -z $output ]] || return 0
	done
}

stop_vms() {
	local pid
	for pid in ${vm_pids[@]+"${vm_pids[@]}"}; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	vm_pids=()
}

teardown() {
	stop_vms
}

# A process that stays, with QEMU's name and command line but nothing of QEMU in it.
fake_qemu() {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	cp "$(command -v bash)" "$BATS_TEST_TMPDIR/qemu-system-x86_64"
	"$BATS_TEST_TMPDIR/qemu-system-x86_64" -c 'read -r line' arg0 "$@" \
		<>"$BATS_TEST_TMPDIR/fifo" >/dev/null 2>&1 3>&- &
	VM_PID=$!
	vm_pids+=("$VM_PID")
	until grep -qs '^qemu-system-x86$' /proc/"$VM_PID"/comm; do sleep 0.1; done
}
