// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of an aarch64 vCPU of QEMU's translator, made here: its registers are found wherever
 * the version has put them, decoded rightly in both modes, and nothing that differs from such a CPU
 * in one respect is taken for one.
 */
#include <errno.h>

#include "backend/tcg.h"
#include "tests/unit/test.h"

enum { XREGS = 0x40, PC = 0x140, PSTATE = 0x148, AARCH64 = 0x14c, THUMB = 0x14d, CPSR = 0x160 };

#define TCR   0x15001f5b5503510ull
#define TTBR0 0x4834a001ull
#define TTBR1 0x34000041858001ull
#define VBAR  0xffffbb8a10a10800ull
#define TPIDR 0xffff44760dc88000ull
#define TASK  0xffff000005f0d000ull
#define USP   0x0000ffffe93c1160ull

/* Where a version has what lies at no fixed place, as offsets from the one before. */
struct version {
	uint32_t sp_el0, ttbr0, tcr, vbar, tpidr;
};

static const struct version v72 = {0x260, 0x310, 0x360, 0x4c0, 0x518};
static const struct version later = {0x270, 0x318, 0x3b0, 0x560, 0x5c0};

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void make(uint8_t *env, const struct version *v, bool user)
{
	memset(env, 0, TCG_ENV_HEAD);
	for (unsigned i = 0; i < 31; i++)
		put64(env + XREGS + i * 8, 0x1000 + i);
	put64(env + XREGS + 31 * 8, user ? USP : 0xffff8000086ebe80);
	put64(env + PC, user ? 0xffff8c5b8c2c : 0xffffbb8a10b7447c);
	put32(env + PSTATE, user ? 0x1000 : 0x400005);
	env[AARCH64] = 1;
	put64(env + v->sp_el0 - 0x18, 0xffff8c5b8c58);
	put64(env + v->sp_el0, user ? USP - 0x100 : TASK);
	put64(env + v->sp_el0 + 8, 0xffff8000086ec000);
	put64(env + v->sp_el0 + 0x20, 0x000f0510);	  /* MIDR */
	put64(env + v->sp_el0 + 0x50, 0x2000018fc74791d); /* SCTLR */
	put64(env + v->ttbr0, TTBR0);
	put64(env + v->ttbr0 + 0x20, TTBR1);
	put64(env + v->tcr, TCR);
	put64(env + v->vbar - 0x20, 0x40044ffff); /* MAIR */
	put64(env + v->vbar, VBAR);
	put64(env + v->tpidr - 8, 0xaaaae395c740);
	put64(env + v->tpidr, TPIDR);
}

static void check_version(const struct version *v, bool user)
{
	static uint8_t env[TCG_ENV_HEAD];
	struct tcg_layout l = {0};
	struct guest_regs regs;

	make(env, v, user);
	CHECK(tcg_arm64_find(&l, env));
	CHECK_EQ(l.arch, GUEST_ARCH_AARCH64);
	CHECK(tcg_state_plausible(env, &l));
	CHECK(tcg_layout_complete(&l));
	CHECK_EQ(tcg_state_decode(&regs, env, &l), 0);
	CHECK_EQ(regs.ip, user ? 0xffff8c5b8c2c : 0xffffbb8a10b7447c);
	CHECK_EQ(regs.sp, user ? USP : 0xffff8000086ebe80);
	CHECK_EQ(regs.fp, 0x1000 + 29);
	CHECK_EQ(regs.gpr[30], 0x1000 + 30);
	CHECK_EQ(regs.cpl, user ? 3 : 0);
	CHECK_EQ(regs.pgtable, TTBR0);
	CHECK_EQ(regs.pgtable_kernel, TTBR1);
	CHECK_EQ(regs.tcr, TCR);
	CHECK_EQ(regs.vbar, VBAR);
	CHECK_EQ(regs.tpidr_el1, TPIDR);
	CHECK_EQ(regs.sp_el0, user ? USP : TASK);
	CHECK_EQ(regs.elr, 0xffff8c5b8c58);
}

/* A CPU that was not started yet is one of the machine, but shows no layout. */
static void test_stopped(void)
{
	static uint8_t env[TCG_ENV_HEAD];
	struct tcg_layout l = {0}, none = {.arch = GUEST_ARCH_AARCH64};
	struct guest_regs regs;

	make(env, &v72, false);
	CHECK(!tcg_state_plausible(env, &none));
	CHECK(tcg_arm64_find(&l, env));
	memset(env, 0, sizeof(env));
	CHECK(!tcg_arm64_plausible(env, &l));
	put32(env + PSTATE, 5);
	env[AARCH64] = 1;
	put64(env + v72.sp_el0 + 0x20, 0x000f0510);
	put64(env + v72.sp_el0 + 0x50, 0xc50838);
	CHECK(tcg_arm64_plausible(env, &l));
	CHECK(!tcg_arm64_find(&none, env));
	CHECK_EQ(tcg_arm64_decode(&regs, env, &l), 0);
	CHECK_EQ(regs.tcr, 0);
}

/* The kernel has set up its CPUs' data later than its page tables. */
static void test_tpidr_later(void)
{
	static uint8_t env[TCG_ENV_HEAD];
	struct tcg_layout l = {0};

	make(env, &v72, false);
	put64(env + v72.tpidr, 0);
	CHECK(tcg_arm64_find(&l, env));
	CHECK_EQ(l.tpidr_el1, 0);
	CHECK(!tcg_layout_complete(&l));
	CHECK_EQ(tcg_arm64_find_tpidr(env, &l), 0);
	put64(env + v72.tpidr, TPIDR);
	CHECK_EQ(tcg_arm64_find_tpidr(env, &l), v72.tpidr);
}

static void test_aarch32(void)
{
	static uint8_t env[TCG_ENV_HEAD];
	struct tcg_layout l = {0};
	struct guest_regs regs;

	make(env, &v72, true);
	CHECK(tcg_arm64_find(&l, env));
	env[AARCH64] = 0;
	env[THUMB] = 1;
	put32(env + 13 * 4, 0xbef01234);
	put32(env + 15 * 4, 0x00010456);
	put32(env + CPSR, 0x10);
	CHECK_EQ(tcg_arm64_decode(&regs, env, &l), 0);
	CHECK_EQ(regs.ip, 0x00010456);
	CHECK_EQ(regs.sp, 0xbef01234);
	CHECK_EQ(regs.fp, UINT64_MAX);
	CHECK_EQ(regs.cpl, 3);
}

/* One thing wrong in each. */
static void test_implausible(void)
{
	static const struct {
		uint32_t off, len;
		uint64_t value;
	} wrong[] = {
		{AARCH64, 1, 0},
		{AARCH64, 1, 2},
		{THUMB, 1, 1},
		{PC, 8, 0xffffbb8a10b7447e}, /* not aligned */
		{PC, 8, 0x00aabb8a10b7447c}, /* in neither half */
		{PSTATE, 4, 0x60400005},     /* flags are kept elsewhere */
		{PSTATE, 4, 9},		     /* EL2 */
		{PSTATE, 4, 1},
		{0x360, 8, 0},
		{0x360, 8, 0x15001f5b5503504}, /* T0SZ 4 */
		{0x360, 8, 0x15001f5b550f510}, /* no such granule */
		{0x310, 8, 0},
		{0x330, 8, 0},
		{0x280, 8, 0x00070510},		/* MIDR of ARMv7 */
		{0x2b0, 8, 0x18fc74790c},	/* no page tables */
		{0x4c0, 8, 0xffffbb8a10a10880}, /* vectors are aligned to 2 KiB */
		{0x4c0, 8, 0x0000bb8a10a10800},
		{0x4a0, 8, 0x40044},
	};
	static uint8_t env[TCG_ENV_HEAD];
	struct tcg_layout l;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		make(env, &v72, false);
		memcpy(env + wrong[i].off, &wrong[i].value, wrong[i].len);
		if (tcg_arm64_find(&l, env))
			fprintf(stderr, "%zu: taken for a CPU\n", i);
		CHECK(!tcg_arm64_find(&l, env));
	}
}

/* Whatever is found in memory that is no CPU's: an answer, and within the bytes. */
static void test_noise(void)
{
	static uint8_t env[TCG_ENV_HEAD];
	struct tcg_layout l = {0}, good;
	struct guest_regs regs;
	uint64_t x = 88172645463325252;

	make(env, &v72, false);
	CHECK(tcg_arm64_find(&good, env));
	for (int i = 0; i < 20000; i++) {
		for (size_t at = 0; at < sizeof(env); at += 8) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			put64(env + at, x % 5 ? 0 : x);
		}
		env[AARCH64] = 1;
		env[THUMB] = 0;
		put32(env + PSTATE, 5);
		put64(env + PC, VBAR);
		CHECK(!tcg_arm64_find(&l, env));
		tcg_arm64_plausible(env, &good);
		tcg_arm64_decode(&regs, env, &good);
	}
}

int main(void)
{
	for (int user = 0; user < 2; user++) {
		check_version(&v72, user);
		check_version(&later, user);
	}
	test_stopped();
	test_tpidr_later();
	test_aarch32();
	test_implausible();
	test_noise();
	return test_done();
}
