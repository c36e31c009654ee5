// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests on x86: their registers are in struct kvm_vcpu behind an exit, but not all at once. SVM's
 * CR3 is put there by the exit's handler, after the interrupt that was the exit has been taken; VMX
 * keeps registers in the VMCS until somebody asks. So a sample is completed at the next entry into
 * the guest, when everything is as it was, and nothing of the guest has run in between.
 */
#include <linux/static_call.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include "direct.h"
#include "host.h"

/* kvm.ko's tracepoint; the header with its prototype does not come with a kernel's headers. */
extern struct tracepoint __tracepoint_kvm_entry;

const bool vp_arch_complete_now;
const u32 vp_arch_sample_flags = VMP_SAMPLE_KERNEL | VMP_SAMPLE_SP | VMP_SAMPLE_PAGE_TABLE |
				 VMP_SAMPLE_TASK | VMP_SAMPLE_MEMORY | VMP_SAMPLE_REGS;

static unsigned long reg(struct kvm_vcpu *guest, int nr)
{
	if (!test_bit(nr, (unsigned long *)&guest->arch.regs_avail))
		static_call(kvm_x86_cache_reg)(guest, nr);
	return guest->arch.regs[nr];
}

bool vp_arch_in_guest(struct kvm_vcpu *guest, struct pt_regs *regs)
{
	return READ_ONCE(guest->arch.handling_intr_from_guest);
}

/* The mode is told by the half of the address space: KVM's own answer is not exported, and perf's
 * is wrong before 6.7 (it is that of the last preemption). */
void vp_arch_regs(struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	sample->ip = kvm_get_linear_rip(guest);
	sample->sp = reg(guest, VCPU_REGS_RSP);
	sample->fp = reg(guest, VCPU_REGS_RBP);
	sample->flags |= VMP_SAMPLE_SP;
	if (sample->ip >> 63)
		sample->flags |= VMP_SAMPLE_KERNEL;
}

void vp_arch_page_table(struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	if (!test_bit(VCPU_EXREG_CR3, (unsigned long *)&guest->arch.regs_avail))
		static_call(kvm_x86_cache_reg)(guest, VCPU_EXREG_CR3);
	sample->page_table = guest->arch.cr3;
	sample->flags |= VMP_SAMPLE_PAGE_TABLE;
}

u64 vp_arch_task(struct kvm_vcpu *guest, const struct vmp_sample *sample)
{
	return 0;
}

/* All general ones are in memory behind an exit; those by which a kernel finds its CPU are not. */
void vp_arch_all_regs(struct kvm_vcpu *guest, struct vmp_regs *regs)
{
	int i;

	*regs = (struct vmp_regs){.flags = kvm_get_rflags(guest)};
	for (i = 0; i < VCPU_REGS_RIP; i++)
		regs->gpr[i] = reg(guest, i);
	regs->system[VMP_X86_CR0] = guest->arch.cr0;
	regs->system[VMP_X86_CR4] = guest->arch.cr4;
	regs->system[VMP_X86_EFER] = guest->arch.efer;
}

int vp_arch_walk(struct kvm_vcpu *guest, u64 root_clear, u64 vaddr, u64 *gpa)
{
	struct vp_phys phys;

	vp_phys_init(&phys, guest);
	return vmp_walk_x86(&phys.phys, guest->arch.cr3 & ~root_clear,
			    guest->arch.cr4 & X86_CR4_LA57 ? 5 : 4, vaddr, gpa);
}

/* Interrupts are off. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
static void on_entry(void *unused, struct kvm_vcpu *guest, bool force_immediate_exit)
#else
static void on_entry(void *unused, struct kvm_vcpu *guest)
#endif
{
	struct vp_vcpu *vcpu = vp_vcpu_of(current);

	if (vcpu && !vcpu->direct)
		vp_complete(vcpu, guest);
	else if (vcpu && vcpu->vm->delivery == VMP_DELIVER_DIRECT)
		vp_direct_on_entry(vcpu->direct, guest);
}

/* Intel: the architectural PMU tells; AMD: six with the extension, else four. */
u64 vp_arch_counters(const struct perf_event *cycles)
{
	u32 eax, ebx, ecx, edx, general, fixed;

	if (boot_cpu_data.x86_vendor != X86_VENDOR_INTEL)
		return GENMASK_ULL(boot_cpu_has(X86_FEATURE_PERFCTR_CORE) ? 5 : 3, 0);
	cpuid(0xa, &eax, &ebx, &ecx, &edx);
	general = min((eax >> 8) & 0xff, 32u);
	fixed = (eax & 0xff) > 1 ? min(edx & 0x1f, 3u) : 0;
	return (general ? GENMASK_ULL(general - 1, 0) : 0) |
	       (fixed ? GENMASK_ULL(31 + fixed, 32) : 0);
}

/* Fixed counter 32 counts instructions, 33 cycles, 34 reference cycles and nothing else counts
 * those. */
u64 vp_arch_counters_for(const struct vmprof_event *event, u64 counters)
{
	u64 general = counters & GENMASK_ULL(31, 0);

	switch (event->type) {
	case PERF_TYPE_HARDWARE:
		if (event->config == PERF_COUNT_HW_INSTRUCTIONS)
			return general | (counters & BIT_ULL(32));
		if (event->config == PERF_COUNT_HW_CPU_CYCLES)
			return general | (counters & BIT_ULL(33));
		if (event->config == PERF_COUNT_HW_REF_CPU_CYCLES && (counters & BIT_ULL(34)))
			return BIT_ULL(34);
		return general;
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return general;
	}
	return 0;
}

int vp_arch_init(void)
{
	return tracepoint_probe_register(&__tracepoint_kvm_entry, on_entry, NULL);
}

void vp_arch_exit(void)
{
	tracepoint_probe_unregister(&__tracepoint_kvm_entry, on_entry, NULL);
	tracepoint_synchronize_unregister();
	vp_direct_exit();
}
