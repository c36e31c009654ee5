// SPDX-License-Identifier: GPL-2.0-only
/*
 * ORC: the encodings of the three generations of kernels, lookup in a table, and each kind of step,
 * over a stack in made-up memory; tables that are nonsense.
 */
#include "guest/orc.h"
#include "tests/unit/fakeguest.h"
#include "tests/unit/test.h"

#define STACK 0xffffc90000100000ull
#define TEXT  0xffffffff81000000ull

struct setup {
	struct fakeguest g; /* only its memory and its mapping functions */
	struct guest_virt *v;
	struct guest_stack stack;
	struct guest_orc orc;
	int32_t ip[8];
	uint8_t entry[8][6];
};

static void setup(struct setup *s, enum guest_orc_format format)
{
	memset(s, 0, sizeof(*s));
	fakemem_init(&s->g.fm, 1 << 20);
	s->g.next = FG_PAGE;
	s->g.root = fg_alloc(&s->g, 1);
	fg_map(&s->g, s->g.root, STACK, fg_alloc(&s->g, 2), 2);
	s->v = guest_virt_new(&s->g.fm.mem, GUEST_ARCH_X86_64);
	s->orc = (struct guest_orc){
		.virt = s->v,
		.format = format,
		.main = {.base = TEXT + 0x100000, .ip = s->ip, .entry = s->entry},
	};
	guest_stack_init(&s->stack, s->v, (struct guest_as){.root = s->g.root});
}

static void teardown(struct setup *s)
{
	guest_virt_free(s->v);
	fakemem_free(&s->g.fm);
}

/* An entry from @ip on, with the bits of byte 5 as they are. */
static void add(struct setup *s, uint64_t ip, int sp_off, int bp_off, int sp_reg, int bp_reg,
		uint8_t bits)
{
	uint32_t i = s->orc.main.n++;
	int16_t so = (int16_t)sp_off, bo = (int16_t)bp_off;

	s->ip[i] = (int32_t)(ip - (s->orc.main.base + 4ull * i));
	memcpy(s->entry[i], &so, 2);
	memcpy(s->entry[i] + 2, &bo, 2);
	s->entry[i][4] = (uint8_t)(sp_reg | bp_reg << 4);
	s->entry[i][5] = bits;
}

static void word(struct setup *s, uint64_t va, uint64_t v)
{
	fg_put64(&s->g, va, v);
}

static void test_formats(void)
{
	static const struct {
		enum guest_orc_format format;
		uint8_t bits;
		int sp_reg;
		int type;
		bool signal;
	} cases[] = {
		{ORC_TYPES_OLD, 0, ORC_REG_SP, ORC_CALL, false},
		{ORC_TYPES_OLD, 1, ORC_REG_SP, ORC_REGS, true},
		{ORC_TYPES_OLD, 2, ORC_REG_SP, ORC_REGS_PARTIAL, true},
		{ORC_TYPES_OLD, 0, ORC_REG_UNDEFINED, ORC_UNDEFINED, false},
		{ORC_TYPES_OLD, 4, ORC_REG_UNDEFINED, ORC_END_OF_STACK, false},
		{ORC_TYPES_63, 1 | 4, ORC_REG_SP, ORC_REGS, true},
		{ORC_TYPES_63, 0, ORC_REG_SP, ORC_CALL, false},
		{ORC_TYPES_63, 8, ORC_REG_UNDEFINED, ORC_END_OF_STACK, false},
		{ORC_TYPES_NEW, 0, ORC_REG_UNDEFINED, ORC_UNDEFINED, false},
		{ORC_TYPES_NEW, 1, ORC_REG_UNDEFINED, ORC_END_OF_STACK, false},
		{ORC_TYPES_NEW, 2, ORC_REG_SP, ORC_CALL, false},
		{ORC_TYPES_NEW, 3 | 8, ORC_REG_SP, ORC_REGS, true},
		{ORC_TYPES_NEW, 4 | 8, ORC_REG_SP, ORC_REGS_PARTIAL, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct guest_orc_rule rule = {0};
		struct setup s;

		setup(&s, cases[i].format);
		add(&s, TEXT, -8, 16, cases[i].sp_reg, ORC_REG_BP, cases[i].bits);
		add(&s, TEXT + 0x40, 0, 0, 0, 0, 0);
		CHECK(guest_orc_find(&s.orc, TEXT + 5, &rule, NULL));
		CHECK_EQ(rule.type, cases[i].type);
		CHECK_EQ(rule.signal, cases[i].signal);
		CHECK_EQ(rule.sp_offset, -8);
		CHECK_EQ(rule.bp_offset, 16);
		CHECK_EQ(rule.sp_reg, cases[i].sp_reg);
		CHECK_EQ(rule.bp_reg, ORC_REG_BP);
		teardown(&s);
	}
}

static void test_lookup(void)
{
	struct guest_orc_rule rule;
	struct setup s;
	uint64_t next;

	setup(&s, ORC_TYPES_NEW);
	CHECK(!guest_orc_find(&s.orc, TEXT, &rule, NULL)); /* no table */
	add(&s, TEXT, 8, 0, ORC_REG_SP, 0, 2);
	add(&s, TEXT + 0x10, 0, 0, 0, 0, 0);	       /* a terminator, and at the same */
	add(&s, TEXT + 0x10, 16, 0, ORC_REG_SP, 0, 2); /* address the real one */
	add(&s, TEXT + 0x30, 0, 0, 0, 0, 0);
	CHECK(guest_orc_find(&s.orc, TEXT, &rule, &next));
	CHECK_EQ(rule.sp_offset, 8);
	CHECK_EQ(next, TEXT + 0x10);
	CHECK(guest_orc_find(&s.orc, TEXT + 0xf, &rule, NULL));
	CHECK_EQ(rule.sp_offset, 8);
	CHECK(guest_orc_find(&s.orc, TEXT + 0x10, &rule, &next));
	CHECK_EQ(rule.sp_offset, 16);
	CHECK_EQ(next, TEXT + 0x30);
	CHECK(!guest_orc_find(&s.orc, TEXT - 1, &rule, NULL));
	CHECK(!guest_orc_find(&s.orc, TEXT + 0x31, &rule, NULL));
	teardown(&s);
}

static void test_call(void)
{
	struct guest_frame f = {.ip = TEXT + 4, .sp = STACK + 0x100, .bp = 0x55, .exact = true};
	struct setup s;

	setup(&s, ORC_TYPES_NEW);
	add(&s, TEXT, 24, -16, ORC_REG_SP, ORC_REG_PREV_SP, 2);
	add(&s, TEXT + 0x20, 16, -16, ORC_REG_BP, ORC_REG_PREV_SP, 2);
	add(&s, TEXT + 0x40, 0, 0, 0, 0, 1);
	add(&s, TEXT + 0x60, 0, 0, 0, 0, 0);
	word(&s, STACK + 0x108, STACK + 0x200); /* bp */
	word(&s, STACK + 0x110, TEXT + 0x40); /* ra: the first byte behind the call and its rule */
	word(&s, STACK + 0x200, 0x77);
	word(&s, STACK + 0x208, TEXT + 0x50);

	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_OK);
	CHECK_EQ(f.ip, TEXT + 0x40);
	CHECK_EQ(f.sp, STACK + 0x118);
	CHECK_EQ(f.bp, STACK + 0x200);
	CHECK_EQ(f.slot, STACK + 0x110);
	CHECK(!f.exact);
	/* A return address is looked up by the call before it. */
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_OK);
	CHECK_EQ(f.ip, TEXT + 0x50);
	CHECK_EQ(f.sp, STACK + 0x210);
	CHECK_EQ(f.bp, 0x77);
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_END);
	teardown(&s);
}

static void test_registers(void)
{
	static const struct {
		int reg, off;
		uint64_t cfa;
	} cases[] = {
		{ORC_REG_R10, 0, STACK + 0x300},	 {ORC_REG_R13, 0, STACK + 0x310},
		{ORC_REG_DI, 0, STACK + 0x320},		 {ORC_REG_DX, 0, STACK + 0x330},
		{ORC_REG_SP_INDIRECT, 8, STACK + 0x348}, {ORC_REG_BP_INDIRECT, 8, STACK + 0x350},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct guest_frame f = {.ip = TEXT,
					.sp = STACK + 0x100,
					.bp = STACK + 0x118,
					.exact = true,
					.has_regs = true,
					.r10 = STACK + 0x300,
					.r13 = STACK + 0x310,
					.di = STACK + 0x320,
					.dx = STACK + 0x330};
		struct guest_frame without = f;
		struct setup s;

		setup(&s, ORC_TYPES_NEW);
		add(&s, TEXT, cases[i].off, 0, cases[i].reg, 0, 2);
		add(&s, TEXT + 0x10, 0, 0, 0, 0, 0);
		word(&s, STACK + 0x100, STACK + 0x340); /* sp indirect: offset added behind */
		word(&s, STACK + 0x120, STACK + 0x350); /* bp indirect: offset added before */
		word(&s, cases[i].cfa - 8, TEXT + 8);
		CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_OK);
		CHECK_EQ(f.sp, cases[i].cfa);
		without.has_regs = false;
		if (i < 4)
			CHECK_EQ(guest_orc_step(&s.orc, &without, &s.stack), ORC_STEP_NO_RULE);
		teardown(&s);
	}
}

/* Interrupted kernel code with all registers; then, from an iret frame, user mode. */
static void test_regs(void)
{
	enum { BP = 4, R10 = 7, DX = 12, IP = 16, CS, FLAGS, SP, SS };
	struct guest_frame f = {.ip = TEXT, .sp = STACK, .bp = 9, .exact = true};
	struct setup s;

	setup(&s, ORC_TYPES_OLD);
	add(&s, TEXT, 16, 0, ORC_REG_SP, ORC_REG_UNDEFINED, 1);
	add(&s, TEXT + 0x20, 8, 0, ORC_REG_SP, ORC_REG_UNDEFINED, 2);
	add(&s, TEXT + 0x40, 0, 0, 0, 0, 0);
	word(&s, STACK + 16 + IP * 8, TEXT + 0x20);
	word(&s, STACK + 16 + CS * 8, 0x10);
	word(&s, STACK + 16 + SP * 8, STACK + 0x800);
	word(&s, STACK + 16 + BP * 8, 0x1234);
	word(&s, STACK + 16 + R10 * 8, 0x10);
	word(&s, STACK + 16 + DX * 8, 0xd);
	word(&s, STACK + 0x808, 0x401000);
	word(&s, STACK + 0x810, 0x33);
	word(&s, STACK + 0x820, 0x7ffc00001000);

	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_OK);
	CHECK_EQ(f.ip, TEXT + 0x20);
	CHECK_EQ(f.sp, STACK + 0x800);
	CHECK_EQ(f.bp, 0x1234);
	CHECK(f.exact && f.has_regs);
	CHECK_EQ(f.r10, 0x10);
	CHECK_EQ(f.dx, 0xd);
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_USER);
	CHECK_EQ(f.ip, 0x401000);
	CHECK_EQ(f.sp, 0x7ffc00001000);
	CHECK_EQ(f.bp, 0x1234); /* untouched by then */
	CHECK(!f.has_regs);

	/* No code segment of Linux's: no registers. */
	word(&s, STACK + 16 + CS * 8, 0x1b);
	guest_stack_init(&s.stack, s.v, (struct guest_as){.root = s.g.root});
	f = (struct guest_frame){.ip = TEXT, .sp = STACK, .exact = true};
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_BAD);
	teardown(&s);
}

static void test_bad(void)
{
	struct guest_frame f = {.ip = TEXT, .sp = STACK + 3, .exact = true};
	struct setup s;

	setup(&s, ORC_TYPES_NEW);
	add(&s, TEXT, 8, 0, ORC_REG_SP, 0, 2);
	add(&s, TEXT + 0x10, 8, 0, 13, 0, 2); /* no such register */
	add(&s, TEXT + 0x20, 8, 0, ORC_REG_SP, 9, 2);
	add(&s, TEXT + 0x30, 8, 0, ORC_REG_SP, 0, 7); /* no such type */
	add(&s, TEXT + 0x40, 0, 0, 0, 0, 0);
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_UNREADABLE); /* unaligned */
	f = (struct guest_frame){.ip = TEXT, .sp = STACK + 0x2000, .exact = true};
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_UNREADABLE); /* not mapped */
	f = (struct guest_frame){.ip = TEXT + 0x10, .sp = STACK, .exact = true, .has_regs = true};
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_NO_RULE);
	f = (struct guest_frame){.ip = TEXT + 0x20, .sp = STACK, .exact = true};
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_NO_RULE);
	f = (struct guest_frame){.ip = TEXT + 0x30, .sp = STACK, .exact = true};
	CHECK_EQ(guest_orc_step(&s.orc, &f, &s.stack), ORC_STEP_NO_RULE);
	teardown(&s);
}

int main(void)
{
	test_formats();
	test_lookup();
	test_call();
	test_registers();
	test_regs();
	test_bad();
	return test_done();
}
