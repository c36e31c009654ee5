// SPDX-License-Identifier: GPL-2.0-only
/*
 * What src/guest must know of the x86-64 architecture: page tables and what the
 * kernel saves. What is behind arch.h is not here. Source of all formats: Intel
 * SDM volume 3, chapters 3.4, 4.5 and 6.14.
 */
#ifndef VMPROF_GUEST_X86_H
#define VMPROF_GUEST_X86_H

#include "guest/kernel.h"

#define X86_CR0_PE   (1ull << 0)
#define X86_CR0_PG   (1ull << 31)
#define X86_CR4_PAE  (1ull << 5)
#define X86_CR4_LA57 (1ull << 12)
#define X86_EFER_LMA (1ull << 10)
#define X86_ADDR_MASK                                                                              \
	0x000ffffffffff000ull /* of a page-table entry, and of CR3 without its PCID                \
			       */

#define X86_PTE_PRESENT (1ull << 0)
#define X86_PTE_PSE	(1ull << 7) /* levels 2 and 3: this is a page, not a table */

/* With page-table isolation, a process's page table for user mode lies behind the kernel's. */
#define X86_PTI_USER_BIT (1ull << 12)

/* Where Linux maps its image: the top 2 GiB, of which the image may have the first one. */
#define X86_KERNEL_MAP	0xffffffff80000000ull
#define X86_KERNEL_SPAN (1ull << 30)

/* struct pt_regs: what the kernel saves of the interrupted mode; its words, and its size. */
enum x86_pt_regs {
	PT_R13 = 2,
	PT_BP = 4,
	PT_R10 = 7,
	PT_DX = 12,
	PT_DI = 14,
	PT_IP = 16,
	PT_CS,
	PT_FLAGS,
	PT_SP,
	PT_SS,
	PT_REGS_WORDS,
	PT_REGS_BYTES = PT_REGS_WORDS * 8
};

/*
 * Finding the kernel without registers: calls @fn for page tables in RAM that map something where
 * Linux has its image, with the lowest 2 MiB boundary that is mapped there, until it returns not 0,
 * which is returned. Else 0, -ESRCH, or -ETIMEDOUT after 2 s of CPU time.
 */
typedef int (*x86_scan_fn)(void *ctx, struct guest_as as, uint64_t text);
int x86_scan(struct guest_mem *mem, x86_scan_fn fn, void *ctx);

#endif
