// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>

#include "delivery_x86.h"
#include "vmcb_x86.h"

/* The entry, asm_exc_nmi() in Linux, has some 0x100 bytes up to its last IRET. More than it has is
 * of no harm: NMIs make the guest exit there. */
#define ENTRY_BYTES 0x400
#define AROUND	    256	   /* bytes */
#define CLEAN	    BIT(0) /* of the intercepts: the CPU may have them cached */

static size_t behind; /* where that is in each struct vcpu_svm, bytes; 0: not known yet */

static bool intercepts(const struct vmcb *vmcb, u32 bit)
{
	return vmcb->control.intercepts[bit / 32] & BIT(bit % 32);
}

/*
 * struct vcpu_svm begins with struct kvm_vcpu, behind which are the pointer to the VMCB in use and
 * the guest's own VMCB, {pointer, physical address}. Its header does not come with a kernel's
 * headers, and nothing exported says where that is, but nothing else looks like it: a page, by two
 * pointers and its physical address, that intercepts VMRUN, as the CPU demands.
 */
static bool is_here(const unsigned long *place)
{
	const struct vmcb *own = (const void *)place[1];

	return place[1] && !offset_in_page(place[1]) && virt_addr_valid(own) &&
	       place[2] == __sme_pa(place[1]) && intercepts(own, INTERCEPT_VMRUN);
}

static struct vmcb *look_around(const struct kvm_vcpu *guest)
{
	const unsigned long *place = (const void *)(guest + 1) - AROUND;
	const unsigned long *end = (const void *)(guest + 1) + AROUND;

	for (; place < end; place++)
		if (place[0] == place[1] && is_here(place)) {
			WRITE_ONCE(behind, (const void *)place - (const void *)guest);
			return (struct vmcb *)place[0];
		}
	return NULL;
}

struct vmcb *vp_vmcb(struct kvm_vcpu *guest, bool *nested)
{
	const unsigned long *place = (const void *)guest + READ_ONCE(behind);

	*nested = guest->arch.hflags & HF_GUEST_MASK;
	if (*nested)
		return NULL;
	if (READ_ONCE(behind) && place[0] == place[1] && is_here(place))
		return (struct vmcb *)place[0];
	return look_around(guest);
}

bool vp_nmi_exits(const struct vmcb *vmcb)
{
	return intercepts(vmcb, INTERCEPT_NMI);
}

void vp_set_nmi_exits(struct vmcb *vmcb, bool exits)
{
	u32 *word = &vmcb->control.intercepts[INTERCEPT_NMI / 32];

	if (exits)
		*word |= BIT(INTERCEPT_NMI % 32);
	else
		*word &= ~BIT(INTERCEPT_NMI % 32);
	vmcb->control.clean &= ~CLEAN;
}

/* The VMCB's own instruction pointer is that of the last exit, until KVM stores it. */
static bool in_entry(const struct kvm_vcpu *guest, const struct vmcb *vmcb, u64 entry)
{
	return !vmcb->save.cpl && guest->arch.regs[VCPU_REGS_RIP] - entry < ENTRY_BYTES;
}

static bool injects_nmi(const struct vmcb *vmcb)
{
	return (vmcb->control.event_inj & (SVM_EVTINJ_VALID | SVM_EVTINJ_TYPE_MASK)) ==
	       (SVM_EVTINJ_VALID | SVM_EVTINJ_TYPE_NMI);
}

/*
 * KVM takes its NMI for injected, and waits for an IRET (its intercept stays) before the next one:
 * so it takes the NMI that the guest is handling for its own, and that is what is wanted. The one
 * that has been dropped is made pending again.
 */
static void hold(struct kvm_vcpu *guest, struct vmcb *vmcb)
{
	vmcb->control.event_inj = 0;
	vp_queue_nmi(guest);
}

/* It steps through the guest's IRET where it cannot intercept it. */
static bool awaits_iret(const struct vmcb *vmcb)
{
	return intercepts(vmcb, INTERCEPT_IRET) || (vmcb->save.rflags & X86_EFLAGS_TF);
}

enum vp_guard vp_guard(struct kvm_vcpu *guest, struct vmcb *vmcb, u64 entry)
{
	if (in_entry(guest, vmcb, entry)) {
		if (!injects_nmi(vmcb))
			return VP_KEEP_ENTRY;
		hold(guest, vmcb);
		return VP_KEEP_HELD;
	}
	return injects_nmi(vmcb) || awaits_iret(vmcb) ? VP_KEEP_INJECTED : VP_EXPOSED;
}
