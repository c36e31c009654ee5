/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The NMIs of the direct delivery: a timer sends them to the CPUs that run vCPUs, and whoever takes
 * one settles it, once. A vCPU has at most one under way.
 */
#ifndef VMPROF_NMI_X86_H
#define VMPROF_NMI_X86_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/types.h>

/* How an NMI that was sent has ended. */
enum vp_nmi_end {
	VP_NMI_GUEST,
	VP_NMI_HOST,
	VP_NMI_GUARD,
	VP_NMI_FORWARDED,
	VP_NMI_MERGED,
	VP_NMI_ENDS,
};

/* A vCPU's. */
struct vp_nmi {
	int cpu; /* where it can be sent to now: there its guest runs exposed; -1: nowhere */
	u32 sent, settled; /* the number of the last one; differ while one is under way */
	u32 *post;	   /* in the log: where the guest sees which was sent, */
	const u32 *taken;  /* and says which it has taken; null until the vCPU is known */
	int sent_to;	   /* the CPU */
	u64 sent_at;	   /* ns */
	u64 asked_at;	   /* ns: when the host's handlers were asked last, */
	u64 asked_of;	   /* and how many the guest had taken then */
	atomic64_t count, ends[VP_NMI_ENDS], late, foreign, unsent;
};

/* A VM's. */
struct vp_nmis {
	struct hrtimer timer;
	u64 period; /* ns */
	bool over;  /* no more are wanted, although it has not been stopped */
	u32 nr;
	struct vp_nmi *of[]; /* [nr] */
};

/* Handlers of the host, while there is a VM: 0 or -errno. */
int vp_nmi_hook(void);
void vp_nmi_unhook(void);
/* Begins anew: nothing is under way, nothing was counted, its vCPU is not known. */
void vp_nmi_begin(struct vp_nmi *nmi);
/* Its vCPU is known. */
void vp_nmi_meet(struct vp_nmi *nmi, u32 *post, const u32 *taken);
/* Whether one is under way. */
bool vp_nmi_waits(struct vp_nmi *nmi);
/* The guest says that the NMI it has taken is the host's: it comes here once more. Not in an NMI;
 * preemption is off. */
void vp_nmi_take_back(void);

/* For nr vCPUs, which the caller fills in, or null; to be freed by kfree(). */
struct vp_nmis *vp_nmis_new(u32 nr, u64 period);
/* The timer is a housekeeping CPU's: to a vCPU on the same one nothing is sent. */
void vp_nmis_start(struct vp_nmis *nmis);
/*
 * When it returns no NMI is sent, and none is under way: what has not been seen for a while,
 * although no vCPU is exposed any more, counts as merged.
 */
void vp_nmis_stop(struct vp_nmis *nmis);
/* Nobody looks at the VM's any more when it returns. */
void vp_nmis_forget(const struct vp_nmis *nmis);

#endif
