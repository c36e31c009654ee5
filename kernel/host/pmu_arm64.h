/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU's whole PMU as it is at one moment, to be taken away from one owner and given to another.
 */
#ifndef VMPROF_PMU_ARM64_H
#define VMPROF_PMU_ARM64_H

#include "../arm64/pmu.h"

struct vp_pmu {
	u64 control;				 /* PMCR */
	u64 enabled, interrupts, overflows;	 /* PMCNTEN, PMINTEN, PMOVS: a bit a counter */
	u64 cycles, cycles_filter, select, user; /* PMCCNTR, PMCCFILTR, PMSELR, PMUSERENR */
	u32 set;				 /* event counters that are in the following */
	u64 value[VMP_PMU_COUNTERS], type[VMP_PMU_COUNTERS];
};

/* Stops the PMU and reads it, of the event counters those in set and those that are enabled:
 * nothing counts, and no interrupt waits, afterwards. Interrupts are off. */
void vp_pmu_save(struct vp_pmu *pmu, u32 set);
/* Behind a save: makes it what it was. */
void vp_pmu_load(const struct vp_pmu *pmu);

#endif
