// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>

#include "pmu_arm64.h"

#define ALL 0xffffffffu

void vp_pmu_save(struct vp_pmu *pmu, u32 set)
{
	u32 left, i;

	pmu->control = read_sysreg(pmcr_el0);
	write_sysreg(pmu->control & ~(VMP_PMCR_E | VMP_PMCR_P | VMP_PMCR_C), pmcr_el0);
	isb();
	pmu->enabled = read_sysreg(pmcntenset_el0);
	pmu->interrupts = read_sysreg(pmintenset_el1);
	pmu->overflows = read_sysreg(pmovsset_el0);
	write_sysreg(ALL, pmcntenclr_el0);
	write_sysreg(ALL, pmintenclr_el1);
	write_sysreg(ALL, pmovsclr_el0);
	pmu->cycles = read_sysreg(pmccntr_el0);
	pmu->cycles_filter = read_sysreg(pmccfiltr_el0);
	pmu->select = read_sysreg(pmselr_el0);
	pmu->user = read_sysreg(pmuserenr_el0);
	pmu->set = (set | pmu->enabled) & ~BIT(VMP_PMU_CYCLES);
	for (left = pmu->set; left; left &= left - 1) {
		i = __ffs(left);
		pmu->type[i] = vmp_pmu_read_type(i);
		pmu->value[i] = vmp_pmu_read(i);
	}
	isb();
}

/* PMCR.E comes before the interrupts are enabled: an emulated PMU may look at its interrupt line
 * when these are written, and not when that is. */
void vp_pmu_load(const struct vp_pmu *pmu)
{
	u32 left, i;

	for (left = pmu->set; left; left &= left - 1) {
		i = __ffs(left);
		vmp_pmu_write_type(i, pmu->type[i]);
		vmp_pmu_write(i, pmu->value[i]);
	}
	write_sysreg(pmu->cycles, pmccntr_el0);
	write_sysreg(pmu->cycles_filter, pmccfiltr_el0);
	write_sysreg(pmu->select, pmselr_el0);
	write_sysreg(pmu->user, pmuserenr_el0);
	write_sysreg(pmu->control & ~(VMP_PMCR_P | VMP_PMCR_C), pmcr_el0);
	isb();
	write_sysreg(pmu->enabled, pmcntenset_el0);
	write_sysreg(pmu->overflows, pmovsset_el0);
	write_sysreg(pmu->interrupts, pmintenset_el1);
	isb();
}
