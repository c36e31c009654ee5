// SPDX-License-Identifier: GPL-2.0-only
#include "guest/x86.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "guest/arch.h"

enum { IDT_EXCEPTIONS = 20, IDT_GATE_SIZE = 16 };
enum { GDT_ENTRY_CPUNODE = 15 }; /* arch/x86/include/asm/segment.h, 64 bits, 2.6.24 and later */

#define STEP (2ull << 20)

/* ---------- page tables ---------- */

static bool canonical(uint64_t va, bool la57)
{
	int shift = la57 ? 64 - 57 : 64 - 48;

	return (uint64_t)((int64_t)(va << shift) >> shift) == va;
}

static uint64_t entry_gpa(uint64_t table, uint64_t va, int level)
{
	return table + ((va >> (12 + 9 * (level - 1))) & 511) * 8;
}

static enum guest_walk_state walk_start(struct guest_walk *w, const struct guest_paging *p,
					struct guest_as as, uint64_t va)
{
	*w = (struct guest_walk){.va = va, .level = as.la57 ? 5 : 4};
	if (!canonical(va, as.la57))
		return GUEST_WALK_FAULT;
	w->entry = entry_gpa(as.root & X86_ADDR_MASK, va, w->level);
	return GUEST_WALK_MORE;
}

static enum guest_walk_state walk_step(struct guest_walk *w, uint64_t entry)
{
	uint64_t page = 1ull << (12 + 9 * (w->level - 1));
	bool leaf = w->level == 1 || (w->level <= 3 && (entry & X86_PTE_PSE));

	if (!(entry & X86_PTE_PRESENT))
		return GUEST_WALK_FAULT;
	if (w->level == 2)
		w->region = entry;
	if (!leaf) {
		w->level--;
		w->entry = entry_gpa(entry & X86_ADDR_MASK, w->va, w->level);
		return GUEST_WALK_MORE;
	}
	w->gpa = (entry & X86_ADDR_MASK & ~(page - 1)) | (w->va & (page - 1));
	if (w->level == 3) /* a 1 GiB page: what a level 2 entry of it would be */
		w->region = (w->gpa & ~(STEP - 1)) | X86_PTE_PSE | X86_PTE_PRESENT;
	return GUEST_WALK_DONE;
}

static enum guest_walk_state walk_resume(struct guest_walk *w, const struct guest_paging *p,
					 uint64_t va, uint64_t region)
{
	*w = (struct guest_walk){.va = va, .level = 2};
	return walk_step(w, region);
}

const struct guest_arch_paging x86_paging = {
	.root_mask = X86_ADDR_MASK,
	.start = walk_start,
	.step = walk_step,
	.resume = walk_resume,
};

/* ---------- finding the kernel ---------- */

static bool long_mode(const struct guest_regs *regs)
{
	const uint64_t cr0 = X86_CR0_PE | X86_CR0_PG;

	return (regs->cr0 & cr0) == cr0 && (regs->cr4 & X86_CR4_PAE) &&
	       (!regs->has_efer || (regs->efer & X86_EFER_LMA));
}

/*
 * In user mode under page-table isolation CR3 has the user's table, which lacks most of the kernel;
 * the kernel's lies 4 KiB below it. A kernel that knows itself unaffected may have a table at an
 * odd page as well, so both are candidates.
 */
static int kernel_roots(const struct guest_regs *regs, struct guest_as as[2])
{
	uint64_t root = regs->pgtable & X86_ADDR_MASK;
	bool la57 = regs->cr4 & X86_CR4_LA57;

	if (regs->kernel_entry) { /* Xen isolates the page tables of its PV guests itself */
		as[0] = (struct guest_as){.root = root, .la57 = la57};
		return 1;
	}
	as[0] = (struct guest_as){.root = root & ~X86_PTI_USER_BIT, .la57 = la57};
	as[1] = (struct guest_as){.root = root, .la57 = la57};
	return root & X86_PTI_USER_BIT ? 2 : 1;
}

static bool in_image_range(uint64_t va)
{
	return va - X86_KERNEL_MAP < X86_KERNEL_SPAN;
}

static int idt_handler(struct guest_virt *v, struct guest_as as, uint64_t idt_base,
		       uint64_t *handler)
{
	uint8_t idt[IDT_EXCEPTIONS * IDT_GATE_SIZE];
	int rc = guest_virt_read(v, as, idt_base, idt, sizeof(idt));

	*handler = 0;
	if (rc)
		return rc;
	for (int i = 0; i < IDT_EXCEPTIONS; i++) {
		const uint8_t *gate = idt + i * IDT_GATE_SIZE;
		uint8_t type = gate[5];
		uint16_t low, mid;
		uint32_t high;
		uint64_t va;

		memcpy(&low, gate, 2);
		memcpy(&mid, gate + 6, 2);
		memcpy(&high, gate + 8, 4);
		va = (uint64_t)high << 32 | (uint32_t)mid << 16 | low;
		if (!(type & 0x80) || (type & 0xe) != 0xe) /* present, interrupt or trap gate */
			continue;
		if (in_image_range(va) && (!*handler || va < *handler))
			*handler = va;
	}
	return 0;
}

/* Below its image the kernel maps nothing (cleanup_highmap()): the lowest mapped step is _text. */
static int walk_down(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t *text)
{
	uint64_t gpa;
	int rc;

	va &= ~(STEP - 1);
	rc = guest_virt_translate(v, as, va, &gpa);
	if (rc)
		return rc;
	while (va > X86_KERNEL_MAP) {
		rc = guest_virt_translate(v, as, va - STEP, &gpa);
		if (rc == -EFAULT)
			break;
		if (rc)
			return rc;
		va -= STEP;
	}
	*text = va;
	return 0;
}

static int find_text(struct guest_virt *v, const struct guest_regs *regs, struct guest_as *as,
		     uint64_t *text, struct vmprof_err *err)
{
	struct guest_as roots[2];
	bool idt_seen = false;
	int n;

	if (!long_mode(regs))
		return err_set(
			err, ENOENT,
			"the guest's CPU is not in 64-bit mode: it is still in firmware or in "
			"a boot loader, or runs a 32-bit system");
	n = kernel_roots(regs, roots);
	for (int i = 0; i < n; i++) {
		uint64_t handler = regs->kernel_entry;
		int rc = handler ? 0 : idt_handler(v, roots[i], regs->idt_base, &handler);

		if (!rc)
			idt_seen = true;
		if (!rc && in_image_range(handler))
			rc = walk_down(v, roots[i], handler, text);
		else if (!rc)
			rc = -EFAULT;
		if (!rc) {
			*as = roots[i];
			return 0;
		}
		if (rc != -EFAULT)
			return err_sys(err, rc, "cannot read guest memory");
	}
	if (idt_seen)
		return err_set(err, ENOENT,
			       "the guest runs no 64-bit Linux kernel: its interrupt table "
			       "at %#" PRIx64 " does not lead to one (firmware, or another system)",
			       regs->idt_base);
	return err_set(err, ENOENT,
		       "the guest's interrupt table at %#" PRIx64
		       " is not mapped by its page table at %#" PRIx64
		       " (firmware, another system, or a process that ended just now)",
		       regs->idt_base, (uint64_t)(regs->pgtable & X86_ADDR_MASK));
}

/*
 * setup_getcpu() in arch/x86/kernel/cpu/common.c: the segment limit is cpu | node << 12, in a
 * present expand-down read-only data segment of user privilege.
 */
static int gdt_cpu(struct guest_virt *v, struct guest_as as, const struct guest_regs *regs)
{
	uint8_t desc[8];
	int rc = regs->kernel_entry ? -ENOENT
				    : guest_virt_read(v, as, regs->gdt_base + GDT_ENTRY_CPUNODE * 8,
						      desc, sizeof(desc));

	if (rc)
		return rc;
	if ((desc[5] & 0xfe) != 0xf4) /* bit 0 is "accessed", which the CPU sets */
		return -ENOENT;
	return desc[0] | (desc[1] & 0xf) << 8;
}

static bool can_run(const struct guest_regs *regs, struct guest_as as)
{
	return long_mode(regs) && !!(regs->cr4 & X86_CR4_LA57) == as.la57;
}

static bool idt(const struct guest_regs *regs, uint64_t *vectors)
{
	*vectors = regs->idt_base;
	return !regs->kernel_entry;
}

static bool knows_gs(const struct guest_regs *regs)
{
	return regs->has_gs;
}

/* One of the two gs bases is the kernel's, whatever runs; it is the CPU's
 * per-CPU offset. */
static bool has_gs(const struct guest_regs *regs, uint64_t offset)
{
	return regs->gs_base == offset || regs->kernel_gs_base == offset;
}

const struct guest_arch_kernel x86_kernel = {
	.link_text = 0xffffffff81000000ull,
	.modules_min = X86_KERNEL_MAP,
	.text_start = "_text",
	.top_table = "init_top_pgt",
	.old_top_table = "init_level4_pgt", /* before 4.13 */
	.find_text = find_text,
	.can_run = can_run,
	.roots = kernel_roots,
	.vectors = idt,
	.handler = idt_handler,
	.cpu = gdt_cpu,
	.knows_percpu = knows_gs,
	.has_percpu = has_gs,
};
