# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
# For tests of vmprof.ko in the labs of KVM, beside tap.sh and kvm.sh.

# build_module ARCH DIR: vmprof.ko for the labs' kernel and modtest, to DIR
build_module() {
	local headers compiler=gcc options=()
	headers=$("$top/scripts/kernel-headers" 6.1-cloud "$1") || return
	if [[ $1 != "$(dpkg --print-architecture)" ]]; then
		compiler=aarch64-linux-gnu-gcc
		options=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	fi
	make -s -C "$top" modules KDIR="$headers" BUILD="$2" "${options[@]}" >"$2/log" 2>&1 || {
		cat "$2/log" >&2
		return 1
	}
	cp "$2/modules/vmprof.ko" "$2/"
	"$compiler" -O2 -static -I"$top" -o "$2/modtest" "$lab/host/modtest.c" "$top/kernel/core/ring.c"
}

# build_direct ARCH DIR: the host's and the guest's module, and what goes with them to the script direct
build_direct() {
	local headers options=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	headers=$("$top/scripts/kernel-headers" 6.1-cloud "$1") || return
	mkdir -p "$2/regs" "$2/masked"
	cp "$lab"/host/regs/* "$2/regs/"
	cp "$lab"/host/masked/* "$2/masked/"
	{
		VMPROF_CACHE=$cache make -s -C "$top" modules guest-module KDIR="$headers" BUILD="$2" "${options[@]}" &&
			make -s -C "$headers" M="$2/regs" CONFIG_DEBUG_INFO_BTF_MODULES= "${options[@]}" modules &&
			make -s -C "$headers" M="$2/masked" CONFIG_DEBUG_INFO_BTF_MODULES= "${options[@]}" modules
	} >"$2/log" 2>&1 || {
		cat "$2/log" >&2
		return 1
	}
	cp "$2/modules/vmprof.ko" "$2/guest-module/guest/vmprof_guest.ko" "$2/regs/regs.ko" "$2/masked/masked.ko" "$2/"
	aarch64-linux-gnu-strip -g "$2"/*.ko
	aarch64-linux-gnu-gcc -O2 -static -I"$top" -o "$2/directtest" "$lab/host/directtest.c" \
		"$top"/kernel/core/{ring,log}.c
	aarch64-linux-gnu-gcc -O2 -static -o "$2/fixed" "$lab/guest/fixed.c"
	aarch64-linux-gnu-gcc -O2 -static -Dhot75=short75 -Dhot25=short25 -o "$2/short" "$lab/guest/fixed.c"
	: >"$2/own-guests"
}

# build_cost ARCH DIR: the host's module, one that does nothing, and what goes with them to the script cost
build_cost() {
	local headers options=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
	headers=$("$top/scripts/kernel-headers" 6.1-cloud "$1") || return
	mkdir -p "$2/null"
	cp "$lab"/host/null/* "$2/null/"
	{
		VMPROF_CACHE=$cache make -s -C "$top" modules KDIR="$headers" BUILD="$2" "${options[@]}" &&
			make -s -C "$headers" M="$2/null" CONFIG_DEBUG_INFO_BTF_MODULES= "${options[@]}" modules
	} >"$2/log" 2>&1 || {
		cat "$2/log" >&2
		return 1
	}
	cp "$2/modules/vmprof.ko" "$2/null/null.ko" "$2/"
	aarch64-linux-gnu-strip -g "$2"/*.ko
	aarch64-linux-gnu-gcc -O2 -static -I"$top" -o "$2/costtest" "$lab/host/costtest.c" "$top/kernel/core/ring.c"
	aarch64-linux-gnu-gcc -O2 -static -fno-optimize-sibling-calls -I"$top" -o "$2/l2-cost" "$lab/guest/l2-cost.c"
	: >"$2/own-guests"
}

# module_samples RUN WORD: the number behind WORD in what RUN says of its samples
module_samples() {
	sed -n "s/^$1: samples/samples/p" "$tmp/out/stdout" | grep -o "\b$2 [0-9]*" | cut -d ' ' -f 2
}

# module_count RUN: what its first event has counted
module_count() {
	sed -n "s/^$1: count 0 0 \([0-9]*\) .*/\1/p" "$tmp/out/stdout"
}

# module_callers RUN: the two callers that have most samples, in per mille of these, and all samples of the two
module_callers() {
	sed -n "s/^$1: caller [0-9a-f]* //p" "$tmp/out/stdout" | sort -rn | awk '
		NR <= 2 { n[NR] = $1 }
		END { sum = n[1] + n[2]; if (sum) printf "%d %d\n", 1000 * n[1] / sum, sum }'
}

# module_why_not DIR: a run in which a guest has called nothing, since QEMU had lost it
module_why_not() {
	local run share sum
	for run in alone both-web1 both-db1 killed after; do
		read -r share sum < <(module_callers $run) || :
		((${sum:-0} >= 50 && share < 1000)) || echo "$run: ${sum:-0} samples of two callers, ${share:-0} per mille of one"
	done
}

# module_lab LAB ARCH FUZZ: FUZZ seconds of random calls
module_lab() {
	local name=$1 run share sum whole user bound
	mkdir "$tmp/built"
	build_module "$2" "$tmp/built" || {
		not_ok "$name: module" "it is not built"
		exit 1
	}
	echo "${FUZZ_SECONDS:-$3}" >"$tmp/built/fuzz-seconds"
	kvm_run_sound "$name" module "$tmp/out" module_why_not "$tmp"/built/{vmprof.ko,modtest,fuzz-seconds}
	expect "$name: what must be refused is refused" "$(grep WRONG "$tmp/out/stdout")" \
		test "$(grep -c '^refuse: refused' "$tmp/out/stdout")" -ge 35 -a \
		"$(grep -c WRONG "$tmp/out/stdout")" -eq 0
	for run in alone both-web1 both-db1 killed after; do
		user=$(($(module_samples $run samples) - $(module_samples $run kernel)))
		whole=$(module_samples $run whole)
		read -r share sum < <(module_callers $run) || :
		# four standard deviations of a share of 3/4 and the callers of other places
		bound=$(awk -v n="${sum:-1}" 'BEGIN { printf "%d", 4 * sqrt(0.1875 / n) * 1000 + 10 }')
		expect "$name: $run: 75 % from hot_a" "${share:-none} per mille of ${sum:-0}" \
			test "${sum:-0}" -ge 50 -a $((share - 750)) -le "$bound" -a $((750 - share)) -le "$bound"
		expect "$name: $run: whole chains" "$whole of $user" test $((whole * 100)) -ge $((user * 98))
		expect "$name: $run: nothing lost or bad" "$(grep "^$run: samples" "$tmp/out/stdout")" \
			test "$(module_samples $run lost)" = 0 -a "$(module_samples $run bad)" = 0 -a \
			"$(module_samples $run elsewhere)" = 0
	done
	expect "$name: two VMs at once have counters of their own" "$(grep 'both-.*attached' "$tmp/out/stdout")" \
		test "$(grep -c '^both-.*attached.* sharing 0 slices 1 ' "$tmp/out/stdout")" -eq 2
	expect "$name: 200 starts and stops" "" says "$tmp/out/stdout" '^cycles: cycles 200 done'
	expect "$name: a VM has one owner" "" says "$tmp/out/stdout" '^busy: failed start: .*busy'
	expect "$name: the module is not removed while it is used" "" \
		test "$(grep '^removed' "$tmp/out/stdout")" = 'removed: at last'
	expect "$name: random calls" "$(grep '^fuzz' "$tmp/out/stdout")" \
		says "$tmp/out/stdout" "^fuzz: fuzzed [0-9]{3,} calls in ${FUZZ_SECONDS:-$3} s"
	expect "$name: a VM that is killed ends its profile" "" says "$tmp/out/stdout" '^dead: hangup'
	expect "$name: the kernel has nothing to complain of" "$(grep -A 20 -E 'WARNING|BUG|Oops|Call [Tt]race' "$tmp/out/dmesg" | head -n 20)" \
		test "$(grep -cE 'WARNING|BUG:|Oops|Call [Tt]race|leak' "$tmp/out/dmesg")" -eq 0
}
