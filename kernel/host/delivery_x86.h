/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deliveries to the guest on x86: what NMIs that come by themselves (direct_x86.c) and those that
 * KVM injects (inject_x86.c) have in common. Both are of one event, a clock; and which NMI is the
 * guest's to take is in the log that it shares with its host.
 */
#ifndef VMPROF_DELIVERY_X86_H
#define VMPROF_DELIVERY_X86_H

#include "../uapi/vmprof_log.h"
#include "direct.h"

#define VP_LOG_PAGES 2

struct vp_log {
	struct page *pages[VP_LOG_PAGES]; /* of vmprof_log.h */
};

/* As KVM's kvm_inject_nmi() does, which not all kernels export. In any context of the vCPU's CPU.
 */
static inline void vp_queue_nmi(struct kvm_vcpu *guest)
{
	atomic_inc(&guest->arch.nmi_queued);
	kvm_make_request(KVM_REQ_NMI, guest);
}

extern const struct vp_delivery vp_direct_delivery, vp_inject_delivery;

/* Where each vCPU's numbers begin: of NMIs that were sent, and that the guest has taken. */
u32 *vp_log_sent(const struct vp_log *log);
const u32 *vp_log_taken(const struct vp_log *log);
/* Why a vCPU cannot have its numbers there or its guest's times cannot be told, a sentence; or
 * null. While it is loaded. */
const char *vp_log_misfit(const struct kvm_vcpu *guest);

#endif
