#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Xen: domains are listed and sampled from dom0, three at once, each with its own share, whatever happens to them.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"

out=$tmp/out
if ! "$VMPROF" version --build-options | grep -q 'xen: \[ on'; then
	skip xen "vmprof was built without libxen-dev"
	exit 0
fi
kvm_run xen xen "$out"

# ---------- what is listed ----------

row() { # row NAME TYPE UUID-END VCPUS
	expect "xen: $1 is listed" "$(one_line "$out/list")" says "$out/list" \
		"^$1 +5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b$3 +xen/$2 +dom[0-9]+ +$4 +[0-9]+ MiB +6\.[^ ]+-amd64 +xen$"
}
row web1 pv 01 1
row db1 pv 02 2
row pvh1 pvh 03 1
expect "xen: no other VM is listed" "$(one_line "$out/list")" test "$(grep -c ' xen$' "$out/list")" -eq 3
expect "xen: details of a domain" "$(one_line "$out/details")" says "$out/details" 'hypervisor  Xen 4\.[0-9.]+, xen'
expect "xen: why there are no hardware events" "$(one_line "$out/details")" says "$out/details" \
	'Xen answers XENPMU_mode_get: Operation not supported; XENPMU_feature_get: Operation not supported; XENOPROF_init: 4 counters of x86-64/'
expect "xen: nothing is counted" "$(one_line "$out/stat")" says "$out/stat" \
	"vmprof stat: VM 'web1': nothing can be counted of a domain of Xen"

# ---------- shares ----------

# profile NAME: records of the three domains, whose names are in other ones
profile() {
	local vm
	expect "xen: $1: recorded" "$(one_line "$out/$1")" says "$out/$1" '^status 0'
	"$VMPROF" report -i "$out/$1.data" --folded >"$out/$1.folded" 2>"$out/$1.err" ||
		not_ok "xen: $1: read" "$(one_line "$out/$1.err")"
	for vm in web1 db1 pvh1; do
		grep "^$vm;" "$out/$1.folded" >"$out/$1.$vm"
	done
}

# check NAME VM COMM PREFIX SHARE LEAST CHECK...: the share, and whose the functions are
check() {
	local name=$1 vm=$2 comm=$3 p=$4 share=$5 least=$6 other
	shift 6
	"$lab/lib/truth.py" "xen: $name: $vm" "share:$comm:${p}hot_a:${p}hot_b:$share:$least" "only:$comm:${p}hot_" "$@" \
		<"$out/$name.$vm"
	other=$(grep -c -E ";(db_|pvh_)?spin " "$out/$name.$vm")
	expect "xen: $name: $vm: nothing of another domain" "$(grep -v -E ";${p}spin " "$out/$name.$vm" | head -n 3)" \
		test "$other" -gt 0 -a "$other" -eq "$(grep -c ";${p}spin " "$out/$name.$vm")"
}

chain() { # chain PREFIX
	echo "$1first,$1second,$1third,$1hot_a|$1hot_b:$1spin:99"
}

# three NAME: the record of all three domains
three() {
	profile "$1"
	check "$1" web1 split '' 75 200 "whole:split:$(chain '')"
	check "$1" db1 split_db db_ 60 200 "whole:split_db:$(chain db_)"
	check "$1" pvh1 split_pvh pvh_ 90 200 "whole:split_pvh:$(chain pvh_)"
}

# Its two processes are tied to a vCPU each.
"$VMPROF" script -i "$out/paused.data" --vm db1 -F pid,vcpu --comms split_db 2>&1 |
	sort | uniq -c >"$out/vcpus"
# shellcheck disable=SC2016 # they are awk's
expect "xen: what runs on each of db1's vCPUs" "$(one_line "$out/vcpus")" \
	awk '{ vcpus += !v[$2]++; pids += !p[$3]++; n += $1 >= 100 } END { exit !(NR == 2 && vcpus == 2 && pids == 2 && n == 2) }' "$out/vcpus"

three paused
expect "xen: paused domains go on" "$(one_line "$out/xl")" test "$(grep -c -E '^(web1|db1|pvh1) .*--p---' "$out/xl")" -eq 0
if command -v perf >/dev/null; then
	expect "xen: perf reads it" "$(perf report -i "$out/paused.data" --stdio 2>&1 | head -n 5 | one_line /dev/stdin)" \
		test "$(perf script -i "$out/paused.data" -F comm 2>/dev/null | grep -c split_pvh)" -ge 200
else
	skip "xen: perf reads it" "no perf"
fi

# ---------- at their own request ----------

expect "xen: domains are told what becomes of their requests" "$(cat "$out/asked" "$out/agent")" \
	test "$(grep -c -x -E "ready|running|refused: event 'cycles' cannot be sampled.*" "$out/asked")" -eq 5
expect "xen: the answer is dom0's to write and the domain's to read" "$(cat "$out/asked")" \
	test "$(grep -c -E '^vmprof .*\(n0,r[0-9]+\)|^ state = "running" .*\(n0,r[0-9]+\)' "$out/asked")" -eq 2
expect "xen: the agent ends and takes the answers with it" "$(cat "$out/asked" "$out/agent")" \
	test "$(grep -c -x -E 'agent ended with 0|no state any more' "$out/asked")" -eq 2
# Shares are checked of the other records: here, that each file has its own domain.
for vm in web1 db1; do
	case $vm in
	web1) comm=split p='' ;;
	db1) comm=split_db p=db_ ;;
	esac
	"$lab/lib/truth.py" "xen: asked: $vm" "only:$comm:${p}hot_" <"$out/asked.$vm"
	expect "xen: asked: $vm: samples, and nothing of another domain" "$(grep -v -E "^$vm;.*;${p}spin " "$out/asked.$vm" | head -n 3)" \
		test "$(grep -c -E "^$vm;.*;${p}spin " "$out/asked.$vm")" -gt 0 -a "$(grep -c -v "^$vm;" "$out/asked.$vm")" -eq 0
done
expect "xen: each has the events that it has asked for" "$(one_line "$out/asked-logs")" \
	test "$(grep -c -E '(web1: .*, cpu-clock/period=2000000/u every 2000000|db1: .*, cpu-clock/period=4000000/ every 4000000),' \
		"$out/asked-logs")" -eq 2

# ---------- in the midst of a record ----------

profile changes
check changes web1 split '' 75 200 "whole:split:$(chain '')"
check changes pvh1 split_pvh pvh_ 90 80 "whole:split_pvh:$(chain pvh_)"
expect "xen: a domain that is destroyed: said" "$(one_line "$out/changes")" \
	says "$out/changes" 'vmprof record: db1: the VM ended \(domain [0-9]+ is gone\)'
expect "xen: a domain that is destroyed: what was sampled is there" "" says "$out/changes.db1" ';db_spin '
expect "xen: a domain that is destroyed is gone" "$(one_line "$out/xl-later")" \
	test "$(grep -c -E '^(web1|other) ' "$out/xl-later")" -eq 2 -a "$(grep -c . "$out/xl-later")" -eq 4
expect "xen: a domain that is stopped and renamed keeps its name" "$(one_line "$out/changes")" \
	says "$out/changes" '^\[ vmprof record: pvh1: [1-9][0-9]* samples'
expect "xen: a domain that gives memory back has" "$(one_line "$out/xl-later")" \
	says "$out/xl-later" '^web1 +[0-9]+ +120 '
expect "xen: the host, which is dom0: vmprof itself, into its kernel" "$(one_line "$out/host.err")" \
	says "$out/host.folded" '^host;vmprof;.*;do_syscall_64_[[]k[]];'
expect "xen: the host: calls of Xen, by a module of its kernel" "$(one_line "$out/host.err")" \
	says "$out/host.folded" '^host;.*;privcmd_ioctl_[[]k[]];'
expect "xen: the host: a program that began later" "$(one_line "$out/host.err")" \
	says "$out/host.folded" '^host;xl;.*_[[]k[]]'
expect "xen: the host: nothing of a domain, and nobody who waits" "$(grep -E 'spin |swapper' "$out/host.folded" | head -n 3)" \
	test "$(grep -c -E ';(db_|pvh_)?spin |^host;swapper' "$out/host.folded")" -eq 0
expect "xen: the host: no sample is lost" "$(one_line "$out/changes")" \
	says "$out/changes" '^\[ vmprof record: the host: [1-9][0-9]+ samples, 0 lost'
expect "xen: a XenStore that does not answer" "$(one_line "$out/no-names")" \
	says "$out/no-names" 'XenStore has not answered for 5 s, so that the names of domains are not known'
expect "xen: domains are listed without it" "$(one_line "$out/no-names")" \
	test "$(grep -c '^domain-[0-9]* .* xen$' "$out/no-names")" -eq 2
expect "xen: a name that is not known then" "$(one_line "$out/no-name")" \
	says "$out/no-name" "no VM 'other': XenStore has not answered"
expect "xen: a domain is saved under its record" "$(one_line "$out/save")" says "$out/save" '^status 0'
expect "xen: a domain that is saved: said" "$(one_line "$out/saved")" \
	says "$out/saved" '^vmprof record: web1: the VM ended \(domain [0-9]+ is gone\)'
expect "xen: a domain that is saved: what was sampled is there" "$(one_line "$out/saved")" \
	says "$out/saved" '^\[ vmprof record: web1: [1-9][0-9]+ samples'
expect "xen: a user is told that domains are root's" "$(one_line "$out/user")" \
	test "$(grep -c "only root in dom0\|Only root in dom0" "$out/user")" -eq 2
expect "xen: without privcmd there is a way out" "$(one_line "$out/no-device")" \
	says "$out/no-device" 'modprobe xen-privcmd'
expect "xen: without privcmd the list says so" "$(one_line "$out/no-device-list")" \
	says "$out/no-device-list" 'modprobe xen-privcmd'
expect "xen: without libxenctrl of this version the list says so" "$(one_line "$out/no-library")" \
	says "$out/no-library" 'Xen.s library libxenctrl\.so\.4\.[0-9]+ cannot be loaded: this vmprof was built for Xen 4\.[0-9]+'
