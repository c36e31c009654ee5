/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counter scheduler: which event has which counter, when events have to take turns, and what a
 * count means that did not run all the time.
 */
#ifndef VMPROF_CORE_SCHED_H
#define VMPROF_CORE_SCHED_H

#include "table.h"

/*
 * Gives each of the nr events a counter of its own out of those that can count it (bits of
 * wanted[i]; 0: it needs none). One that has to wait makes others move on, as long as some
 * arrangement has room for all (an augmenting path, Kuhn 1955). counter[i] is its counter or
 * VMP_NO_COUNTER. Returns how many events have what they need: nr if all fit.
 */
u32 vmp_match(const u64 *wanted, u32 nr, u64 counters, u8 *counter);

/*
 * Fills in slices, slice and counter of one row alone: all events in one turn if they fit, else as
 * few turns as first fit needs. 0 or -VMP_ECOUNTERS if they need turns and the row does not allow
 * it.
 */
int vmp_sched_row(struct vmp_row *row, u64 counters);

/*
 * Shares the counters among all rows, each of which vmp_sched_row() has taken: if all events of all
 * VMs fit at once, each gets a counter that no other one has, else each row has the counters to
 * itself in its time.
 */
void vmp_sched_table(struct vmp_table *table);

/* A count and the times it belongs to, in ns: enabled is how long it was wanted, running how long
 * it had a counter. */
struct vmp_count {
	u64 value;
	u64 enabled;
	u64 running;
};

/*
 * What the count would have been, had it run all the time it was enabled: value * enabled /
 * running, rounded down, as perf scales; 0 if it never ran. Right for all values: a result above
 * 2^64 - 1 is that.
 */
u64 vmp_scaled(const struct vmp_count *count);

#endif
