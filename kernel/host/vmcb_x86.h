/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU's VMCB, which is KVM's, and the three rules by which a guest is kept from an NMI that it
 * could not stand.
 *
 * Linux can be interrupted by an NMI within another one's handler, but not within the first
 * instructions of its NMI entry, for which it relies on the CPU to block NMIs. SVM has this
 * state of the CPU not in the VMCB: it ends with the first IRET of the host behind an exit, and an
 * NMI that KVM injects does not begin it.
 */
#ifndef VMPROF_VMCB_X86_H
#define VMPROF_VMCB_X86_H

#include <linux/kvm_host.h>

#include <asm/svm.h>

/*
 * The VMCB that the next entry uses. Null if there is none that is known: KVM has its data in
 * another way, or a guest of the guest runs; nested tells these apart. At tracepoint kvm_entry.
 */
struct vmcb *vp_vmcb(struct kvm_vcpu *guest, bool *nested);

/* Whether NMIs make the guest exit. */
bool vp_nmi_exits(const struct vmcb *vmcb);
void vp_set_nmi_exits(struct vmcb *vmcb, bool exits);

enum vp_guard {
	VP_EXPOSED,
	/* Rule 1: it stands in its NMI's entry, whose NMI the host's IRETs have unblocked. */
	VP_KEEP_ENTRY,
	/* Rule 2: KVM has injected an NMI, or does it now, and waits for the guest's IRET. */
	VP_KEEP_INJECTED,
	/* Rule 3: KVM, which knows nothing of the NMI whose entry the guest stands in, was about to
	 * inject another one there. It comes again when the guest has executed its IRET. */
	VP_KEEP_HELD,
};

/* What this entry has to be like, and for rule 3 makes it so; entry is the address in the guest's
 * gate of NMIs. At tracepoint kvm_entry. */
enum vp_guard vp_guard(struct kvm_vcpu *guest, struct vmcb *vmcb, u64 entry);

#endif
