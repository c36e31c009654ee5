// SPDX-License-Identifier: GPL-2.0-only
#include "guest/arm64.h"

#include <errno.h>
#include <inttypes.h>

#include "guest/arch.h"

#define BITS(v, high, low) ((v) >> (low) & ((2ull << ((high) - (low))) - 1))
#define MASK(high, low)	   ((2ull << (high)) - (1ull << (low)))
#define DESC_VALID	   (1ull << 0)
#define DESC_TABLE	   (1ull << 1) /* at level 1: a page */
#define TTBR_BASE	   MASK(47, 1)
#define KERNEL_HALF_BIT	   55
#define HALF_OF(va)	   ((va) >> KERNEL_HALF_BIT & 1)
#define ROOT_ALIGN	   64 /* the smallest table that can lie above 48 bits */

enum { TSZ_MIN_LVA = 12, TSZ_MIN = 16, TSZ_MAX = 48, IPS_52 = 6 };

/* ---------- registers ---------- */

static unsigned granule_0(unsigned tg) /* TCR_EL1.TG0 */
{
	static const unsigned shift[] = {12, 16, 14, 0};

	return shift[tg];
}

static unsigned granule_1(unsigned tg) /* TCR_EL1.TG1 */
{
	static const unsigned shift[] = {0, 14, 12, 16};

	return shift[tg];
}

static int set_half(struct guest_paging *p, int half, unsigned shift, unsigned tsz, bool tbi)
{
	unsigned min = p->lpa2 || shift == 16 ? TSZ_MIN_LVA : TSZ_MIN;

	if (!shift || tsz < min || tsz > TSZ_MAX)
		return -EINVAL;
	p->half[half] = (struct guest_paging_half){
		.page_shift = (uint8_t)shift, .va_bits = (uint8_t)(64 - tsz), .tagged = tbi};
	return 0;
}

int arm64_paging_set(struct guest_paging *p, uint64_t tcr, uint64_t ttbr1)
{
	int rc;

	p->lpa2 = BITS(tcr, 59, 59);
	p->pa52 = p->lpa2 || BITS(tcr, 34, 32) == IPS_52;
	rc = set_half(p, 0, granule_0(BITS(tcr, 15, 14)), BITS(tcr, 5, 0), BITS(tcr, 37, 37));
	if (!rc)
		rc = set_half(p, 1, granule_1(BITS(tcr, 31, 30)), BITS(tcr, 21, 16),
			      BITS(tcr, 38, 38));
	if (rc)
		return rc;
	p->kernel_root = arm64_root(p, true, ttbr1);
	return 0;
}

/* ---------- the shape of the tables ---------- */

static unsigned level_shift(const struct guest_paging_half *h, int level)
{
	return h->page_shift + (unsigned)(level - 1) * (h->page_shift - 3u);
}

static int top_level(const struct guest_paging_half *h)
{
	int level = 1;

	while (level_shift(h, level + 1) < h->va_bits)
		level++;
	return level;
}

/* The top table has only as many entries as the address has bits left. */
static uint64_t index_mask(const struct guest_paging_half *h, int level)
{
	unsigned shift = level_shift(h, level), bits = h->page_shift - 3u;

	bits = h->va_bits - shift < bits ? h->va_bits - shift : bits;
	return (1ull << bits) - 1;
}

static uint64_t entry_gpa(const struct guest_walk *w, uint64_t table, int level)
{
	const struct guest_paging_half *h = &w->paging->half[HALF_OF(w->va)];

	return table + (w->va >> level_shift(h, level) & index_mask(h, level)) * 8;
}

uint64_t arm64_root(const struct guest_paging *p, bool kernel_half, uint64_t ttbr)
{
	const struct guest_paging_half *h = &p->half[kernel_half];
	uint64_t size = (index_mask(h, top_level(h)) + 1) * 8, root = ttbr & TTBR_BASE;

	size = size < ROOT_ALIGN ? ROOT_ALIGN : size;
	root &= ~(size - 1);
	return p->pa52 ? root | BITS(ttbr, 5, 2) << 48 : root;
}

/* Where a descriptor leads: a table, a block or a page. */
static uint64_t output(const struct guest_paging *p, const struct guest_paging_half *h,
		       uint64_t desc)
{
	if (p->lpa2 && h->page_shift != 16)
		return (desc & MASK(49, h->page_shift)) | BITS(desc, 9, 8) << 50;
	if (h->page_shift == 16 && p->pa52)
		return (desc & MASK(47, 16)) | BITS(desc, 15, 12) << 48;
	return desc & MASK(47, h->page_shift);
}

/* The larger blocks came with addresses of 52 bits, but for the 1 GiB of 4 KiB pages. */
static bool may_be_block(const struct guest_paging *p, const struct guest_paging_half *h, int level)
{
	switch (level) {
	case 2:
		return true;
	case 3:
		return h->page_shift == 12 || p->pa52;
	case 4:
		return h->page_shift == 12 && p->lpa2;
	default:
		return false;
	}
}

/* ---------- the walk ---------- */

static bool canonical(const struct guest_paging_half *h, uint64_t va)
{
	uint64_t sign = HALF_OF(va) ? ~0ull : 0;

	if (h->tagged)
		va = (va & MASK(55, 0)) | (sign & MASK(63, 56));
	return (va ^ sign) >> h->va_bits == 0;
}

static enum guest_walk_state walk_start(struct guest_walk *w, const struct guest_paging *p,
					struct guest_as as, uint64_t va)
{
	const struct guest_paging_half *h = &p->half[HALF_OF(va)];

	*w = (struct guest_walk){.paging = p, .va = va};
	if (!h->page_shift || !canonical(h, va)) /* no registers were given yet, or a hole */
		return GUEST_WALK_FAULT;
	w->level = top_level(h);
	w->entry = entry_gpa(w, HALF_OF(va) ? p->kernel_root : as.root & arm64_paging.root_mask,
			     w->level);
	return GUEST_WALK_MORE;
}

static enum guest_walk_state walk_step(struct guest_walk *w, uint64_t desc)
{
	const struct guest_paging *p = w->paging;
	const struct guest_paging_half *h = &p->half[HALF_OF(w->va)];
	uint64_t size = 1ull << level_shift(h, w->level);
	bool table = desc & DESC_TABLE;

	if (!(desc & DESC_VALID))
		return GUEST_WALK_FAULT;
	if (w->level == 2)
		w->region = desc;
	if (w->level > 1 && table) {
		w->level--;
		w->entry = entry_gpa(w, output(p, h, desc), w->level);
		return GUEST_WALK_MORE;
	}
	if (w->level == 1 ? !table : !may_be_block(p, h, w->level))
		return GUEST_WALK_FAULT;
	w->gpa = (output(p, h, desc) & ~(size - 1)) | (w->va & (size - 1));
	return GUEST_WALK_DONE;
}

static enum guest_walk_state walk_resume(struct guest_walk *w, const struct guest_paging *p,
					 uint64_t va, uint64_t region)
{
	*w = (struct guest_walk){.paging = p, .va = va, .level = 2};
	return walk_step(w, region);
}

const struct guest_arch_paging arm64_paging = {
	.root_mask = MASK(51, 6),
	.start = walk_start,
	.step = walk_step,
	.resume = walk_resume,
};

/* ---------- finding the kernel ---------- */

#define STEP                                                                                       \
	0x10000ull /* the image's parts are mapped in multiples of this                            \
		      (SEGMENT_ALIGN) */

enum { STEPS_MAX = (64 << 20) / STEP };

/*
 * From the exception vectors, which are in the image's text, down to where it
 * starts; its head below that is not mapped.
 */
static int walk_down(struct guest_virt *v, uint64_t va, uint64_t *text)
{
	uint64_t gpa;
	int rc;

	va &= ~(STEP - 1);
	rc = guest_virt_translate(v, (struct guest_as){0}, va, &gpa);
	for (int i = 0; !rc && i < STEPS_MAX; i++) {
		*text = va;
		va -= STEP;
		rc = guest_virt_translate(v, (struct guest_as){0}, va, &gpa);
		if (rc == -EFAULT)
			return 0;
	}
	return rc;
}

/* With page-table isolation, EL0 has vectors and an upper half of its own,
 * which lead to no kernel. */
static int find_text(struct guest_virt *v, const struct guest_regs *regs, struct guest_as *as,
		     uint64_t *text, struct vmprof_err *err)
{
	struct guest_paging p = {0};
	int rc;

	if (!HALF_OF(regs->vbar) || arm64_paging_set(&p, regs->tcr, regs->pgtable_kernel))
		return err_set(err, ENOENT,
			       "the guest's CPU has no page table of a kernel: it is still "
			       "in firmware "
			       "or in a boot loader");
	guest_virt_set_paging(v, &p);
	*as = (struct guest_as){0};
	rc = walk_down(v, regs->vbar, text);
	if (rc == -EFAULT)
		return err_set(err, ENOENT,
			       "the guest's exception vectors at %#" PRIx64
			       " are not mapped by its page table at %#" PRIx64,
			       regs->vbar, p.kernel_root);
	return rc ? err_sys(err, rc, "cannot read guest memory") : 0;
}

static bool can_run(const struct guest_regs *regs, struct guest_as as)
{
	return HALF_OF(regs->vbar);
}

/* The upper half is the kernel's in any of them. */
static int roots(const struct guest_regs *regs, struct guest_as as[2])
{
	as[0] = (struct guest_as){0};
	return 1;
}

/* In EL0 they may be those that page-table isolation has there, and while the code beside them
 * runs. */
static bool vbar(const struct guest_regs *regs, uint64_t *vectors)
{
	enum { NEAR = 0x4000 };

	*vectors = regs->vbar;
	return !regs->cpl && regs->ip - regs->vbar + NEAR >= 2 * NEAR;
}

static int first_vector(struct guest_virt *v, struct guest_as as, uint64_t vectors, uint64_t *va)
{
	*va = vectors;
	return guest_virt_translate(v, as, vectors, &(uint64_t){0});
}

static bool knows_tpidr(const struct guest_regs *regs)
{
	return regs->tpidr_el1;
}

static bool has_tpidr(const struct guest_regs *regs, uint64_t offset)
{
	return regs->tpidr_el1 == offset;
}

const struct guest_arch_kernel arm64_kernel = {
	.modules_min = 1ull << 63,
	.text_start = "_stext",
	.find_text = find_text,
	.can_run = can_run,
	.roots = roots,
	.vectors = vbar,
	.handler = first_vector,
	.knows_percpu = knows_tpidr,
	.has_percpu = has_tpidr,
};
