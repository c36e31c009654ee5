/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The VM table: for each VM that is profiled, who handles its counters' interrupts and what its
 * counters' control registers hold. A row is put when a profile starts and removed when it stops,
 * when its owner dies or when the VM dies. The table refuses a VM that wants what no CPU can give
 * it.
 *
 * Not locked: the caller lets one change it at a time.
 */
#ifndef VMPROF_CORE_TABLE_H
#define VMPROF_CORE_TABLE_H

#include "core.h"

#define VMP_EVENTS_MAX	 32 /* events of one VM */
#define VMP_COUNTERS_MAX 64 /* counters of one CPU */

/* Who takes the interrupt of a counter that overflows while the VM has the CPU. */
enum vmp_delivery {
	VMP_DELIVER_HOST,   /* the host's module */
	VMP_DELIVER_INJECT, /* the host, which raises the guest's profiling interrupt */
	VMP_DELIVER_DIRECT, /* the guest's handler, with no exit to the hypervisor */
	VMP_DELIVERIES,
};

/* vmp_control.flags: in which of the guest's modes the counter counts */
#define VMP_COUNT_USER	 0x1
#define VMP_COUNT_KERNEL 0x2
#define VMP_COUNT_FLAGS	 (VMP_COUNT_USER | VMP_COUNT_KERNEL)

/* One counter's control registers, as its VM wants them. */
struct vmp_control {
	u32 type;     /* the PMU: perf's type number */
	u32 flags;    /* VMP_COUNT_...; at least one */
	u64 config;   /* event select and unit mask, as that PMU has them */
	u64 config1;  /* what the event needs besides */
	u64 period;   /* events from one sample to the next; 0: it is only counted */
	u64 counters; /* bit n: counter n of a CPU can count it; 0: it needs none (software events)
		       */
};

/* vmp_row.flags */
#define VMP_ROW_MULTIPLEX 0x1 /* more events than counters: in turns */
#define VMP_ROW_DOMAIN	  0x2 /* count also while the host works for the VM, not only in the guest */
#define VMP_ROW_FLAGS	  (VMP_ROW_MULTIPLEX | VMP_ROW_DOMAIN)

#define VMP_NO_COUNTER	  0xff

struct vmp_row {
	u64 vm;	      /* the VM; not 0 */
	u32 delivery; /* enum vmp_delivery */
	u32 flags;    /* VMP_ROW_... */
	u64 handler; /* the guest's: where it is (direct), which interrupt is raised for it (inject)
		      */
	u32 nr;	     /* events, 1 to VMP_EVENTS_MAX */
	struct vmp_control controls[VMP_EVENTS_MAX];
	/* Made by the table: */
	u32 slices;		  /* how many turns the events take; 1: all at once */
	u8 slice[VMP_EVENTS_MAX]; /* in which turn, from 0 */
	/* The counter of each event; VMP_NO_COUNTER: needs none. Valid while the event's turn
	 * lasts. */
	u8 counter[VMP_EVENTS_MAX];
};

/* How the VMs of the table share the counters. */
enum vmp_sharing {
	VMP_DEDICATED, /* all events of all VMs fit at once: each has a counter of its own, for good
			*/
	VMP_VIRTUAL, /* a counter is one VM's while that VM has the CPU, and another's afterwards */
};

struct vmp_table {
	u64 counters; /* the counters of a CPU, a bit each */
	u32 max;      /* rows there is room for */
	u32 nr;
	enum vmp_sharing sharing;
	struct vmp_row *rows; /* the caller's; [0, nr) in the order in which they were put */
};

/* An empty table for CPUs with these counters; rows stays the caller's. */
void vmp_table_init(struct vmp_table *table, u64 counters, struct vmp_row *rows, u32 max);

/*
 * Copies the row into the table and shares the counters anew; other rows' counters may move.
 * Returns 0 or -VMP_EINVAL     vm 0, no or too many events, an unknown flag or delivery, one to the
 * guest without handler, an event that no counter of this CPU counts, or in neither mode;
 * -VMP_EBUSY the VM has a row; -VMP_EFULL      max rows are there; -VMP_ECOUNTERS  the events do
 * not fit into the counters at once and VMP_ROW_MULTIPLEX is not set. The table is unchanged then.
 */
int vmp_table_put(struct vmp_table *table, const struct vmp_row *row);

/* Removes the VM's row and shares the counters anew. 0 or -VMP_ENOENT. */
int vmp_table_remove(struct vmp_table *table, u64 vm);

/* The VM's row, or null. Valid until the table is changed. */
struct vmp_row *vmp_table_find(struct vmp_table *table, u64 vm);

#endif
