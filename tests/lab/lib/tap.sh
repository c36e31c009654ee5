# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154
# A lab test sources this, boots VMs with "vm up", and calls ok, not_ok or skip for each thing tested.
# At its end no VM of it runs, whatever happened.

# shellcheck source=tests/lab/lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
lab=$top/tests/lab
: "${VMPROF:=$BUILD/vmprof}" "${LONG:=0}"
# Its VMs and files are its own: tests may run side by side.
run=$run/$(basename "$0" .sh)
export VMPROF_LAB=${VMPROF_LAB:-$run}
t=vm$$ # the name of its VM, which others on this host must not have
tmp=$(mktemp -d "${TMPDIR:-/tmp}/vmprof-lab.XXXXXX")

vm() {
	"$lab/vm" "$@"
}

lab_end() {
	local job
	for job in $(jobs -p); do
		kill "$job" 2>/dev/null
	done
	vm down --all
	# A file system that a test mounted.
	umount "$tmp/full" 2>/dev/null
	rm -rf "$tmp"
}
trap lab_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[[ -x $VMPROF ]] || die "no $VMPROF: run make"
if ! command -v qemu-system-x86_64 >/dev/null; then
	echo "skip $(basename "$0" .sh): no qemu-system-x86_64"
	exit 0
fi

ok() {
	echo "ok $1"
}

not_ok() {
	echo "not ok $1: $2"
}

skip() {
	echo "skip $1: $2"
}

# expect NAME WHY COMMAND...: ok if COMMAND succeeds
expect() {
	local name=$1 why=$2
	shift 2
	if "$@"; then ok "$name"; else not_ok "$name" "$why"; fi
}

# says FILE TEXT: an extended regular expression in a file
says() {
	grep -q -E -e "$2" "$1"
}

# one_line FILE: what a message says, to be shown
one_line() {
	tr '\n' ' ' <"$1" | cut -c 1-400
}

# take FILE ARGUMENTS...: a record that must succeed; its messages in FILE.err
take() {
	local file=$1
	shift
	"$VMPROF" record -g -o "$file" "$@" 2>"$file.err" </dev/null ||
		die "record failed: $(one_line "$file.err")"
}

# folded FILE: the profile as one line a chain
folded() {
	"$VMPROF" report -i "$1" --folded </dev/null || die "report of $1 failed"
}

record_options=() # more of them for truth()

# truth NAME HZ SECONDS CHECK...: records $t and holds it against truth.py's checks; for longer if they
# want more samples. One in a hundred right splits lies outside the 99 % bound: another record decides.
truth() {
	local name=$1 hz=$2 seconds=$3 try
	shift 3
	for try in 1 2 3; do
		take "$tmp/data" -v -F "$hz" --vm "$t" --duration "$seconds" ${record_options[@]+"${record_options[@]}"}
		folded "$tmp/data" | "$lab/lib/truth.py" "$name" "$@" >"$tmp/result"
		if ((try == 3)) || ! says "$tmp/result" '^not ok .*, (split|share):'; then
			break
		fi
		echo "# again: $(grep -E '^not ok .*, (split|share):' "$tmp/result" | one_line /dev/stdin)"
		# Too few samples: the host had no time for the VM.
		! says "$tmp/result" 'samples of .*, [0-9]* wanted$' || seconds=$((seconds * 3))
	done
	cat "$tmp/result"
	(($(grep -c . "$tmp/result") == $#)) || not_ok "$name" "not all of its $# checks were made"
	expect "$name, closing lines" "$(one_line "$tmp/data.err")" \
		says "$tmp/data.err" 'Captured and wrote [0-9.]+ MB .*samples'
}
