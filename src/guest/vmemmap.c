// SPDX-License-Identifier: GPL-2.0-only
/*
 * aarch64: where page 0's struct page is, or would be. No variable has it: it follows from how the
 * kernel was configured (VA_BITS) and its version, and from where physical memory begins in the
 * linear map, which KASLR moves. What a kernel may have are few values; the one that has struct
 * pages mapped for a page that surely exists is it. See arch/arm64/include/asm/memory.h.
 */
#include "guest/layout.h"

enum { VA_BITS_MIN = 48, STRUCT_PAGE = 64, STRUCT_PAGE_SHIFT = 6 };
#define VMEMMAP_END (0ull - (1ull << 30)) /* since 6.9 */

struct page_known {
	uint64_t va, gpa; /* in the linear map */
	unsigned page_shift;
};

static uint64_t page_offset(unsigned va_bits)
{
	return 0ull - (1ull << va_bits);
}

static uint64_t page_end(unsigned va_bits)
{
	return 0ull - (1ull << ((va_bits < VA_BITS_MIN ? va_bits : VA_BITS_MIN) - 1));
}

/* Page 0's, of a kernel for addresses of @va_bits whose struct pages begin at @start. */
static uint64_t from_start(const struct page_known *p, unsigned va_bits, uint64_t start)
{
	uint64_t memstart = p->gpa - (p->va - page_offset(va_bits));

	return start - (uint64_t)((int64_t)memstart >> p->page_shift) * STRUCT_PAGE;
}

static bool has_page(struct guest_kernel *k, struct guest_virt *v, const struct page_known *p,
		     uint64_t vmemmap)
{
	uint64_t at = vmemmap + (p->gpa >> p->page_shift) * STRUCT_PAGE, gpa;

	return !guest_virt_translate(v, guest_kernel_as(k), at, &gpa);
}

/* The second task's task_struct: the first one's is part of the image. */
static bool know_page(const struct guest_layout *l, struct guest_kernel *k, struct guest_virt *v,
		      struct page_known *p)
{
	const struct guest_paging *paging = guest_virt_paging(v);
	unsigned va_bits = paging->half[1].va_bits;
	struct guest_as as = guest_kernel_as(k);

	p->page_shift = paging->half[1].page_shift;
	return l->init_task && l->task_tasks >= 0 &&
	       !guest_virt_read(v, as, l->init_task + (uint64_t)l->task_tasks, &p->va, 8) &&
	       p->va >= page_offset(va_bits) && p->va < page_end(va_bits) &&
	       !guest_virt_translate(v, as, p->va, &p->gpa);
}

uint64_t guest_vmemmap_find(const struct guest_layout *l, struct guest_kernel *k,
			    struct guest_virt *v)
{
	const unsigned configured[] = {guest_virt_paging(v)->half[1].va_bits, 52};
	uint64_t found = 0;
	struct page_known p;

	if (l->page_size != STRUCT_PAGE || !know_page(l, k, v, &p))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		unsigned bits = configured[i];
		uint64_t pages = (page_end(bits) - page_offset(bits)) >> p.page_shift;
		const uint64_t starts[] = {
			VMEMMAP_END - pages * STRUCT_PAGE,
			0ull - (1ull << (bits - (p.page_shift - STRUCT_PAGE_SHIFT))),
		};

		for (unsigned n = 0; n < 2; n++) {
			uint64_t vmemmap = from_start(&p, bits, starts[n]);

			if (vmemmap == found || !has_page(k, v, &p, vmemmap))
				continue;
			if (found)
				return 0;
			found = vmemmap;
		}
	}
	return found;
}
