/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GICv3, as far as one private interrupt is concerned: the group that says whether it comes as IRQ
 * or as FIQ, and its priority. (Arm IHI 0069.)
 */
#ifndef VMPROF_GIC_ARM64_H
#define VMPROF_GIC_ARM64_H

#include <linux/types.h>

/* What an interrupt of this CPU was before it was changed. */
struct vp_gic_saved {
	u32 groups;
	u8 priority;
};

/* Finds the registers of all CPUs; null, or a sentence: why they are of no use. */
const char *vp_gic_init(void);
void vp_gic_exit(void);
/* Interrupts are off in all that follow. Whether this CPU's registers are known; else nothing of
 * the rest may be called. */
bool vp_gic_here(void);
/* As FIQ (Group 0), behind all that the host uses. */
void vp_gic_set_fiq(u32 intid, struct vp_gic_saved *saved);
void vp_gic_restore(u32 intid, const struct vp_gic_saved *saved);

#endif
