// SPDX-License-Identifier: GPL-2.0-only
/*
 * A clock of a vCPU's CPU time that is looked at now and then: how many ticks have come due since,
 * and when to look next. Since a tick stands for a period of time that the vCPU has really used, no
 * state is taken twice for it while something else has the CPU.
 */
#ifndef VMPROF_BACKEND_CPUTICKS_H
#define VMPROF_BACKEND_CPUTICKS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A vCPU that waits shows where it began to, which is not where its time went: its tick is kept for
 * this long (ns) in the hope to meet it at work.
 */
#define CPUTICKS_PATIENCE_NS 1000000000ull

struct cputicks {
	uint64_t period; /* ns of CPU time */
	uint64_t taken;	 /* CPU time that samples stand for, or that was there before the start */
	uint64_t due_since; /* wall clock, ns: first look that found a tick; 0 none */
};

void cputicks_start(struct cputicks *t, uint64_t period, uint64_t cpu_time);

/* Ticks that are to become one sample now, 0 none. @blocked: the vCPU waits for an event. */
uint64_t cputicks_due(struct cputicks *t, uint64_t cpu_time, bool blocked, uint64_t now);

/* All that is due, whatever the vCPU does: at the end. */
uint64_t cputicks_rest(const struct cputicks *t, uint64_t cpu_time);

/* They have become a sample. */
void cputicks_take(struct cputicks *t, uint64_t n);

/*
 * ns of wall clock until the next look is worth it: when the next tick can be due at the earliest,
 * had the vCPU a CPU all the time, but not at once again. @idle: looks in a row that found that no
 * CPU time was used. @random spreads the looks, so that they do not go in step with the guest's
 * work.
 */
uint64_t cputicks_wait(const struct cputicks *t, uint64_t cpu_time, unsigned idle, uint32_t random);

#endif
