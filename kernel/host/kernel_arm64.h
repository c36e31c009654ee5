/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a vCPU still runs the kernel whose module has the handler. A VM may be reset, or start
 * another kernel itself; that one's own handler of FIQs panics.
 */
#ifndef VMPROF_KERNEL_ARM64_H
#define VMPROF_KERNEL_ARM64_H

#include <linux/kvm_host.h>

/* Of one vCPU; all zero before it is looked at first. */
struct vp_kernel {
	u64 tables;    /* where its page tables lie; 0: not seen yet */
	bool starting; /* it was switched on by another one, and has not come to its kernel yet */
};

enum vp_kernel_seen {
	VP_KERNEL_SAME,
	VP_KERNEL_STARTING, /* without page tables: no handler can be called now */
	VP_KERNEL_OTHER,
};

/* At an entry, with the guest's registers of EL1 loaded. */
enum vp_kernel_seen vp_kernel_look(struct vp_kernel *kernel, const struct kvm_vcpu *guest);

#endif
