// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding a kernel in made-up guests: every layout of kallsyms there was, types, modules, CPUs, and
 * whether it is still the same.
 */
#include "tests/unit/guest_setup.h"

/* ---------- a good guest ---------- */

static void check_kernel(struct setup *s)
{
	struct guest_kernel_info info;
	size_t n = 0;
	bool found;
	uint64_t off;

	guest_kernel_describe(s->k, &info);
	CHECK(info.known);
	CHECK_EQ(info.text, FG_TEXT);
	CHECK_EQ(info.end, FG_TEXT + FG_PAGE);
	CHECK_EQ(info.kaslr, FG_TEXT - 0xffffffff81000000ull);
	CHECK_STR(info.release, "6.99.0-fake\\x1b"); /* escaped */
	CHECK_EQ(info.build_id_len, 20);
	CHECK_EQ(info.build_id[19], 0xaa);
	CHECK_EQ(info.nr_cpus, 2);
	CHECK_EQ(info.la57, s->g.opt.la57);
	CHECK_EQ(info.nr_symbols, s->g.nsyms);
	CHECK_EQ(guest_kernel_sym(s->k, "func_299", &found), FG_FUNC_0 + 299 * 8);
	CHECK(found);
	CHECK_EQ(guest_kernel_sym(s->k, "func_300", &found), 0);
	CHECK(!found);
	CHECK_STR(guest_kernel_symbolize(s->k, FG_FUNC_0 + 8 * 17 + 5, &off), "func_17");
	CHECK_EQ(off, 5);
	CHECK(!guest_kernel_symbolize(s->k, FG_TEXT - 1, &off));
	CHECK(guest_kernel_is_text(s->k, FG_TEXT + 5));
	CHECK(!guest_kernel_is_text(s->k, FG_TEXT + FG_PAGE));
	CHECK(!guest_kernel_is_text(s->k, 0x400000));
	CHECK_EQ(guest_kernel_each_symbol(s->k, NULL, count_symbols, &n), 0);
	CHECK(n >= FG_NR_FUNCS && n < s->g.nsyms);
	CHECK_EQ(guest_kernel_as(s->k).root, s->g.root);
	CHECK_EQ(guest_kernel_as(s->k).la57, s->g.opt.la57);
}

static void test_layouts(void)
{
	static const struct fg_options cases[] = {
		{.addresses = FG_PLACE_RELATIVE, .align4 = true, .la57 = true}, /* 7.x */
		{.pti = false},							/* 6.4 to 6.14 */
		{.la57 = true},							/* */
		{.addresses = FG_RELATIVE},					/* 6.15 */
		{.addresses = FG_ABSOLUTE},				/* !BASE_RELATIVE, 6.4 on */
		{.old_order = true, .core_layout = true},		/* 6.1 */
		{.old_order = true, .seqs = true, .core_layout = true}, /* 6.2, 6.3 */
		{.old_order = true, .narrow = true},			/* 5.x */
		{.old_order = true, .narrow = true, .markers64 = true}, /* before 4.20 */
		{.old_order = true, .narrow = true, .markers64 = true, .addresses = FG_ABSOLUTE},
		{.old_order = true, .addresses = FG_RELATIVE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (int map = 0; map < 2; map++) {
			struct setup s;

			build(&s, &cases[i]);
			s.g.fm.map = map;
			if (find(&s)) {
				fprintf(stderr, "layout %zu: %s\n", i, s.err.msg);
				exit(1);
			}
			check_kernel(&s);
			if (cases[i].addresses == FG_RELATIVE_PERCPU)
				CHECK_EQ(guest_kernel_sym(s.k, "current_task", NULL),
					 FG_PERCPU_SYM);
			teardown(&s);
		}
	}
}

struct list {
	struct guest_symbol syms[8];
	char names[8][32];
	size_t n;
};

static int collect(void *ctx, const struct guest_symbol *sym)
{
	struct list *l = ctx;

	if (l->n == 8)
		return -E2BIG;
	snprintf(l->names[l->n], 32, "%s", sym->name);
	l->syms[l->n++] = *sym;
	return 0;
}

static void test_module(bool core_layout)
{
	struct fg_options opt = {.core_layout = core_layout};
	struct list l = {.n = 0};
	struct setup s;
	uint64_t off;

	setup(&s, &opt);
	check_module(guest_kernel_module_nth(s.k, 0));
	CHECK(!guest_kernel_module_nth(s.k, 1));
	check_module(guest_kernel_module(s.k, FG_MODULE + 0xfff));
	CHECK(!guest_kernel_module(s.k, FG_MODULE + 0x1000));
	CHECK(!guest_kernel_module(s.k, FG_MODULE - 1));
	CHECK(guest_kernel_is_text(s.k, FG_MODULE));
	CHECK_EQ(guest_kernel_each_symbol(s.k, "fake_mod", collect, &l), 0);
	CHECK_EQ(l.n, 2); /* neither the first nor the undefined one; by address */
	CHECK_STR(l.names[0], "mod_init");
	CHECK_EQ(l.syms[0].addr, FG_MODULE);
	CHECK_EQ(l.syms[0].size, 0x100);
	CHECK_EQ(l.syms[0].type, 'T');
	CHECK_STR(l.names[1], "mod_work");
	CHECK_EQ(l.syms[1].size, FG_PAGE - 0x100);
	CHECK_EQ(l.syms[1].type, 't');
	CHECK_EQ(guest_kernel_each_symbol(s.k, "other", collect, &l), -ENOENT);
	CHECK_STR(guest_kernel_symbolize(s.k, FG_MODULE + 0x123, &off), "mod_work");
	CHECK_EQ(off, 0x23);
	teardown(&s);
}

/* One that is loaded later is found when an address lies in it; one that went is forgotten. */
static void test_module_comes_and_goes(void)
{
	const struct guest_module *m;
	struct setup s;
	uint64_t gpa, deadline = clock_now_ns() + 5000000000ull;
	uint32_t first;

	setup(&s, NULL);
	first = guest_kernel_module_nth(s.k, 0)->id;
	fg_add_module(&s.g, "late_mod", FG_MODULE + 0x10000);
	while (!(m = guest_kernel_module(s.k, FG_MODULE + 0x10010)) && clock_now_ns() < deadline)
		;
	CHECK(m);
	CHECK_STR(m ? m->name : "", "late_mod");
	CHECK(m && m->id > first);
	CHECK_EQ(guest_kernel_module(s.k, FG_MODULE)->id, first);
	CHECK(!guest_virt_translate(s.v, guest_kernel_as(s.k), s.g.modules_head, &gpa));
	fg_put64(&s.g, s.g.modules_head, s.g.module + FG_MOD_LIST);
	while (guest_kernel_module(s.k, FG_MODULE + 0x10010) && clock_now_ns() < deadline)
		;
	CHECK(!guest_kernel_module(s.k, FG_MODULE + 0x10010));
	CHECK_EQ(guest_kernel_module(s.k, FG_MODULE)->id, first);
	teardown(&s);
}

static void test_types(void)
{
	struct setup s;
	int64_t value = -1;

	memset(&s, 0, sizeof(s));
	fakeguest_init(&s.g, NULL);
	fg_struct(&s.g, "inner", 16);
	fg_member(&s.g, "inner", "x", 4, "");
	fg_struct(&s.g, "outer", 64);
	fg_member(&s.g, "outer", "", 8, "inner");
	fg_member(&s.g, "outer", "named", 32, "inner");
	fg_member(&s.g, "outer", "many", 48, "inner[]");
	fg_enum(&s.g, "BIG", 0x7ffffff0);
	fakeguest_finish(&s.g);
	s.v = guest_virt_new(&s.g.fm.mem, GUEST_ARCH_X86_64);
	CHECK_EQ(find(&s), 0);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "x"), 12);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "named.x"), 36);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "many.x"), 52);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "many"), 48);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "named.y"), -ENOENT);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "x.x"), -ENOENT);
	CHECK_EQ(guest_kernel_member(s.k, "outer", ""), -ENOENT);
	CHECK_EQ(guest_kernel_member(s.k, "outer", "."), -ENOENT);
	CHECK_EQ(guest_kernel_member(s.k, "nothing", "x"), -ENOENT);
	CHECK_EQ(guest_kernel_sizeof(s.k, "outer"), 64);
	CHECK_EQ(guest_kernel_sizeof(s.k, "nothing"), -ENOENT);
	CHECK_EQ(guest_kernel_enum(s.k, "MOD_TEXT", &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(guest_kernel_enum(s.k, "BIG", &value), 0);
	CHECK_EQ(value, 0x7ffffff0);
	CHECK_EQ(guest_kernel_enum(s.k, "NOTHING", &value), -ENOENT);
	teardown(&s);
}

static void test_cpus(void)
{
	struct guest_regs r;
	struct setup s;

	setup(&s, NULL);
	CHECK_EQ(guest_kernel_percpu(s.k, 0), s.g.percpu);
	CHECK_EQ(guest_kernel_percpu(s.k, 1), s.g.percpu + 0x800);
	CHECK_EQ(guest_kernel_percpu(s.k, 2), 0);
	CHECK_EQ(guest_kernel_percpu(s.k, ~0u), 0);
	r = s.g.regs;
	r.gs_base = 0x7f0000000000ull; /* user mode: the other one is the kernel's */
	r.kernel_gs_base = s.g.percpu;
	CHECK_EQ(guest_kernel_cpu(s.k, &r), 0);
	CHECK_EQ(guest_kernel_cpu(s.k, &s.g.regs), 0);
	/* No such GDT; gs tells. Neither tells. */
	r.gdt_base = s.g.regs.idt_base;
	r.kernel_gs_base = s.g.percpu + 0x800;
	CHECK_EQ(guest_kernel_cpu(s.k, &r), 1);
	r.gdt_base = 0x1234;
	r.kernel_gs_base = 0x1234;
	CHECK_EQ(guest_kernel_cpu(s.k, &r), -1);
	teardown(&s);
}

/* With PTI, user mode runs on the page table behind the kernel's, which maps only the entry code.
 */
static void test_pti(void)
{
	struct fg_options opt = {.pti = true};
	struct guest_kernel_info info;
	struct setup s;
	uint64_t user;

	build(&s, &opt);
	user = s.g.root + FG_PAGE;
	fg_map_level(&s.g, user, s.g.direct_map, 0, 2); /* where the IDT is */
	s.g.regs.pgtable = user | 0x800;		/* and a PCID */
	s.g.regs.cpl = 3;
	CHECK_EQ(find(&s), 0);
	check_kernel(&s);
	guest_kernel_describe(s.k, &info);
	CHECK(info.pti);
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	teardown(&s);
}

/* Without PTI a page table may lie at an odd page. */
static void test_odd_root(void)
{
	struct setup s;
	uint64_t root;

	build(&s, NULL);
	if (!(s.g.next & FG_PAGE))
		fg_alloc(&s.g, 1);
	root = fg_new_root(&s.g);
	CHECK(root & FG_PAGE);
	s.g.regs.pgtable = root;
	CHECK_EQ(find(&s), 0);
	check_kernel(&s);
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	teardown(&s);
}

/* A PV guest of Xen has no descriptor tables: the hypervisor knows where its kernel is entered. */
static void test_known_entry(void)
{
	struct guest_kernel_info info;
	struct guest_regs r;
	struct setup s;

	build(&s, NULL);
	if (!(s.g.next & FG_PAGE))
		fg_alloc(&s.g, 1);
	s.g.regs.pgtable = fg_new_root(&s.g);
	s.g.regs.idt_base = s.g.regs.gdt_base = 0;
	s.g.regs.cpl = 3;
	CHECK_EQ(find(&s), -ENOENT);
	s.g.regs.kernel_entry = FG_DIV_ERROR;
	CHECK_EQ(find(&s), 0);
	check_kernel(&s);
	guest_kernel_describe(s.k, &info);
	CHECK(!info.pti); /* though the root is at an odd page */
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	/* Two CPUs are told apart without tables, too. */
	r = s.g.regs;
	CHECK_EQ(guest_kernel_cpu(s.k, &r), 0);
	r.kernel_gs_base = s.g.percpu + 0x800;
	r.gs_base = 0;
	CHECK_EQ(guest_kernel_cpu(s.k, &r), 1);
	CHECK_EQ(guest_kernel_cpu(s.k, &s.g.regs), 0);
	teardown(&s);
	/* An entry that is no kernel's. */
	build(&s, NULL);
	s.g.regs.kernel_entry = 0x401000;
	CHECK_EQ(find(&s), -ENOENT);
	teardown(&s);
}

/* ---------- is it alive? ---------- */

static void wait_for_check(void)
{
	uint64_t until = clock_now_ns() + 25000000;

	while (clock_now_ns() < until)
		;
}

/* What no symbol tells is found by its contents: the banner and the types. */
static void test_functions_only(void)
{
	const struct fg_options opt = {.functions_only = true},
				none = {.functions_only = true, .no_btf = true};
	struct guest_kernel_info info;
	struct setup s;
	bool found;

	setup(&s, &opt);
	guest_kernel_describe(s.k, &info);
	CHECK_STR(info.release, "6.99.0-fake\\x1b");
	CHECK(info.has_types);
	CHECK_EQ(guest_kernel_member(s.k, "task_struct", "stack_canary"), FG_TASK_CANARY);
	guest_kernel_sym(s.k, "init_task", &found);
	CHECK(!found);
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	teardown(&s);
	setup(&s, &none);
	guest_kernel_describe(s.k, &info);
	CHECK(!info.has_types);
	CHECK_STR(info.release, "6.99.0-fake\\x1b");
	teardown(&s);
}

static void test_alive(void)
{
	struct guest_regs r;
	struct setup s;

	setup(&s, NULL);
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	r = s.g.regs;
	r.cr0 = 0x60000010; /* reset */
	CHECK(!guest_kernel_alive(s.k, &r));
	r = s.g.regs;
	r.idt_base = 0;
	CHECK(!guest_kernel_alive(s.k, &r));
	r = s.g.regs;
	r.cr4 |= 0x1000;
	CHECK(!guest_kernel_alive(s.k, &r));
	CHECK(guest_kernel_alive(s.k, &s.g.regs));

	/* An IDT elsewhere with the same handlers is the same kernel, later in its boot. */
	r = s.g.regs;
	r.idt_base = fg_data(&s.g, 1);
	memcpy(fg_host(&s.g, s.g.root, r.idt_base), fg_host(&s.g, s.g.root, s.g.regs.idt_base),
	       4096);
	CHECK(guest_kernel_alive(s.k, &r));
	CHECK(guest_kernel_alive(s.k, &r));
	CHECK(guest_kernel_alive(s.k, &s.g.regs));

	/* One page table that lost the kernel may be a process's that has just ended ... */
	r = s.g.regs;
	r.pgtable = fg_alloc(&s.g, 2);
	wait_for_check();
	CHECK(guest_kernel_alive(s.k, &r));
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	/* ... but not all of them. */
	wait_for_check();
	for (int i = 0; i < 2; i++)
		CHECK(guest_kernel_alive(s.k, &r));
	CHECK(!guest_kernel_alive(s.k, &r));
	teardown(&s);
}

/* Another boot of the same kernel at the same place is told by the canary of its first task. */
static void test_reboot(void)
{
	struct guest_kernel *again;
	struct setup s;

	setup(&s, NULL);
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	CHECK_EQ(guest_kernel_find(&again, &s.g.fm.mem, s.v, &s.g.regs, &s.err), 0);
	CHECK(guest_kernel_same(s.k, again));
	guest_kernel_free(again);
	fg_put64(&s.g, s.g.init_task + FG_TASK_CANARY, FG_CANARY + 0x100);
	wait_for_check();
	CHECK(!guest_kernel_alive(s.k, &s.g.regs));
	CHECK_EQ(guest_kernel_find(&again, &s.g.fm.mem, s.v, &s.g.regs, &s.err), 0);
	CHECK(!guest_kernel_same(s.k, again));
	CHECK(guest_kernel_alive(again, &s.g.regs));
	guest_kernel_free(again);
	teardown(&s);
}

/* Another kernel with the page table where it was: nothing cached of the first may be used. */
static void test_other_kernel(void)
{
	struct guest_kernel_info info;
	struct setup s;
	uint64_t data, copy;

	setup(&s, NULL);
	data = s.g.init_task;
	copy = fg_alloc(&s.g, 1);
	memcpy(s.g.fm.ram + copy, fg_host(&s.g, s.g.root, data), FG_PAGE);
	fg_map(&s.g, s.g.root, data, copy, 1);
	fg_puts(&s.g, data + 0xa00, "Linux version 7.0 (c@d)");
	guest_kernel_free(s.k);
	CHECK_EQ(find(&s), 0);
	guest_kernel_describe(s.k, &info);
	CHECK_STR(info.release, "7.0");
	teardown(&s);
}

/* Found before the canary was drawn: that it is drawn then is no reboot. */
static void test_early(void)
{
	struct guest_kernel *later;
	struct setup s;

	build(&s, NULL);
	fg_put64(&s.g, s.g.init_task + FG_TASK_CANARY, 0);
	CHECK_EQ(find(&s), 0);
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	fg_put64(&s.g, s.g.init_task + FG_TASK_CANARY, FG_CANARY);
	CHECK_EQ(guest_kernel_find(&later, &s.g.fm.mem, s.v, &s.g.regs, &s.err), 0);
	CHECK(guest_kernel_same(s.k, later));
	CHECK(!guest_kernel_same(later, s.k));
	guest_kernel_free(later);
	wait_for_check();
	CHECK(guest_kernel_alive(s.k, &s.g.regs));
	fg_put64(&s.g, s.g.init_task + FG_TASK_CANARY, FG_CANARY + 0x100);
	wait_for_check();
	CHECK(!guest_kernel_alive(s.k, &s.g.regs));
	teardown(&s);
}

int main(void)
{
	test_layouts();
	test_module(false);
	test_module(true);
	test_module_comes_and_goes();
	test_types();
	test_cpus();
	test_pti();
	test_odd_root();
	test_known_entry();
	test_functions_only();
	test_alive();
	test_reboot();
	test_other_kernel();
	test_early();
	return test_done();
}
