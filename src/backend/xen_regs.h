// SPDX-License-Identifier: GPL-2.0-only
/* Inside the xen backend: a vCPU's registers, as Xen hands them out. Bytes only. */
#ifndef VMPROF_BACKEND_XEN_REGS_H
#define VMPROF_BACKEND_XEN_REGS_H

#include "guest/sample.h"
#include "vm/xenlib.h"

#if HAVE_XEN
#include <xen/hvm/save.h>

/*
 * A PV guest's: its kernel runs in ring 3 as its programs do, and Xen knows which of the two; its
 * page tables have machine addresses. The kernel's is given for user mode too: it has the program's
 * half as well.
 */
void xen_regs_pv(struct guest_regs *regs, const vcpu_guest_context_t *c);

/*
 * A PVH or HVM guest's. The context has neither descriptor tables nor EFER; they change when a
 * kernel starts and never else. xen_regs_hvm() takes them from @tables, which an earlier
 * xen_regs_hvm_full() has filled.
 */
struct xen_hvm_tables {
	uint64_t gdt_base, idt_base, efer;
};
void xen_regs_hvm(struct guest_regs *regs, const vcpu_guest_context_t *c,
		  const struct xen_hvm_tables *tables);
void xen_regs_hvm_full(struct guest_regs *regs, const HVM_SAVE_TYPE(CPU) * c,
		       struct xen_hvm_tables *tables);
#endif

#endif
