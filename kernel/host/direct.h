/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The direct delivery: the counter's interrupt goes to the guest's own handler, with no exit to the
 * hypervisor. While a VM of the table whose delivery is direct has a CPU, that CPU's counters and
 * the way of their interrupt are the VM's; at each exit the host has its own back, bit for bit.
 */
#ifndef VMPROF_DIRECT_H
#define VMPROF_DIRECT_H

#include <linux/smp.h>

#include "host.h"

/* Why this host does not do it for one who asks with these VMPROF_ATTACH_... flags, a sentence;
 * null if it does. */
const char *vp_direct_refusal(u32 flags);

#ifdef CONFIG_ARM64
/* The pmu whose counters are lent, or null: once, before anything else. */
void vp_direct_init(struct arm_pmu *pmu);
#endif
void vp_direct_exit(void);
/*
 * The log that attach->log says, pinned; null if there is none, or none is needed, or an error. It
 * takes the address space's lock, so that the caller has not the VM's. unpin accepts null.
 */
#ifdef CONFIG_X86_64
struct vp_log *vp_direct_pin(const struct vmprof_attach *attach);
void vp_direct_unpin(struct vp_log *log);
#else
static inline struct vp_log *vp_direct_pin(const struct vmprof_attach *attach)
{
	return NULL;
}
static inline void vp_direct_unpin(struct vp_log *log)
{
}
#endif
/* The vCPU's part of a row: 0 or -errno. free undoes it and accepts a vCPU that has none. */
int vp_direct_new(struct vp_vcpu *vcpu, const struct vmprof_event *events, u32 nr);
void vp_direct_free(struct vp_vcpu *vcpu);
/* Hooks into KVM, while there is at least one VM: 0, and the log is the VM's, or -errno. */
int vp_direct_attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log);
void vp_direct_detach(struct vp_vm *vm);
/* The vCPUs' next entries give them the counters; when stop returns no vCPU has them. */
void vp_direct_start(struct vp_vm *vm);
void vp_direct_stop(struct vp_vm *vm);
void vp_direct_status(struct vp_vm *vm, struct vmprof_status *status);

static inline void vp_nothing(void *unused)
{
}

/* What was running in a guest has left it when this returns. */
static inline void vp_leave_guests(void)
{
	on_each_cpu(vp_nothing, NULL, 1);
}

#endif
