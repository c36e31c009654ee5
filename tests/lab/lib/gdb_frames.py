# SPDX-License-Identifier: GPL-2.0-only
"""Runs inside gdb, connected to a guest that is stopped: writes the addresses of its frames, innermost
first, to the file $OUT. What was inlined has no frame."""
import os

import gdb

for setting in ('past-main', 'past-entry'):
    gdb.execute('set backtrace %s on' % setting)
frames, frame = [], gdb.newest_frame()
while frame is not None and frame.is_valid() and len(frames) < 200:
    if frame.type() != gdb.INLINE_FRAME:
        frames.append('%x' % (frame.pc() & (1 << 64) - 1))
    frame = frame.older()
with open(os.environ['OUT'], 'w') as f:
    f.write(' '.join(frames) + '\n')
gdb.execute('detach')
