// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel without registers: RAM is looked through for the top table of the kernel's half. What
 * is one always has the fixmap's entry, whose place in the address space is one of two; and below
 * it a large piece of memory is mapped for the kernel to execute, which is its text. A module's is
 * small, and in a process's table, and in the one of page-table isolation, there is none. Pages of
 * 4 KiB and addresses of 48 bits only: what distributions have.
 */
#include <stdlib.h>

#include "guest/arm64.h"
#include "guest/page_scan.h"
#include "util/xalloc.h"

#define ENTRIES	   512u
#define TABLES_MAX 8192 /* that are read of one candidate */
#define TEXT_MIN   (2ull << 20)

enum { FIXMAP_TO_68 = 503, FIXMAP_SINCE = 511, VMALLOC_FIRST = 256 };

#define DESC_KIND    3ull
#define DESC_TABLE   3ull /* at level 1: a page */
#define DESC_BLOCK   1ull
#define DESC_ADDRESS 0x0000fffffffff000ull
/* A table's descriptor: what Linux leaves 0 there; the rest are limits for what is below. */
#define TABLE_ZERO 0x07ff000000000000ull
#define LEAF_RO	   (1ull << 7)
#define LEAF_PXN   (1ull << 53)
#define LEAF_UXN   (1ull << 54)

struct scan {
	struct guest_mem *mem;
	arm64_scan_fn fn;
	void *ctx;
	int rc; /* not 0: it is over */
	unsigned tables;
	struct guest_paging paging;
	uint64_t start, end; /* of the executable memory that was met last */
};

static bool is_table(const struct scan *s, uint64_t desc)
{
	uint64_t gpa = desc & DESC_ADDRESS;

	return (desc & DESC_KIND) == DESC_TABLE && !(desc & TABLE_ZERO) && gpa && gpa < s->mem->top;
}

static bool read_table(struct scan *s, uint64_t gpa, uint64_t table[ENTRIES])
{
	struct guest_mem_io io = {.gpa = gpa, .buf = table, .len = PAGE_SCAN_PAGE};
	int rc;

	if (s->tables++ >= TABLES_MAX)
		return false;
	rc = s->mem->ops->readv(s->mem, &io, 1);
	if (rc)
		s->rc = rc;
	return !rc && io.ok;
}

/* A piece has ended; of the large ones one is the text, another may be where BPF programs are made.
 */
static void finish(struct scan *s)
{
	if (s->end - s->start >= TEXT_MIN)
		s->rc = s->fn(s->ctx, &s->paging, s->start);
	s->start = s->end = 0;
}

static void see(struct scan *s, uint64_t va, uint64_t size, bool executable)
{
	if (va != s->end || !executable)
		finish(s);
	if (!executable)
		return;
	if (s->start == s->end)
		s->start = va;
	s->end = va + size;
}

/* What is mapped from @va on by a table whose entries are for 1 << @shift bytes. */
static void walk(struct scan *s, uint64_t gpa, uint64_t va, unsigned shift, unsigned first,
		 unsigned last)
{
	uint64_t table[ENTRIES];

	if (!read_table(s, gpa, table))
		return;
	for (unsigned i = first; i <= last && !s->rc; i++) {
		uint64_t desc = table[i], at = va + ((uint64_t)i << shift);
		bool leaf = (desc & DESC_KIND) == (shift == 12 ? DESC_TABLE : DESC_BLOCK);

		if (shift > 12 && is_table(s, desc))
			walk(s, desc & DESC_ADDRESS, at, shift - 9, 0, ENTRIES - 1);
		else
			see(s, at, 1ull << shift,
			    leaf && (desc & (LEAF_RO | LEAF_UXN | LEAF_PXN)) ==
					    (LEAF_RO | LEAF_UXN));
	}
}

/* A page that may be the kernel's top table. */
static void try_root(struct scan *s, uint64_t root)
{
	const struct guest_paging_half half = {.page_shift = 12, .va_bits = 48};

	s->paging = (struct guest_paging){.half = {half, half}, .kernel_root = root};
	s->paging.half[0].tagged = true; /* Linux has it so */
	s->tables = 0;
	s->start = s->end = 0;
	walk(s, root, ~0ull << 48, 39, VMALLOC_FIRST, FIXMAP_SINCE - 1);
	if (!s->rc)
		finish(s);
}

static int see_page(void *ctx, uint64_t gpa, const uint64_t *fixmap)
{
	struct scan *s = ctx;

	if (is_table(s, fixmap[0]) || is_table(s, fixmap[1]))
		try_root(s, gpa);
	return s->rc;
}

int arm64_scan(struct guest_mem *mem, arm64_scan_fn fn, void *ctx)
{
	struct scan *s = xmalloc(sizeof(*s));
	int rc;

	*s = (struct scan){.mem = mem, .fn = fn, .ctx = ctx};
	rc = page_scan(&(struct page_scan){.mem = mem,
					   .nr_words = 2,
					   .offset = {FIXMAP_TO_68 * 8, FIXMAP_SINCE * 8},
					   .page = see_page,
					   .ctx = s});
	free(s);
	return rc;
}
