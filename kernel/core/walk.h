/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest's own page tables, walked from outside: from a virtual to a guest-physical address.
 * Permissions are not looked at. What is in the tables is the guest's affair: a walk reads at most
 * five entries, whatever they say.
 *
 * Formats: Intel SDM volume 3, 4.5 (4- and 5-level paging); Arm ARM D8.2 to D8.3 (VMSAv8-64, stage
 * 1).
 */
#ifndef VMPROF_CORE_WALK_H
#define VMPROF_CORE_WALK_H

#include "core.h"

/* Reads the 8 bytes at a guest-physical address, a multiple of 8. 0, or not 0 if that cannot be. */
struct vmp_phys {
	int (*read)(const struct vmp_phys *phys, u64 gpa, u64 *entry);
};

/* cr3 with whatever flags; levels: 4 or 5. 0 or -VMP_ENOENT: nothing is mapped there. */
int vmp_walk_x86(const struct vmp_phys *phys, u64 cr3, u32 levels, u64 vaddr, u64 *gpa);

struct vmp_arm64_tables {
	u64 ttbr0, ttbr1, tcr; /* TTBR0_EL1, TTBR1_EL1, TCR_EL1 */
};

int vmp_walk_arm64(const struct vmp_phys *phys, const struct vmp_arm64_tables *tables, u64 vaddr,
		   u64 *gpa);

#endif
