# SPDX-License-Identifier: GPL-2.0-only
"""Loads BPF programs of every form that a header tells apart (one function or two, with a name, with
types, with neither), says so, and keeps them loaded until standard input ends."""
import ctypes
import os
import platform
import struct
import sys

SYSCALL = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, BTF_LOAD = 5, 18
SOCKET_FILTER = 1
kept = []


def bpf(command, attr):
    libc = ctypes.CDLL(None, use_errno=True)
    number = SYSCALL.get(platform.machine())
    if number is None:
        sys.exit("the number of bpf(2) is not known here")
    buffer = ctypes.create_string_buffer(attr, 128)
    fd = libc.syscall(number, command, buffer, 128)
    if fd < 0:
        sys.exit("bpf: " + os.strerror(ctypes.get_errno()))
    kept.append(fd)
    return fd


def address(data):
    buffer = ctypes.create_string_buffer(data, len(data))
    kept.append(buffer)
    return ctypes.addressof(buffer)


def insn(code, dst=0, src=0, imm=0):
    return struct.pack("<BBhi", code, src << 4 | dst, 0, imm)


RETURN_0 = insn(0xB7) + insn(0x95)
CALL_NEXT = insn(0x85, src=1, imm=1) + insn(0x95) + RETURN_0


def load(name, code, btf=0, functions=b""):
    bpf(PROG_LOAD, struct.pack(
        "<IIQQIIQII16sIIIIQI", SOCKET_FILTER, len(code) // 8, address(code), address(b"GPL\0"),
        0, 0, 0, 0, 0, name, 0, 0, btf, 8 if functions else 0,
        address(functions) if functions else 0, len(functions) // 8))


def types():
    """int, a function type that returns it, two functions of it: types 1 to 4."""
    strings = b"\0int\0vmprof_main\0vmprof_sub\0"

    def name(s):
        return strings.index(s)

    body = struct.pack("<IIII", name(b"int"), 1 << 24, 4, 0x01000020)
    body += struct.pack("<III", 0, 13 << 24, 1)
    body += struct.pack("<III", name(b"vmprof_main"), 12 << 24, 2)
    body += struct.pack("<III", name(b"vmprof_sub"), 12 << 24, 2)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(body), len(body), len(strings))
    blob = header + body + strings
    return bpf(BTF_LOAD, struct.pack("<QQIII", address(blob), 0, len(blob), 0, 0))


load(b"vmprof_plain", RETURN_0)
load(b"", RETURN_0)
load(b"vmprof_two", CALL_NEXT)
btf_fd = types()
load(b"vmprof_typed", RETURN_0, btf_fd, struct.pack("<II", 0, 3))
load(b"vmprof_typed2", CALL_NEXT, btf_fd, struct.pack("<IIII", 0, 3, 2, 4))
print("loaded", flush=True)
sys.stdin.read()
