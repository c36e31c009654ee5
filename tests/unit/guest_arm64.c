// SPDX-License-Identifier: GPL-2.0-only
/*
 * aarch64 page tables, made up here: granules of 4, 16 and 64 KiB, addresses of 36 to 52 bits,
 * pages and blocks, both halves, tags, what the registers say of the top table, and what cannot be.
 */
#include "guest/arm64.h"
#include "tests/unit/fakemem.h"
#include "tests/unit/test.h"

enum { RAM = 4 << 20, NO_LPA2 = 0, LPA2 = 1 };

struct setup {
	struct fakemem fm;
	struct guest_virt *v;
	struct guest_paging p;
	struct guest_as as;
	uint64_t next; /* free memory */
	uint64_t user, kernel;
};

/* One translation regime of the tests; the levels' lowest address bits are written out. */
struct regime {
	const char *name;
	unsigned page_shift, va_bits;
	uint64_t tg; /* TCR_EL1.TG0 and TG1 */
	bool lpa2, pa52;
	int levels;
	unsigned shift[5]; /* of level 1 (pages) and up */
};

#define TG(tg0, tg1) ((uint64_t)(tg0) << 14 | (uint64_t)(tg1) << 30)
static const struct regime regimes[] = {
	{"4K, 48", 12, 48, TG(0, 2), .levels = 4, .shift = {12, 21, 30, 39}},
	{"4K, 39", 12, 39, TG(0, 2), .levels = 3, .shift = {12, 21, 30}},
	{"4K, 42", 12, 42, TG(0, 2), .levels = 4, .shift = {12, 21, 30, 39}},
	{"4K, 52", 12, 52, TG(0, 2), true, true, 5, {12, 21, 30, 39, 48}},
	{"16K, 47", 14, 47, TG(2, 1), .levels = 3, .shift = {14, 25, 36}},
	{"16K, 48", 14, 48, TG(2, 1), .levels = 4, .shift = {14, 25, 36, 47}},
	{"16K, 36", 14, 36, TG(2, 1), .levels = 2, .shift = {14, 25}},
	{"16K, 52", 14, 52, TG(2, 1), true, true, 4, {14, 25, 36, 47}},
	{"64K, 42", 16, 42, TG(1, 3), .levels = 2, .shift = {16, 29}},
	{"64K, 48", 16, 48, TG(1, 3), .levels = 3, .shift = {16, 29, 42}},
	{"64K, 52", 16, 52, TG(1, 3), false, true, 3, {16, 29, 42}},
};

static uint64_t tcr_of(const struct regime *r)
{
	uint64_t tsz = 64 - r->va_bits;

	return tsz | tsz << 16 | r->tg | (uint64_t)r->lpa2 << 59 | (r->pa52 ? 6ull : 5ull) << 32;
}

static uint64_t alloc(struct setup *s, uint64_t size)
{
	uint64_t at = (s->next + size - 1) & ~(size - 1);

	s->next = at + size;
	if (s->next > RAM)
		abort();
	return at;
}

static void setup(struct setup *s, const struct regime *r)
{
	memset(s, 0, sizeof(*s));
	fakemem_init(&s->fm, RAM);
	s->fm.mem.top = 1ull << 52;
	s->next = 1 << r->page_shift;
	s->user = alloc(s, 1 << r->page_shift);
	s->kernel = alloc(s, 1 << r->page_shift);
	s->v = guest_virt_new(&s->fm.mem, GUEST_ARCH_AARCH64);
	/* ASID and CnP do not matter */
	CHECK_EQ(arm64_paging_set(&s->p, tcr_of(r), s->kernel | 0x00ab000000000001ull), 0);
	guest_virt_set_paging(s->v, &s->p);
	s->as.root = arm64_root(&s->p, false, s->user | 0xffff000000000001ull);
	CHECK_EQ(s->as.root, s->user);
}

static void teardown(struct setup *s)
{
	guest_virt_free(s->v);
	fakemem_free(&s->fm);
}

static uint64_t address_bits(const struct regime *r, uint64_t pa)
{
	if (r->lpa2)
		return (pa & ((1ull << 50) - 1)) | (pa >> 50 & 3) << 8;
	if (r->page_shift == 16 && r->pa52)
		return (pa & ((1ull << 48) - 1)) | (pa >> 48 & 15) << 12;
	return pa;
}

/* Maps @va to @pa with one descriptor of @level (1: a page). */
static void map(struct setup *s, const struct regime *r, uint64_t va, uint64_t pa, int level)
{
	uint64_t table = va >> 63 ? s->kernel : s->user;

	for (int l = r->levels;; l--) {
		unsigned top = l == r->levels ? r->va_bits : r->shift[l];
		uint64_t index = (va & ((1ull << top) - 1)) >> r->shift[l - 1];
		uint64_t *desc = (uint64_t *)(s->fm.ram + table) + index;

		if (l == level) {
			*desc = address_bits(r, pa) | 0x401 | (l == 1 ? 2 : 0);
			return;
		}
		if (!*desc)
			*desc = address_bits(r, alloc(s, 1 << r->page_shift)) | 3;
		table = *desc & 0x3ffffff000 & ~((1ull << r->page_shift) - 1);
	}
}

static uint64_t lower_half(const struct regime *r)
{
	return 0x0005a5c3b4d29000ull & ((1ull << r->va_bits) - 1) & ~((1ull << r->page_shift) - 1);
}

static uint64_t upper_half(const struct regime *r)
{
	return ~0ull << r->va_bits | lower_half(r);
}

static void test_pages(const struct regime *r)
{
	uint64_t low = lower_half(r), high = upper_half(r), page = 1ull << r->page_shift, gpa = 0;
	uint64_t far = r->pa52 ? 0x000d400000000000ull : 0x0000400000000000ull;
	struct guest_as other;
	struct setup s;
	uint64_t value = 0;

	setup(&s, r);
	map(&s, r, low, 0x200000, 1);
	map(&s, r, low + page, far, 1);
	map(&s, r, high, 0x300000, 1);
	memcpy(s.fm.ram + 0x300000 + page - 8, "kernel!", 8);
	for (int cached = 0; cached < 2; cached++) {
		CHECK_EQ(guest_virt_translate(s.v, s.as, low + 0x123, &gpa), 0);
		CHECK_EQ(gpa, 0x200123);
		CHECK_EQ(guest_virt_translate(s.v, s.as, low + page + page - 1, &gpa), 0);
		CHECK_EQ(gpa, far + page - 1);
		CHECK_EQ(guest_virt_translate(s.v, s.as, high + page - 8, &gpa), 0);
		CHECK_EQ(gpa, 0x300000 + page - 8);
	}
	CHECK_EQ(guest_virt_read(s.v, s.as, high + page - 8, &value, 8), 0);
	CHECK(!memcmp(&value, "kernel!", 8));
	CHECK_EQ(guest_virt_translate(s.v, s.as, low - page, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_translate(s.v, s.as, high + page, &gpa), -EFAULT);
	/* Another process: its own lower half, the same upper one. */
	other.root = alloc(&s, page);
	other.la57 = false;
	CHECK_EQ(guest_virt_translate(s.v, other, low, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_translate(s.v, other, high, &gpa), 0);
	CHECK_EQ(gpa, 0x300000);
	teardown(&s);
}

static void test_blocks(const struct regime *r)
{
	for (int level = 2; level <= r->levels; level++) {
		unsigned bits = level == r->levels ? r->va_bits : r->shift[level];
		uint64_t size = 1ull << r->shift[level - 1], gpa = 0;
		uint64_t va = (upper_half(r) & ~(size - 1)) + (size > 0x23456 ? 0x12345 : 0);
		uint64_t pa = bits < 46 ? size : 0;
		bool may = level == 2 || (level == 3 && (r->page_shift == 12 || r->pa52)) ||
			   (level == 4 && r->page_shift == 12 && r->lpa2);
		struct setup s;

		setup(&s, r);
		map(&s, r, va, pa, level);
		for (int cached = 0; cached < 2; cached++) {
			CHECK_EQ(guest_virt_translate(s.v, s.as, va, &gpa), may ? 0 : -EFAULT);
			if (may)
				CHECK_EQ(gpa, pa + 0x12345);
		}
		if (may) {
			CHECK_EQ(guest_virt_translate(s.v, s.as, (va & ~(size - 1)) + size - 1,
						      &gpa),
				 0);
			CHECK_EQ(gpa, pa + size - 1);
		}
		teardown(&s);
	}
}

static void test_holes(const struct regime *r)
{
	uint64_t low = lower_half(r), high = upper_half(r), gpa = 0, tbi = 3ull << 37;
	struct setup s;

	setup(&s, r);
	map(&s, r, low, 0x200000, 1);
	map(&s, r, high, 0x300000, 1);
	CHECK_EQ(guest_virt_translate(s.v, s.as, low | 1ull << r->va_bits, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_translate(s.v, s.as, high ^ 1ull << r->va_bits, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_translate(s.v, s.as, low | 0x5aull << 56, &gpa), -EFAULT);
	/* The same addresses with tags where those are none of the address's bits. */
	CHECK_EQ(arm64_paging_set(&s.p, tcr_of(r) | tbi, s.kernel), 0);
	guest_virt_set_paging(s.v, &s.p);
	CHECK_EQ(guest_virt_translate(s.v, s.as, low | 0x5aull << 56, &gpa), 0);
	CHECK_EQ(gpa, 0x200000);
	CHECK_EQ(guest_virt_translate(s.v, s.as, high ^ 0x5aull << 56, &gpa), 0);
	CHECK_EQ(gpa, 0x300000);
	if (r->va_bits < 55)
		CHECK_EQ(guest_virt_translate(s.v, s.as, low | 1ull << r->va_bits, &gpa), -EFAULT);
	teardown(&s);
}

/* A reserved descriptor at the last level; a table that is itself; tables and roots outside RAM. */
static void test_hostile(void)
{
	const struct regime *r = &regimes[0];
	uint64_t low = lower_half(r), gpa = 0, *desc;
	struct setup s;

	setup(&s, r);
	map(&s, r, low, 0x200000, 1);
	for (desc = (uint64_t *)s.fm.ram; (*desc & ~0xfffull) != 0x200000; desc++)
		;
	*desc &= ~2ull;
	CHECK_EQ(guest_virt_translate(s.v, s.as, low, &gpa), -EFAULT);
	for (int i = 0; i < 512; i++)
		((uint64_t *)(s.fm.ram + s.user))[i] = s.user | 3;
	CHECK_EQ(guest_virt_translate(s.v, s.as, low, &gpa), 0);
	CHECK_EQ(gpa, s.user);
	for (int i = 0; i < 512; i++)
		((uint64_t *)(s.fm.ram + s.user))[i] = 0xfffffffff003ull;
	guest_virt_flush(s.v, s.as.root);
	CHECK_EQ(guest_virt_translate(s.v, s.as, low, &gpa), -EFAULT);
	s.as.root = ~0ull;
	CHECK_EQ(guest_virt_translate(s.v, s.as, low, &gpa), -EFAULT);
	teardown(&s);
}

static void test_registers(void)
{
	struct guest_paging p = {0};
	uint64_t tcr = tcr_of(&regimes[0]), gpa;
	struct fakemem fm;
	struct guest_virt *v;

	CHECK_EQ(arm64_paging_set(&p, tcr | 3 << 14, 0), -EINVAL);	 /* TG0: reserved */
	CHECK_EQ(arm64_paging_set(&p, tcr & ~(3ull << 30), 0), -EINVAL); /* TG1 likewise */
	CHECK_EQ(arm64_paging_set(&p, tcr & ~63ull, 0), -EINVAL);	 /* T0SZ: 64 bits */
	CHECK_EQ(arm64_paging_set(&p, (tcr & ~63ull) | 12, 0), -EINVAL); /* 52 bits without LPA2 */
	CHECK_EQ(arm64_paging_set(&p, tcr | 63 << 16, 0), -EINVAL);
	/* Halves of their own: 4 KiB and 39 bits below, 64 KiB and 52 bits above. */
	CHECK_EQ(arm64_paging_set(&p, 25 | 12 << 16 | TG(0, 3) | 6ull << 32, 0x80000014ull), 0);
	CHECK_EQ(p.half[0].page_shift, 12);
	CHECK_EQ(p.half[0].va_bits, 39);
	CHECK_EQ(p.half[1].page_shift, 16);
	CHECK_EQ(p.half[1].va_bits, 52);
	/* Bits 5..2 of TTBR are 51..48 of the address. */
	CHECK_EQ(p.kernel_root, 0x0005000080000000ull);
	CHECK_EQ(arm64_root(&p, false, 0x123400008000103full), 0x000f000080001000ull);
	/* A small top table need not lie on a page boundary: 16 KiB pages, 36 bits, 2048 entries.
	 */
	CHECK_EQ(arm64_paging_set(&p, 31 | 16 << 16 | TG(0, 2), 0), 0);
	CHECK_EQ(arm64_root(&p, false, 0x80001041ull), 0x80001040ull);
	/* Nothing is known yet. */
	fakemem_init(&fm, 4096);
	v = guest_virt_new(&fm.mem, GUEST_ARCH_AARCH64);
	CHECK_EQ(guest_virt_translate(v, (struct guest_as){0}, 0, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_translate(v, (struct guest_as){0}, ~0ull, &gpa), -EFAULT);
	guest_virt_free(v);
	fakemem_free(&fm);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(regimes) / sizeof(*regimes); i++) {
		test_pages(&regimes[i]);
		test_blocks(&regimes[i]);
		test_holes(&regimes[i]);
	}
	test_hostile();
	test_registers();
	return test_done();
}
