/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arm's PMUv3 as both modules use it: registers that a number chooses, and bits. (Arm ARM D11, and
 * D17 for the registers.)
 */
#ifndef VMPROF_ARM64_PMU_H
#define VMPROF_ARM64_PMU_H

#include <linux/types.h>

#include <asm/barrier.h>
#include <asm/sysreg.h>

#define VMP_PMCR_E  BIT(0) /* enable */
#define VMP_PMCR_P  BIT(1) /* reset the event counters */
#define VMP_PMCR_C  BIT(2) /* reset the cycle counter */
#define VMP_PMCR_D  BIT(3) /* the cycle counter counts every 64th cycle */
#define VMP_PMCR_DP BIT(5) /* no cycles where counting is forbidden */
#define VMP_PMCR_LC BIT(6) /* the cycle counter has 64 bits */
#define VMP_PMCR_LP BIT(7) /* event counters have 64 bits */

/* PMEVTYPERn_EL0: what is counted, and in which of EL1 and EL0 */
#define VMP_TYPE_EVENT	   0xffffu
#define VMP_TYPE_NO_KERNEL BIT(31)
#define VMP_TYPE_NO_USER   BIT(30)

#define VMP_EVENT_SW_INCR  0
#define VMP_USER_SW_INCR   BIT(1) /* PMUSERENR: programs may increment it */

#define VMP_PMU_COUNTERS   31 /* event counters that a PMU may have; 31 is the cycle counter */
#define VMP_PMU_CYCLES	   31

static inline u32 vmp_pmu_counters(void)
{
	return read_sysreg(pmcr_el0) >> 11 & 0x1f;
}

/* PMSELR_EL0 is changed by these: whoever owns it saves it. */
static inline u64 vmp_pmu_read(u32 counter)
{
	write_sysreg(counter, pmselr_el0);
	isb();
	return read_sysreg(pmxevcntr_el0);
}

static inline u64 vmp_pmu_read_type(u32 counter)
{
	write_sysreg(counter, pmselr_el0);
	isb();
	return read_sysreg(pmxevtyper_el0);
}

static inline void vmp_pmu_write(u32 counter, u64 value)
{
	write_sysreg(counter, pmselr_el0);
	isb();
	write_sysreg(value, pmxevcntr_el0);
}

static inline void vmp_pmu_write_type(u32 counter, u64 type)
{
	write_sysreg(counter, pmselr_el0);
	isb();
	write_sysreg(type, pmxevtyper_el0);
}

#endif
