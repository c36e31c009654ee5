// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "backend/tcg.h"

/* Offsets in CPUX86State (target/i386/cpu.h) for 16 general registers; add tcg_layout.shift. */
enum {
	ENV_EIP = 0x80,
	ENV_EFLAGS = 0x88,
	ENV_DF = 0xac,
	ENV_HFLAGS = 0xb0,
	ENV_SEGS = 0xb8, /* ES CS SS DS FS GS LDT TR GDT IDT */
	ENV_CR = 0x1a8,	 /* CR0 to CR4 */
	ENV_BEHIND = 0x1d0,
	ENV_EFER_MAX = 0x400,
};

/* struct SegmentCache */
enum { SEG_SIZE = 24, SEG_SELECTOR = 0, SEG_BASE = 8, SEG_LIMIT = 16, SEG_FLAGS = 20 };
enum { SEG_CS = 1, SEG_GS = 5, SEG_TR = 7, SEG_GDT = 8, SEG_IDT = 9, NR_SEGS = 10 };

/* hflags: bits that the translator keeps of the CPU's mode */
#define HF_CPL	     3u
#define HF_PE	     (1u << 7)
#define HF_LMA	     (1u << 14)
#define HF_VM	     (1u << 17)
#define HF_CR0_SHIFT 8 /* bits 9 to 11 are CR0's bits 1 to 3 */
#define HF_CR0_MASK  0xe00u

#define EFLAGS_ONE   0x2ull /* always set */
#define EFLAGS_IF    0x200ull
#define EFLAGS_ANY   0x3f7fd7ull /* the rest is reserved and clear */
#define CR0_PE	     (1ull << 0)
#define CR0_ET	     (1ull << 4) /* always set */
#define CR0_PG	     (1ull << 31)
#define CR0_ANY	     0xe005003full
#define CR3_NEVER    0x9ff0000000000000ull /* above the address, but for LAM */
#define CR4_PAE	     (1ull << 5)
#define CR4_ANY	     0x13fffffffull
#define EFER_LONG    0x500ull	 /* LME, LMA */
#define EFER_ANY     0x2ffd01ull /* SCE LME LMA NXE SVME LMSLE FFXSR TCE MCOMMIT INTWB AIBRSE */
#define SEG_FLAG_S   (1u << 12)
#define SEG_FLAG_P   (1u << 15)

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

static const uint8_t *seg(const uint8_t *env, unsigned i)
{
	return env + ENV_SEGS + i * SEG_SIZE;
}

static uint64_t cr(const uint8_t *env, unsigned i)
{
	return get64(env + ENV_CR + i * 8);
}

static bool canonical(uint64_t va)
{
	/* 57 bits: with LA57 those are used, without they are a sign extension just as well */
	return (uint64_t)((int64_t)(va << 7) >> 7) == va;
}

static bool eflags_ok(const uint8_t *env)
{
	uint64_t v = get64(env + ENV_EFLAGS);

	return (v & EFLAGS_ONE) && !(v & ~EFLAGS_ANY);
}

static bool control_ok(const uint8_t *env)
{
	uint64_t cr0 = cr(env, 0);

	return (cr0 & CR0_ET) && !(cr0 & ~CR0_ANY) && !cr(env, 1) && !(cr(env, 3) & CR3_NEVER) &&
	       !(cr(env, 4) & ~CR4_ANY) && (!(cr0 & CR0_PG) || (cr0 & CR0_PE));
}

static bool mode_ok(const uint8_t *env)
{
	uint32_t hf = get32(env + ENV_HFLAGS);
	uint64_t cr0 = cr(env, 0);

	if (!(hf & HF_PE) != !(cr0 & CR0_PE))
		return false;
	if (!(hf & HF_LMA))
		return true;
	return (cr0 & CR0_PG) && (cr(env, 4) & CR4_PAE) && canonical(get64(env + ENV_EIP)) &&
	       canonical(get64(seg(env, SEG_GDT) + SEG_BASE)) &&
	       canonical(get64(seg(env, SEG_IDT) + SEG_BASE));
}

static bool segments_ok(const uint8_t *env)
{
	const uint8_t *cs = seg(env, SEG_CS);
	uint32_t hf = get32(env + ENV_HFLAGS), cs_flags = get32(cs + SEG_FLAGS);

	for (unsigned i = 0; i < NR_SEGS; i++)
		if (get32(seg(env, i) + SEG_SELECTOR) > 0xffff)
			return false;
	for (unsigned i = SEG_GDT; i <= SEG_IDT; i++)
		if (get32(seg(env, i) + SEG_SELECTOR) || get32(seg(env, i) + SEG_FLAGS) ||
		    get32(seg(env, i) + SEG_LIMIT) > 0xffff)
			return false;
	if (!(cs_flags & SEG_FLAG_P) || !(cs_flags & SEG_FLAG_S))
		return false;
	if (!(hf & HF_PE))
		return !(hf & HF_CPL);
	return (hf & HF_VM) || (hf & HF_CPL) == (get32(cs + SEG_SELECTOR) & 3);
}

uint32_t tcg_env_cr(const struct tcg_layout *l, unsigned n)
{
	return l->shift + ENV_CR + n * 8;
}

uint32_t tcg_env_gs_base(const struct tcg_layout *l)
{
	return l->shift + ENV_SEGS + SEG_GS * SEG_SIZE + SEG_BASE;
}

bool tcg_env_plausible(const uint8_t *env, uint32_t shift)
{
	int32_t df;

	env += shift;
	if (!eflags_ok(env))
		return false;
	df = (int32_t)get32(env + ENV_DF);
	return df >= -1 && df <= 1 && control_ok(env) && mode_ok(env) && segments_ok(env) &&
	       ((get32(env + ENV_HFLAGS) ^ (uint32_t)cr(env, 0) << HF_CR0_SHIFT) & HF_CR0_MASK) ==
		       0;
}

uint32_t tcg_env_find_efer(const uint8_t *env, uint32_t shift)
{
	if (!(get32(env + shift + ENV_HFLAGS) & HF_LMA))
		return 0;
	for (uint32_t off = shift + ENV_BEHIND; off + 8 <= ENV_EFER_MAX; off += 8) {
		uint64_t v = get64(env + off);

		if ((v & EFER_LONG) == EFER_LONG && !(v & ~EFER_ANY))
			return off;
	}
	return 0;
}

/* SYSCALL's selectors in the upper half; the lower half is for 32-bit SYSCALL only. */
static bool is_star(uint64_t v)
{
	return v >> 48 && (v >> 32 & 0xffff) && (v >> 32 & 0xffff) < 0x1000;
}

static bool is_kernel_text(uint64_t va)
{
	return va >> 56 == 0xff && canonical(va);
}

/*
 * The MSRs lie in the order star, lstar, cstar, fmask, kernelgsbase; some versions have one more
 * behind star. A kernel that uses SYSCALL has an entry point of its own half in lstar, one or none
 * in cstar, and masks interrupts.
 */
uint32_t tcg_env_find_kernel_gs(const uint8_t *env, uint32_t from)
{
	for (uint32_t off = from + 16; off + 32 <= TCG_ENV_SIZE; off += 8) {
		uint64_t lstar = get64(env + off), cstar = get64(env + off + 8);
		uint64_t fmask = get64(env + off + 16), gs = get64(env + off + 24);

		if (is_kernel_text(lstar) && (!cstar || is_kernel_text(cstar)) &&
		    (fmask & EFLAGS_IF) && !(fmask & ~EFLAGS_ANY) && canonical(gs) &&
		    (is_star(get64(env + off - 8)) || is_star(get64(env + off - 16))))
			return off + 24;
	}
	return 0;
}

int tcg_env_decode(struct guest_regs *regs, const uint8_t *env, const struct tcg_layout *l)
{
	const uint8_t *e = env + l->shift;
	uint32_t hf = get32(e + ENV_HFLAGS);

	if (!eflags_ok(e) || !control_ok(e) || !mode_ok(e))
		return -EIO;
	*regs = (struct guest_regs){
		.ip = get64(e + ENV_EIP),
		.sp = get64(env + X86_RSP * 8),
		.fp = get64(env + X86_RBP * 8),
		.flags = get64(e + ENV_EFLAGS),
		.pgtable = cr(e, 3),
		.cr0 = cr(e, 0),
		.cr4 = cr(e, 4),
		.gdt_base = get64(seg(e, SEG_GDT) + SEG_BASE),
		.idt_base = get64(seg(e, SEG_IDT) + SEG_BASE),
		.gs_base = get64(seg(e, SEG_GS) + SEG_BASE),
		.cpl = hf & HF_CPL,
	};
	memcpy(regs->gpr, env, 16 * 8);
	if (!(hf & HF_LMA)) /* eip counts from the segment's start there */
		regs->ip = (uint32_t)(regs->ip + get64(seg(e, SEG_CS) + SEG_BASE));
	if (l->efer) {
		regs->efer = get64(env + l->efer);
		regs->has_efer = true;
	}
	return 0;
}

/* ---------- either ---------- */

bool tcg_state_plausible(const uint8_t *env, const struct tcg_layout *l)
{
	if (l->arch == GUEST_ARCH_X86_64)
		return tcg_env_plausible(env, l->shift);
	return l->tcr && tcg_arm64_plausible(env, l);
}

int tcg_state_decode(struct guest_regs *regs, const uint8_t *env, const struct tcg_layout *l)
{
	return l->arch == GUEST_ARCH_X86_64 ? tcg_env_decode(regs, env, l)
					    : tcg_arm64_decode(regs, env, l);
}

/* ---------- CPUState ---------- */

/* cpu_index, cluster_index, tcg_cflags, halted: the third has the second in its upper byte. */
static bool index_ok(const uint8_t *p)
{
	uint32_t cluster = get32(p + 4), cflags = get32(p + 8), halted = get32(p + 12);

	return get32(p) < 4096 && cluster == UINT32_MAX && cflags >> 24 == 0xff && halted <= 1;
}

/* How many of the fronts have an index at distance @d, none the same as another's. */
static unsigned count_indices(const uint8_t *const *front, uint32_t len, unsigned n, uint32_t d)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		const uint8_t *p = front[i] + len - d;

		if (!index_ok(p))
			continue;
		for (unsigned k = 0; k < i; k++)
			if (index_ok(front[k] + len - d) && get32(front[k] + len - d) == get32(p))
				return 0;
		count++;
	}
	return count;
}

bool tcg_front_find_index(struct tcg_layout *l, const uint8_t *const *front, uint32_t len,
			  unsigned n, unsigned need)
{
	unsigned best = 0;

	for (uint32_t d = 16; d <= len; d += 4) {
		unsigned count = count_indices(front, len, n, d);

		if (count <= best)
			continue;
		best = count;
		l->cpu_index = d;
		l->halted = d - 12;
	}
	if (best && best >= need)
		return true;
	l->cpu_index = l->halted = 0;
	return false;
}

int64_t tcg_front_index(const struct tcg_layout *l, const uint8_t *front, uint32_t len)
{
	const uint8_t *p = front + len - l->cpu_index;

	return index_ok(p) ? (int64_t)get32(p) : -1;
}

static bool is_pointer(uint64_t v)
{
	return v >= 0x10000 && !(v >> 47) && !(v & 7);
}

/* QemuThread *thread; int thread_id; bool running, has_waiter; QemuCond *halt_cond */
bool tcg_front_find_tid(struct tcg_layout *l, const uint8_t *const *front, uint32_t len, unsigned n,
			bool (*is_tid)(void *ctx, uint32_t v), void *ctx)
{
	for (uint32_t d = 16; d + 8 <= len; d += 8) {
		unsigned i = 0;

		for (; i < n; i++) {
			const uint8_t *p = front[i] + len - d;

			if (!is_tid(ctx, get32(p)) || p[4] > 1 || p[5] > 1 ||
			    !is_pointer(get64(p - 8)) || !is_pointer(get64(p + 8)))
				break;
		}
		if (i == n) {
			l->thread_id = d;
			return true;
		}
	}
	return false;
}
