#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# vmprof script beside perf script, byte by byte: files that perf records here and now, the corpus of
# other versions, the made-up recording of two VMs (tests/unit/perfdata_scenario.h). perf runs with
# --no-inline: what is inlined is in srcline.bats.
# shellcheck disable=SC2154,SC2016,SC2086 # run sets stderr; sh -c has its own $i; options

load helper
load npm
bats_require_minimum_version 1.5.0

setup_file() {
	export DATA=$BATS_FILE_TMPDIR
	command -v perf >/dev/null || return 0
	record flat -e cpu-clock --sample-cpu || rm -f "$DATA/flat"
	record chains -e cpu-clock -g || rm -f "$DATA/chains"
	record two -e cpu-clock,page-faults -g || rm -f "$DATA/two"
}

record() { # record FILE PERF-OPTION...: something that runs, starts programs and faults
	local file=$DATA/$1
	[[ $1 != - ]] || file=-
	shift
	perf record -q -F 2000 -o "$file" "$@" -- sh -c \
		'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; ls -R /usr/share/doc | sort | gzip' \
		>"$DATA/piped" 2>/dev/null
}

setup() {
	dir=$BATS_TEST_TMPDIR
	UNIT=${BUILD:-build}/tests/unit
	CORPUS=${CORPUS:-$BATS_TEST_DIRNAME/../../../shared/corpus}
}

recorded() {
	[ -e "$DATA/$1" ] || skip "perf is not installed, or may not record here"
}

# perf leaves PLT slots of indirect functions without a name, some without a symbol, and gives some that of
# the symbol before them: what it does not know at an address that is a slot's to us is none to either.
plain() {
	sed -E -e 's/ [^ ]*@plt/ @plt/g' -e 's/( [0-9a-f]+) _init(\+0x[0-9a-f]+)?/\1 [unknown]/g'
}

plain_ours() {
	plain <"$dir/perf" | sed -nE 's/.* ([0-9a-f]+) \[unknown\].*/\1/p' | sort -u >"$dir/unknown"
	plain | awk -v file="$dir/unknown" '
		BEGIN { while ((getline address < file) > 0) unknown[address] = 1 }
		/@plt/ {
			for (i = 1; i < NF; i++)
				if ($i in unknown && $(i + 1) ~ /^@plt/)
					sub($i " @plt(\\+0x[0-9a-f]+)?", $i " [unknown]")
		}
		{ print }'
}

# same_as_perf FILE OPTION...: in $dir/perf and $dir/ours. perf forgets the address of a sample whose
# chain the kernel has left empty; here it has a line of its own: such samples are compared by their
# first line.
same_as_perf() {
	local file=$1
	shift
	perf script --no-inline -i "$file" "$@" >"$dir/perf" 2>/dev/null
	"$VMPROF" script -i "$file" "$@" >"$dir/ours"
	compare
}

compare() {
	cmp -s "$dir/perf" "$dir/ours" && return
	awk '/^[^\t]/ { head = $0 } /^$/ && last != "" && last == head { print head } { last = $0 }' \
		"$dir/perf" >"$dir/empty"
	diff <(plain <"$dir/perf") <(plain_ours <"$dir/ours" | awk -v file="$dir/empty" '
		BEGIN { while ((getline head < file) > 0) empty[head] = 1 }
		/^[^\t]/ { drop = $0 in empty }
		!(drop && /^\t/)')
}

# ------------------------------------------------------------------ what perf records now

@test "script: the lines of perf, with call chains and without" {
	local file
	recorded chains
	for file in flat chains two; do
		echo "$file"
		same_as_perf "$DATA/$file"
		[ "$(wc -l <"$dir/ours")" -gt 50 ]
		"$VMPROF" script -i "$DATA/$file" --no-inline | cmp - "$dir/ours"
	done
	grep -q ' page-faults: ' "$dir/ours"
	grep -qP '^\t +[0-9a-f]+ \S+\+0x[0-9a-f]+ \(/' "$dir/ours"
	grep -qP '^\tffffffff[0-9a-f]{8} \S+\+0x[0-9a-f]+ \(\[kernel.kallsyms\]\)$' "$dir/ours"
}

@test "script: fields" {
	local fields
	recorded two
	for fields in comm,tid,pid,time,cpu,event,period,ip,sym,symoff,dso comm,time,ip,sym +pid,-comm \
		time,event time,ip,dso sw:comm,time hw:comm -ip,-period -sym,-symoff +machine_pid,+vcpu; do
		echo "$fields"
		same_as_perf "$DATA/flat" -F "$fields"
		[[ $fields == *cpu* ]] || same_as_perf "$DATA/two" -F "$fields"
	done
	same_as_perf "$DATA/two" -F comm,time -F +ip --ns
}

@test "script: options that choose samples" {
	local some
	recorded two
	same_as_perf "$DATA/two" -G
	same_as_perf "$DATA/two" --max-stack 3
	same_as_perf "$DATA/two" --ns
	same_as_perf "$DATA/two" --comms ls,gzip
	[ -s "$dir/ours" ]
	same_as_perf "$DATA/two" --dsos libc.so.6
	[ -s "$dir/ours" ]
	same_as_perf "$DATA/flat" -C 0
	some=$("$VMPROF" script -i "$DATA/two" -F tid,time -G | sed -n '20s/:.*//p')
	set -- $some
	same_as_perf "$DATA/two" --tid "$1"
	[ -s "$dir/ours" ]
	same_as_perf "$DATA/two" --pid "$1"
	same_as_perf "$DATA/two" --time "$2,"
	same_as_perf "$DATA/two" --time ",$2"
	[ -s "$dir/ours" ]
	for some in 10%/2 10%/2,10%/5 0%-10%,30%-40% 50%; do
		same_as_perf "$DATA/two" --time "$some"
		[ -s "$dir/ours" ]
	done
	same_as_perf "$DATA/two" --time "$2,$2 9999999,"
}

@test "script: processes and mappings between the samples, and the header" {
	recorded chains
	# of who ran before the recording began, too: nobody has written that
	same_as_perf "$DATA/chains" --show-task-events --show-mmap-events
	grep -q 'PERF_RECORD_COMM exec: gzip:' "$dir/ours"
	grep -q 'PERF_RECORD_MMAP2 .* r-xp /usr/' "$dir/ours"
	record other -e cpu-clock --switch-events
	same_as_perf "$DATA/other" --show-switch-events --show-lost-events
	grep -q 'PERF_RECORD_SWITCH OUT' "$dir/ours"
	if record other -e cpu-clock --switch-events -a; then
		# the samples are of whatever else runs here
		cmp <(perf script -i "$DATA/other" --show-switch-events -F +misc 2>/dev/null | grep PERF_RECORD) \
			<("$VMPROF" script -i "$DATA/other" --show-switch-events -F +misc | tee "$dir/ours" | grep PERF_RECORD)
		grep -q ' PERF_RECORD_SWITCH_CPU_WIDE IN   *prev pid/tid: ' "$dir/ours"
	fi
	same_as_perf "$DATA/chains" --header
	same_as_perf "$DATA/chains" --header-only
	[ "$(grep -c '^#' "$dir/ours")" -eq "$(wc -l <"$dir/ours")" ]
}

@test "script: other ways to record" {
	local how
	recorded flat
	for how in "-e cpu-clock -z -g" "-e cpu-clock -d -W" "-e cpu-clock --clockid monotonic_raw" \
		"-e page-faults -c 1" "-e cpu-clock,context-switches,page-faults"; do
		echo "perf record $how"
		record other $how || continue
		same_as_perf "$DATA/other"
		[ -s "$dir/ours" ]
	done
}

@test "script: what is in tracepoints" {
	local how
	recorded chains
	"$VMPROF" version --build-options | grep -q 'libtraceevent: \[ on' || skip "built without libtraceevent"
	record points -e sched:sched_process_exec || skip "perf may not record tracepoints here"
	for how in "-e sched:sched_switch,sched:sched_process_*,cpu-clock" "-e sched:* -g" \
		"-e timer:*,kmem:kmalloc,kmem:mm_page_alloc,irq:* -z" "-e syscalls:sys_enter_openat,raw_syscalls:*"; do
		echo "perf record $how"
		# shellcheck disable=SC2086
		record points $how || continue
		same_as_perf "$DATA/points"
		[ "$(wc -l <"$dir/ours")" -gt 20 ]
	done
	grep -qE ' syscalls:sys_enter_openat: dfd: 0x[0-9a-f]+, filename: 0x' "$dir/ours"
	same_as_perf "$DATA/points" -F comm,time,trace
	same_as_perf "$DATA/points" -F trace:event,trace
	record points -e sched:sched_switch,cpu-clock
	same_as_perf "$DATA/points" -F +trace
	same_as_perf "$DATA/points" -F -trace
	record - -e sched:sched_switch
	perf script -i - <"$DATA/piped" >"$dir/perf" 2>/dev/null
	"$VMPROF" script -i - <"$DATA/piped" >"$dir/ours"
	grep -q ' prev_comm=' "$dir/ours"
	compare
}

@test "script: what only samples of certain events have" {
	local arch fields
	recorded chains
	record other -e page-faults -d || skip "perf does not record page faults here"
	for fields in +addr ip,sym,addr,dso +addr,+flags,+misc comm,addr addr,sym,symoff,dso; do
		echo "$fields"
		same_as_perf "$DATA/other" -F "$fields"
		[ -s "$dir/ours" ]
	done
	if record other -e cpu-clock -d -W --phys-data --data-page-size --code-page-size --user-regs=ip,sp -I; then
		same_as_perf "$DATA/other" -F +phys_addr,+data_page_size,+code_page_size,+weight
		same_as_perf "$DATA/other" -F +iregs,+uregs
		grep -qE ' ABI:2 +AX:0x[0-9a-f]+ ' "$dir/ours"
	fi
	command -v python3 >/dev/null || skip "python3 is not installed"
	for arch in x86_64 aarch64; do
		python3 "$BATS_TEST_DIRNAME/samples.py" "$dir/made" $arch
		same_as_perf "$dir/made"
		for fields in +brstack +brstacksym +brstackoff; do
			echo "$arch $fields"
			same_as_perf "$dir/made" -F "$fields"
		done
		same_as_perf "$dir/made" -F raw:addr,data_src,weight,ins_lat -F sw:time
		same_as_perf "$dir/made" -F raw:ip,iregs,uregs,misc -F sw:time,bpf-output
	done
	grep -q ' x29:0x' "$dir/ours"
}

@test "script: tracepoints whose formats are damaged are bytes" {
	recorded chains
	record points -e sched:sched_switch || skip "perf may not record tracepoints here"
	python3 - "$DATA/points" "$dir" <<-'EOF' || skip "python3 is not installed"
		import sys
		data = open(sys.argv[1], 'rb').read()
		at = data.index(b'name: sched_switch')
		with open(sys.argv[2] + '/length', 'wb') as f:  # of the text, eight bytes before it
		    f.write(data[:at - 8] + b'\xff' * 8 + data[at:])
		with open(sys.argv[2] + '/text', 'wb') as f:
		    f.write(data[:at] + data[at:].replace(b'print fmt: "', b'print fmt: )', 1))
	EOF
	run -1 --separate-stderr "$VMPROF" script -i "$dir/length"
	[[ $output == *" sched:sched_switch: [no "*"] "[0-9a-f][0-9a-f]" "* ]]
	[[ $stderr == *"$dir/length: offset "*": the formats of the tracepoints are damaged from here on"* ]]
	run -0 --separate-stderr "$VMPROF" script -i "$dir/text"
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == *"tracepoints are printed as bytes: "* ]]
	[[ $output == *" sched:sched_switch: ["*"] "[0-9a-f][0-9a-f]" "* ]]
}

# Of whatever else runs here meanwhile nothing is known.
@test "script: the whole system, idle tasks among it" {
	recorded flat
	record other -e cpu-clock -a -g || skip "perf may not record the whole system here"
	same_as_perf "$DATA/other" --comms swapper
}

@test "script: a pipe" {
	recorded chains
	record - -e cpu-clock -g
	perf script --no-inline -i - <"$DATA/piped" >"$dir/perf" 2>/dev/null
	"$VMPROF" script -i - <"$DATA/piped" >"$dir/ours"
	[ -s "$dir/ours" ]
	compare
	# shellcheck disable=SC2002 # it is to be a pipe
	cat "$DATA/piped" | "$VMPROF" script | cmp - "$dir/ours"
}

@test "script: functions that a program has made as it ran" {
	recorded chains
	command -v python3 >/dev/null || skip "python3 is not installed"
	cat >"$dir/jit.py" <<-'EOF'
		import ctypes, mmap, os
		m = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
		              prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
		addr = ctypes.addressof(ctypes.c_char.from_buffer(m))
		m.write(bytes.fromhex('b900000008ffc975fcc3'))  # a loop: mov, dec, jnz, ret
		with open('/tmp/perf-%d.map' % os.getpid(), 'w') as f:
		    print('%x %x made by hand' % (addr, 10), file=f)
		print(os.getpid())
		ctypes.CFUNCTYPE(None)(addr)()
	EOF
	perf record -q -e cpu-clock -o "$dir/jit" python3 "$dir/jit.py" >"$dir/pid"
	same_as_perf "$dir/jit"
	rm "/tmp/perf-$(cat "$dir/pid").map"
	grep -qE ' made by hand\+0x[0-9] \(/tmp/perf-[0-9]+.map\)' "$dir/ours"
}

# ------------------------------------------------------------------ the corpus

@test "script: files of many versions of perf" {
	local file name
	command -v perf >/dev/null || skip "perf is not installed"
	[ -d "$CORPUS" ] || skip "the corpus is not here"
	for file in "$CORPUS"/*data*; do
		name=${file##*/}
		echo "$name"
		case $name in
		# perf 6.1 refuses attributes longer than its own; the file is sound
		perf.data.PerfFormatLost)
			[ "$("$VMPROF" script -F time -G -i "$file" | wc -l)" -eq 68 ]
			continue
			;;
		# perf makes samples out of the trace and mixes them with the file's
		perf.data.intel_pt-4.14) continue ;;
		*zero_size*) continue ;;
		# No build ids: perf names addresses of those kernels by the symbols of this one.
		perf.data.piped.*)
			same_as_perf "$file" -F -sym,-symoff
			continue
			;;
		# the vDSO is that of another kernel, and perf takes its own for it
		perf.data.forkexit-3.4) same_as_perf "$file" -F -sym,-symoff ;;
		*branch*)
			same_as_perf "$file"
			same_as_perf "$file" -F brstack,dso
			same_as_perf "$file" -F ip,brstacksym,dso
			;;
		*) same_as_perf "$file" ;;
		esac
		[ -s "$dir/ours" ]
	done
}

# ------------------------------------------------------------------ VMs

@test "script: two VMs, with perf's names for everything" {
	command -v perf >/dev/null || skip "perf is not installed"
	"$UNIT/perfdata_write" file "$dir/p" 20
	"$UNIT/elfstore" scenario "$dir/p.debug"
	local fields
	for fields in +machine_pid,+vcpu comm,ip,sym -ip; do
		perf --buildid-dir "$dir/p.debug" script -i "$dir/p" -F "$fields" >"$dir/perf"
		"$VMPROF" script -i "$dir/p" -F "$fields" >"$dir/ours"
		cmp "$dir/perf" "$dir/ours"
	done
	"$VMPROF" script -i "$dir/p" >"$dir/ours"
	[ "$(grep -c '^web1:nginx ' "$dir/ours")" -eq 60 ]
	[ "$(grep -c '^db1:postgres ' "$dir/ours")" -eq 60 ]
	grep -qP '^\tffffffff81002010 alpha_sys_read\+0x10 \(/boot/\[web1.kernel\]\)$' "$dir/ours"
	"$VMPROF" script -i "$dir/p" --vm web1 -F vm,comm,tid,ip,sym >"$dir/ours"
	[ "$(grep -c '^VM:web1 nginx   100 $' "$dir/ours")" -eq 60 ]
	run ! grep -qE 'beta|postgres' "$dir/ours"
	run -1 --separate-stderr "$VMPROF" script -i "$dir/p" --vm nope
	[[ $stderr == *"no VM 'nope' is in"*"web1, db1"* ]]
}

@test "script: guests that perf drops are there" {
	[ -f "$CORPUS/../perf-guest-encoding.py" ] || skip "the generator is not here"
	command -v perf >/dev/null || skip "perf is not installed"
	local make="python3 $CORPUS/../perf-guest-encoding.py $dir/g --kernel module --cache $dir/cache"
	# as perf has it where perf has it; the host's kernel is none that runs anywhere
	$make --one-event --comm-prefix
	perf --buildid-dir "$dir/cache" script -i "$dir/g" |
		sed -E 's/[^ ]+ (\(\[kernel.kallsyms\]\))/[unknown] \1/' >"$dir/perf"
	"$VMPROF" script --buildid-dir "$dir/cache" -i "$dir/g" >"$dir/want"
	cmp "$dir/perf" "$dir/want"
	# Chains with the markers for guests: perf discards them.
	$make --one-event --comm-prefix --chain guest
	[ "$(perf script -i "$dir/g" 2>/dev/null | wc -l)" -lt "$(wc -l <"$dir/want")" ]
	"$VMPROF" script --buildid-dir "$dir/cache" -i "$dir/g" | cmp - "$dir/want"
	# No ID_INDEX, as of perf kvm: perf prints nothing at all of guests.
	$make --no-id-index
	[ "$(perf script -i "$dir/g" 2>/dev/null | grep -c cpu-clock)" -lt 24 ]
	[ "$("$VMPROF" script -i "$dir/g" | grep -c cpu-clock)" -eq 24 ]
}

@test "script: stacks for flame graphs: a VM's command is the root" {
	"$UNIT/perfdata_write" file "$dir/p" 20
	"$UNIT/elfstore" scenario "$dir/p.debug"
	# what stackcollapse-perf.pl makes of it: command, then the functions from the outermost
	"$VMPROF" script -i "$dir/p" | perl -ne '
		if (/^(\S.+?)\s+(\d+)\/*(\d+)*\s+/) { $root = $1; @frames = (); }
		elsif (/^\s*(\w+)\s*(.+) \((.*)\)/) { my $f = $2; $f =~ s/\+0x[\da-f]+$//; unshift @frames, $f; }
		elsif (/^$/ && @frames) { $n{join ";", $root, @frames}++; }
		END { print "$_ $n{$_}\n" for sort keys %n }' >"$dir/folded"
	diff - "$dir/folded" <<-'EOF'
		db1:postgres;beta_entry_SYSCALL_64;beta_virtnet_poll 20
		db1:postgres;beta_main;handle 20
		db1:postgres;beta_main;handle;beta_libc_read;beta_entry_SYSCALL_64;beta_sys_read 20
		web1:nginx;alpha_entry_SYSCALL_64;alpha_virtnet_poll 20
		web1:nginx;alpha_main;handle 20
		web1:nginx;alpha_main;handle;alpha_libc_read;alpha_entry_SYSCALL_64;alpha_sys_read 20
	EOF
}

@test "script: speedscope reads the lines, a profile for each VM's process" {
	command -v python3 >/dev/null || skip "no python3"
	npm_package speedscope 1.25.0
	"$UNIT/perfdata_write" file "$dir/p" 20
	"$UNIT/elfstore" scenario "$dir/p.debug"
	"$VMPROF" script -i "$dir/p" >"$dir/vms.txt"
	look_into_speedscope "$dir/vms.txt" >"$dir/seen"
	cat "$dir/seen"
	grep -q '^vms.txt - speedscope: 3 canvases$' "$dir/seen"
	grep -q '^web1:nginx tid: 100 (' "$dir/seen"
	grep -q '|alpha_sys_read$' "$dir/seen"
	grep -q '|beta_sys_read$' "$dir/seen"
}

# ------------------------------------------------------------------ what goes wrong

@test "script: a damaged file: all before the damage, one line, exit 1" {
	"$UNIT/perfdata_write" file "$dir/p" 50
	# names of events, and what the header calls its modules, are behind the data
	"$VMPROF" script -i "$dir/p" -F comm,tid,time,ip >"$dir/whole"
	head -c "$(($(stat -c %s "$dir/p") / 2))" "$dir/p" >"$dir/half"
	run -1 --separate-stderr "$VMPROF" script -i "$dir/half"
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ $stderr == "vmprof script: $dir/half: "*offset* ]]
	[ "$(grep -c cpu-clock <<<"$output")" -gt 50 ]
	"$VMPROF" script -i "$dir/half" -F comm,tid,time,ip 2>/dev/null >"$dir/part" || true
	# the last round is cut: of the VM whose samples come later in it there may be none
	head -n -30 "$dir/part" >"$dir/rounds"
	[ -s "$dir/rounds" ]
	cmp <(head -c "$(stat -c %s "$dir/rounds")" "$dir/whole") "$dir/rounds"
}

@test "script: files that are none, and a reader that goes away" {
	local file
	for file in "$dir" "$dir/nope" /dev/null "$0"; do
		run -1 --separate-stderr "$VMPROF" script -i "$file"
		[ "${#stderr_lines[@]}" -eq 1 ]
		[ -z "$output" ]
	done
	"$UNIT/perfdata_write" file "$dir/p" 5000
	run --separate-stderr bash -c "set -o pipefail; '$VMPROF' script -i '$dir/p' | head -n 1"
	[ "$status" -eq 141 ]
	[ -z "$stderr" ]
	run -1 --separate-stderr bash -c "'$VMPROF' script -i '$dir/p' >/dev/full"
	[[ $stderr == *"cannot write to standard output: No space left"* ]]
}

@test "script: options that make no sense are refused with a sentence" {
	"$UNIT/perfdata_write" file "$dir/p" 1
	run -2 "$VMPROF" script -i "$dir/p" -F bogus
	[[ $output == *"knows no 'bogus'; there are: comm, tid"* ]]
	run -2 "$VMPROF" script -i "$dir/p" --time yesterday
	[[ $output == *"no START,STOP in seconds"* ]]
	run -2 "$VMPROF" script -i "$dir/p" --time 3,2
	run -2 "$VMPROF" script -i "$dir/p" failed-syscalls
	[[ $output == *"runs no scripts"* ]]
	run -2 "$VMPROF" script -i "$dir/p" -C x
	[[ $output == *"no list of CPUs"* ]]
	run -1 "$VMPROF" script -i "$dir/p" -F ip,symoff
	[[ $output == *"only there with 'sym'"* ]]
	run -2 "$VMPROF" script --bogus
	recorded chains
	run -1 --separate-stderr "$VMPROF" script -i "$DATA/chains" -C 0
	[[ $stderr == *"carry no CPU"* ]]
	run -1 --separate-stderr "$VMPROF" script -i "$DATA/chains" -F cpu,ip
	[[ $stderr == *"have no CPU: field 'cpu' cannot be printed"* ]]
}
