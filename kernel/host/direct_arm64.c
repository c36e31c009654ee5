// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct delivery on arm64 (docs/direct-vector.md). GICv3 sends interrupts of Group 0 as FIQ
 * and those of Group 1, which are all of Linux's, as IRQ. Where each of them goes to while a guest
 * runs is HCR_EL2's to say. So the counter's interrupt is put in Group 0 and FIQs are let through
 * to EL1, and all else comes to the host as ever.
 *
 * An overflow that waits when the VM is entered is a trouble: CPUs with RAS look at ISR_EL1 in the
 * last instructions before the guest, and go back if anything is pending. So none is ever pending
 * there: the counter is set to two events before its overflow, and overflows again in the guest.
 */
#include <linux/irq.h>
#include <linux/irqdomain.h>

#include <asm/kvm_arm.h>
#include <asm/kvm_emulate.h>

#include "gic_arm64.h"
#include "lend_arm64.h"

/* Events from an entry to a deferred overflow. Of one that is due with the very next event QEMU's
 * PMU takes no notice. */
#define AHEAD_MIN 2
#define AHEAD_MAX 65536
#define PPI_FIRST 16
#define PPI_END	  32

/* What a CPU is to get back. */
struct vector {
	struct vp_gic_saved gic;
	u64 group0;
};
static DEFINE_PER_CPU(struct vector, host_vector);

static u32 intid; /* the PMU's interrupt; the same number on each CPU */

static const char *find_interrupt(struct arm_pmu *pmu)
{
	int cpu, irq;

	for_each_cpu(cpu, &pmu->supported_cpus)
	{
		struct irq_data *data;

		if (!cpu_online(cpu))
			continue;
		irq = per_cpu_ptr(pmu->hw_events, cpu)->irq;
		data = irq_get_irq_data(irq);
		if (!data || irqd_to_hwirq(data) < PPI_FIRST || irqd_to_hwirq(data) >= PPI_END)
			return "the PMU's interrupt is no private one of each CPU";
		if (intid && intid != irqd_to_hwirq(data))
			return "the PMU's interrupt is not the same on all CPUs";
		intid = irqd_to_hwirq(data);
	}
	return intid ? NULL : "the PMU has no interrupt";
}

static const char *init(struct arm_pmu *pmu)
{
	return find_interrupt(pmu) ?: vp_gic_init();
}

static const char *misfit(const struct vp_loan *loan, const struct kvm_vcpu *guest)
{
	if (!(guest->arch.vgic_cpu.vgic_v3.vgic_hcr & ICH_HCR_TALL0))
		return "the host has to be booted with kvm-arm.vgic_v3_group0_trap=1, else the "
		       "guest could hold off the host's interrupts";
	return vp_gic_here() ? NULL : "a CPU's part of the interrupt controller is not found";
}

/* See above. Entries that are refused all the same, since the counter was too quick, get longer. */
static void defer_overflows(struct vp_loan *loan, const struct kvm_vcpu *guest)
{
	struct vp_deferral *deferral = &loan->deferral;
	struct vp_pmu *pmu = &loan->pmu;
	u64 waiting = pmu->overflows & pmu->interrupts, value;
	u32 i;

	if (waiting && deferral->at_all && deferral->entry_pc == *vcpu_pc(guest))
		deferral->ahead = min(deferral->ahead * 2, (u32)AHEAD_MAX);
	else
		deferral->ahead = AHEAD_MIN;
	deferral->entry_pc = *vcpu_pc(guest);
	deferral->at_all = waiting;
	if (waiting)
		deferral->entered = ktime_get_mono_fast_ns();
	deferral->count += hweight64(waiting);
	value = -(u64)deferral->ahead;
	for (i = 0; i < loan->nr; i++)
		if (waiting & BIT(i))
			pmu->value[i] = pmu->control & VMP_PMCR_LP ? value : (u32)value;
	if (waiting & BIT(VMP_PMU_CYCLES))
		pmu->cycles = value;
	pmu->overflows &= ~waiting;
}

/* The interrupt comes to the handler at the VM's kernel's level. */
static void set_vector(struct kvm_vcpu *guest)
{
	struct vector *host = this_cpu_ptr(&host_vector);

	vp_gic_set_fiq(intid, &host->gic);
	guest->arch.hcr_el2 &= ~HCR_FMO;
	host->group0 = read_sysreg_s(SYS_ICC_IGRPEN0_EL1);
	write_sysreg_s(1, SYS_ICC_IGRPEN0_EL1);
}

static void enter(struct vp_loan *loan, struct kvm_vcpu *guest)
{
	set_vector(guest);
	defer_overflows(loan, guest);
}

static void leave(struct kvm_vcpu *guest)
{
	write_sysreg_s(this_cpu_ptr(&host_vector)->group0, SYS_ICC_IGRPEN0_EL1);
	isb();
}

/* Time that the vCPU has not run, since it waits or another one has the CPU, says nothing of its
 * handler. */
static void note_silence(struct vp_loan *loan)
{
	u64 *silent = &loan->direct.silent;

	if (!(loan->pmu.overflows & loan->pmu.interrupts))
		WRITE_ONCE(*silent, 0);
	else if (loan->deferral.at_all)
		WRITE_ONCE(*silent, *silent + ktime_get_mono_fast_ns() - loan->deferral.entered);
}

/* A handler runs with FIQs masked. */
static bool left(struct vp_loan *loan, struct kvm_vcpu *guest, bool entered)
{
	if (entered) {
		vp_gic_restore(intid, &this_cpu_ptr(&host_vector)->gic);
		guest->arch.hcr_el2 |= HCR_FMO;
	}
	note_silence(loan);
	return *vcpu_cpsr(guest) & PSR_F_BIT;
}

const struct vp_way vp_direct_way = {
	.init = init,
	.exit = vp_gic_exit,
	.misfit = misfit,
	.enter = enter,
	.leave = leave,
	.left = left,
	.ends_idle = true,
};
