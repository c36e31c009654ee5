// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sampler's thread needs little CPU, but at once: one that waits for its turn finds several ticks
 * together, and reads the guest's state long after the first of them. On a loaded host (measured
 * with load 12 on 2 CPUs, 1000 Hz) a third of the ticks were late for a thread of the default
 * policy or of nice -20, and one in 200 for one of SCHED_FIFO. So it is SCHED_FIFO, where this user
 * may (root, or RLIMIT_RTPRIO), and stops being it when it turns out to need more than half a CPU.
 */
#ifndef VMPROF_RECORD_PROMPT_H
#define VMPROF_RECORD_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

struct prompt {
	bool realtime;
	uint64_t wall, cpu; /* ns, at the last look */
};

/* Makes the calling thread SCHED_FIFO of @priority; 0, or not permitted: it stays as it is. */
void prompt_start(struct prompt *p, int priority);
/* To be called now and then by the same thread. */
void prompt_check(struct prompt *p);

#endif
