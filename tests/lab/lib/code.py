#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the code that a record has saved (CODE, vmprof.data(5)) against where it came from.

code.py hull CODE                    prints the lowest address that has code, and the bytes to its highest
code.py kernel CODE MEMORY VMLINUZ   MEMORY: the guest's bytes of that range, as QEMU wrote them;
                                     VMLINUZ: the kernel's file, which was booted with nokaslr
code.py file CODE FILE               FILE: the program; addresses are offsets in it

The last two print "ok" and "not ok" lines. "kernel" prints last "# patched NAME...": addresses of code
whose call of the tracer, in the file, was a no-op in the guest, relative to the kernel's start.
"""

import lzma
import struct
import sys

PROGBITS = 1
XZ, LZ4 = b"\xfd7zXZ\x00", b"\x02\x21\x4c\x18"
HEAD = 0x200000  # offset of _text in vmlinux
KERNEL = 0xFFFFFFFF81000000  # _text without KASLR
CALL, NOP5, ENDBR = 0xE8, bytes.fromhex("0f1f440000"), bytes.fromhex("f30f1efa")


def sections(elf):
    """[(address, bytes)] of code"""
    (at,), (size, n) = struct.unpack_from("<Q", elf, 0x28), struct.unpack_from("<HH", elf, 0x3A)
    found = []
    for i in range(n):
        _, kind, flags, addr, offset, length = struct.unpack_from("<IIQQQQ", elf, at + i * size)
        if kind == PROGBITS and flags & 4:
            found.append((addr, elf[offset:offset + length]))
    return sorted(found)


def loaded(elf, addr, length):
    """Bytes at a virtual address, by the program headers"""
    (at,), (size, n) = struct.unpack_from("<Q", elf, 0x20), struct.unpack_from("<HH", elf, 0x36)
    for i in range(n):
        kind, _, offset, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", elf, at + i * size)
        if kind == 1 and vaddr <= addr and addr + length <= vaddr + filesz:
            return elf[offset + addr - vaddr:][:length]
    return b""


def unxz(data, enough):
    try:
        return lzma.LZMADecompressor().decompress(data, enough)
    except lzma.LZMAError:
        return b""


def lz4_length(data, i, n):
    """A length of which the token had @n: 15 goes on in the bytes behind it."""
    more = n == 15
    while more:
        n += data[i]
        more = data[i] == 255
        i += 1
    return i, n


def unlz4_block(data):
    out, i = bytearray(), 0
    while i < len(data):
        token = data[i]
        i, n = lz4_length(data, i + 1, token >> 4)
        out += data[i:i + n]
        i += n
        if i >= len(data):
            break
        back = data[i] | data[i + 1] << 8
        i, n = lz4_length(data, i + 2, token & 15)
        n += 4
        copy = out[-back:][:n] if back >= n else out[-back:] * (n // back + 1)
        out += copy[:n]
    return out


def unlz4(data, enough):
    """The legacy format, which kernels have: blocks, each behind its length"""
    out, i = bytearray(), len(LZ4)
    while len(out) < enough:
        (n,) = struct.unpack_from("<I", data, i)
        out += unlz4_block(data[i + 4:i + 4 + n])
        i += 4 + n
    return bytes(out)


def vmlinux(path, enough):
    """The first @enough bytes, or some more, of the kernel in a vmlinuz; None: of no known format"""
    with open(path, "rb") as f:
        data = f.read()
    for magic, unpack in ((XZ, unxz), (LZ4, unlz4)):
        at = data.find(magic)
        elf = unpack(data[at:], enough) if at >= 0 else b""
        if elf[:4] == b"\x7fELF":
            return elf
    return None


def result(good, name, why):
    print(f"ok {name}" if good else f"not ok {name}: {why}")


def check_kernel(code, memory, vmlinuz):
    base = code[0][0]
    wrong = [a for a, b in code if memory[a - base:a - base + len(b)] != b]
    result(not wrong, "the kernel's code is the guest's memory",
           f"{len(wrong)} of {len(code)} runs differ, the first at {wrong[0] if wrong else 0:#x}")
    elf = vmlinux(vmlinuz, HEAD + code[-1][0] + len(code[-1][1]))
    if not elf:
        print("skip the kernel's code is patched: its file is not compressed by xz or lz4")
        return
    differ, patched = 0, []
    for addr, saved in code:
        file = loaded(elf, KERNEL + addr, len(saved))
        differ += file != saved
        skip = 4 if saved.startswith(ENDBR) else 0
        if file[skip:skip + 1] == bytes([CALL]) and saved[skip:skip + 5] == NOP5:
            patched.append(addr)
    result(differ > 0 and patched, "the kernel's code is patched, its file is not",
           f"{differ} of {len(code)} runs differ, {len(patched)} lost their call")
    print("# patched", *(f"{a:x}" for a in patched))


def check_file(code, data):
    wrong = [a for a, b in code if data[a:a + len(b)] != b]
    result(code and not wrong, "the program's code is its file's",
           f"{len(wrong)} of {len(code)} runs differ")


def main(how, path, *others):
    with open(path, "rb") as f:
        code = sections(f.read())
    if how == "hull":
        print(code[0][0], code[-1][0] + len(code[-1][1]) - code[0][0])
        return
    with open(others[0], "rb") as f:
        data = f.read()
    if how == "kernel":
        check_kernel(code, data, others[1])
    else:
        check_file(code, data)


main(*sys.argv[1:])
