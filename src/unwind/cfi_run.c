// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/cfi_run.h"

#include <errno.h>
#include <limits.h>

enum {
	DEPTH = 16,	    /* of DW_CFA_remember_state, and of an expression's stack */
	MAX_STEPS = 100000, /* instructions of one program */
};

enum {			       /* DW_CFA_* */
       CFA_ADVANCE_LOC = 0x40, /* these three have an operand in their low six bits */
       CFA_OFFSET = 0x80,
       CFA_RESTORE = 0xc0,
       CFA_NOP = 0x00,
       CFA_SET_LOC = 0x01,
       CFA_ADVANCE_LOC1 = 0x02,
       CFA_ADVANCE_LOC2 = 0x03,
       CFA_ADVANCE_LOC4 = 0x04,
       CFA_OFFSET_EXTENDED = 0x05,
       CFA_RESTORE_EXTENDED = 0x06,
       CFA_UNDEFINED = 0x07,
       CFA_SAME_VALUE = 0x08,
       CFA_REGISTER = 0x09,
       CFA_REMEMBER_STATE = 0x0a,
       CFA_RESTORE_STATE = 0x0b,
       CFA_DEF_CFA = 0x0c,
       CFA_DEF_CFA_REGISTER = 0x0d,
       CFA_DEF_CFA_OFFSET = 0x0e,
       CFA_DEF_CFA_EXPRESSION = 0x0f,
       CFA_EXPRESSION = 0x10,
       CFA_OFFSET_EXTENDED_SF = 0x11,
       CFA_DEF_CFA_SF = 0x12,
       CFA_DEF_CFA_OFFSET_SF = 0x13,
       CFA_VAL_OFFSET = 0x14,
       CFA_VAL_OFFSET_SF = 0x15,
       CFA_VAL_EXPRESSION = 0x16,
       CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
       CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
       CFA_GNU_ARGS_SIZE = 0x2e,
       CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* What is known of each register at an address; the row without order. */
struct state {
	struct unwind_row row; /* of which the rules are not used: */
	struct unwind_rule rule[UNWIND_REGS];
	bool cfa_is_expression;
};

struct run {
	const struct cfi_cie *cie;
	struct dwarf_cursor c;
	uint64_t loc, pc;
	struct state now, initial, saved[DEPTH];
	unsigned nr_saved;
	bool bad;
};

static int32_t fit(struct run *r, int64_t v)
{
	if (v > INT32_MAX || v < INT32_MIN)
		r->bad = true;
	return (int32_t)v;
}

/* ---------- expressions ---------- */

enum { /* DW_OP_* */
       OP_DEREF = 0x06,
       OP_CONST1U = 0x08,
       OP_CONSTU = 0x10,
       OP_CONSTS = 0x11,
       OP_AND = 0x1a,
       OP_MINUS = 0x1c,
       OP_PLUS = 0x22,
       OP_PLUS_UCONST = 0x23,
       OP_SHL = 0x24,
       OP_GE = 0x2a,
       OP_LIT0 = 0x30,
       OP_LIT31 = 0x4f,
       OP_BREG0 = 0x70,
       OP_BREG31 = 0x8f,
       OP_BREGX = 0x92,
};

/* A number; a register plus a number; or the word there plus a number. */
struct value {
	uint8_t base; /* UNWIND_NO_BASE: @offset is the number */
	bool deref;
	int64_t offset, add;
};

static int64_t sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void add(struct value *v, int64_t n)
{
	if (v->deref)
		v->add = sum(v->add, n);
	else
		v->offset = sum(v->offset, n);
}

static bool is_number(const struct value *v)
{
	return v->base == UNWIND_NO_BASE;
}

static void operate(struct run *r, uint8_t op, struct value *a, const struct value *b)
{
	struct value number = is_number(a) ? *a : *b;

	if (op == OP_PLUS && (is_number(a) || is_number(b))) {
		if (is_number(a))
			*a = *b;
		add(a, number.offset);
	} else if (op == OP_MINUS && is_number(b)) {
		add(a, (int64_t)(0 - (uint64_t)b->offset));
	} else if (!is_number(a) || !is_number(b)) {
		r->bad = true;
	} else if (op == OP_AND) {
		a->offset &= b->offset;
	} else if (op == OP_GE) {
		a->offset = a->offset >= b->offset;
	} else if (op == OP_SHL) {
		a->offset = b->offset >= 0 && b->offset < 64
				    ? (int64_t)((uint64_t)a->offset << b->offset)
				    : 0;
	} else {
		r->bad = true;
	}
}

static void dereference(struct run *r, struct value *v)
{
	if (is_number(v) || v->deref)
		r->bad = true;
	v->deref = true;
}

/* The address of the code is known, as a row is evaluated for one: PLT slots ask for it. */
static struct value breg(struct run *r, uint64_t reg, int64_t offset)
{
	struct value v = {.base = UNWIND_NO_BASE, .offset = offset};

	if (reg == unwind_abis[r->cie->arch].ip)
		v.offset = sum((int64_t)r->pc, offset);
	else if (reg < UNWIND_REGS)
		v.base = (uint8_t)reg;
	else
		r->bad = true;
	return v;
}

static bool constant(uint8_t op, struct dwarf_cursor *c, int64_t *v)
{
	/* DW_OP_const1u to const8s: sizes in pairs of unsigned and signed */
	static const uint8_t sizes[] = {1, 2, 4, 8};

	if (op >= OP_LIT0 && op <= OP_LIT31)
		*v = op - OP_LIT0;
	else if (op >= OP_CONST1U && op < OP_CONSTU && op & 1)
		*v = dwarf_sint(c, sizes[(op - OP_CONST1U) / 2]);
	else if (op >= OP_CONST1U && op < OP_CONSTU)
		*v = (int64_t)dwarf_uint(c, sizes[(op - OP_CONST1U) / 2]);
	else if (op == OP_CONSTU)
		*v = (int64_t)dwarf_uleb(c);
	else if (op == OP_CONSTS)
		*v = dwarf_sleb(c);
	else
		return false;
	return true;
}

static bool is_binary(uint8_t op)
{
	return op == OP_AND || op == OP_PLUS || op == OP_MINUS || op == OP_SHL || op == OP_GE;
}

/* What compilers, linkers and libc make: sums and dereferences of few things. */
static struct value evaluate(struct run *r, struct dwarf_cursor c)
{
	struct value stack[DEPTH] = {0};
	unsigned n = 0;
	uint64_t reg;

	while (c.p < c.end && !r->bad) {
		uint8_t op = (uint8_t)dwarf_uint(&c, 1);
		int64_t v;

		if (op == OP_DEREF && n) {
			dereference(r, &stack[n - 1]);
		} else if (op == OP_PLUS_UCONST && n) {
			add(&stack[n - 1], (int64_t)dwarf_uleb(&c));
		} else if (is_binary(op) && n >= 2) {
			operate(r, op, &stack[n - 2], &stack[n - 1]);
			n--;
		} else if (n == DEPTH) {
			r->bad = true;
		} else if (op >= OP_BREG0 && op <= OP_BREG31) {
			stack[n++] = breg(r, op - OP_BREG0, dwarf_sleb(&c));
		} else if (op == OP_BREGX) {
			reg = dwarf_uleb(&c);
			stack[n++] = breg(r, reg, dwarf_sleb(&c));
		} else if (constant(op, &c, &v)) {
			stack[n++] = (struct value){.base = UNWIND_NO_BASE, .offset = v};
		} else {
			r->bad = true;
		}
	}
	r->bad |= c.bad || n != 1;
	return stack[0];
}

static struct dwarf_cursor expression(struct run *r)
{
	uint64_t len = dwarf_uleb(&r->c);
	struct dwarf_cursor e = r->c;

	dwarf_skip(&r->c, len);
	e.end = r->c.p;
	return e;
}

static bool is_small(int64_t v)
{
	return v <= INT32_MAX && v >= INT32_MIN;
}

/* An expression that is not understood makes its own rule unusable, not the others. */
static struct value evaluate_rule(struct run *r)
{
	struct dwarf_cursor e = expression(r);
	bool bad = r->bad;
	struct value v = evaluate(r, e);

	if (r->bad || !is_small(v.offset) || !is_small(v.add))
		v = (struct value){.base = UNWIND_NO_BASE};
	r->bad = bad;
	return v;
}

static void def_cfa_expression(struct run *r)
{
	struct value v = evaluate_rule(r);
	struct unwind_row *row = &r->now.row;

	row->cfa_base = v.base;
	row->cfa_deref = v.deref;
	row->cfa_offset = (int32_t)v.offset;
	row->cfa_add = (int32_t)v.add;
	r->now.cfa_is_expression = true;
}

/* ---------- rules ---------- */

static void def_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	struct unwind_row *row = &r->now.row;

	row->cfa_base = reg < UNWIND_REGS ? (uint8_t)reg : UNWIND_NO_BASE;
	row->cfa_deref = false;
	row->cfa_offset = fit(r, offset);
	r->now.cfa_is_expression = false;
}

static void def_cfa_offset(struct run *r, int64_t offset)
{
	if (r->now.cfa_is_expression)
		r->bad = true;
	r->now.row.cfa_offset = fit(r, offset);
}

/* Vector registers and the like have higher numbers, and nobody asks for them. */
static void set_rule(struct run *r, uint64_t reg, enum unwind_place place, uint8_t base,
		     int64_t offset)
{
	if (reg < UNWIND_REGS)
		r->now.rule[reg] = (struct unwind_rule){(uint8_t)reg, place, base, fit(r, offset)};
}

static int64_t scale(const struct run *r, int64_t factored)
{
	return (int64_t)((uint64_t)factored * (uint64_t)r->cie->data_align);
}

static void set_offset(struct run *r, uint64_t reg, int64_t factored)
{
	set_rule(r, reg, UNWIND_AT, UNWIND_CFA, scale(r, factored));
}

/* DW_CFA_expression and _val_expression: the register's address, or its value. */
static void set_expression(struct run *r, uint64_t reg, enum unwind_place place)
{
	struct value v = evaluate_rule(r);

	if (is_number(&v) || v.deref)
		set_rule(r, reg, UNWIND_NOWHERE, UNWIND_NO_BASE, 0);
	else
		set_rule(r, reg, place, v.base, v.offset);
}

static void set_register(struct run *r, uint64_t reg, uint64_t where)
{
	if (where < UNWIND_REGS)
		set_rule(r, reg, UNWIND_IS, (uint8_t)where, 0);
	else
		set_rule(r, reg, UNWIND_NOWHERE, UNWIND_NO_BASE, 0);
}

static void restore(struct run *r, uint64_t reg)
{
	if (reg < UNWIND_REGS)
		r->now.rule[reg] = r->initial.rule[reg];
}

static void remember(struct run *r)
{
	if (r->nr_saved == DEPTH)
		r->bad = true;
	else
		r->saved[r->nr_saved++] = r->now;
}

static void recall(struct run *r)
{
	if (!r->nr_saved)
		r->bad = true;
	else
		r->now = r->saved[--r->nr_saved];
}

/* ---------- instructions ---------- */

/* Instructions that set the address. Returns false if @op is none. */
static bool advance(struct run *r, uint8_t op)
{
	uint64_t delta;

	if ((op & 0xc0) == CFA_ADVANCE_LOC)
		delta = op & 0x3f;
	else if (op == CFA_ADVANCE_LOC1)
		delta = dwarf_uint(&r->c, 1);
	else if (op == CFA_ADVANCE_LOC2)
		delta = dwarf_uint(&r->c, 2);
	else if (op == CFA_ADVANCE_LOC4)
		delta = dwarf_uint(&r->c, 4);
	else if (op == CFA_SET_LOC) {
		r->loc = dwarf_pointer(&r->c, r->cie->pointer_encoding, 0);
		return true;
	} else
		return false;
	r->loc += delta * r->cie->code_align;
	return true;
}

static void execute_cfa(struct run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = dwarf_uleb(&r->c);
		def_cfa(r, reg, (int64_t)dwarf_uleb(&r->c));
		break;
	case CFA_DEF_CFA_SF:
		reg = dwarf_uleb(&r->c);
		def_cfa(r, reg, scale(r, dwarf_sleb(&r->c)));
		break;
	case CFA_DEF_CFA_REGISTER:
		if (r->now.cfa_is_expression)
			r->bad = true;
		def_cfa(r, dwarf_uleb(&r->c), r->now.row.cfa_offset);
		break;
	case CFA_DEF_CFA_OFFSET:
		def_cfa_offset(r, (int64_t)dwarf_uleb(&r->c));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		def_cfa_offset(r, scale(r, dwarf_sleb(&r->c)));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		def_cfa_expression(r);
		break;
	default:
		r->bad = true;
	}
}

/* Rules for what is not in memory at the CFA plus a number. */
static void execute_value(struct run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case CFA_REGISTER:
		reg = dwarf_uleb(&r->c);
		set_register(r, reg, dwarf_uleb(&r->c));
		break;
	case CFA_VAL_OFFSET:
		reg = dwarf_uleb(&r->c);
		set_rule(r, reg, UNWIND_IS, UNWIND_CFA, scale(r, (int64_t)dwarf_uleb(&r->c)));
		break;
	case CFA_VAL_OFFSET_SF:
		reg = dwarf_uleb(&r->c);
		set_rule(r, reg, UNWIND_IS, UNWIND_CFA, scale(r, dwarf_sleb(&r->c)));
		break;
	case CFA_EXPRESSION:
		reg = dwarf_uleb(&r->c);
		set_expression(r, reg, UNWIND_AT);
		break;
	case CFA_VAL_EXPRESSION:
		reg = dwarf_uleb(&r->c);
		set_expression(r, reg, UNWIND_IS);
		break;
	default:
		execute_cfa(r, op);
	}
}

static void execute(struct run *r, uint8_t op)
{
	uint64_t reg;

	if ((op & 0xc0) == CFA_OFFSET) {
		set_offset(r, op & 0x3f, (int64_t)dwarf_uleb(&r->c));
		return;
	}
	if ((op & 0xc0) == CFA_RESTORE) {
		restore(r, op & 0x3f);
		return;
	}
	switch (op) {
	case CFA_NOP:
	/* Codes are taken off every return address, whether and how it is signed. */
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		break;
	case CFA_REMEMBER_STATE:
		remember(r);
		break;
	case CFA_RESTORE_STATE:
		recall(r);
		break;
	case CFA_GNU_ARGS_SIZE:
		dwarf_uleb(&r->c);
		break;
	case CFA_OFFSET_EXTENDED:
		reg = dwarf_uleb(&r->c);
		set_offset(r, reg, (int64_t)dwarf_uleb(&r->c));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		reg = dwarf_uleb(&r->c);
		set_offset(r, reg, dwarf_sleb(&r->c));
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		reg = dwarf_uleb(&r->c);
		set_offset(r, reg, (int64_t)(0 - dwarf_uleb(&r->c)));
		break;
	case CFA_RESTORE_EXTENDED:
		restore(r, dwarf_uleb(&r->c));
		break;
	case CFA_UNDEFINED:
		set_rule(r, dwarf_uleb(&r->c), UNWIND_UNDEFINED, UNWIND_NO_BASE, 0);
		break;
	case CFA_SAME_VALUE:
		set_rule(r, dwarf_uleb(&r->c), UNWIND_SAME, UNWIND_NO_BASE, 0);
		break;
	default:
		execute_value(r, op);
	}
}

/* Runs instructions until the address is behind ->pc, or to the end. */
static void run_program(struct run *r, struct dwarf_cursor c)
{
	unsigned steps = 0;

	r->c = c;
	while (r->c.p < r->c.end && !r->bad && r->loc <= r->pc) {
		uint8_t op = (uint8_t)dwarf_uint(&r->c, 1);

		if (++steps > MAX_STEPS)
			r->bad = true;
		else if (!advance(r, op))
			execute(r, op);
		r->bad |= r->c.bad;
	}
}

static void start(struct run *r)
{
	r->now.row.cfa_base = UNWIND_NO_BASE;
	r->now.row.signal = r->cie->signal;
	r->now.row.ra = (uint8_t)r->cie->ra_register;
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		set_rule(r, i, UNWIND_SAME, UNWIND_NO_BASE, 0);
}

static void take_row(const struct state *s, struct unwind_row *row)
{
	*row = s->row;
	row->nr_rules = 0;
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		if (s->rule[i].place != UNWIND_SAME)
			row->rule[row->nr_rules++] = s->rule[i];
}

int cfi_run(const struct cfi_cie *cie, struct dwarf_cursor instructions, uint64_t begin,
	    uint64_t pc, struct unwind_row *row, uint64_t *end)
{
	struct run r = {.cie = cie, .loc = begin, .pc = pc};

	if (cie->ra_register >= UNWIND_REGS)
		return -EIO;
	start(&r);
	run_program(&r, cie->initial);
	if (r.loc != begin) /* they hold from the start on */
		return -EIO;
	r.initial = r.now;
	run_program(&r, instructions);
	if (r.bad)
		return -EIO;
	take_row(&r.now, row);
	*end = r.loc > pc ? r.loc : UINT64_MAX;
	return 0;
}
