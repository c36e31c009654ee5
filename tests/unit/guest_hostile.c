// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests that have no kernel to be found, or a hostile one: page tables, kallsyms, BTF and module
 * lists that lie, loop or never end.
 */
#include "guest/btf.h"
#include "tests/unit/guest_setup.h"

static void expect_none(struct setup *s, const char *words)
{
	uint64_t start = clock_now_ns();

	CHECK_EQ(find(s), -ENOENT);
	CHECK(strstr(s->err.msg, words));
	if (!strstr(s->err.msg, words))
		fprintf(stderr, "  %s\n", s->err.msg);
	CHECK(clock_now_ns() - start < 5000000000ull); /* bounded, on a slow machine with SAN=1 */
	s->k = NULL;
}

static void test_none(void)
{
	struct setup s;

	build(&s, NULL);
	s.g.regs.cr0 = 0x10;
	expect_none(&s, "firmware");
	s.g.regs.cr0 = 0x80000011;
	s.g.regs.efer = 0;
	expect_none(&s, "firmware");
	s.g.regs.efer = 0xd01;
	s.g.regs.idt_base = 0x1000;
	expect_none(&s, "not mapped");
	s.g.regs.idt_base = s.g.percpu; /* readable, no gates */
	expect_none(&s, "no 64-bit Linux");
	teardown(&s);

	build(&s, NULL);
	s.g.fm.map = false;
	s.g.fm.gone_after = 10;
	CHECK_EQ(find(&s), -ESRCH);
	s.k = NULL;
	teardown(&s);
}

/*
 * Page tables that map one page everywhere: the search for the image and in it must end, also if
 * that page is full of what is looked for.
 */
static void test_endless_image(void)
{
	static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
	struct setup s;
	uint64_t pt, pmd, pud;

	build(&s, NULL);
	pt = fg_alloc(&s.g, 1);
	pmd = fg_alloc(&s.g, 1);
	for (int i = 0; i < 512; i++) {
		((uint64_t *)(s.g.fm.ram + pt))[i] = s.g.next | 0x67;
		((uint64_t *)(s.g.fm.ram + pmd))[i] = pt | 0x67;
	}
	for (uint64_t i = 0; i < FG_PAGE; i++)
		s.g.fm.ram[s.g.next + i] = (uint8_t)digits[i % sizeof(digits)];
	fg_alloc(&s.g, 1);
	pud = *fg_entry(&s.g, s.g.root, ~0ull, 4);
	for (uint64_t i = 0; i < 512; i++) {
		((uint64_t *)(s.g.fm.ram + (pud & 0xffffffffff000ull)))[i] = pmd | 0x67;
		if (i >= 256 && i != (s.g.direct_map >> 39 & 511))
			((uint64_t *)(s.g.fm.ram + s.g.root))[i] = pud;
	}
	expect_none(&s, "kallsyms");
	teardown(&s);
}

/* Finds the kallsyms tables that fakeguest wrote: offset of num_syms in RAM. */
static uint8_t *find_num_syms(struct setup *s)
{
	uint64_t n = s->g.nsyms;

	for (uint64_t off = 0; off < s->g.fm.size; off += 8)
		if (!memcmp(s->g.fm.ram + off, &n, 8))
			return s->g.fm.ram + off;
	abort();
}

static void test_hostile_kallsyms(void)
{
	static const uint32_t counts[] = {0, 1, 15, 100000, 1u << 20, ~0u};
	struct setup s;
	uint8_t *p;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		build(&s, NULL);
		memcpy(find_num_syms(&s), &counts[i], 4);
		expect_none(&s, "kallsyms");
		teardown(&s);
	}
	build(&s, NULL); /* one fewer than there are: markers do not tell, addresses do */
	p = find_num_syms(&s);
	p[0]--;
	s.k = NULL;
	find(&s);
	teardown(&s);

	build(&s, NULL); /* names that never end */
	memset(find_num_syms(&s) + 8, 0x7f, 64);
	expect_none(&s, "kallsyms");
	teardown(&s);

	build(&s, NULL); /* a marker that lies */
	p = memmem(s.g.fm.ram, s.g.fm.size, "0\0001\0002\0003\0004", 10);
	CHECK(p);
	p = find_num_syms(&s);
	p[8]++; /* the first length: all that follows is out of step */
	expect_none(&s, "kallsyms");
	teardown(&s);

	build(&s, NULL); /* a token without an end */
	p = memmem(s.g.fm.ram, s.g.fm.size, "0\0001\0002\0003\0004", 10);
	memset(p, 'A', 600);
	expect_none(&s, "kallsyms");
	teardown(&s);
}

static void test_wrong_addresses(void)
{
	struct setup s;
	uint64_t va;

	/* linux_banner is not what lies there */
	build(&s, NULL);
	va = s.g.modules_head - 0x800 + 0xa00;
	fg_puts(&s.g, va, "Minix version");
	expect_none(&s, "kallsyms");
	teardown(&s);
}

/* ~100 bytes of header and types; @types and @strs are the contents. */
static struct btf *make_btf(const uint32_t *types, size_t n, const char *strs, size_t strs_len)
{
	struct buf b = {0};

	buf_u32(&b, 0x0001eb9f);
	buf_u32(&b, 24);
	buf_u32(&b, 0);
	buf_u32(&b, (uint32_t)(n * 4));
	buf_u32(&b, (uint32_t)(n * 4));
	buf_u32(&b, (uint32_t)strs_len);
	buf_add(&b, types, n * 4);
	buf_add(&b, strs, strs_len);
	return btf_new(b.data, b.len);
}

#define INFO(kind, vlen)  ((uint32_t)(kind) << 24 | (vlen))
#define MAKE(types, strs) make_btf(types, sizeof(types) / 4, strs, sizeof(strs))

static void test_hostile_btf(void)
{
	static const char strs[] = "\0a\0b\0m"; /* 1 3 5 */
	/* typedefs in a circle; a struct that holds itself, unnamed */
	static const uint32_t circle[] = {1, INFO(8, 0), 2,    3, INFO(8, 0), 1, /* 1, 2 */
					  5, INFO(4, 2), 1000, 0, 3,	      0, 0, 3, 64};
	/* references out of the table, a name out of the strings, a count too large */
	static const uint32_t beyond[] = {1, INFO(8, 0),     99, 3, INFO(4, 1), 8, 99999, 77, 0,
					  5, INFO(4, 60000), 8,	 1, 1,		0};
	static const uint32_t unknown[] = {1, INFO(4, 0), 7, 3, INFO(31, 0), 7, 5, INFO(4, 0), 7};
	/* a struct of 200 unnamed members of its own kind: a tree without end in both directions */
	uint32_t tree[3 + 200 * 3] = {1, INFO(4, 200), 8};
	struct btf *b;
	uint64_t start;

	b = MAKE(circle, strs);
	CHECK(b);
	CHECK_EQ(btf_member(b, "a", "x"), -ENOENT);
	CHECK_EQ(btf_sizeof(b, "a"), -ENOENT);
	CHECK_EQ(btf_member(b, "m", "x"), -ENOENT);
	btf_free(b);

	b = MAKE(beyond, strs);
	CHECK(b);
	CHECK_EQ(btf_member(b, "a", "x"), -ENOENT);
	CHECK_EQ(btf_member(b, "b", "x"), -ENOENT);
	CHECK_EQ(btf_member(b, "m", "a"), -ENOENT);
	btf_free(b);

	b = MAKE(unknown, strs); /* what comes before the unknown kind is known */
	CHECK(b);
	CHECK_EQ(btf_sizeof(b, "a"), 7);
	CHECK_EQ(btf_sizeof(b, "m"), -ENOENT);
	btf_free(b);

	for (int i = 0; i < 200; i++)
		tree[3 + i * 3 + 1] = 1;
	start = clock_now_ns();
	b = MAKE(tree, strs);
	CHECK(b);
	CHECK_EQ(btf_member(b, "a", "x"), -ENOENT);
	CHECK(clock_now_ns() - start < 2000000000ull);
	btf_free(b);

	CHECK(!make_btf(circle, 9, strs, sizeof(strs) - 1)); /* strings without an end */
	CHECK(!make_btf(circle, 9, strs, 0));
	CHECK(!btf_new(malloc(1), 0));
}

static void test_bad_btf_in_guest(void)
{
	struct guest_kernel_info info;
	struct fg_options opt = {.no_btf = true};
	struct setup s;

	setup(&s, &opt);
	guest_kernel_describe(s.k, &info);
	CHECK(!info.has_types);
	CHECK(info.why_not && strstr(info.why_not, "BTF"));
	CHECK_EQ(info.nr_modules, 0);
	CHECK_EQ(guest_kernel_member(s.k, "module", "list"), -ENOENT);
	CHECK(!guest_kernel_module(s.k, FG_MODULE));
	CHECK_STR(guest_kernel_symbolize(s.k, FG_FUNC_0, NULL), "func_0");
	teardown(&s);

	build(&s, NULL);
	for (size_t i = 0; i < s.g.nsyms; i++)
		if (!strcmp(s.g.syms[i].name, "__start_BTF"))
			fg_put64(&s.g, s.g.syms[i].addr, 0x4141414141414141ull);
	CHECK_EQ(find(&s), 0);
	guest_kernel_describe(s.k, &info);
	CHECK(!info.has_types);
	CHECK(info.why_not && strstr(info.why_not, "valid"));
	teardown(&s);
}

static void test_hostile_modules(void)
{
	struct setup s;
	uint64_t start, mod;
	size_t n = 0;

	build(&s, NULL); /* a circle without the head */
	mod = s.g.module;
	fg_put64(&s.g, mod + FG_MOD_LIST, mod + FG_MOD_LIST);
	start = clock_now_ns();
	CHECK_EQ(find(&s), 0);
	CHECK(clock_now_ns() - start < 2000000000ull);
	check_module(guest_kernel_module_nth(s.k, 0));
	CHECK(!guest_kernel_module_nth(s.k, 1)); /* the same one is one */
	teardown(&s);

	build(&s, NULL); /* leads nowhere */
	fg_put64(&s.g, s.g.module + FG_MOD_LIST, 0xffffc90000000000ull);
	CHECK_EQ(find(&s), 0);
	check_module(guest_kernel_module_nth(s.k, 0));
	teardown(&s);

	build(&s, NULL); /* text over the end of the address space, and all over the kernel */
	fg_put32(&s.g, s.g.module + FG_MOD_MEM + 8, ~0u);
	CHECK_EQ(find(&s), 0);
	CHECK(!guest_kernel_module_nth(s.k, 0));
	teardown(&s);
	build(&s, NULL);
	fg_put64(&s.g, s.g.module + FG_MOD_MEM, 0xffffffff80000000ull);
	fg_put32(&s.g, s.g.module + FG_MOD_MEM + 8, 0x7fffffff);
	CHECK_EQ(find(&s), 0);
	CHECK(!guest_kernel_module_nth(s.k, 0));
	teardown(&s);
	build(&s, NULL);
	for (int i = 0; i < 64; i++)
		fg_write(&s.g, s.g.root, s.g.module + FG_MOD_NAME + (uint64_t)i, "z", 1);
	CHECK_EQ(find(&s), 0);
	CHECK(strlen(guest_kernel_module_nth(s.k, 0)->name) < 56);
	teardown(&s);

	memset(&s, 0, sizeof(s)); /* BTF that puts members far outside of struct module */
	fakeguest_init(&s.g, NULL);
	for (size_t i = 0; i < s.g.nmembers; i++)
		if (!strcmp(s.g.members[i].of, "module"))
			s.g.members[i].off += 0x1000000;
	fakeguest_finish(&s.g);
	s.v = guest_virt_new(&s.g.fm.mem, GUEST_ARCH_X86_64);
	CHECK_EQ(find(&s), 0);
	CHECK(!guest_kernel_module_nth(s.k, 0));
	teardown(&s);

	build(&s, NULL); /* symbols: absurd counts, names outside */
	fg_put32(&s.g, s.g.module + 512 + 8, ~0u);
	CHECK_EQ(find(&s), 0);
	CHECK_EQ(guest_kernel_each_symbol(s.k, "fake_mod", count_symbols, &n), -ENOENT);
	fg_put32(&s.g, s.g.module + 512 + 8, 262144); /* more than there is memory */
	CHECK_EQ(guest_kernel_each_symbol(s.k, "fake_mod", count_symbols, &n), -ENOENT);
	fg_put32(&s.g, s.g.module + 512 + 8, 4);
	fg_put32(&s.g, s.g.module + 576 + 24, 0xfffffff0u);
	fg_put32(&s.g, s.g.module + 576 + 48, 0x00800000u);
	CHECK_EQ(guest_kernel_each_symbol(s.k, "fake_mod", count_symbols, &n), 0);
	CHECK_EQ(n, 0);
	teardown(&s);
}

/* Bits that flip under the reader: whatever comes out, it ends and nothing is read beyond. */
static void test_noise(void)
{
	for (unsigned every = 3; every < 60; every += 7) {
		struct guest_kernel_info info;
		struct setup s;
		size_t n = 0;

		build(&s, NULL);
		s.g.fm.map = false;
		s.g.fm.noise_every = every;
		if (!find(&s)) {
			guest_kernel_describe(s.k, &info);
			guest_kernel_each_symbol(s.k, NULL, count_symbols, &n);
			guest_kernel_each_symbol(s.k, "fake_mod", count_symbols, &n);
			guest_kernel_alive(s.k, &s.g.regs);
			guest_kernel_cpu(s.k, &s.g.regs);
		} else {
			s.k = NULL;
		}
		teardown(&s);
	}
}

int main(void)
{
	test_none();
	test_endless_image();
	test_hostile_kallsyms();
	test_wrong_addresses();
	test_hostile_btf();
	test_bad_btf_in_guest();
	test_hostile_modules();
	test_noise();
	return test_done();
}
