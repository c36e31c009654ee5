# SPDX-License-Identifier: GPL-2.0-only
"""Runs inside gdb, attached to a process (gdb -p PID -batch -x): stops it a number of times and writes
what perf would have recorded there, registers and a copy of the stack, to $OUT.data, and gdb's own
frames to $OUT.frames: a line a stop of their addresses, of callers less one, innermost first, as
offsets in their files."""
import os
import struct
import subprocess

import gdb

STOPS = int(os.environ.get('STOPS', '20'))
COPIED = 48 << 10
REGS = 0xff0fff
NAMES = ('rax rbx rcx rdx rsi rdi rbp rsp rip eflags cs ss '
         'r8 r9 r10 r11 r12 r13 r14 r15').split()
IP, TID, TIME, CHAIN, UREGS, STACK = (1 << i for i in (0, 1, 2, 5, 12, 13))
PID = gdb.selected_inferior().pid


def words(*values):
    return struct.pack('<%dQ' % len(values), *values)


def record(kind, misc, body):
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


SPANS = []


def maps():
    out = b''
    with open('/proc/%d/maps' % PID) as lines:
        for line in lines:
            span, prot, offset, dev, inode, *name = line.split(None, 5)
            if 'x' not in prot:
                continue
            start, end = (int(x, 16) for x in span.split('-'))
            SPANS.append((start, end, int(offset, 16)))
            major, minor = (int(x, 16) for x in dev.split(':'))
            path = (name[0].strip() if name else '//anon').encode() + b'\0'
            path += bytes(-len(path) % 8)
            out += record(10, 2, struct.pack('<IIQQQIIQQII', PID, PID, start, end - start, int(offset, 16),
                                             major, minor, int(inode), 0, 5, 2) + path)
    return out


def register(frame, name):
    return int(frame.read_register(name)) & (1 << 64) - 1


def sample(frame, at):
    regs = [register(frame, n) for n in NAMES]
    sp = regs[NAMES.index('rsp')]
    stack = b''
    while len(stack) < COPIED:  # up to where it ends
        try:
            stack += bytes(gdb.selected_inferior().read_memory(sp + len(stack), 64))
        except gdb.MemoryError:
            break
    body = words(register(frame, 'rip'), PID | PID << 32, at, 0, 2, *regs)
    return record(9, 2, body + words(len(stack)) + stack + words(len(stack)))


def in_file(pc):
    return next((pc - start + offset for start, end, offset in SPANS if start <= pc < end), pc)


def frames():
    """Only of calls: what was inlined has no frame on the stack."""
    out, exact, frame = [], True, gdb.newest_frame()
    while frame is not None and frame.is_valid():
        if frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
            continue
        out.append(frame.pc() - (0 if exact or frame.type() == gdb.SIGTRAMP_FRAME else 1))
        exact = frame.type() == gdb.SIGTRAMP_FRAME
        frame = frame.older()
    return ' '.join('%x' % in_file(pc) for pc in out)


for command in ('pagination off', 'confirm off', 'backtrace past-main on', 'backtrace past-entry on'):
    gdb.execute('set ' + command)
gdb.execute('handle SIGINT stop print nopass', to_string=True)
data, lines = maps(), []
for stop in range(STOPS):
    # by another process: while gdb waits, its interpreter does
    interrupt = subprocess.Popen(['sh', '-c', 'sleep 0.03; kill -INT %d' % PID])
    gdb.execute('continue', to_string=True)
    interrupt.wait()
    data += sample(gdb.newest_frame(), 1000 * (stop + 1))
    lines.append(frames())
gdb.execute('kill')

attr = struct.pack('<IIQQQQQ', 1, 128, 0, 1, IP | TID | TIME | CHAIN | UREGS | STACK, 0, 0)
attr += struct.pack('<IIQQQQIiQIHHIIQ', 0, 0, 0, 0, 0, REGS, COPIED, 0, 0, 0, 0, 0, 0, 0, 0)
table = attr + words(104, 8)
with open(os.environ['OUT'] + '.data', 'wb') as f:
    start = 104 + 8 + len(table)
    f.write(b'PERFILE2' + words(104, 144, 112, len(table), start, len(data), 0, 0) + words(0, 0, 0, 0))
    f.write(words(1) + table + data)
with open(os.environ['OUT'] + '.frames', 'w') as f:
    f.write('\n'.join(lines) + '\n')
