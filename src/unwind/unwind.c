// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/unwind.h"

#define AARCH64_CODE_BITS 0x0000ffffffffffffull

const struct unwind_abi unwind_abis[] = {
	[UNWIND_X86_64] = {.sp = 7, .fp = 6, .ip = 16, .ra = UNWIND_REGS},
	[UNWIND_AARCH64] = {.sp = 31, .fp = 29, .ip = UNWIND_REGS, .ra = 30},
};

struct step {
	const struct unwind_row *row;
	const struct unwind_regs *regs;
	unwind_read_word read;
	void *ctx;
	uint64_t cfa;
};

struct unwind_rule unwind_rule_of(const struct unwind_row *row, unsigned reg)
{
	for (unsigned i = 0; i < row->nr_rules; i++)
		if (row->rule[i].reg == reg)
			return row->rule[i];
	return (struct unwind_rule){(uint8_t)reg, UNWIND_SAME, UNWIND_NO_BASE, 0};
}

static bool is_known(const struct unwind_regs *regs, unsigned reg)
{
	return reg < UNWIND_REGS && regs->known >> reg & 1;
}

static uint64_t add(uint64_t value, int32_t offset)
{
	return value + (uint64_t)(int64_t)offset;
}

static enum unwind_result find_cfa(struct step *s)
{
	const struct unwind_row *row = s->row;

	if (!is_known(s->regs, row->cfa_base))
		return UNWIND_NO_RULE;
	s->cfa = add(s->regs->r[row->cfa_base], row->cfa_offset);
	if (!row->cfa_deref)
		return UNWIND_STEPPED;
	if (s->read(s->ctx, s->cfa, &s->cfa))
		return UNWIND_UNREADABLE;
	s->cfa = add(s->cfa, row->cfa_add);
	return UNWIND_STEPPED;
}

static enum unwind_result find_value(struct step *s, const struct unwind_rule *rule,
				     uint64_t *value, uint64_t *slot)
{
	uint64_t at = s->cfa;

	*slot = 0;
	if (rule->place == UNWIND_UNDEFINED)
		return UNWIND_OUTERMOST;
	if (rule->place == UNWIND_SAME) {
		if (!is_known(s->regs, rule->reg))
			return UNWIND_NO_RULE;
		*value = s->regs->r[rule->reg];
		return UNWIND_STEPPED;
	}
	if (rule->place == UNWIND_NOWHERE)
		return UNWIND_NO_RULE;
	if (rule->base != UNWIND_CFA) {
		if (!is_known(s->regs, rule->base))
			return UNWIND_NO_RULE;
		at = s->regs->r[rule->base];
	}
	at = add(at, rule->offset);
	if (rule->place == UNWIND_IS) {
		*value = at;
		return UNWIND_STEPPED;
	}
	*slot = at;
	return s->read(s->ctx, at, value) ? UNWIND_UNREADABLE : UNWIND_STEPPED;
}

static void find_registers(struct step *s, struct unwind_regs *caller)
{
	uint64_t value, slot;

	for (unsigned i = 0; i < s->row->nr_rules; i++) {
		const struct unwind_rule *rule = &s->row->rule[i];

		if (rule->reg >= UNWIND_REGS)
			continue;
		if (find_value(s, rule, &value, &slot) == UNWIND_STEPPED)
			unwind_set(caller, rule->reg, value);
		else
			caller->known &= ~(1u << rule->reg);
	}
}

static bool is_above(uint64_t caller, uint64_t sp, bool frameless)
{
	return caller > sp || (caller == sp && frameless);
}

static uint64_t without_codes(enum unwind_arch arch, const struct unwind_regs *regs, uint64_t ra)
{
	if (arch != UNWIND_AARCH64)
		return ra;
	return ra & (regs->code_bits ? regs->code_bits : AARCH64_CODE_BITS);
}

enum unwind_result unwind_step(enum unwind_arch arch, const struct unwind_row *row,
			       struct unwind_regs *regs, uint64_t *slot, unwind_read_word read,
			       void *ctx)
{
	struct step s = {.row = row, .regs = regs, .read = read, .ctx = ctx};
	const struct unwind_abi *abi = &unwind_abis[arch];
	struct unwind_rule of_ra = unwind_rule_of(row, row->ra);
	struct unwind_regs caller = *regs;
	uint64_t ra, sp = regs->r[abi->sp];
	enum unwind_result r;

	if (of_ra.place == UNWIND_UNDEFINED)
		return UNWIND_OUTERMOST;
	/* Of a call that leaves it in memory, "unchanged" says nothing. */
	if (of_ra.place == UNWIND_SAME && abi->ra != row->ra)
		return UNWIND_NO_RULE;
	r = find_cfa(&s);
	if (r != UNWIND_STEPPED)
		return r;
	r = find_value(&s, &of_ra, &ra, slot);
	unwind_set(&caller, abi->sp, s.cfa);
	find_registers(&s, &caller); /* the stack pointer, too, may have a rule */
	/* A leaf of aarch64 may have no frame of its own. */
	if (!row->signal && !is_above(caller.r[abi->sp], sp, of_ra.place == UNWIND_SAME))
		return UNWIND_BAD;
	if (r != UNWIND_STEPPED)
		return r;
	caller.ip = without_codes(arch, regs, ra);
	if (abi->ra < UNWIND_REGS && row->ra == abi->ra)
		unwind_set(&caller, abi->ra, caller.ip);
	*regs = caller;
	return UNWIND_STEPPED;
}

enum unwind_result unwind_step_fp(enum unwind_arch arch, struct unwind_regs *regs, uint64_t *slot,
				  unwind_read_word read, void *ctx)
{
	const struct unwind_abi *abi = &unwind_abis[arch];
	uint64_t fp = regs->r[abi->fp], caller_fp, ra;
	struct unwind_regs caller = {.code_bits = regs->code_bits};

	if (!is_known(regs, abi->fp))
		return UNWIND_NO_RULE;
	if (!fp)
		return UNWIND_OUTERMOST;
	if (fp & 7 || fp < regs->r[abi->sp])
		return UNWIND_BAD;
	*slot = fp + 8;
	if (read(ctx, fp, &caller_fp) || read(ctx, *slot, &ra))
		return UNWIND_UNREADABLE;
	unwind_set(&caller, abi->fp, caller_fp);
	unwind_set(&caller, abi->sp, fp + 16);
	caller.ip = without_codes(arch, regs, ra);
	*regs = caller;
	return UNWIND_STEPPED;
}
