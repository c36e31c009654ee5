// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each vCPU's first entry behind a reset has its MMU off, and so has that of one that the guest
 * switches on (PSCI CPU_ON), but at the address that was asked for. A kernel that starts another
 * one may have done so between two entries: that one lies elsewhere in memory, unless the old one
 * was shut down in order, which its module tells. Before a kernel takes FIQs it has set up the
 * interrupt controller, with an exit for each access.
 */
#include <asm/kvm_emulate.h>
#include <asm/kvm_hyp.h>

#include "kernel_arm64.h"

#define TABLES GENMASK_ULL(47, 12)
/* Where page tables are isolated programs have tables of their own, two pages below the kernel's,
 * of at most 64 KiB each. */
#define NEAR 0x20000

enum vp_kernel_seen vp_kernel_look(struct vp_kernel *kernel, const struct kvm_vcpu *guest)
{
	u64 started = guest->arch.reset_state.pc, tables;

	if (!(read_sysreg_el1(SYS_SCTLR) & SCTLR_ELx_M)) {
		if (started && *vcpu_pc(guest) == started)
			kernel->starting = true;
		return kernel->starting ? VP_KERNEL_STARTING : VP_KERNEL_OTHER;
	}
	kernel->starting = false;
	tables = read_sysreg_el1(SYS_TTBR1) & TABLES;
	if (!kernel->tables)
		kernel->tables = tables;
	return max(tables, kernel->tables) - min(tables, kernel->tables) <= NEAR ? VP_KERNEL_SAME
										 : VP_KERNEL_OTHER;
}
