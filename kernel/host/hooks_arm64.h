/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where in KVM/arm64 a VM gets a CPU and where the CPU is taken away. KVM has no such hooks: two of
 * its tracepoints and a traced function do it.
 */
#ifndef VMPROF_HOOKS_ARM64_H
#define VMPROF_HOOKS_ARM64_H

#include <linux/kvm_host.h>

struct vp_hooks {
	/* The next thing is the guest; interrupts are off. */
	void (*assign)(struct kvm_vcpu *guest);
	/* The first thing behind the guest that can be hooked while interrupts are still off. */
	void (*taken_away)(struct kvm_vcpu *guest);
	/* The guest has executed a WFI or WFE that made it exit; interrupts are on. */
	void (*idle)(struct kvm_vcpu *guest);
};

/* 0 or -errno; hooks stays the caller's. */
int vp_hooks_set(const struct vp_hooks *hooks);
/* None of them runs any more when this returns. Nothing if they are not set. */
void vp_hooks_clear(void);
void vp_hooks_exit(void); /* they are not set again */

#endif
