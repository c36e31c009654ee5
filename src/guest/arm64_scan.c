// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel without registers: RAM is looked through for the top table of the kernel's half. What
 * is one always has the fixmap's entry, whose place in the address space is one of two; and below
 * it a large piece of memory is mapped for the kernel to execute, which is its text. A module's is
 * small, and in a process's table, and in the one of page-table isolation, there is none. Pages of
 * 4 KiB and addresses of 48 bits only: what distributions have.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "guest/arm64.h"
#include "util/xalloc.h"

#define PAGE	   4096u
#define ENTRIES	   512u
#define BATCH	   128	/* pages of which two entries are read in one call */
#define TABLES_MAX 8192 /* that are read of one candidate */
#define CPU_MAX_NS 2000000000ull
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
	uint64_t cpu_end;
	int rc; /* not 0: it is over */
	unsigned tables;
	struct guest_paging paging;
	uint64_t start, end; /* of the executable memory that was met last */
};

static uint64_t cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static bool is_table(const struct scan *s, uint64_t desc)
{
	uint64_t gpa = desc & DESC_ADDRESS;

	return (desc & DESC_KIND) == DESC_TABLE && !(desc & TABLE_ZERO) && gpa && gpa < s->mem->top;
}

static bool read_table(struct scan *s, uint64_t gpa, uint64_t table[ENTRIES])
{
	struct guest_mem_io io = {.gpa = gpa, .buf = table, .len = PAGE};
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

static void scan_range(struct scan *s, uint64_t start, uint64_t end)
{
	static const unsigned index[2] = {FIXMAP_TO_68, FIXMAP_SINCE};
	struct guest_mem_io io[2 * BATCH];
	uint64_t entry[2 * BATCH];

	for (uint64_t at = start; at < end && !s->rc;) {
		int n = 0, rc;

		for (; n < 2 * BATCH && at + PAGE <= end; at += PAGE, n += 2)
			for (int k = 0; k < 2; k++)
				io[n + k] = (struct guest_mem_io){
					.gpa = at + index[k] * 8, .buf = &entry[n + k], .len = 8};
		if (!n)
			return;
		rc = s->mem->ops->readv(s->mem, io, n);
		if (rc)
			s->rc = rc;
		for (int i = 0; i < n && !s->rc; i += 2)
			if ((io[i].ok && is_table(s, entry[i])) ||
			    (io[i + 1].ok && is_table(s, entry[i + 1])))
				try_root(s, io[i].gpa & ~(uint64_t)(PAGE - 1));
		if (!s->rc && cpu_now() > s->cpu_end)
			s->rc = -ETIMEDOUT;
	}
}

int arm64_scan(struct guest_mem *mem, arm64_scan_fn fn, void *ctx)
{
	struct scan *s = xmalloc(sizeof(*s));
	uint64_t at = 0, start, len;
	int rc;

	*s = (struct scan){.mem = mem, .fn = fn, .ctx = ctx, .cpu_end = cpu_now() + CPU_MAX_NS};
	while (!s->rc && mem->ops->next_range(mem, at, &start, &len)) {
		if (start < at || !len)
			break;
		at = start + len;
		scan_range(s, (start + PAGE - 1) & ~(uint64_t)(PAGE - 1), at);
	}
	rc = s->rc;
	free(s);
	return rc;
}
