// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the guest's clocks stand to the host's CLOCK_MONOTONIC, found out by watching the kernel
 * store times in its memory while it runs; nothing in the guest helps.
 */
#ifndef VMPROF_GUEST_CLOCK_H
#define VMPROF_GUEST_CLOCK_H

#include "guest/guest.h"

enum guest_clock {
	GUEST_CLOCK_SCHED, /* sched_clock_cpu(), local_clock(): what perf uses by default */
	GUEST_CLOCK_MONOTONIC,
	GUEST_CLOCK_REALTIME,
	GUEST_CLOCK_BOOTTIME,
	GUEST_CLOCK_TAI,
	GUEST_CLOCK_COUNT
};

/* low <= host's CLOCK_MONOTONIC less the guest's clock <= high, ns. */
struct guest_clock_bounds {
	bool known;
	int64_t low, high;
};

struct guest_clocks; /* uses its guest, so of the same thread */

struct guest_clocks *guest_clocks_new(struct guest *g, uint32_t nr_vcpus);
void guest_clocks_free(struct guest_clocks *c); /* NULL is fine */

/*
 * A measurement: begun, a few dozen looks over some of the guest's timer ticks, and ended. The
 * shorter the time from one look to the next, the closer the bounds; a guest of which no CPU runs
 * stores nothing and gets none. -ENOENT: this kernel's clocks cannot be read.
 */
int guest_clocks_begin(struct guest_clocks *c);
int guest_clocks_look(struct guest_clocks *c); /* 0; -ESRCH: the VM is gone */
/* Times seen to be stored since the begin, of the clock for which they were the fewest. */
unsigned guest_clocks_seen(const struct guest_clocks *c);
void guest_clocks_end(struct guest_clocks *c, struct guest_clock_bounds out[GUEST_CLOCK_COUNT]);

#endif
