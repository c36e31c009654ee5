#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-only
# Where the symbols of stripped programs are: mini debug info, debug files by link and by build id,
# compressed tables. Programs are built here.
# Steady: it compiles, and compares what programs print.

load helper

setup() {
	UNIT=${BUILD:-build}/tests/unit
	dir=$(mktemp -d "${BATS_TMPDIR:-/tmp}/symfiles.XXXXXX")
	command -v objcopy >/dev/null || skip "objcopy is not installed"
}

teardown() {
	rm -rf "$dir"
}

# build_program [OPTIONS]: $dir/full has a static function that runs long, and one that is seen
build_program() {
	cat >"$dir/p.c" <<'END'
#include <stdlib.h>
__attribute__((noinline)) static unsigned hidden_loop(unsigned n)
{
	unsigned x = n;
	while (n--)
		x = x * 1664525 + 1013904223;
	return x;
}
__attribute__((noinline)) unsigned seen(unsigned n) { return hidden_loop(n) + 1; }
int main(int argc, char **argv) { return seen(argc > 1 ? atoi(argv[1]) : 1) == 5; }
END
	"${CC:-cc}" -O1 -fno-lto -rdynamic "$@" -o "$dir/full" "$dir/p.c"
}

# record_program FILE: a profile of it, or skip
record_program() {
	command -v perf >/dev/null || skip "perf is not installed"
	perf record -q -B -e cpu-clock -F 2000 -o "$dir/data" -- "$1" 100000000 >/dev/null 2>&1 ||
		skip "perf may not record here"
}

# symbols_of_profile: what vmprof report calls the functions
symbols_of_profile() {
	HOME=$dir "$VMPROF" report -v --stdio -i "$dir/data" 2>&1
}

@test "symbols: mini debug info has the functions that .dynsym lacks" {
	command -v xz >/dev/null || skip "xz is not installed"
	"$VMPROF" version --build-options | grep -q 'liblzma: \[ on' || skip "built without liblzma"
	build_program
	nm -D --format=posix --defined-only "$dir/full" | awk '{ print $1 }' | sort >"$dir/dyn"
	nm --format=posix --defined-only "$dir/full" | awk '$2 ~ /^[Tt]$/ { print $1 }' | sort |
		comm -13 "$dir/dyn" - >"$dir/keep"
	objcopy --only-keep-debug "$dir/full" "$dir/debug"
	objcopy -S --keep-symbols="$dir/keep" "$dir/debug" "$dir/mini"
	xz "$dir/mini"
	objcopy --strip-all --add-section .gnu_debugdata="$dir/mini.xz" "$dir/full" "$dir/stripped"
	"$UNIT/symtab" list "$dir/full" | grep -E ' (hidden_loop|seen|main|_start)$' >"$dir/want"
	[ "$(wc -l <"$dir/want")" -eq 4 ]
	"$UNIT/symtab" list "$dir/stripped" | grep -E ' (hidden_loop|seen|main|_start)$' |
		diff "$dir/want" -
	# damaged: what .dynsym has is left
	printf 'rubbish' | dd of="$dir/mini.xz" bs=1 seek=200 conv=notrunc status=none
	objcopy --strip-all --add-section .gnu_debugdata="$dir/mini.xz" "$dir/full" "$dir/stripped"
	"$UNIT/symtab" list "$dir/stripped" >"$dir/out"
	grep -q ' seen$' "$dir/out"
	run grep hidden_loop "$dir/out"
	[ "$status" -eq 1 ]
}

@test "symbols: a debug file by .gnu_debuglink, if its CRC is right" {
	"$VMPROF" version --build-options | grep -q 'zlib: \[ on' || skip "built without zlib"
	build_program -Wl,--build-id=none
	mkdir "$dir/.debug"
	objcopy --only-keep-debug "$dir/full" "$dir/.debug/prog.debug"
	objcopy --strip-all --add-gnu-debuglink="$dir/.debug/prog.debug" "$dir/full" "$dir/prog"
	record_program "$dir/prog"
	symbols_of_profile | grep -qE '\[\.\] hidden_loop'
	# beside the program
	mv "$dir/.debug/prog.debug" "$dir/prog.debug"
	symbols_of_profile | grep -qE '\[\.\] hidden_loop'
	# another file of that name
	printf 'x' >>"$dir/prog.debug"
	symbols_of_profile >"$dir/out"
	cat "$dir/out"
	run grep -E '\[\.\] hidden_loop' "$dir/out"
	[ "$status" -eq 1 ]
}

@test "symbols: a debug file by .gnu_debuglink is not taken with another build id" {
	build_program
	objcopy --only-keep-debug "$dir/full" "$dir/prog.debug"
	objcopy --strip-all --add-gnu-debuglink="$dir/prog.debug" "$dir/full" "$dir/prog"
	record_program "$dir/prog"
	symbols_of_profile | grep -qE '\[\.\] hidden_loop'
	build_program -DOTHER -Wl,--build-id=0x0123456789
	objcopy --only-keep-debug "$dir/full" "$dir/prog.debug"
	symbols_of_profile >"$dir/out"
	run grep -E '\[\.\] hidden_loop' "$dir/out"
	[ "$status" -eq 1 ]
}

@test "symbols: below --symfs a debug file is found by its link, and not outside of it" {
	build_program
	objcopy --only-keep-debug "$dir/full" "$dir/prog.debug"
	objcopy --strip-all --add-gnu-debuglink="$dir/prog.debug" "$dir/full" "$dir/prog"
	record_program "$dir/prog"
	mkdir -p "$dir/root$dir" "$dir/root/usr/lib/debug$dir"
	mv "$dir/prog" "$dir/root$dir/prog"
	mv "$dir/prog.debug" "$dir/root/usr/lib/debug$dir/"
	HOME=$dir "$VMPROF" report --stdio --symfs "$dir/root" -i "$dir/data" >"$dir/out" 2>&1
	grep -qE '\[\.\] hidden_loop' "$dir/out"
	mv "$dir/root/usr/lib/debug$dir/prog.debug" "$dir/outside"
	ln -s "$dir/outside" "$dir/root/usr/lib/debug$dir/prog.debug"
	HOME=$dir "$VMPROF" report --stdio --symfs "$dir/root" -i "$dir/data" >"$dir/out" 2>&1
	run grep -E '\[\.\] hidden_loop' "$dir/out"
	[ "$status" -eq 1 ]
}

# packed HOW
packed() {
	build_program
	"$UNIT/symtab" list "$dir/full" >"$dir/want"
	# .symtab and .strtab, packed behind the end of the file
	python3 - "$dir/full" "$dir/packed" "$dir/lies" "$1" <<'END'
import struct, subprocess, sys, zlib
elf = bytearray(open(sys.argv[1], "rb").read())
shoff, = struct.unpack_from("<Q", elf, 40)
n, = struct.unpack_from("<H", elf, 60)
zstd = sys.argv[4] == "zstd"
for claimed, out in ((0, sys.argv[2]), (1, sys.argv[3])):
    b = bytearray(elf)
    for i in range(n):
        at = shoff + 64 * i
        kind, flags, addr, off, size, link = struct.unpack_from("<IQQQQI", b, at + 4)
        if kind == 2:
            strings = shoff + 64 * link
            for sec in (at, strings):
                flags, addr, off, size = struct.unpack_from("<QQQQ", b, sec + 8)
                data = struct.pack("<IIQQ", 1 + zstd, 0, size + claimed, 8)
                plain = bytes(b[off:off + size])
                data += (subprocess.run(["zstd", "-c"], input=plain, capture_output=True).stdout
                         if zstd else zlib.compress(plain))
                struct.pack_into("<QQQQ", b, sec + 8, flags | 1 << 11, addr, len(b), len(data))
                b += data
    open(out, "wb").write(b)
END
	readelf -SW "$dir/packed" | grep -qE '\.symtab .* C '
	"$UNIT/symtab" list "$dir/packed" | diff "$dir/want" -
	# one that is not as large as it claims leaves .dynsym
	"$UNIT/symtab" list "$dir/lies" >"$dir/out"
	grep -q ' seen$' "$dir/out"
	run grep hidden_loop "$dir/out"
	[ "$status" -eq 1 ]
}

@test "symbols: tables compressed by zlib" {
	command -v python3 >/dev/null || skip "python3 is not installed"
	"$VMPROF" version --build-options | grep -q ' zlib: \[ on' || skip "built without zlib"
	packed zlib
}

@test "symbols: tables compressed by zstd" {
	command -v python3 >/dev/null && command -v zstd >/dev/null || skip "no python3, or no zstd"
	"$VMPROF" version --build-options | grep -q 'zstd: \[ on' || skip "built without libzstd"
	packed zstd
}

@test "symbols: debug files from a server, only if the user has named one" {
	ldconfig -p | grep -q 'libdebuginfod\.so\.1' || skip "libdebuginfod is not installed"
	local id
	build_program
	id=$(readelf -n "$dir/full" | sed -n 's/.*Build ID: //p')
	mkdir -p "$dir/server/buildid/$id" "$dir/cache"
	objcopy --only-keep-debug "$dir/full" "$dir/server/buildid/$id/debuginfo"
	objcopy --strip-all "$dir/full" "$dir/prog"
	record_program "$dir/prog"
	unset DEBUGINFOD_URLS
	export DEBUGINFOD_CACHE_PATH=$dir/cache
	symbols_of_profile >"$dir/out"
	run grep -E '\[\.\] hidden_loop' "$dir/out"
	[ "$status" -eq 1 ]
	[ -z "$(ls "$dir/cache")" ]
	export DEBUGINFOD_URLS=file://$dir/server
	symbols_of_profile >"$dir/out"
	cat "$dir/out"
	grep -qE '\[\.\] hidden_loop' "$dir/out"
}

# A program that writes a jitdump: two functions of its own making, three to one.
build_jitdump() {
	cat >"$dir/jd.c" <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
struct head { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; };
struct load { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, addr, len, index; };
static const uint8_t loop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
int main(int argc, char **argv)
{
	static const char *const names[] = {"dumped_a", "dumped_b"};
	struct head h = {0x4A695444, 1, sizeof(h), 62, 0, getpid(), now(), 0};
	uint8_t *code = mmap(NULL, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (write(fd, &h, sizeof(h)) < 0 || mmap(NULL, 4096, 5, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	for (int i = 0; i < 2; i++) {
		uint64_t at = (uint64_t)memcpy(code + 4096 * i, loop, sizeof(loop));
		struct load l = {0, sizeof(l) + strlen(names[i]) + 1 + sizeof(loop), now(), getpid(), getpid(),
				 at, at, sizeof(loop), i + 1};
		if (write(fd, &l, sizeof(l)) < 0 || write(fd, names[i], strlen(names[i]) + 1) < 0 ||
		    write(fd, loop, sizeof(loop)) < 0)
			return 1;
	}
	for (int i = 0; i < atoi(argv[1]); i++) {
		((void (*)(uint64_t))code)(3000000);
		((void (*)(uint64_t))(code + 4096))(1000000);
	}
}
END
	"${CC:-cc}" -O1 -o "$dir/jd" "$dir/jd.c"
}

@test "symbols: files that perf inject --jit has made of a jitdump, as perf has them" {
	command -v perf >/dev/null || skip "perf is not installed"
	[ "$(uname -m)" = x86_64 ] || skip "its code is x86's"
	build_jitdump
	cd "$dir"
	perf record -q -k mono -e cpu-clock -F 999 -g -o data -- ./jd 600 >/dev/null 2>&1 || skip "perf may not record here"
	perf inject --jit -i data -o jit >/dev/null 2>&1 || skip "perf inject knows no jitdump"
	perf script -i jit 2>/dev/null | grep -F jitted- >wanted
	"$VMPROF" script -i jit | grep -F jitted- >got
	[ "$(grep -c 'dumped_[ab]+0x[0-9a-f]* (.*/jitted-' got)" -gt 100 ]
	cmp wanted got
	cmp <(perf script -i jit --show-mmap-events 2>/dev/null | grep MMAP2.*jitted-) \
		<("$VMPROF" script -i jit --show-mmap-events | grep MMAP2.*jitted-)
	"$VMPROF" version --build-options | grep -q 'libcapstone: \[ on' || return 0
	"$VMPROF" annotate --no-jumps -i jit dumped_a | grep -q '87:  *jne  *84 <dumped_a+0x4>$'
}
