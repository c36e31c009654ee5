#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Xen, the long form: domains with different events, at once and alone; what a sample costs.
set -uo pipefail
# shellcheck source=tests/lab/lib/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/tap.sh"
# shellcheck source=tests/lab/lib/kvm.sh
. "$lab/lib/kvm.sh"

out=$tmp/out
if ((!LONG)); then
	skip xen-cost "it takes minutes under translation: LONG=1"
	exit 0
fi
if ! "$VMPROF" version --build-options | grep -q 'xen: \[ on'; then
	skip xen-cost "vmprof was built without libxen-dev"
	exit 0
fi
kvm_run xen xen-cost "$out" "$BUILD/tests/bench/xencost"

for record in mixed alone-web1 alone-db1 live-1 live-3 paused-1 paused-3; do
	expect "xen-cost: $record: recorded" "$(one_line "$out/$record")" says "$out/$record" '^status 0'
done

# profile NAME VM [EVENT]: of the record by that name, to NAME.VM
profile() {
	"$VMPROF" report -i "$out/$1.data" ${3:+--event "$3"} --folded 2>"$out/$1.err" | grep "^$2;" >"$out/$1.$2" ||
		not_ok "xen-cost: $1: $2 has samples" "$(one_line "$out/$1.err")"
}

# samples FILE [PATTERN]: how many there are, or of those whose leaf matches
samples() {
	awk -v pattern="${2:-.}" '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/.*;/, "") } $0 ~ pattern { sum += n } END { print sum + 0 }' "$1"
}

check() { # check NAME VM COMM PREFIX SHARE LEAST
	"$lab/lib/truth.py" "xen-cost: $1: $2" "share:$3:${4}hot_a:${4}hot_b:$5:$6" \
		"whole:$3:${4}first,${4}second,${4}third,${4}hot_a|${4}hot_b:${4}spin:99" <"$out/$1.$2"
}

# ---------- different events at once ----------

for record in mixed alone-web1; do
	profile $record web1 cpu-clock/period=1000000/u
done
for record in mixed alone-db1; do
	profile $record db1 cpu-clock/period=2000000/
done
for record in mixed alone-web1; do
	check $record web1 split '' 75 400
	expect "xen-cost: $record: user mode only" "$(one_line "$out/$record.web1")" \
		test "$(samples "$out/$record.web1" '_[[]k[]]$')" -eq 0
done
for record in mixed alone-db1; do
	check $record db1 split_db db_ 60 200
done
# It is a program's work, nearly all of it: there may well be no sample at all.
"$VMPROF" report -i "$out/mixed.data" --event cpu-clock/period=1000000/k --folded 2>/dev/null | grep '^pvh1;' >"$out/mixed.pvh1"
expect "xen-cost: kernel mode only" "$(one_line "$out/mixed.pvh1")" \
	test "$(samples "$out/mixed.pvh1")" -eq "$(samples "$out/mixed.pvh1" '_[[]k[]]$')"

# same VM COMM PREFIX: the shares at once and alone differ by no more than chance (99.9 %)
same() {
	awk -v vm="$1" -v a=";$2;.*;$3hot_a;" -v b=";$2;.*;$3hot_b;" '
		$0 ~ a { in_a[FILENAME] += $NF }
		$0 ~ a || $0 ~ b { n[FILENAME] += $NF }
		END {
			for (f in n) {
				share[++k] = in_a[f] / n[f]
				inverse += 1 / n[f]
				sum += n[f]
				all += in_a[f]
			}
			p = all / sum
			bound = 3.291 * sqrt(p * (1 - p) * inverse)
			d = share[1] - share[2]
			good = k == 2 && d <= bound && -d <= bound
			printf "%sok xen-cost: %s: at once as alone%s %.2f %% and %.2f %%, +- %.2f %%\n", good ? "" : "not ", vm,
				good ? "," : ":", 100 * share[1], 100 * share[2], 100 * bound
		}' "$out/mixed.$1" "$out/alone-$1.$1"
}
same web1 split ''
same db1 split_db db_

# Both have the same part of the CPU, and one of them half the other's period.
web=$(samples "$out/mixed.web1") db=$(samples "$out/mixed.db1")
expect "xen-cost: each domain has its own period ($web samples of 1 ms, $db of 2 ms)" "" \
	test "$((web * 10))" -ge "$((2 * db * 8))" -a "$((web * 8))" -le "$((2 * db * 10))"

# ---------- cost ----------

# marginal MODE: CPU time a sample, the start and the end of a record left out, in us
marginal() {
	local us n seconds i=0
	for seconds in 1 3; do
		us[i]=$(sed -n 's/^\([0-9]*\) us$/\1/p' "$out/$1-$seconds")
		folded "$out/$1-$seconds.data" >"$out/$1-$seconds.folded"
		n[i++]=$(samples "$out/$1-$seconds.folded")
	done
	echo "$(((us[1] - us[0]) / (n[1] - n[0]))) (${us[*]} us, ${n[*]} samples)"
}

context=$(sed -n 's/^xc_vcpu_getcontext \([0-9]*\) ns$/\1/p' "$out/context")
echo "# registers: $(one_line "$out/context")"
for mode in live paused; do
	cost=$(marginal $mode)
	echo "# $mode: us a sample: $cost"
	expect "xen-cost: $mode: a sample costs at most 1.3 of Xen's call" "$cost us, $context ns" \
		test "$((${cost%% *} * 10000))" -le "$((context * 13))"
done
echo "# xenctx, which tells an address and no caller: $(awk '
	/^rip:/ { n++ }
	/^[0-9]+ us$/ { us += $1 }
	END { printf "%d looks, %.0f us of CPU time each", n, us / (n ? n : 1) }' "$out/xenctx")"
for record in live-3 paused-3; do
	profile $record web1
	check $record web1 split '' 75 400
done
