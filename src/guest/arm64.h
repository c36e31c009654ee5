// SPDX-License-Identifier: GPL-2.0-only
/*
 * What src/guest must know of the aarch64 architecture: page tables with granules of 4, 16 and 64
 * KiB, addresses of up to 52 bits. Source of all formats: Arm Architecture Reference Manual (DDI
 * 0487), chapter D8 "The AArch64 Virtual Memory System Architecture", and TCR_EL1, TTBR1_EL1 in
 * D19.
 */
#ifndef VMPROF_GUEST_ARM64_H
#define VMPROF_GUEST_ARM64_H

#include "guest/kernel.h"

/* struct pt_regs: what the kernel saves of the interrupted mode; words, and bytes up to the last.
 */
enum arm64_pt_regs {
	ARM64_PT_FP = 29,
	ARM64_PT_LR,
	ARM64_PT_SP,
	ARM64_PT_PC,
	ARM64_PT_PSTATE,
	ARM64_PT_REGS_USED = (ARM64_PT_PSTATE + 1) * 8
};

/* PSTATE, of the exception level: 0 is user mode's. */
#define ARM64_PSTATE_MODE 0xfu

/*
 * How page tables are read under these registers; the kernel's half of every address space is the
 * one of @ttbr1. -EINVAL: TCR_EL1 has a size or a granule that there is not.
 */
int arm64_paging_set(struct guest_paging *p, uint64_t tcr, uint64_t ttbr1);

/* The top table's address in TTBR0_EL1 or TTBR1_EL1: without ASID, with the bits above 48. */
uint64_t arm64_root(const struct guest_paging *p, bool kernel_half, uint64_t ttbr);

/*
 * Finding the kernel without registers: calls @fn for top tables of the kernel's half in RAM that
 * have a kernel's text, with how they are read and where that text starts, until it returns not 0,
 * which is returned. Else 0, -ESRCH, or -ETIMEDOUT after 2 s of CPU time.
 */
typedef int (*arm64_scan_fn)(void *ctx, const struct guest_paging *p, uint64_t text);
int arm64_scan(struct guest_mem *mem, arm64_scan_fn fn, void *ctx);

#endif
