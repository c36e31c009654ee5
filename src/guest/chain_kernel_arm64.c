// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel call chains of aarch64 by the records that frame pointers lead along, over exceptions and
 * from one stack to the next (the CPU's for interrupts, for overflows), to the registers of user
 * mode. Exception entry makes a record inside of what it saves; the last one of a task is all
 * zeros.
 */
#include <string.h>

#include "guest/arm64.h"
#include "guest/arm64_code.h"
#include "guest/chain.h"

enum {
	STACKS = 4,   /* that a chain can go over: overflow, event, interrupt, the task's */
	BEHIND = 256, /* instructions that are looked at */

	RECORD_PT_REGS = 2,
	FUNCTION_MAX = BEHIND * 4,
};

static uint64_t strip(const struct guest_kernel_walk *w, uint64_t va)
{
	return arm64_strip(va, guest_virt_paging(w->stack->virt)->half[1].va_bits);
}

static bool read_code(struct guest_kernel_walk *w, uint64_t va, uint32_t *insn, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		size_t left = n - i < 4 ? n - i : 4;

		if (guest_code_read(w->code, w->as, 0, va + i * 4, (uint8_t *)(insn + i),
				    (unsigned)left * 4))
			return false;
	}
	return true;
}

static bool call_before(struct guest_kernel_walk *w, uint64_t ra, uint64_t *target)
{
	return !guest_code_call_before(w->code, w->as, 0, ra, target);
}

/* By the code from the function's start to here. */
static bool has_record(struct guest_kernel_walk *w, uint64_t start, uint64_t ip)
{
	uint32_t code[BEHIND];
	size_t n = (ip - start) / 4;

	return ip - start > FUNCTION_MAX || !read_code(w, start, code, n) ||
	       arm64_frame_behind(code, n) == ARM64_FRAME_RECORD;
}

/*
 * Is the return address of the function at ->f, which was interrupted, still or again in x30, and
 * the record that x29 leads to its caller's? ip may be behind the other registers, at the start of
 * a block that has stored x30 meanwhile.
 */
static bool is_in_link(struct guest_kernel_walk *w, uint64_t lr)
{
	uint64_t off, from, stored, target, stored_target;

	if (!guest_kernel_symbolize(w->kernel, w->f.ip, &off) ||
	    !guest_kernel_is_text(w->kernel, lr) || !call_before(w, lr, &target))
		return false;
	if (guest_stack_word(w->stack, w->f.bp + 8, &stored))
		return true;
	stored = strip(w, stored);
	if (stored == lr)
		return false;
	if (target == w->f.ip - off)
		return true;
	if (guest_kernel_symbolize(w->kernel, lr - 4, &from) && lr - 4 - from == w->f.ip - off)
		return false; /* from a call within the function */
	if (call_before(w, stored, &stored_target) && stored_target == w->f.ip - off)
		return false;
	return !has_record(w, w->f.ip - off, w->f.ip);
}

static void put(struct guest_kernel_walk *w, uint64_t *out, unsigned *n, uint64_t ip, uint64_t slot)
{
	if (w->slots.n < 2 && *n)
		w->slots.at[w->slots.n++] = slot;
	out[(*n)++] = ip;
}

/* A frame that was interrupted, or is the leaf: also its caller, if only x30 knows that. */
static bool put_exact(struct guest_kernel_walk *w, uint64_t lr, uint64_t *out, unsigned max,
		      unsigned *n)
{
	put(w, out, n, w->f.ip, w->f.sp);
	lr = strip(w, lr);
	if (!is_in_link(w, lr))
		return true;
	if (*n == max)
		return false;
	put(w, out, n, lr, w->f.sp);
	return true;
}

/* Has exception entry made this record? Then *regs is where it has saved the registers. */
static bool is_exception(struct guest_kernel_walk *w, uint64_t fp, const uint64_t record[2],
			 uint64_t *regs)
{
	uint64_t type, pc, saved_fp, pstate;

	if (w->regs_record < 0)
		return false;
	*regs = fp - (uint64_t)w->regs_record;
	if (guest_stack_word(w->stack, *regs + ARM64_PT_PC * 8, &pc) ||
	    guest_stack_word(w->stack, *regs + ARM64_PT_FP * 8, &saved_fp) ||
	    guest_stack_word(w->stack, *regs + ARM64_PT_PSTATE * 8, &pstate) ||
	    !(pstate & ARM64_PSTATE_MODE) || !guest_kernel_is_text(w->kernel, pc))
		return false;
	if (record[0] || record[1])
		return saved_fp == record[0] && pc == strip(w, record[1]);
	return w->record_type >= 0 &&
	       !guest_stack_word(w->stack, fp + (uint64_t)w->record_type, &type) &&
	       type == RECORD_PT_REGS;
}

/* The last record of a task: what user mode had is saved around it, or it has never been there. */
static void end_at(struct guest_kernel_walk *w, uint64_t fp)
{
	uint64_t regs = fp - (uint64_t)w->regs_record, pstate;

	w->entered_from_user = w->regs_record >= 0 && regs == w->task_stack + w->saved_regs &&
			       !guest_stack_word(w->stack, regs + ARM64_PT_PSTATE * 8, &pstate) &&
			       !(pstate & ARM64_PSTATE_MODE);
}

/* Does the chain go on at @fp? Up within one stack, and to few others. */
static bool next_record(struct guest_kernel_walk *w, uint64_t fp, uint64_t *before,
			unsigned *stacks)
{
	uint64_t stack = fp & ~(w->thread_size - 1);

	if (!(fp >> 63) || fp & 7)
		return false;
	if (*before && stack == (*before & ~(w->thread_size - 1)) ? fp <= *before
								  : ++*stacks > STACKS)
		return false;
	*before = fp;
	w->task_stack = stack;
	return true;
}

static bool goes_on(struct guest_kernel_walk *w, uint64_t ra, bool *known)
{
	bool was_known = *known;
	uint64_t target;

	*known = guest_kernel_is_text(w->kernel, ra);
	return (*known || (was_known && ra >> 63)) && call_before(w, ra, &target);
}

/*
 * Exception entry and exit, where x29 is user mode's: one frame. On the way out, what was saved of
 * user mode is still there.
 */
static bool at_border(struct guest_kernel_walk *w)
{
	const char *name = guest_kernel_symbolize(w->kernel, w->f.ip, NULL);

	if (w->f.bp >> 63)
		return false;
	w->task_stack = (w->f.sp - 1) & ~(w->thread_size - 1);
	w->at_border = true;
	w->entered_from_user = name && !strcmp(name, "ret_to_user");
	return true;
}

enum chain_end guest_chain_kernel_arm64(struct guest_kernel_walk *w, uint64_t *out, unsigned max,
					unsigned *n)
{
	uint64_t fp = w->f.bp, before = 0, record[2], regs;
	unsigned stacks = 0;
	bool known = true;

	*n = 0;
	w->slots.n = 0;
	w->entered_from_user = w->at_border = false;
	w->task_stack = 0;
	if (!max)
		return CHAIN_DEPTH;
	if (at_border(w)) {
		put(w, out, n, w->f.ip, 0);
		return CHAIN_OUTERMOST;
	}
	if (!put_exact(w, w->lr, out, max, n))
		return CHAIN_DEPTH;
	for (;;) {
		if (!next_record(w, fp, &before, &stacks))
			return CHAIN_BAD_FRAME;
		if (guest_stack_word(w->stack, fp, &record[0]) ||
		    guest_stack_word(w->stack, fp + 8, &record[1]))
			return CHAIN_UNREADABLE;
		if (is_exception(w, fp, record, &regs)) {
			if (*n == max)
				return CHAIN_DEPTH;
			if (guest_stack_word(w->stack, regs + ARM64_PT_PC * 8, &w->f.ip) ||
			    guest_stack_word(w->stack, regs + ARM64_PT_FP * 8, &w->f.bp) ||
			    guest_stack_word(w->stack, regs + ARM64_PT_SP * 8, &w->f.sp) ||
			    guest_stack_word(w->stack, regs + ARM64_PT_LR * 8, &w->lr))
				return CHAIN_UNREADABLE;
			if (!put_exact(w, w->lr, out, max, n))
				return CHAIN_DEPTH;
			fp = w->f.bp;
			known = true;
			continue;
		}
		if (!record[0] && !record[1]) {
			end_at(w, fp);
			return CHAIN_OUTERMOST;
		}
		record[1] = strip(w, record[1]);
		if (!goes_on(w, record[1], &known))
			return CHAIN_BAD_FRAME;
		if (*n == max)
			return CHAIN_DEPTH;
		put(w, out, n, record[1], fp + 8);
		fp = record[0];
	}
}
