// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: what an x86-64 kernel's timekeeping says of its clocks (kernel/sched/clock.c,
 * kernel/time/timekeeping.c, arch/x86/kernel/tsc.c).
 */
#ifndef VMPROF_GUEST_TIMEKEEPER_H
#define VMPROF_GUEST_TIMEKEEPER_H

#include "guest/internal.h"

/* A static key's or another variable's first 4 or 8 bytes. 0, -ENOENT, -EFAULT, -ESRCH */
int guest_tk_word(struct guest *g, const char *symbol, void *word, size_t len);

/* What is added to CLOCK_MONOTONIC for another clock, ns. */
struct guest_tk_offsets {
	int64_t real, boot, tai;
};
int guest_tk_offsets(struct guest *g, struct guest_tk_offsets *out);

/*
 * CLOCK_MONOTONIC less sched_clock at the moment when the CPU whose area is at @percpu had @sched
 * on its sched_clock, to the nanosecond. Only where both count the TSC: else -ENOENT.
 */
int guest_tk_mono_less_sched(struct guest *g, uint64_t percpu, uint64_t sched, int64_t *diff);

#endif
