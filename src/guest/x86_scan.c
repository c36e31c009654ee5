// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel without registers: RAM is looked through for a page table that has one. Each process's
 * top table ends with the same entry, the kernel's, so that one is found soon wherever it lies; and
 * what that entry leads to is looked at once.
 */
#include <stdlib.h>

#include "guest/page_scan.h"
#include "guest/x86.h"
#include "util/xalloc.h"

#define SEEN_MAX 256 /* different last entries that are looked at: more is no guest of Linux */
#define STEP	 (2ull << 20)

/* A table's entry for a table: present, writable, no page; the rest but the address is flags that
 * Linux leaves 0 there, or the CPU sets (accessed, dirty). */
#define TABLE_FLAGS 0xfff0000000000f9bull
#define TABLE_VALUE 0x3ull

struct scan {
	struct guest_mem *mem;
	x86_scan_fn fn;
	void *ctx;
	uint64_t seen[SEEN_MAX];
	unsigned nr_seen;
	int rc; /* not 0: it is over */
};

static bool is_table(const struct scan *s, uint64_t entry)
{
	uint64_t gpa = entry & X86_ADDR_MASK;

	return (entry & TABLE_FLAGS) == TABLE_VALUE && gpa && gpa < s->mem->top;
}

static bool read_gpa(struct scan *s, uint64_t gpa, void *buf, uint32_t len)
{
	struct guest_mem_io io = {.gpa = gpa, .buf = buf, .len = len};
	int rc = s->mem->ops->readv(s->mem, &io, 1);

	if (rc)
		s->rc = rc;
	return !rc && io.ok;
}

/* Where the image begins that a table of level 3 maps; 0: it maps none. */
static uint64_t lowest_mapped(struct scan *s, uint64_t level3)
{
	uint64_t entry, pmd[PAGE_SCAN_PAGE / 8];

	if (!read_gpa(s, level3 + 510 * 8, &entry, 8) || !is_table(s, entry) ||
	    !read_gpa(s, entry & X86_ADDR_MASK, pmd, sizeof(pmd)))
		return 0;
	for (unsigned i = 0; i < PAGE_SCAN_PAGE / 8; i++)
		if (pmd[i] & X86_PTE_PRESENT)
			return X86_KERNEL_MAP + i * STEP;
	return 0;
}

/* A page that may be a top table: its last entry leads to level 3, or with LA57 to level 4. */
static void try_root(struct scan *s, uint64_t root, uint64_t last)
{
	uint64_t text, below;

	for (unsigned i = 0; i < s->nr_seen; i++)
		if (s->seen[i] == (last & X86_ADDR_MASK))
			return;
	if (s->nr_seen == SEEN_MAX)
		return;
	s->seen[s->nr_seen++] = last & X86_ADDR_MASK;
	text = lowest_mapped(s, last & X86_ADDR_MASK);
	if (text)
		s->rc = s->fn(s->ctx, (struct guest_as){.root = root}, text);
	if (s->rc || !read_gpa(s, (last & X86_ADDR_MASK) + 511 * 8, &below, 8) ||
	    !is_table(s, below))
		return;
	text = lowest_mapped(s, below & X86_ADDR_MASK);
	if (text)
		s->rc = s->fn(s->ctx, (struct guest_as){.root = root, .la57 = true}, text);
}

static int see_page(void *ctx, uint64_t gpa, const uint64_t *last)
{
	struct scan *s = ctx;

	if (is_table(s, *last))
		try_root(s, gpa, *last);
	return s->rc;
}

int x86_scan(struct guest_mem *mem, x86_scan_fn fn, void *ctx)
{
	struct scan *s = xmalloc(sizeof(*s));
	int rc;

	*s = (struct scan){.mem = mem, .fn = fn, .ctx = ctx};
	rc = page_scan(&(struct page_scan){.mem = mem,
					   .nr_words = 1,
					   .offset = {PAGE_SCAN_PAGE - 8},
					   .page = see_page,
					   .ctx = s});
	free(s);
	return rc;
}
