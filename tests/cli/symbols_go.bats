#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Go programs: names as they are, and out of the runtime's own table where the others were stripped.
# Steady: it compiles, and compares what programs print.

setup() {
	UNIT=${BUILD:-build}/tests/unit
	dir=$(mktemp -d "${BATS_TMPDIR:-/tmp}/gosyms.XXXXXX")
}

teardown() {
	rm -rf "$dir"
}

@test "symbols: a stripped Go program has the functions that it had before" {
	command -v go >/dev/null && command -v strip >/dev/null || skip "go is not installed"
	local mode
	cat >"$dir/m.go" <<'END'
package main

func sum[T int | float64](x []T) (s T) {
	for _, v := range x {
		s += v
	}
	return
}

type shape struct{ a int }

//go:noinline
func (s *shape) area() int { return s.a }

func main() { println(sum([]int{1, 2}), sum([]float64{1}), (&shape{2}).area()) }
END
	export GO111MODULE=off CGO_ENABLED=0
	for mode in exe pie; do
		go build -buildmode=$mode -o "$dir/full" "$dir/m.go" 2>"$dir/err" ||
			skip "go builds nothing here: $(tail -n 1 "$dir/err")"
		strip -o "$dir/stripped" "$dir/full"
		"$UNIT/symtab" list "$dir/full" >"$dir/before"
		"$UNIT/symtab" list "$dir/stripped" >"$dir/after"
		grep -qF ' main.(*shape).area' "$dir/after"
		# types in brackets are left out there, and how assembly is called
		awk '{ sub(/\[.*\]/, "[...]"); sub(/\.abi0$/, "") } NR == FNR { name[$1] = $3; next }
			{ n++ } name[$1] != $3 { print; bad++ } END { print n, bad + 0; exit n < 1000 || bad > 0 }' \
			"$dir/before" "$dir/after"
	done
}

@test "symbols: the function tables of all Go versions, and damaged ones" {
	command -v objcopy >/dev/null && command -v python3 >/dev/null || skip "no objcopy, or no python3"
	echo 'int f(void) { return 1; } int g(void) { return 2; } int main(void) { return f() + g(); }' >"$dir/p.c"
	"${CC:-cc}" -O0 -o "$dir/full" "$dir/p.c"
	nm "$dir/full" | awk '$3 ~ /^(f|g|main)$/' | sort >"$dir/nm"
	objcopy --strip-all "$dir/full" "$dir/stripped"
	printf x >"$dir/info"
	python3 - "$dir" "$UNIT/symtab" <<'END'
import random, struct, subprocess, sys
where, symtab = sys.argv[1:]
starts = [int(line.split()[0], 16) for line in open(where + "/nm")]
starts.append(starts[-1] + 32)
names = [b"go.one", b"go.(*two).x", b"go.three"]
text = starts[0] - 16

def table(magic):
    strings, at = b"", []
    for n in names:
        at.append(len(strings))
        strings += n + b"\0"
    head = struct.pack("<IHBB", magic, 0, 1, 8)
    relative = magic in (0xfffffff0, 0xfffffff1)
    half = "<I" if relative else "<Q"
    size = struct.calcsize(half)
    tab = (2 * len(names) + 1) * size
    first = {0xfffffffb: 16, 0xfffffffa: 8 + 7 * 8}.get(magic, 8 + 8 * 8)
    funcs, entries = b"", b""
    for i, s in enumerate(starts[:-1]):
        addr = s - text if relative else s
        # from the table of functions on, in the oldest form from the beginning
        base = first if magic == 0xfffffffb else 0
        entries += struct.pack(half, addr) + struct.pack(half, base + tab + len(funcs))
        name = at[i] + (first + tab + 3 * (size + 4) if magic == 0xfffffffb else 0)
        funcs += struct.pack(half, addr) + struct.pack("<i", name)
    entries += struct.pack(half, starts[-1] - text if relative else starts[-1])
    n, behind = len(names), first + tab + len(funcs)
    if magic == 0xfffffffb:
        words = [n]
    elif magic == 0xfffffffa:
        words = [n, 0, behind, 0, 0, 0, first]
    else:
        words = [n, 0, text, behind, 0, 0, 0, first]
    return head + struct.pack("<%dQ" % len(words), *words) + entries + funcs + strings

def listed(data):
    open(where + "/table", "wb").write(data)
    subprocess.run(["objcopy", "--add-section", ".gopclntab=%s/table" % where, "--add-section",
                    ".go.buildinfo=%s/info" % where, where + "/stripped", where + "/go"], check=True)
    run = subprocess.run([symtab, "list", where + "/go"], capture_output=True)
    assert run.returncode in (0, 1), run
    return run.stdout.decode(errors="replace")

for magic in (0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1):
    out = listed(table(magic))
    for start, end, name in zip(starts, starts[1:], names):
        want = "%016x %016x %s" % (start, end, name.decode())
        assert want in out, (hex(magic), want, out)
    assert "go.one" not in listed(b"\0" + table(magic))
    draw = random.Random(magic)
    for _ in range(10):
        bad = bytearray(table(magic))
        for _ in range(draw.randrange(1, 6)):
            bad[draw.randrange(len(bad))] = draw.choice((0, 1, 0x7f, 0xff, draw.randrange(256)))
        listed(bytes(bad[:draw.randrange(8, len(bad) + 1)]))
END
}

@test "symbols: the stacks of a Go program begin where its runtime says, though it was stripped" {
	command -v perf >/dev/null && command -v go >/dev/null || skip "no perf, or no go"
	cat >"$dir/m.go" <<'END'
package main

var sums [4]uint64

//go:noinline
func work(g int) {
	for i := uint64(0); i < 100000000; i++ {
		sums[g] += i
	}
}

func main() {
	done := make(chan bool)
	for g := range sums {
		go func(g int) { work(g); done <- true }(g)
	}
	for range sums {
		<-done
	}
}
END
	export GO111MODULE=off CGO_ENABLED=0
	go build -ldflags=-w -o "$dir/full" "$dir/m.go" 2>"$dir/err" ||
		skip "go builds nothing here: $(tail -n 1 "$dir/err")"
	perf record -q -N --call-graph dwarf -e cpu-clock -F 1000 -o "$dir/data" "$dir/full" >/dev/null 2>&1 ||
		skip "perf may not record here"
	# each chain's last function
	"${VMPROF:-build/vmprof}" script --no-inline -i "$dir/data" -F ip,sym |
		awk 'NF { last = $2; next } { print last; last = "" } END { print last }' |
		grep -cE '^runtime\.(goexit|mstart|rt0_go)(\.abi0)?$' >"$dir/begun"
	"${VMPROF:-build/vmprof}" report --stats -i "$dir/data" |
		sed -n 's/^ *outermost: *\([0-9]*\)$/\1/p' | tail -n 1 >"$dir/outermost"
	cat "$dir/begun" "$dir/outermost"
	[ "$(cat "$dir/begun")" -gt 20 ]
	[ "$(cat "$dir/outermost")" -ge "$(cat "$dir/begun")" ]
}
