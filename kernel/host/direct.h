/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivery to the guest: direct, where the counter's interrupt goes to its own handler with no exit
 * to the hypervisor, and inject, where the host takes it and raises the guest's. While such a VM of
 * the table has a CPU, that CPU's counters, and with direct delivery the way of their interrupt,
 * are the VM's; at each exit the host has its own back, bit for bit.
 */
#ifndef VMPROF_DIRECT_H
#define VMPROF_DIRECT_H

#include <linux/smp.h>

#include "host.h"

/* A vCPU's, which the architecture's begins with. Changed on the CPU that runs it, but for wanted.
 */
struct vp_direct {
	bool wanted;	 /* it is to have the interrupt */
	const char *why; /* a sentence: it is not to have it any more; or null */
	u64 silent;	 /* ns that it has run since, all of whose exits had the same one waiting */
	u64 entries;	 /* with it */
	u64 clock_offset;
};

static inline bool vp_to_guest(u32 delivery)
{
	return delivery == VMP_DELIVER_DIRECT || delivery == VMP_DELIVER_INJECT;
}

/* Why this host does not do such a delivery for one who asks with these VMPROF_ATTACH_... flags, a
 * sentence; null if it does. */
const char *vp_direct_refusal(u32 delivery, u32 flags);

#ifdef CONFIG_ARM64
/* The pmu whose counters are lent, or null: once, before anything else. */
void vp_direct_init(struct arm_pmu *pmu);
/* Undoes that. */
void vp_arch_direct_exit(void);
#else
static inline void vp_arch_direct_exit(void)
{
}
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

/* Of a VM that runs another kernel than the one that has the handler. */
extern const char vp_direct_reset[];
/* No vCPU is to have it any more, with this sentence. The caller sleeps where taken_back() does. */
void vp_direct_take_back(struct vp_vm *vm, const char *why);

/* ------------------------------------------------------------------ direct_*.c */

/* What each architecture, and on x86 each delivery, does in its way. A function may be null where
 * that is said. */
struct vp_delivery {
	const char *silent; /* what is said of a VM whose handler does not acknowledge */
	/* The vCPU's, zeroed but for what the event says; or null. x86 only. */
	struct vp_direct *(*create)(const struct vmprof_event *event);
	/* Into KVM, while there is at least one VM: 0 or -errno. None of them runs any more when
	 * unhook returns. Both may be null. */
	int (*hook)(void);
	void (*unhook)(void);
	/* What the VM needs besides the hooks, its vCPUs being there: 0 or -errno; may be null.
	 * detach undoes it, when no vCPU has anything; may be null. */
	int (*attach)(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log);
	void (*detach)(struct vp_vm *vm);
	/* Of a stopped VM: the hooks are about to go, and nothing may rely on them any more. May
	 * be null. */
	void (*part)(struct vp_vm *vm);
	/* A profile of a vCPU, which is not wanted yet. */
	void (*begin)(struct vp_direct *direct);
	/* All vCPUs are wanted. May be null, as the next two. */
	void (*start)(struct vp_vm *vm);
	/* None is wanted, and each has left its guest since. */
	void (*stop)(struct vp_vm *vm);
	/* None is wanted any more, as the handler does not do its part. */
	void (*taken_back)(struct vp_vm *vm);
	/* Adds what only this architecture counts. */
	void (*status)(struct vp_direct *direct, struct vmprof_status *status);
};

const struct vp_delivery *vp_delivery_of(u32 delivery);

#ifdef CONFIG_X86_64
/* At tracepoint kvm_entry, of a vCPU with this delivery. */
void vp_direct_on_entry(struct vp_direct *direct, struct kvm_vcpu *guest);
#endif

static inline void vp_nothing(void *unused)
{
}

/* What was running in a guest has left it when this returns. */
static inline void vp_leave_guests(void)
{
	on_each_cpu(vp_nothing, NULL, 1);
}

#endif
