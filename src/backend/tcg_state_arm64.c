// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "backend/tcg.h"

/* Offsets in CPUARMState (target/arm/cpu.h). */
enum {
	ENV_AARCH32_SP = 13 * 4,
	ENV_AARCH32_IP = 15 * 4,
	ENV_XREGS = 0x40,
	ENV_SP = ENV_XREGS + 31 * 8,
	ENV_PC = 0x140,
	ENV_PSTATE = 0x148,
	ENV_AARCH64 = 0x14c, /* bool */
	ENV_THUMB = 0x14d,   /* bool */
	ENV_UNCACHED_CPSR = 0x160,
	ENV_BEHIND = 0x168,
};

/*
 * Registers of exception levels are arrays of four. These distances have been the same since arrays
 * they are: elr_el, sp_el, c0_cpuid, csselr_el, sctlr_el; ttbr0_el, ttbr1_el; mair_el, vbar_el.
 */
enum {
	EL1 = 8,
	ARRAY = 4 * 8,
	SCTLR_TO_MIDR = 0x30,
	SCTLR_TO_SP_EL0 = 0x50,
	SP_EL0_TO_ELR_EL1 = 0x18,
	TCR_TO_TTBR1_MAX = 0x100,
	TCR_TO_VBAR_MAX = 0x400,
	VBAR_TO_TPIDR_MIN = 0x48,
	VBAR_TO_TPIDR_MAX = 0x100,
};

/* The bits that QEMU has in pstate: none of NZCV, DAIF, BTYPE. */
#define PSTATE_KEPT  0x07e0fc10ull
#define PSTATE_MODE  0xfu
#define CPSR_MODE    0x1fu
#define CPSR_USER    0x10u
#define SCTLR_ON     0x1005ull /* M, C, I */
#define MIDR_V8	     0xfu      /* "architecture": see the ID registers */
#define MAIR_NORMAL  0xffu     /* what all kernels' own memory is */
#define TTBR_ADDRESS 0x0000fffffffff000ull

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static unsigned bits(uint64_t v, unsigned high, unsigned low)
{
	return (unsigned)(v >> low & ((2ull << (high - low)) - 1));
}

static bool is_upper(uint64_t va)
{
	return va >> 52 == 0xfff;
}

/* ---------- the shape ---------- */

/* Of EL0 and EL1 only: a guest's kernel that runs at EL2 has its registers elsewhere. */
static bool mode_ok(const uint8_t *env)
{
	uint64_t pc = get64(env + ENV_PC);
	uint32_t pstate = get32(env + ENV_PSTATE);

	if (env[ENV_AARCH64] > 1 || env[ENV_THUMB] > 1)
		return false;
	if (!env[ENV_AARCH64])
		return true;
	if (env[ENV_THUMB] || pc & 3 || pstate & ~(PSTATE_KEPT | PSTATE_MODE))
		return false;
	switch (pstate & PSTATE_MODE) {
	case 0:
		return !(pc >> 56);
	case 4:
	case 5:
		return is_upper(pc) || !(pc >> 52);
	default:
		return false;
	}
}

/*
 * What Linux sets on each machine with more than one CPU: both halves are walked, through caches,
 * in the inner shareable domain.
 */
static bool is_tcr(uint64_t v)
{
	unsigned t0sz = bits(v, 5, 0), t1sz = bits(v, 21, 16);

	return t0sz >= 12 && t0sz <= 48 && t1sz >= 12 && t1sz <= 48 && bits(v, 15, 14) != 3 &&
	       bits(v, 31, 30) && bits(v, 9, 8) == 1 && bits(v, 11, 10) == 1 &&
	       bits(v, 13, 12) == 3 && bits(v, 25, 24) == 1 && bits(v, 27, 26) == 1 &&
	       bits(v, 29, 28) == 3 && !bits(v, 7, 7) && !bits(v, 23, 23) && !(v >> 60);
}

static uint32_t find_tcr(const uint8_t *env)
{
	for (uint32_t off = ENV_BEHIND; off + 8 <= TCG_ENV_HEAD; off += 8)
		if (is_tcr(get64(env + off)) && !get64(env + off - EL1))
			return off;
	return 0;
}

static bool is_table(uint64_t ttbr)
{
	return ttbr & TTBR_ADDRESS;
}

/* Backwards from TCR_EL1, the nearest pair that is one; between them there is little that is set.
 */
static uint32_t find_ttbr1(const uint8_t *env, uint32_t tcr)
{
	for (uint32_t d = 8; d <= TCR_TO_TTBR1_MAX; d += 8) {
		uint32_t off = tcr - d;

		if (is_table(get64(env + off)) && is_table(get64(env + off - ARRAY)) &&
		    !get64(env + off - EL1) && !get64(env + off - ARRAY - EL1))
			return off;
	}
	return 0;
}

static uint32_t find_sctlr(const uint8_t *env, uint32_t ttbr0)
{
	for (uint32_t off = ttbr0 - 8; off >= ENV_BEHIND + SCTLR_TO_SP_EL0; off -= 8) {
		uint64_t v = get64(env + off);

		if ((v & SCTLR_ON) == SCTLR_ON && !get64(env + off - EL1) &&
		    bits(get64(env + off - SCTLR_TO_MIDR), 19, 16) == MIDR_V8 &&
		    !get32(env + off - SCTLR_TO_MIDR + 4))
			return off;
	}
	return 0;
}

static bool has_normal_memory(uint64_t mair)
{
	for (unsigned i = 0; i < 64; i += 8)
		if ((mair >> i & 0xff) == MAIR_NORMAL)
			return true;
	return false;
}

static uint32_t find_vbar(const uint8_t *env, uint32_t tcr)
{
	for (uint32_t off = tcr + ARRAY; off <= tcr + TCR_TO_VBAR_MAX && off + 8 <= TCG_ENV_HEAD;
	     off += 8) {
		uint64_t v = get64(env + off);

		if (is_upper(v) && !(v & 0x7ff) && !get64(env + off - EL1) &&
		    has_normal_memory(get64(env + off - ARRAY)))
			return off;
	}
	return 0;
}

/*
 * TPIDR_EL0 and TPIDR_EL1 side by side: the thread's own pointer, in user mode's half, and the
 * distance of the CPU's data from where they were linked, in pages. 0: a kernel that starts has
 * none.
 */
static uint32_t find_tpidr(const uint8_t *env, uint32_t vbar)
{
	for (uint32_t d = VBAR_TO_TPIDR_MIN; d <= VBAR_TO_TPIDR_MAX; d += 8) {
		uint64_t v;

		if (vbar + d + 16 > TCG_ENV_HEAD)
			return 0;
		v = get64(env + vbar + d);
		if (v && !(v & 4095) && (v >> 32) && !(get64(env + vbar + d - 8) >> 56) &&
		    !get64(env + vbar + d + 8))
			return vbar + d;
	}
	return 0;
}

bool tcg_arm64_find(struct tcg_layout *l, const uint8_t *env)
{
	struct tcg_layout found = {.arch = GUEST_ARCH_AARCH64};
	uint32_t sctlr;

	if (!mode_ok(env) || !env[ENV_AARCH64])
		return false;
	found.tcr = find_tcr(env);
	found.ttbr1 = found.tcr ? find_ttbr1(env, found.tcr) : 0;
	if (!found.ttbr1)
		return false;
	found.ttbr0 = found.ttbr1 - ARRAY;
	sctlr = find_sctlr(env, found.ttbr0);
	found.vbar = find_vbar(env, found.tcr);
	if (!sctlr || !found.vbar)
		return false;
	found.midr = sctlr - SCTLR_TO_MIDR;
	found.midr_value = get64(env + found.midr);
	found.sp_el0 = sctlr - SCTLR_TO_SP_EL0;
	found.tpidr_el1 = find_tpidr(env, found.vbar);
	*l = found;
	return true;
}

uint32_t tcg_arm64_find_tpidr(const uint8_t *env, const struct tcg_layout *l)
{
	return mode_ok(env) && is_tcr(get64(env + l->tcr)) ? find_tpidr(env, l->vbar) : 0;
}

/* One that runs no kernel yet, or never will: not much of it is set. */
bool tcg_arm64_plausible(const uint8_t *env, const struct tcg_layout *l)
{
	uint64_t tcr = get64(env + l->tcr), sctlr = get64(env + l->midr + SCTLR_TO_MIDR);

	return mode_ok(env) && get64(env + l->midr) == l->midr_value && sctlr &&
	       (!tcr || is_tcr(tcr)) && !(sctlr & 1 && !tcr) && !get64(env + l->tcr - EL1) &&
	       !get64(env + l->ttbr1 - EL1) && !get64(env + l->ttbr0 - EL1);
}

/* ---------- decoding ---------- */

static void decode_aarch32(struct guest_regs *regs, const uint8_t *env)
{
	regs->ip = get32(env + ENV_AARCH32_IP);
	regs->sp = get32(env + ENV_AARCH32_SP);
	regs->fp = UINT64_MAX; /* which register it is, compilers do not agree on */
	regs->cpl = (get32(env + ENV_UNCACHED_CPSR) & CPSR_MODE) == CPSR_USER ? 3 : 0;
}

int tcg_arm64_decode(struct guest_regs *regs, const uint8_t *env, const struct tcg_layout *l)
{
	uint32_t pstate = get32(env + ENV_PSTATE);
	uint64_t tcr = get64(env + l->tcr);

	if (!mode_ok(env) || (tcr && !is_tcr(tcr)))
		return -EIO;
	*regs = (struct guest_regs){
		.ip = get64(env + ENV_PC),
		.sp = get64(env + ENV_SP),
		.fp = get64(env + ENV_XREGS + 29 * 8),
		.flags = pstate,
		.pgtable = get64(env + l->ttbr0),
		.pgtable_kernel = get64(env + l->ttbr1),
		.tcr = tcr,
		.vbar = get64(env + l->vbar),
		.sp_el0 = get64(env + l->sp_el0),
		.elr = get64(env + l->sp_el0 - SP_EL0_TO_ELR_EL1),
		.tpidr_el1 = l->tpidr_el1 ? get64(env + l->tpidr_el1) : 0,
		.cpl = pstate & PSTATE_MODE ? 0 : 3,
	};
	memcpy(regs->gpr, env + ENV_XREGS, 31 * 8);
	if (!env[ENV_AARCH64])
		decode_aarch32(regs, env);
	else if (regs->cpl) /* the bank is behind while a mode runs */
		regs->sp_el0 = regs->sp;
	return 0;
}

uint32_t tcg_arm64_sp(void)
{
	return ENV_SP;
}
