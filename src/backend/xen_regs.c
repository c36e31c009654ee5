// SPDX-License-Identifier: GPL-2.0-only
#include "backend/xen_regs.h"

#if HAVE_XEN
#include <string.h>

#include "guest/x86.h"

#define SELECTOR_RPL 3

static void general(struct guest_regs *regs, const cpu_user_regs_t *u)
{
	const uint64_t gpr[16] = {u->rax, u->rcx, u->rdx, u->rbx, u->rsp, u->rbp, u->rsi, u->rdi,
				  u->r8,  u->r9,  u->r10, u->r11, u->r12, u->r13, u->r14, u->r15};

	memset(regs, 0, sizeof(*regs));
	memcpy(regs->gpr, gpr, sizeof(gpr));
	regs->ip = u->rip;
	regs->sp = u->rsp;
	regs->fp = u->rbp;
	regs->flags = u->rflags;
	regs->has_efer = regs->has_gs = true;
}

/* The lowest of the handlers that the kernel has told Xen: in its image, as far down as any is
 * known to be. */
static uint64_t lowest_entry(const vcpu_guest_context_t *c)
{
	uint64_t entry = c->event_callback_eip;

	for (size_t i = 0; i < sizeof(c->trap_ctxt) / sizeof(*c->trap_ctxt); i++) {
		uint64_t at = c->trap_ctxt[i].address;

		if (at >= X86_KERNEL_MAP && (!entry || at < entry))
			entry = at;
	}
	return entry;
}

void xen_regs_pv(struct guest_regs *regs, const vcpu_guest_context_t *c)
{
	general(regs, &c->user_regs);
	regs->cpl = c->flags & VGCF_in_kernel ? 0 : 3;
	regs->pgtable = c->ctrlreg[3];
	regs->gs_base = regs->cpl ? c->gs_base_user : c->gs_base_kernel;
	regs->kernel_gs_base = regs->cpl ? c->gs_base_kernel : c->gs_base_user;
	regs->kernel_entry = lowest_entry(c);
	/* What a 64-bit PV guest always has, and Xen does not show as the CPU does. */
	regs->cr0 = X86_CR0_PE | X86_CR0_PG;
	regs->cr4 = X86_CR4_PAE;
	regs->efer = X86_EFER_LMA;
}

void xen_regs_hvm(struct guest_regs *regs, const vcpu_guest_context_t *c,
		  const struct xen_hvm_tables *tables)
{
	general(regs, &c->user_regs);
	regs->cpl = c->user_regs.cs & SELECTOR_RPL;
	regs->pgtable = c->ctrlreg[3];
	regs->cr0 = c->ctrlreg[0];
	regs->cr4 = c->ctrlreg[4];
	regs->gs_base = regs->cpl ? c->gs_base_user : c->gs_base_kernel;
	regs->kernel_gs_base = regs->cpl ? c->gs_base_kernel : c->gs_base_user;
	regs->efer = tables->efer;
	regs->gdt_base = tables->gdt_base;
	regs->idt_base = tables->idt_base;
}

void xen_regs_hvm_full(struct guest_regs *regs, const HVM_SAVE_TYPE(CPU) * c,
		       struct xen_hvm_tables *tables)
{
	const uint64_t gpr[16] = {c->rax, c->rcx, c->rdx, c->rbx, c->rsp, c->rbp, c->rsi, c->rdi,
				  c->r8,  c->r9,  c->r10, c->r11, c->r12, c->r13, c->r14, c->r15};

	*tables = (struct xen_hvm_tables){c->gdtr_base, c->idtr_base, c->msr_efer};
	memset(regs, 0, sizeof(*regs));
	memcpy(regs->gpr, gpr, sizeof(gpr));
	regs->ip = c->rip;
	regs->sp = c->rsp;
	regs->fp = c->rbp;
	regs->flags = c->rflags;
	regs->cpl = c->cs_sel & SELECTOR_RPL;
	regs->pgtable = c->cr3;
	regs->cr0 = c->cr0;
	regs->cr4 = c->cr4;
	regs->gs_base = c->gs_base;
	regs->kernel_gs_base = c->shadow_gs;
	regs->efer = c->msr_efer;
	regs->gdt_base = c->gdtr_base;
	regs->idt_base = c->idtr_base;
	regs->has_efer = regs->has_gs = true;
}
#endif
