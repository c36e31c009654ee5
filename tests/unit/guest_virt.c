// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest-virtual memory over made-up page tables: 4 and 5 levels, all page sizes, what cannot be
 * translated, the cache and its flush, batches and what they cost, memory that is not mapped here.
 */
#include "guest/kernel.h"
#include "guest/x86.h"
#include "tests/unit/fakeguest.h"
#include "tests/unit/test.h"

#define VA   0x00007f1234567000ull
#define VA_2 0x00007f1240000000ull

struct setup {
	struct fakeguest g; /* only its memory and its mapping functions */
	struct guest_virt *v;
	struct guest_as as;
};

static void setup(struct setup *s, bool la57, bool map)
{
	memset(&s->g, 0, sizeof(s->g));
	fakemem_init(&s->g.fm, 8 << 20);
	s->g.fm.map = map;
	s->g.opt.la57 = la57;
	s->g.next = FG_PAGE;
	s->g.root = fg_alloc(&s->g, 1);
	s->v = guest_virt_new(&s->g.fm.mem, GUEST_ARCH_X86_64);
	s->as = (struct guest_as){.root = s->g.root, .la57 = la57};
}

static void teardown(struct setup *s)
{
	guest_virt_free(s->v);
	fakemem_free(&s->g.fm);
}

static void fill(struct setup *s, uint64_t gpa, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		s->g.fm.ram[gpa + i] = (uint8_t)(i * 31 + i / 256 + seed);
}

static void test_sizes(bool la57, bool map)
{
	struct setup s;
	uint64_t gpa = 0, high = la57 ? 0x00a0123456789000ull : 0xffffc90012345000ull;
	uint8_t buf[32];

	setup(&s, la57, map);
	fill(&s, 0x300000, 8192, 1);
	fg_map(&s.g, s.g.root, VA, 0x300000, 1);
	fg_map(&s.g, s.g.root, high, 0x301000, 1);
	fg_map_level(&s.g, s.g.root, VA_2, 0x200000, 2);
	fg_map_level(&s.g, s.g.root, 0x4000000000ull, 0, 3); /* 1 GiB, of which RAM has 8 MiB */

	CHECK_EQ(guest_virt_translate(s.v, s.as, VA + 0x123, &gpa), 0);
	CHECK_EQ(gpa, 0x300123);
	CHECK_EQ(guest_virt_translate(s.v, s.as, high + 0xfff, &gpa), 0);
	CHECK_EQ(gpa, 0x301fff);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA_2 + 0x100005, &gpa), 0);
	CHECK_EQ(gpa, 0x300005);
	CHECK_EQ(guest_virt_translate(s.v, s.as, 0x4000300777ull, &gpa), 0);
	CHECK_EQ(gpa, 0x300777);
	/* the same again, now out of the cache, and others of the same large pages */
	CHECK_EQ(guest_virt_translate(s.v, s.as, 0x4000301777ull, &gpa), 0);
	CHECK_EQ(gpa, 0x301777);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA_2 + 0x101005, &gpa), 0);
	CHECK_EQ(gpa, 0x301005);
	/* out of RAM: a translation there is none */
	CHECK_EQ(guest_virt_translate(s.v, s.as, 0x4000800000ull, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_read(s.v, s.as, 0x4000800000ull, buf, 8), -EFAULT);
	CHECK_EQ(guest_virt_read(s.v, s.as, 0x40007ffff8ull, buf, 16), -EFAULT);

	CHECK_EQ(guest_virt_read(s.v, s.as, VA_2 + 0x100ff0, buf, sizeof(buf)), 0);
	CHECK(!memcmp(buf, s.g.fm.ram + 0x300ff0, sizeof(buf)));
	CHECK_EQ(guest_virt_read(s.v, s.as, VA + 0xff0, buf, 16), 0);
	CHECK(!memcmp(buf, s.g.fm.ram + 0x300ff0, 16));
	CHECK_EQ(guest_virt_read(s.v, s.as, VA + 0xff0, buf, 17), -EFAULT);
	teardown(&s);
}

static void test_hostile(bool map)
{
	struct setup s;
	uint64_t gpa, self;
	uint8_t buf[64];

	setup(&s, false, map);
	/* A top table whose entry 0x1ff is itself: translates, as on hardware, and ends. */
	self = s.g.root | 0x67;
	*fg_entry(&s.g, s.g.root, ~0ull, 4) = self;
	CHECK_EQ(guest_virt_translate(s.v, s.as, ~0ull & ~0xfffull, &gpa), 0);
	CHECK_EQ(gpa, s.g.root);
	/* Non-canonical in 4 levels, canonical in 5 */
	CHECK_EQ(guest_virt_translate(s.v, s.as, 0x0000800000000000ull, &gpa), -EFAULT);
	fg_map(&s.g, s.g.root, VA_2, 0x300000, 1);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA_2 | 0xdead000000000000ull, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA_2, &gpa), 0);
	/* A table outside RAM; a root outside RAM; PS where there is no such page (level 4) */
	*fg_entry(&s.g, s.g.root, 0, 4) = 0xffffffffff000ull | 0x67;
	CHECK_EQ(guest_virt_translate(s.v, s.as, 0x1000, &gpa), -EFAULT);
	CHECK_EQ(guest_virt_read(s.v, (struct guest_as){.root = 0xffffff000ull}, VA, buf, 8),
		 -EFAULT);
	*fg_entry(&s.g, s.g.root, VA, 4) = s.g.root | 0xe7;
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), -EFAULT);
	/* Reading up to the end of the address space and over it */
	CHECK_EQ(guest_virt_read(s.v, s.as, ~0ull - 7, buf, 8), 0);
	CHECK_EQ(guest_virt_read(s.v, s.as, ~0ull - 7, buf, 64), -EFAULT);
	teardown(&s);
}

static void test_hole(bool map)
{
	struct setup s;
	uint8_t buf[8];

	setup(&s, false, map);
	fg_map(&s.g, s.g.root, VA, 0x300000, 2);
	s.g.fm.hole = 0x301000;
	s.g.fm.hole_len = 0x1000;
	CHECK_EQ(guest_virt_read(s.v, s.as, VA + 0xff8, buf, 8), 0);
	CHECK_EQ(guest_virt_read(s.v, s.as, VA + 0xffc, buf, 8), -EFAULT);
	CHECK_EQ(guest_virt_read(s.v, s.as, VA + 0x1000, buf, 8), -EFAULT);
	teardown(&s);
}

static void test_cache(bool map)
{
	struct setup s;
	struct guest_as other;
	uint64_t v1 = 1, v2 = 2, got, gpa;

	setup(&s, false, map);
	other = (struct guest_as){.root = fg_alloc(&s.g, 1)};
	fg_map(&s.g, s.g.root, VA, 0x300000, 1);
	fg_map(&s.g, other.root, VA, 0x301000, 1);
	memcpy(s.g.fm.ram + 0x300000, &v1, 8);
	memcpy(s.g.fm.ram + 0x301000, &v2, 8);
	CHECK_EQ(guest_virt_read(s.v, s.as, VA, &got, 8), 0);
	CHECK_EQ(got, 1);
	CHECK_EQ(guest_virt_read(s.v, other, VA, &got, 8), 0); /* not the other's */
	CHECK_EQ(got, 2);
	/* contents are never cached, translations are until they are flushed */
	v1 = 11;
	memcpy(s.g.fm.ram + 0x300000, &v1, 8);
	CHECK_EQ(guest_virt_read(s.v, s.as, VA, &got, 8), 0);
	CHECK_EQ(got, 11);
	fg_map(&s.g, s.g.root, VA, 0x301000, 1);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), 0);
	CHECK_EQ(gpa, 0x300000);
	guest_virt_flush(s.v, other.root);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), 0);
	CHECK_EQ(gpa, 0x300000);
	CHECK_EQ(guest_virt_walk(s.v, s.as, VA, &gpa), 0); /* as it is now, and known from now on */
	CHECK_EQ(gpa, 0x301000);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), 0);
	CHECK_EQ(gpa, 0x301000);
	fg_map(&s.g, s.g.root, VA, 0x300000, 1);
	guest_virt_flush(s.v, s.as.root | 0xfff); /* CR3 with a PCID will do */
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), 0);
	CHECK_EQ(gpa, 0x300000);
	*fg_entry(&s.g, s.g.root, VA, 4) = 0;
	guest_virt_flush(s.v, 0);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), -EFAULT);
	teardown(&s);
}

/* Many regions in two address spaces, so that some share a place in the cache. */
static void test_collisions(bool map)
{
	struct setup s;
	struct guest_as other;
	unsigned wrong = 0;

	setup(&s, false, map);
	other = (struct guest_as){.root = fg_alloc(&s.g, 1)};
	for (uint64_t i = 0; i < 4096; i++) {
		fg_map_level(&s.g, s.g.root, i << 21, 0x200000, 2);
		fg_map_level(&s.g, other.root, i << 21, 0x400000, 2);
	}
	for (uint64_t i = 0; i < 4096; i++) {
		uint64_t a = 0, b = 0;

		guest_virt_translate(s.v, s.as, i << 21, &a);
		guest_virt_translate(s.v, other, i << 21 | 0x1000, &b);
		wrong += a != 0x200000 || b != 0x401000;
	}
	CHECK_EQ(wrong, 0);
	teardown(&s);
}

/*
 * More address spaces than have a place, every other one with the same memory, by turns: each is
 * read as it is, also after it was forgotten, in both halves.
 */
static void test_many_spaces(bool map)
{
	enum { SPACES = 1200 };
	const uint64_t high = 0xffffc90012345000ull;
	struct setup s;
	struct guest_as other, *as = calloc(SPACES, sizeof(*as));
	unsigned wrong = 0;
	uint64_t a, b;

	setup(&s, false, map);
	other = (struct guest_as){.root = fg_alloc(&s.g, 1)};
	for (int i = 0; i < 2; i++) {
		fg_map(&s.g, i ? other.root : s.g.root, VA, 0x300000 + FG_PAGE * (uint64_t)i, 1);
		fg_map(&s.g, i ? other.root : s.g.root, high, 0x310000 + FG_PAGE * (uint64_t)i, 1);
	}
	for (unsigned i = 0; i < SPACES; i++) {
		as[i].root = fg_alloc(&s.g, 1);
		memcpy(s.g.fm.ram + as[i].root, s.g.fm.ram + (i & 1 ? other.root : s.g.root),
		       FG_PAGE);
	}
	for (unsigned i = 0; i < 3 * SPACES; i++) {
		uint64_t odd = i & 1;

		guest_virt_translate(s.v, as[i % SPACES], VA, &a);
		guest_virt_translate(s.v, as[i % SPACES], high, &b);
		wrong += a != 0x300000 + FG_PAGE * odd || b != 0x310000 + FG_PAGE * odd;
	}
	CHECK_EQ(wrong, 0);
	memcpy(s.g.fm.ram + as[0].root, s.g.fm.ram + other.root, FG_PAGE);
	guest_virt_flush(s.v, as[0].root);
	guest_virt_translate(s.v, as[0], VA, &a);
	guest_virt_translate(s.v, as[0], high, &b);
	guest_virt_flush(s.v, as[1].root);
	memcpy(s.g.fm.ram + as[0].root, s.g.fm.ram + s.g.root, FG_PAGE);
	CHECK_EQ(guest_virt_translate(s.v, as[0], VA, &a), 0);
	CHECK_EQ(guest_virt_translate(s.v, as[0], high, &b), 0);
	CHECK_EQ(a, 0x301000);
	CHECK_EQ(b, 0x311000);
	guest_virt_flush(s.v, as[0].root);
	CHECK_EQ(guest_virt_translate(s.v, as[0], VA, &a), 0);
	CHECK_EQ(guest_virt_translate(s.v, as[0], high, &b), 0);
	CHECK_EQ(a, 0x300000);
	CHECK_EQ(b, 0x310000);
	teardown(&s);
	free(as);
}

static void test_batch(void)
{
	enum { N = 200 };
	struct setup s;
	struct guest_virt_io io[N];
	static uint8_t bufs[N][48];
	uint64_t reads, bytes;
	unsigned before;

	setup(&s, true, false);
	fill(&s, 0x300000, N * FG_PAGE, 5);
	for (int i = 0; i < N; i++) {
		/* each in 2 MiB of its own, so that nothing but the upper levels is shared */
		uint64_t va = 0x7f0000000000ull + (uint64_t)(i % 40) * (2 << 20) +
			      (uint64_t)(i / 40) * FG_PAGE;

		if (i % 7 != 3)
			fg_map(&s.g, s.g.root, va, 0x300000 + (uint64_t)i * FG_PAGE, 1);
		io[i] = (struct guest_virt_io){
			.va = va + (uint64_t)i, .buf = bufs[i], .len = sizeof(bufs[i])};
	}
	before = s.g.fm.readv_calls;
	CHECK_EQ(guest_virt_readv(s.v, s.as, io, 40), 0);
	CHECK_EQ(s.g.fm.readv_calls - before, 6); /* five levels and the contents */
	before = s.g.fm.readv_calls;
	CHECK_EQ(guest_virt_readv(s.v, s.as, io + 1, 2), 0);
	CHECK_EQ(s.g.fm.readv_calls - before, 1);
	CHECK_EQ(guest_virt_readv(s.v, s.as, io, N), 0); /* more than one internal batch */
	for (int i = 0; i < N; i++) {
		CHECK_EQ(io[i].ok, i % 7 != 3);
		if (io[i].ok)
			CHECK(!memcmp(bufs[i],
				      s.g.fm.ram + (io[i].va & 0xfff) + 0x300000 +
					      (uint64_t)i * FG_PAGE,
				      sizeof(bufs[i])));
	}
	guest_virt_stats(s.v, &reads, &bytes);
	CHECK_EQ(reads, s.g.fm.readv_calls);
	CHECK(bytes > N * 40);

	s.g.fm.gone_after = s.g.fm.readv_calls;
	CHECK_EQ(guest_virt_readv(s.v, s.as, io, N), -ESRCH);
	for (int i = 0; i < N; i++)
		CHECK(!io[i].ok);
	CHECK_EQ(guest_virt_read(s.v, s.as, io[0].va, bufs[0], 8), -ESRCH);
	teardown(&s);
}

static void test_mapped_costs_nothing(void)
{
	struct setup s;
	uint8_t buf[8192];
	uint64_t reads, bytes;

	setup(&s, false, true);
	fg_map(&s.g, s.g.root, VA, 0x300000, 3);
	CHECK_EQ(guest_virt_read(s.v, s.as, VA + 5, buf, sizeof(buf)), 0);
	guest_virt_stats(s.v, &reads, &bytes);
	CHECK_EQ(reads, 0);
	CHECK_EQ(s.g.fm.readv_calls, 0);
	teardown(&s);
}

static void test_strings(bool map)
{
	struct setup s;
	char buf[16];

	setup(&s, false, map);
	fg_map(&s.g, s.g.root, VA, 0x300000, 2);
	memcpy(s.g.fm.ram + 0x300ffc, "across pages", 13);
	CHECK_EQ(guest_virt_read_str(s.v, s.as, VA + 0xffc, buf, sizeof(buf)), 0);
	CHECK_STR(buf, "across pages");
	CHECK_EQ(guest_virt_read_str(s.v, s.as, VA + 0xffc, buf, 5), 0);
	CHECK_STR(buf, "acro");
	CHECK_EQ(guest_virt_read_str(s.v, s.as, VA + 0xffc, buf, 1), 0);
	CHECK_STR(buf, "");
	CHECK_EQ(guest_virt_read_str(s.v, s.as, VA + 0xffc, buf, 0), -EFAULT);
	memcpy(s.g.fm.ram + 0x301ffc, "endless", 4); /* the next page is not mapped */
	CHECK_EQ(guest_virt_read_str(s.v, s.as, VA + 0x1ffc, buf, sizeof(buf)), 0);
	CHECK_STR(buf, "endl");
	CHECK_EQ(guest_virt_read_str(s.v, s.as, VA + 0x2000, buf, sizeof(buf)), -EFAULT);
	CHECK_STR(buf, "");
	teardown(&s);
}

static void test_sparse(bool map)
{
	struct setup s;
	static uint8_t buf[100 * 4096];
	int64_t got;

	setup(&s, false, map);
	fill(&s, 0x300000, 100 * FG_PAGE, 9);
	for (uint64_t i = 0; i < 100; i++)
		if (i != 50 && i != 99)
			fg_map(&s.g, s.g.root, VA + i * FG_PAGE, 0x300000 + i * FG_PAGE, 1);
	memset(buf, 0xee, sizeof(buf));
	got = guest_virt_read_sparse(s.v, s.as, VA + 16, buf, sizeof(buf) - 16);
	CHECK_EQ(got, 98 * FG_PAGE - 16);
	CHECK(!memcmp(buf, s.g.fm.ram + 0x300010, 50 * FG_PAGE - 16));
	CHECK_EQ(buf[50 * FG_PAGE], 0);
	CHECK(!memcmp(buf + 51 * FG_PAGE, s.g.fm.ram + 0x300010 + 51 * FG_PAGE, 48 * FG_PAGE - 16));
	CHECK_EQ(buf[99 * FG_PAGE - 16], 0);
	CHECK_EQ(buf[99 * FG_PAGE - 17], s.g.fm.ram[0x300000 + 99 * FG_PAGE - 1]);
	s.g.fm.gone_after = 1;
	if (!map)
		CHECK_EQ(guest_virt_read_sparse(s.v, s.as, VA, buf, sizeof(buf)), -ESRCH);
	teardown(&s);
}

static void test_forget(bool map)
{
	uint64_t gpa = 0;
	struct setup s;

	setup(&s, false, map);
	fg_map(&s.g, s.g.root, VA, 0x300000, 3);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_EQ(guest_virt_translate(s.v, s.as, VA + i * FG_PAGE, &gpa), 0);
	fg_map(&s.g, s.g.root, VA, 0x400000, 3); /* the guest maps others there */
	guest_virt_forget(s.v, s.as, VA + FG_PAGE + 5, FG_PAGE);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA, &gpa), 0);
	CHECK_EQ(gpa, 0x300000);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA + FG_PAGE, &gpa), 0);
	CHECK_EQ(gpa, 0x401000);
	CHECK_EQ(guest_virt_translate(s.v, s.as, VA + 2 * FG_PAGE, &gpa), 0);
	CHECK_EQ(gpa, 0x402000);
	teardown(&s);
}

int main(void)
{
	for (int map = 0; map < 2; map++) {
		test_sizes(false, map);
		test_sizes(true, map);
		test_hostile(map);
		test_hole(map);
		test_cache(map);
		test_forget(map);
		test_collisions(map);
		test_many_spaces(map);
		test_strings(map);
		test_sparse(map);
	}
	test_batch();
	test_mapped_costs_nothing();
	return test_done();
}
