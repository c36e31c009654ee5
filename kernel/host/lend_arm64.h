/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of arm64 that are lent to a VM while it has a CPU, and the two ways of an overflow to
 * its handler: direct_arm64.c and inject_arm64.c.
 */
#ifndef VMPROF_LEND_ARM64_H
#define VMPROF_LEND_ARM64_H

#include <linux/perf/arm_pmu.h>

#include "direct.h"
#include "kernel_arm64.h"
#include "pmu_arm64.h"

#define VP_LENT_MAX 8

/* Direct: overflows that waited when the VM was entered. */
struct vp_deferral {
	u64 entry_pc;
	u32 ahead;   /* events from the entry to such an overflow */
	bool at_all; /* at the last entry */
	u64 entered; /* ns, if so */
	u64 count;
};

/* Inject: the interrupt that the host raises. */
struct vp_signal {
	u32 number;
	bool raised; /* and the guest's handler has not dealt with it */
	bool held;   /* an overflow waits that is too soon behind the last one */
	u64 last;    /* ns: when it was raised last */
	u64 raises, holds;
};

/* A vCPU's row, and its PMU while it has none. Changed on the CPU that runs it, with interrupts
 * off. */
struct vp_loan {
	struct vp_direct direct;
	const struct vp_way *way;
	u32 nr, mask;
	u64 types[VP_LENT_MAX], values[VP_LENT_MAX], user;
	bool begin;  /* from the row's values; of the former profile it may still have a PMU */
	bool unsafe; /* it may be in its handler, or about to be */
	bool gone;   /* whatever it is in: it is not lent anything any more */
	struct vp_kernel kernel;
	struct vp_pmu pmu;
	struct vp_deferral deferral;
	struct vp_signal signal;
};

/* One of the two ways. Interrupts are off in all but the first two. */
struct vp_way {
	/* Once: null, or a sentence: why this host has it not. */
	const char *(*init)(struct arm_pmu *pmu);
	void (*exit)(void); /* may be null */
	/* Why this VM cannot have it, a sentence, or null: known when it runs only. */
	const char *(*misfit)(const struct vp_loan *loan, const struct kvm_vcpu *guest);
	/* The VM's PMU is loaded next; behind that the guest runs. */
	void (*enter)(struct vp_loan *loan, struct kvm_vcpu *guest);
	/* It has run, its PMU is saved next. May be null. */
	void (*leave)(struct kvm_vcpu *guest);
	/* That is saved. Says whether the guest may go on in its handler: that has its PMU then,
	 * switched off, also when the profile is over. entered: behind enter; else it was switched
	 * off now. */
	bool (*left)(struct vp_loan *loan, struct kvm_vcpu *guest, bool entered);
	bool ends_idle; /* a guest that waits for interrupts is in no handler */
};

extern const struct vp_way vp_direct_way, vp_inject_way;

#endif
