// SPDX-License-Identifier: GPL-2.0-only
/*
 * Injected interrupts on arm64 (docs/direct-vector.md). The counter's interrupt is the host's as
 * ever: it ends the guest's time, and is gone when the VM's PMU is saved, before the host can take
 * it. What waits in the saved PMU is made an SGI of the guest's interrupt controller, where KVM
 * does it for its own virtual PMU.
 *
 * The overflow is still there at the next entry, and would end the guest's time at once again: so
 * the counters' interrupts are switched off until the guest's handler, when all else is done,
 * switches them on. That acknowledges. Who never does has no samples, and costs nothing.
 */
#include <linux/kprobes.h>

#include <asm/kvm_emulate.h>
#include <kvm/arm_vgic.h>

#include "lend_arm64.h"

/* Whose interrupt it is was a number before 6.7. */
typedef int by_number(struct kvm *kvm, int vcpu, unsigned int intid, bool level, void *owner);
#define WHO(guest)                                                                                 \
	__builtin_choose_expr(                                                                     \
		__builtin_types_compatible_p(typeof(kvm_vgic_inject_irq), by_number),              \
		(guest)->vcpu_idx, (guest))

static typeof(kvm_vgic_inject_irq) *raise; /* it is not exported */

static const char *init(struct arm_pmu *pmu)
{
	struct kprobe probe = {.symbol_name = "kvm_vgic_inject_irq"};

	if (register_kprobe(&probe))
		return "the host's kernel has no kvm_vgic_inject_irq() that can be found";
	raise = (void *)probe.addr;
	unregister_kprobe(&probe);
	return NULL;
}

static const char *misfit(const struct vp_loan *loan, const struct kvm_vcpu *guest)
{
	if (!irqchip_in_kernel(guest->kvm) ||
	    guest->kvm->arch.vgic.vgic_model != KVM_DEV_TYPE_ARM_VGIC_V3)
		return "the VM has no GICv3 that is KVM's (QEMU: -machine gic-version=3)";
	if (guest->arch.vgic_cpu.private_irqs[loan->signal.number].hw)
		return "the interrupts between the VM's CPUs are the hardware's own (GICv4.1)";
	return NULL;
}

static void enter(struct vp_loan *loan, struct kvm_vcpu *guest)
{
	if (loan->signal.raised || loan->signal.held)
		loan->pmu.interrupts = 0;
}

/* One that comes too soon stays until an exit that comes later: the host's next tick, if no other.
 */
static void signal_overflow(struct vp_loan *loan, struct kvm_vcpu *guest)
{
	struct vp_signal *signal = &loan->signal;
	u64 now = ktime_get_mono_fast_ns();

	if (now - signal->last < VMPROF_INJECT_PAUSE_NS) {
		signal->holds += !signal->held;
		signal->held = true;
		return;
	}
	signal->held = false;
	signal->raised = true;
	signal->last = now;
	signal->raises++;
	raise(guest->kvm, WHO(guest), signal->number, true, NULL);
}

/* Until it has acknowledged, the handler may touch its PMU at any time. */
static bool left(struct vp_loan *loan, struct kvm_vcpu *guest, bool entered)
{
	struct vp_signal *s = &loan->signal;

	if (loan->pmu.interrupts)
		s->raised = false;
	if (s->held && !loan->pmu.overflows) {
		s->held = false;
		loan->pmu.interrupts = loan->mask;
	}
	if (entered && !s->raised && loan->pmu.overflows & (s->held ? ~0ull : loan->pmu.interrupts))
		signal_overflow(loan, guest);
	return s->raised;
}

const struct vp_way vp_inject_way = {
	.init = init,
	.misfit = misfit,
	.enter = enter,
	.left = left,
};
