// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory maps out of maple trees and rbtrees that a test builds: order, levels, a map that the
 * kernel counts otherwise, and trees that are hostile: cyclic, wild, endless, overlapping.
 */
#include "guest/mm.h"
#include "tests/unit/fakeguest.h"
#include "tests/unit/test.h"

enum { MM_ROOT = 8, MM_COUNT = 16, VMA_RB = 80 };

struct setup {
	struct fakeguest g; /* only its memory and its mapping functions */
	struct guest_kmem km;
	struct guest_vmas vmas;
	uint64_t mm, top; /* top: next free byte of the direct map */
};

static void setup(struct setup *s, bool maple)
{
	memset(s, 0, sizeof(*s));
	fakeguest_init_bare(&s->g);
	s->km.mem = &s->g.fm.mem;
	s->km.virt = guest_virt_new(s->km.mem, GUEST_ARCH_X86_64);
	s->km.as = (struct guest_as){.root = s->g.root};
	memset(&s->km.lay, 0xff, sizeof(s->km.lay));
	s->km.lay.mm_map_count = MM_COUNT;
	s->km.lay.mm_root = maple ? MM_ROOT : -1;
	s->km.lay.mm_rb = maple ? -1 : MM_ROOT;
	s->km.lay.vma_start = 0;
	s->km.lay.vma_end = 8;
	s->km.lay.vma_mm = 16;
	s->km.lay.vma_flags = 24;
	s->km.lay.vma_pgoff = 32;
	s->km.lay.vma_file = 40;
	s->km.lay.vma_ops = 48;
	s->km.lay.vma_private = 56;
	s->km.lay.vma_rb = VMA_RB;
	s->km.lay.rb_right = 8;
	s->km.lay.rb_left = 16;
	s->km.lay.maple_range_pivot = s->km.lay.maple_arange_pivot = 8;
	s->km.lay.maple_range_slot = 128;
	s->km.lay.maple_arange_slot = 80;
	s->top = FG_DIRECT_MAP + (1 << 20);
	s->mm = s->top;
	s->top += 4096;
}

static void teardown(struct setup *s)
{
	guest_vmas_free(&s->vmas);
	guest_virt_free(s->km.virt);
	fakemem_free(&s->g.fm);
}

static uint64_t new (struct setup *s, uint64_t size)
{
	uint64_t at = s->top;

	s->top += (size + 255) & ~255ull;
	return at;
}

static uint64_t vma(struct setup *s, uint64_t start, uint64_t end, uint64_t flags)
{
	uint64_t at = new (s, 256);

	fg_put64(&s->g, at, start);
	fg_put64(&s->g, at + 8, end);
	fg_put64(&s->g, at + 16, s->mm);
	fg_put64(&s->g, at + 24, flags);
	fg_put64(&s->g, at + 32, start >> 12);
	fg_put64(&s->g, at + 40, 0);
	return at;
}

/* Nodes as lib/maple_tree.c encodes pointers to them: type in bits 3 to 6, bit 1 an entry of its
 * own. */
enum { LEAF = 1, RANGE = 2, ARANGE = 3 };

static uint64_t node(struct setup *s, int type)
{
	return new (s, 256) | (uint64_t)type << 3 | 2;
}

static void slot(struct setup *s, uint64_t node, int i, uint64_t entry, uint64_t last)
{
	bool arange = (node >> 3 & 15) == ARANGE;
	uint64_t at = node & ~255ull;

	fg_put64(&s->g, at + (arange ? 80 : 128) + (uint64_t)i * 8, entry);
	if (i < (arange ? 9 : 15))
		fg_put64(&s->g, at + 8 + (uint64_t)i * 8, last);
}

static void set_root(struct setup *s, uint64_t root, uint32_t count)
{
	fg_put64(&s->g, s->mm + MM_ROOT, root);
	fg_put32(&s->g, s->mm + MM_COUNT, count);
}

/* A leaf with @n VMAs of a page from @base on, a page free between two; up to @last. */
static uint64_t leaf_of(struct setup *s, uint64_t first, uint64_t base, int n, uint64_t last)
{
	uint64_t l = node(s, LEAF);
	int at = 0;

	if (base > first)
		slot(s, l, at++, 0, base - 1);
	for (int i = 0; i < n; i++) {
		uint64_t start = base + (uint64_t)i * 8192;

		slot(s, l, at++, vma(s, start, start + 4096, GUEST_VM_READ), start + 4095);
		if (i < n - 1)
			slot(s, l, at++, 0, start + 8191);
	}
	slot(s, l, at, 0, last);
	return l;
}

static void test_empty(void)
{
	struct setup s;

	setup(&s, true);
	set_root(&s, 0, 0);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK_EQ(s.vmas.n, 0);
	CHECK(s.vmas.whole);
	CHECK_EQ(guest_mm_walk(&s.km, 0x1000, &s.vmas), 0); /* no mm_struct there */
	CHECK(!s.vmas.whole);
	teardown(&s);
}

static void test_maple(void)
{
	struct setup s;
	uint64_t top, mid, full;

	setup(&s, true);
	/* Three levels: a node of the allocating kind, one of ranges, leaves; one leaf is full. */
	top = node(&s, ARANGE);
	mid = node(&s, RANGE);
	full = node(&s, LEAF);
	slot(&s, top, 0, leaf_of(&s, 0, 0x10000, 7, 0xfffff), 0xfffff);
	slot(&s, top, 1, mid, 0xffffffff);
	slot(&s, top, 2, leaf_of(&s, 0x100000000, 0x7f0000000000, 3, UINT64_MAX), UINT64_MAX);
	slot(&s, mid, 0, full, 0x1fffff);
	slot(&s, mid, 1, leaf_of(&s, 0x200000, 0x400000, 1, 0xffffffff), 0); /* implied: the rest */
	for (uint64_t i = 0; i < 16; i++) {
		uint64_t start = 0x100000 + i * 0x10000;

		slot(&s, full, (int)i, vma(&s, start, start + 0x10000, GUEST_VM_EXEC),
		     start + 0xffff);
	}
	set_root(&s, top, 27);
	for (int map = 0; map < 2; map++) {
		s.g.fm.map = map;
		CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
		CHECK_EQ(s.vmas.n, 27);
		CHECK(s.vmas.whole);
		CHECK_EQ(s.vmas.v[0].start, 0x10000);
		CHECK_EQ(s.vmas.v[6].end, 0x1d000);
		CHECK_EQ(s.vmas.v[7].start, 0x100000);
		CHECK_EQ(s.vmas.v[7].flags, GUEST_VM_EXEC);
		CHECK_EQ(s.vmas.v[22].end, 0x200000);
		CHECK_EQ(s.vmas.v[23].start, 0x400000);
		CHECK_EQ(s.vmas.v[23].pgoff, 0x400000);
		CHECK_EQ(s.vmas.v[26].end, 0x7f0000005000);
	}
	set_root(&s, top, 28); /* the kernel counts one more: it was changing */
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK_EQ(s.vmas.n, 27);
	CHECK(!s.vmas.whole);
	s.g.fm.map = false;
	s.g.fm.gone_after = s.g.fm.readv_calls + 1;
	guest_virt_flush(s.km.virt, 0);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), -ESRCH);
	teardown(&s);
}

/* Each must end, in bounded time, with a map that is said not to be whole. */
static void test_hostile_maple(void)
{
	struct setup s;
	uint64_t n, l;

	setup(&s, true);
	n = node(&s, RANGE); /* a node that is below itself, in each slot */
	for (int i = 0; i < 16; i++)
		slot(&s, n, i, n, i < 15 ? ((uint64_t)i + 1) << 58 : UINT64_MAX);
	set_root(&s, n, 5);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);

	n = node(&s, ARANGE); /* a chain that comes back, with the whole range */
	l = node(&s, RANGE);
	slot(&s, n, 0, l, UINT64_MAX);
	slot(&s, l, 0, n, UINT64_MAX);
	set_root(&s, n, 1);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);

	l = node(&s, LEAF); /* one VMA in all slots; pivots that go down */
	n = vma(&s, 0x1000, 0x2000, 1);
	for (int i = 0; i < 16; i++)
		slot(&s, l, i, n, 0x2000 - (uint64_t)i);
	set_root(&s, l, 16);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);
	CHECK(s.vmas.n <= 1);

	for (int type = 0; type < 16; type++) { /* no such node types; nodes that are not there */
		if (type >= LEAF && type <= ARANGE)
			continue;
		set_root(&s, new (&s, 256) | (uint64_t)type << 3 | 2, 1);
		CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
		CHECK(!s.vmas.whole);
	}
	set_root(&s, 0xffff8fffffff0000ull | LEAF << 3 | 2, 1);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);
	set_root(&s, 0x400000 | LEAF << 3 | 2, 1); /* user memory is no place for a node */
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);

	l = node(&s,
		 LEAF); /* VMAs of another process, backwards, in the kernel's half, unaligned */
	n = vma(&s, 0x1000, 0x2000, 1);
	fg_put64(&s.g, n + 16, s.mm + 8);
	slot(&s, l, 0, n, 0x1fff);
	slot(&s, l, 1, vma(&s, 0x4000, 0x3000, 1), 0x3fff);
	slot(&s, l, 2, vma(&s, 0x4000, 1ull << 63 | 0x4000, 1), 0x7fff);
	slot(&s, l, 3, vma(&s, 0x8001, 0x9001, 1), 0x9000);
	slot(&s, l, 4, 0, UINT64_MAX);
	set_root(&s, l, 4);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK_EQ(s.vmas.n, 0);
	CHECK(!s.vmas.whole);
	teardown(&s);
}

static void rb(struct setup *s, uint64_t vma, uint64_t left, uint64_t right)
{
	fg_put64(&s->g, vma + VMA_RB + 16, left ? left + VMA_RB : 0);
	fg_put64(&s->g, vma + VMA_RB + 8, right ? right + VMA_RB : 0);
}

static void test_rbtree(void)
{
	struct setup s;
	uint64_t v[7];

	setup(&s, false);
	for (uint64_t i = 0; i < 7; i++)
		v[i] = vma(&s, 0x10000 * (i + 1), 0x10000 * (i + 1) + 0x1000 * (i + 1), i);
	for (int i = 0; i < 7; i++)
		rb(&s, v[i], 0, 0);
	rb(&s, v[3], v[1], v[5]);
	rb(&s, v[1], v[0], v[2]);
	rb(&s, v[5], v[4], v[6]);
	set_root(&s, v[3] + VMA_RB, 7);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(s.vmas.whole);
	CHECK_EQ(s.vmas.n, 7);
	for (uint64_t i = 0; i < s.vmas.n; i++) {
		CHECK_EQ(s.vmas.v[i].start, 0x10000 * (i + 1));
		CHECK_EQ(s.vmas.v[i].end, 0x10000 * (i + 1) + 0x1000 * (i + 1));
	}
	rb(&s, v[6], v[3], v[3]); /* round and round */
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);
	CHECK_EQ(s.vmas.n, 7);
	rb(&s, v[6], 0xffff8fffffff0000ull, 0);
	CHECK_EQ(guest_mm_walk(&s.km, s.mm, &s.vmas), 0);
	CHECK(!s.vmas.whole);
	CHECK_EQ(s.vmas.n, 7);
	teardown(&s);
}

int main(void)
{
	test_empty();
	test_maple();
	test_hostile_maple();
	test_rbtree();
	return test_done();
}
