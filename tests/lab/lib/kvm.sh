# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For tests of the labs of KVM, beside tap.sh.

# kvm_run LAB SCRIPT DIR [FILE...]: runs tests/lab/host/SCRIPT, which must succeed; what it printed is in
# DIR/stdout, what it left in DIR
kvm_run() {
	kvm_try "$@" || {
		not_ok "$1: $2" "status $?: $(tail -n 30 "$3/stderr")"
		exit 1
	}
}

# kvm_try: kvm_run that only returns a status. tests/run lets the whole test have 1500 s; LIMIT is a try's part.
kvm_try() {
	local name=$1 script=$2 dir=$3 limit=$((1300 - SECONDS))
	shift 3
	mkdir -p "$dir"
	((${LIMIT:-$limit} >= limit)) || limit=$LIMIT
	OUT=$dir TIMEOUT=$limit "$lab/run" "$name" "$lab/host/$script" "$@" >"$dir/stdout" 2>"$dir/stderr"
}

# kvm_run_sound LAB SCRIPT DIR WHY_NOT [FILE...]: kvm_run, and up to four times more, if there is time, while the
# run fails or the function WHY_NOT prints a reason why it says nothing of vmprof. QEMU's SVM now and then loses a
# guest: it stays at an address of its host, or ends before its work begins.
kvm_run_sound() {
	local name=$1 script=$2 dir=$3 why_not=$4 start began status reason LIMIT=${LIMIT:-600}
	shift 4
	for start in 1 2 3 4 5; do
		began=$SECONDS status=0
		rm -rf "$dir"
		kvm_try "$name" "$script" "$dir" "$@" || status=$?
		if ((status)); then
			reason="status $status: $(grep -a '^@failed' "$dir/stderr" | cut -c 1-120) $(tail -n 30 "$dir/stderr")"
		else
			reason=$("$why_not" "$dir")
			[[ -n $reason ]] || return 0
		fi
		((start < 5 && 2 * SECONDS - began < 1300)) || break
		printf '# start %s of %s: %s\n' "$start" "$name" "$reason"
		export FRESH=1
	done
	((status == 0)) || {
		not_ok "$name: $script" "$reason"
		exit 1
	}
}

# kvm_basics LAB DIR: what the script basics has found
kvm_basics() {
	local name=$1 out=$2/stdout vm pid samples
	for vm in web1 db1; do
		pid=$(sed -n "s/^pid $vm //p" "$out")
		expect "$name: $vm is listed, under KVM, with its vCPU" "$(one_line "$out")" \
			says "$out" "^$vm +[0-9a-f-]{36} +qemu/kvm +$pid +1 +160 MiB"
	done
	if command -v perf >/dev/null; then
		samples=$(perf script -i "$2/perf.data" -D 2>/dev/null | grep -c PERF_RECORD_SAMPLE)
		expect "$name: samples of web1's vCPU" "$samples" test "$samples" -ge 50
	else
		skip "$name: samples of web1's vCPU" "no perf"
	fi
}

# kvm_record LAB DIR: the record that the script basics has made by the perf backend
kvm_record() {
	local name=$1 out=$2/stdout vm
	for vm in web1 db1; do
		expect "$name: $vm is sampled by the perf backend" "$(grep '^record' "$out" | one_line /dev/stdin)" \
			says "$out" "^record .*$vm: [1-9][0-9]* samples"
	done
	! says "$out" '^record .* lost' || not_ok "$name: nothing is lost" "$(grep lost "$out" | one_line /dev/stdin)"
	"$VMPROF" report -i "$2/vmprof.data" --stdio >"$2/report" 2>&1
	expect "$name: the host has a share" "$(one_line "$2/report")" says "$2/report" '^# \[host\] +[0-9.]+%'
}

# kvm_processes LAB DIR: whose samples these are; db1's functions are called as web1's with x_ before
kvm_processes() {
	local name=$1 own
	folded "$2/vmprof.data" >"$2/folded"
	for own in 'web1 spin x_spin' 'db1 x_spin spin'; do
		# shellcheck disable=SC2086 # three words
		set -- "$1" "$2" $own
		grep "^$3;" "$2/folded" >"$2/$3"
		expect "$name: $3's samples are in its program" "$(one_line "$2/$3")" \
			grep -q ";$4 [0-9]*$" "$2/$3"
		expect "$name: $3's samples are in no other one's" "$(one_line "$2/$3")" \
			test "$(grep -c ";$5 [0-9]*$" "$2/$3")" -eq 0
	done
}

# kvm_monitor LAB DIR: the record by QEMU's monitor, and what it says when it cannot be had
kvm_monitor() {
	local name=$1 out=$2/stdout vm prefix hot
	folded "$2/qmp.data" >"$2/qmp.folded"
	for vm in web1 db1; do
		prefix=
		[[ $vm = web1 ]] || prefix=x_
		expect "$name: qmp: $vm is sampled" "$(grep '^qmp' "$out" | one_line /dev/stdin)" \
			says "$out" "^qmp .*$vm: [1-9][0-9]* samples"
		expect "$name: qmp: no sample of the other VM in $vm" "" \
			test "$(grep "^$vm;" "$2/qmp.folded" | grep -c ";$([[ $prefix ]] || echo x_)spin [0-9]*$")" -eq 0
		hot=$(grep "^$vm;" "$2/qmp.folded" | awk -v p="$prefix" '$0 ~ ";" p "hot_[ab];" p "spin [0-9]*$" { n += $NF } END { print n + 0 }')
		if ((hot < 50)); then # a slow host: its bound would say nothing
			skip "$name: qmp: shares of $vm" "$hot samples are too few"
		else
			kmod_split "$name: qmp: $vm" "$2/qmp.data" $vm "$prefix"
		fi
	done
	expect "$name: qmp: the rate that QEMU sustains is said" "$(grep '^qmp' "$out" | one_line /dev/stdin)" \
		says "$out" "^qmp .*QEMU's monitor takes [0-9.]+ ms to tell registers: it was asked up to [0-9]+ times a second"
	expect "$name: qmp: a monitor that has a client" "$(grep '^busy' "$out" | one_line /dev/stdin)" \
		says "$out" '^busy .*another program is connected to the VM.s QMP socket'
	expect "$name: qmp: a VM that is killed ends its record" "$(grep '^dead' "$out" | one_line /dev/stdin)" \
		says "$out" '^dead .*db1: the VM ended'
	expect "$name: qmp: which is a whole file" "$(grep '^dead' "$out" | one_line /dev/stdin)" says "$out" '^dead status 0'
}
