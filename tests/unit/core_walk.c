// SPDX-License-Identifier: GPL-2.0-only
/*
 * kernel/core: page tables of x86 and arm64 guests, all granules and sizes, with pages and blocks;
 * tables that lead anywhere or nowhere.
 */
#include "kernel/core/walk.h"
#include "tests/unit/test.h"

/* Guest-physical memory: a few tables, at the addresses that the tests give out. */
#define WORDS 65536
static struct {
	struct vmp_phys phys;
	u64 at[WORDS], word[WORDS];
	u32 nr, reads;
} mem;

static int read_word(const struct vmp_phys *phys, u64 gpa, u64 *entry)
{
	mem.reads++;
	CHECK_EQ(gpa % 8, 0);
	for (u32 i = 0; i < mem.nr; i++)
		if (mem.at[i] == gpa) {
			*entry = mem.word[i];
			return 0;
		}
	return -1;
}

static void put(u64 gpa, u64 word)
{
	mem.at[mem.nr] = gpa;
	mem.word[mem.nr++] = word;
}

static void clear(void)
{
	mem.nr = mem.reads = 0;
	mem.phys.read = read_word;
}

/* ------------------------------------------------------------------ x86 */

/* A chain of tables from cr3 to a leaf at this level; level 1 is a page, 2 and 3 are large. */
static void build_x86(u64 cr3, u32 levels, u32 leaf, u64 vaddr, u64 target)
{
	u64 table = cr3;

	for (u32 level = levels; level >= leaf; level--) {
		u64 slot = table + (vaddr >> (3 + 9 * level) & 0x1ff) * 8;

		table += 0x1000;
		put(slot,
		    level > leaf ? table | 0x67 : target | (leaf > 1 ? 0xe3 : 0x63) | 1ull << 63);
	}
}

static void test_x86(void)
{
	static const u64 masks[] = {0, 0xfff, 0x1fffff, 0x3fffffff};
	u64 gpa;

	for (u32 levels = 4; levels <= 5; levels++)
		for (u32 leaf = 1; leaf <= 3; leaf++) {
			u64 vaddr = levels == 5 ? 0xff91234567abcdefull : 0xffff934567abcdefull;
			u64 target = 0x7c0000000ull;

			clear();
			build_x86(0x100000, levels, leaf, vaddr, target);
			CHECK_EQ(vmp_walk_x86(&mem.phys, 0x100000 | 0x8000000000000fffull, levels,
					      vaddr, &gpa),
				 0);
			CHECK_EQ(gpa, target | (vaddr & masks[leaf]));
			CHECK_EQ(mem.reads, levels - leaf + 1);
			CHECK_EQ(vmp_walk_x86(&mem.phys, 0x100000, levels, vaddr ^ 0x8000000000,
					      &gpa),
				 -VMP_ENOENT);
		}
	clear();
	put(0x1000 + 0x1ff * 8,
	    0x1000 | 0x63); /* a table that is its own entry, as Windows has it */
	CHECK_EQ(vmp_walk_x86(&mem.phys, 0x1000, 4, ~0ull & ~7ull, &gpa), 0);
	CHECK_EQ(gpa, 0x1ff8);
}

/* ------------------------------------------------------------------ arm64 */

static const struct {
	u32 page_shift, bits, levels;
	u64 tg0, tg1;
} regimes[] = {
	{12, 39, 3, 0, 2}, {12, 48, 4, 0, 2}, {14, 36, 2, 2, 1}, {14, 47, 3, 2, 1},
	{14, 48, 4, 2, 1}, {16, 42, 2, 1, 3}, {16, 48, 3, 1, 3}, {16, 52, 3, 1, 3},
};

static void build_arm64(u64 base, u32 page_shift, u32 bits, u32 levels, u32 leaf, u64 vaddr,
			u64 target)
{
	u64 table = base;

	for (u32 level = levels; level >= leaf; level--) {
		u32 stride = page_shift - 3, shift = page_shift + stride * (level - 1);
		u32 top = level == levels ? bits : shift + stride;
		u64 index = (vaddr & ((1ull << top) - 1)) >> shift;
		u64 next = table + (1ull << 20);

		if (level > leaf)
			put(table + index * 8, next | 3);
		else
			put(table + index * 8, target | 0x60000000000400ull | (leaf == 1 ? 3 : 1));
		table = next;
	}
}

static void test_arm64(void)
{
	u64 gpa;

	for (size_t i = 0; i < sizeof(regimes) / sizeof(*regimes); i++)
		for (int upper = 0; upper < 2; upper++)
			for (u32 leaf = 1; leaf <= 2; leaf++) {
				u32 bits = regimes[i].bits, page = regimes[i].page_shift;
				u64 low = (1ull << bits) - 1, target = 0x40000000000ull;
				u64 vaddr = 0x5a5a5123456789abull & low;
				struct vmp_arm64_tables t = {.ttbr0 = 0x200000 | 1,
							     .ttbr1 = 0x8000000 | 1};
				u64 size = 1ull << (page + (leaf - 1) * (page - 3));

				t.tcr = (64 - bits) | (u64)(64 - bits) << 16 |
					regimes[i].tg0 << 14 | regimes[i].tg1 << 30;
				if (upper)
					vaddr |= ~low;
				clear();
				build_arm64((upper ? t.ttbr1 : t.ttbr0) & ~1ull, page, bits,
					    regimes[i].levels, leaf, vaddr, target);
				CHECK_EQ(vmp_walk_arm64(&mem.phys, &t, vaddr, &gpa), 0);
				CHECK_EQ(gpa, target | (vaddr & (size - 1)));
				/* the top byte is a tag */
				CHECK_EQ(vmp_walk_arm64(&mem.phys, &t,
							vaddr ^ 0xab00000000000000ull, &gpa),
					 0);
				/* neither half */
				CHECK_EQ(vmp_walk_arm64(&mem.phys, &t, vaddr ^ 1ull << 54, &gpa),
					 -VMP_ENOENT);
				CHECK_EQ(vmp_walk_arm64(&mem.phys, &t, vaddr ^ 1ull << (bits - 1),
							&gpa),
					 -VMP_ENOENT);
			}
}

/* 52-bit output addresses, whose top bits lie low in a descriptor and in TTBR. */
static void test_arm64_high(void)
{
	struct vmp_arm64_tables t = {.ttbr0 = 0x10000 | 5 << 2, .tcr = 12 | 1 << 14};
	u64 gpa;

	clear();
	put(0x5000000010000ull, 0x20000 | 0x3000 | 3);
	put(0x3000000020000ull, 0x30000 | 3);
	put(0x30000, 0x50000 | 0xf000 | 3);
	CHECK_EQ(vmp_walk_arm64(&mem.phys, &t, 0x1234, &gpa), 0);
	CHECK_EQ(gpa, 0xf000000051234ull);

	t.tcr = 12 | 1ull << 59; /* 4K, DS */
	t.ttbr0 = 0x10000 | 2 << 2;
	clear();
	put(0x2000000010000ull, 0x20000 | 0x100 | 3);
	put(0x4000000020000ull, 0x30000 | 3);
	put(0x30000, 0x31000 | 3);
	put(0x31000, 0x32000 | 3);
	put(0x32000 + 8, 0x50000 | 0x300 | 3);
	CHECK_EQ(vmp_walk_arm64(&mem.phys, &t, 0x1234, &gpa), 0);
	CHECK_EQ(gpa, 0xc000000050234ull);
}

static int random_word(const struct vmp_phys *phys, u64 gpa, u64 *entry)
{
	static unsigned int seed = 7;

	mem.reads++;
	*entry = ((u64)(u32)rand_r(&seed) << 33) ^ ((u64)(u32)rand_r(&seed) << 10) ^
		 (rand_r(&seed) & 0xfff) ^ 1;
	return 0;
}

/* Whatever registers and tables say: few reads, and no shift that C does not know (a sanitizer's
 * affair). */
static void test_random(void)
{
	unsigned int seed = 9;
	u64 gpa;

	mem.phys.read = random_word;
	for (int i = 0; i < 200000; i++) {
		struct vmp_arm64_tables t;

		random_word(NULL, 0, &t.ttbr0);
		random_word(NULL, 0, &t.ttbr1);
		random_word(NULL, 0, &t.tcr);
		mem.reads = 0;
		vmp_walk_arm64(&mem.phys, &t, i % 2 ? 0x123456789abcull : ~0x12345678ull, &gpa);
		vmp_walk_x86(&mem.phys, t.ttbr0, 4 + (u32)rand_r(&seed) % 2, t.ttbr1, &gpa);
		CHECK(mem.reads <= 10);
	}
}

int main(void)
{
	test_x86();
	test_arm64();
	test_arm64_high();
	test_random();
	return test_done();
}
