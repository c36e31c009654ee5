// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests on arm64: general registers are in struct kvm_vcpu after an exit, system registers of EL1
 * still in the CPU on VHE hosts, saved on others.
 */
#include <linux/perf/arm_pmu.h>
#include <linux/version.h>

#include <asm/kvm_emulate.h>

#include "direct.h"
#include "host.h"

const bool vp_arch_complete_now = true;
const u32 vp_arch_sample_flags = VMP_SAMPLE_KERNEL | VMP_SAMPLE_SP | VMP_SAMPLE_PAGE_TABLE |
				 VMP_SAMPLE_TASK | VMP_SAMPLE_MEMORY | VMP_SAMPLE_REGS;

static struct arm_pmu *cpu_pmu; /* null: none */

static u64 sp_of(struct kvm_vcpu *guest, bool kernel)
{
	if (!kernel)
		return vcpu_gp_regs(guest)->sp;
	return is_kernel_in_hyp_mode() ? read_sysreg(sp_el1)
				       : ctxt_sys_reg(&guest->arch.ctxt, SP_EL1);
}

/*
 * The PMU's interrupt is an ordinary one, taken behind the exit: what it interrupts is always the
 * host. A thread that runs a vCPU and is in the kernel is taken for the guest; counters that
 * exclude the host make that right.
 */
bool vp_arch_in_guest(struct kvm_vcpu *guest, struct pt_regs *regs)
{
	return !user_mode(regs);
}

void vp_arch_regs(struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	bool kernel = vcpu_mode_priv(guest);

	sample->ip = *vcpu_pc(guest);
	sample->fp = vcpu_gp_regs(guest)->regs[29];
	sample->sp = sp_of(guest, kernel);
	sample->flags |= VMP_SAMPLE_SP | (kernel ? VMP_SAMPLE_KERNEL : 0);
}

static void tables_of(struct kvm_vcpu *guest, struct vmp_arm64_tables *tables)
{
	if (is_kernel_in_hyp_mode()) {
		tables->ttbr0 = read_sysreg_s(SYS_TTBR0_EL12);
		tables->ttbr1 = read_sysreg_s(SYS_TTBR1_EL12);
		tables->tcr = read_sysreg_s(SYS_TCR_EL12);
	} else {
		tables->ttbr0 = ctxt_sys_reg(&guest->arch.ctxt, TTBR0_EL1);
		tables->ttbr1 = ctxt_sys_reg(&guest->arch.ctxt, TTBR1_EL1);
		tables->tcr = ctxt_sys_reg(&guest->arch.ctxt, TCR_EL1);
	}
}

void vp_arch_page_table(struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	sample->page_table = is_kernel_in_hyp_mode() ? read_sysreg_s(SYS_TTBR0_EL12)
						     : ctxt_sys_reg(&guest->arch.ctxt, TTBR0_EL1);
	sample->flags |= VMP_SAMPLE_PAGE_TABLE;
}

/* Linux has it in SP_EL0 while it is in the kernel; there a program has its stack pointer. */
u64 vp_arch_task(struct kvm_vcpu *guest, const struct vmp_sample *sample)
{
	return sample->flags & VMP_SAMPLE_KERNEL ? vcpu_gp_regs(guest)->sp : 0;
}

void vp_arch_all_regs(struct kvm_vcpu *guest, struct vmp_regs *regs)
{
	const struct user_pt_regs *gp = vcpu_gp_regs(guest);
	struct vmp_arm64_tables tables;

	tables_of(guest, &tables);
	memcpy(regs->gpr, gp->regs, sizeof(regs->gpr));
	regs->flags = *vcpu_cpsr(guest);
	regs->system[VMP_ARM64_TTBR1] = tables.ttbr1;
	regs->system[VMP_ARM64_TCR] = tables.tcr;
	regs->system[VMP_ARM64_SP_EL0] = gp->sp;
	if (is_kernel_in_hyp_mode()) {
		regs->system[VMP_ARM64_VBAR] = read_sysreg_s(SYS_VBAR_EL12);
		regs->system[VMP_ARM64_TPIDR_EL1] = read_sysreg(tpidr_el1);
		regs->system[VMP_ARM64_ELR] = read_sysreg_s(SYS_ELR_EL12);
	} else {
		regs->system[VMP_ARM64_VBAR] = ctxt_sys_reg(&guest->arch.ctxt, VBAR_EL1);
		regs->system[VMP_ARM64_TPIDR_EL1] = ctxt_sys_reg(&guest->arch.ctxt, TPIDR_EL1);
		regs->system[VMP_ARM64_ELR] = ctxt_sys_reg(&guest->arch.ctxt, ELR_EL1);
	}
}

/* Both halves have a base of their own here: there are no bits to clear. */
int vp_arch_walk(struct kvm_vcpu *guest, u64 root_clear, u64 vaddr, u64 *gpa)
{
	struct vmp_arm64_tables tables;
	struct vp_phys phys;

	tables_of(guest, &tables);
	vp_phys_init(&phys, guest);
	return vmp_walk_arm64(&phys.phys, &tables, vaddr, gpa);
}

/* Bit 0 is the cycle counter, which counts nothing else. */
u64 vp_arch_counters(const struct perf_event *cycles)
{
	struct arm_pmu *pmu = to_arm_pmu(cycles->pmu);

	cpu_pmu = pmu;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return GENMASK_ULL(min(bitmap_weight(pmu->cntr_mask, ARMPMU_MAX_HWEVENTS), 32) - 1, 0);
#else
	return GENMASK_ULL(clamp(pmu->num_events, 1, 32) - 1, 0);
#endif
}

#define CPU_CYCLES 0x11 /* ARMv8's number of the event */

u64 vp_arch_counters_for(const struct vmprof_event *event, u64 counters)
{
	switch (event->type) {
	case PERF_TYPE_HARDWARE:
		return event->config == PERF_COUNT_HW_CPU_CYCLES ? counters : counters & ~1ull;
	case PERF_TYPE_HW_CACHE:
		return counters & ~1ull;
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return 0;
	}
	if (event->type != PERF_TYPE_RAW && (!cpu_pmu || event->type != cpu_pmu->pmu.type))
		return 0;
	return (event->config & 0xffff) == CPU_CYCLES ? counters : counters & ~1ull;
}

int vp_arch_init(void)
{
	vp_direct_init(cpu_pmu);
	return 0;
}

void vp_arch_exit(void)
{
	vp_direct_exit();
}
