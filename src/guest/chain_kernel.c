// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel call chains by ORC, over interrupt and exception stacks, to the registers of user mode.
 */
#include <string.h>

#include "guest/chain.h"
#include "guest/x86.h"

/* Where modules and BPF programs are: above the kernel's image, below the fixmap. */
#define MODULES_START 0xffffffff80000000ull
#define MODULES_END   0xffffffffff000000ull

enum {
	MAX_RULES = 32,	 /* that hold one after the other in a block */
	MAX_BLOCK = 128, /* bytes of straight code that are looked at */
	MAX_TRIAL = 16,	 /* steps for trial */
	CERTAIN = 1000,	 /* a score: more than any other */
};

/* The task's own stack is the one that is neither the CPU's for interrupts nor for exceptions. */
static void note_stack(struct guest_kernel_walk *w, uint64_t sp)
{
	if (!(sp >> 63) || guest_in_entry_area(sp) ||
	    (w->irq_stack && sp - 1 - w->irq_stack < w->thread_size))
		return;
	w->task_stack = (sp - 1) & ~(w->thread_size - 1); /* sp may be one above its last word */
}

/*
 * What a direct call goes to may be code that goes on to where a register says. Some of it has no
 * symbol, as it is made at boot.
 */
static bool is_thunk(struct guest_kernel_walk *w, uint64_t target)
{
	static const char *const prefixes[] = {"__x86_indirect_", "__SCT__"};
	const char *name = guest_kernel_symbolize(w->kernel, target, NULL);

	for (size_t i = 0; name && i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return !name;
}

enum guest_call guest_kernel_call(struct guest_kernel_walk *w, uint64_t ra, uint64_t ip)
{
	uint64_t target, off;

	if (guest_code_call_before(w->code, w->as, 0, ra, &target))
		return CALL_NONE;
	if (!target || !guest_kernel_symbolize(w->kernel, ip, &off) || is_thunk(w, target))
		return CALL_INDIRECT;
	return target == ip - off ? CALL_DIRECT : CALL_OTHER;
}

/*
 * Can this be what the frame whose ip was @ip was called or interrupted by? CALL_OTHER is perhaps a
 * function that jumped to the frame's, more likely what an earlier call left on the stack.
 */
static enum guest_call plausible(struct guest_kernel_walk *w, enum guest_orc_step step, uint64_t ip)
{
	if (step == ORC_STEP_USER)
		return w->f.ip >> 63 ? CALL_NONE : CALL_DIRECT;
	if (step != ORC_STEP_OK || !guest_kernel_is_text(w->kernel, w->f.ip))
		return CALL_NONE;
	return w->f.exact ? CALL_DIRECT : guest_kernel_call(w, w->f.ip, ip);
}

/*
 * Is the caller's frame, which a step led to, code behind a call, or interrupted code? @known:
 * whether the callee was in the kernel's or a module's text; out: whether this is. A BPF program's
 * code is in no list: what it was called by must be known code again. What only ever returned there
 * by hand (a CPU's first code) is the end of the stack.
 */
static bool is_code(struct guest_kernel_walk *w, bool *known)
{
	bool was_known = *known;
	struct guest_orc_rule rule;
	uint64_t target;

	*known = guest_kernel_is_text(w->kernel, w->f.ip);
	if (!*known && (!was_known || w->f.ip - MODULES_START >= MODULES_END - MODULES_START))
		return false;
	if (w->f.exact || !guest_code_call_before(w->code, w->as, 0, w->f.ip, &target))
		return true;
	return guest_orc_find(w->orc, w->f.ip, &rule, NULL) && rule.type == ORC_END_OF_STACK;
}

/* One step up from a frame that is not the leaf. */
static enum guest_orc_step climb(struct guest_kernel_walk *w, bool *known)
{
	uint64_t sp = w->f.sp;
	enum guest_orc_step step = guest_orc_step(w->orc, &w->f, w->stack);

	if (step != ORC_STEP_OK)
		return step;
	/* Within one stack it goes up; from one stack to another, anywhere. */
	if (w->f.sp <= sp && (w->f.sp ^ sp) < w->thread_size)
		return ORC_STEP_BAD;
	return is_code(w, known) ? ORC_STEP_OK : ORC_STEP_BAD;
}

/*
 * How good a candidate for the leaf's caller this is; 0: none. If it is not certain by itself, by
 * how far one gets from there: the true one leads to the end of the stack.
 */
static int score(struct guest_kernel_walk *w, enum guest_orc_step step, uint64_t ip)
{
	const struct guest_frame f = w->f;
	enum guest_call call = plausible(w, step, ip);
	bool known = true;
	int steps = 0;

	if (call == CALL_DIRECT)
		return CERTAIN;
	if (call == CALL_NONE)
		return 0;
	while (step == ORC_STEP_OK && steps++ < MAX_TRIAL)
		step = climb(w, &known);
	w->f = f;
	steps += step == ORC_STEP_USER || step == ORC_STEP_END ? MAX_TRIAL : 0;
	return 4 * steps + (int)call;
}

static void set_frame(struct guest_kernel_walk *w, const struct guest_frame *leaf, uint64_t slot,
		      uint64_t ip)
{
	w->f = (struct guest_frame){.ip = ip, .sp = slot + 8, .bp = leaf->bp, .slot = slot};
}

/* Is there a return address at @slot, of a call to the leaf's function or, if @any, to any? */
static bool returns_at(struct guest_kernel_walk *w, const struct guest_frame *leaf, uint64_t slot,
		       bool any)
{
	enum guest_call call;
	uint64_t ra;

	if (guest_stack_word(w->stack, slot, &ra) || !guest_kernel_is_text(w->kernel, ra))
		return false;
	call = guest_kernel_call(w, ra, leaf->ip);
	if (call != CALL_DIRECT && (!any || call == CALL_NONE))
		return false;
	set_frame(w, leaf, slot, ra);
	return true;
}

/*
 * Code that functions are called through or return by: it pushes addresses of its own, and none
 * calls it as what it is. Of the words around the stack pointer, which leads on?
 */
static bool in_thunk(struct guest_kernel_walk *w, const struct guest_frame *leaf)
{
	const char *name = guest_kernel_symbolize(w->kernel, leaf->ip, NULL);
	struct guest_frame best = *leaf;
	int now, most = 0;

	if (!name || (!strstr(name, "return_thunk") && strncmp(name, "__x86_indirect_", 15)))
		return false;
	for (uint64_t slot = leaf->sp - 8; slot != leaf->sp + 24; slot += 8) {
		if (!returns_at(w, leaf, slot, true))
			continue;
		now = score(w, ORC_STEP_OK, leaf->ip);
		if (now > most) {
			most = now;
			best = w->f;
		}
	}
	w->f = best;
	return most;
}

/* At the block's end the leaf has called a function: a return address behind ip has been pushed. */
static bool has_called(struct guest_kernel_walk *w, const struct guest_frame *leaf,
		       enum guest_orc_step *step)
{
	uint64_t ra, target;

	if (guest_stack_word(w->stack, leaf->sp, &ra) || ra - leaf->ip - 1 >= MAX_BLOCK ||
	    guest_code_call_before(w->code, w->as, 0, ra, &target))
		return false;
	set_frame(w, leaf, leaf->sp, ra);
	*step = guest_orc_step(w->orc, &w->f, w->stack);
	return score(w, *step, leaf->ip) > 0;
}

/*
 * The leaf's ip may lag behind its other registers: QEMU's translator keeps ip at the start of a
 * block while the stack pointer moves on. So if the rule at ip does not lead to something certain,
 * the next ones are tried as far as a block may go, and the most plausible is taken.
 */
static enum guest_orc_step leaf_step(struct guest_kernel_walk *w)
{
	const struct guest_frame leaf = w->f;
	enum guest_orc_step first = ORC_STEP_NO_RULE, step;
	struct guest_frame best = leaf;
	uint64_t at = leaf.ip, next;
	struct guest_orc_rule rule;
	int now, most = 0;

	for (int i = 0; i < MAX_RULES && at - leaf.ip < MAX_BLOCK; i++, at = next) {
		if (!guest_orc_find(w->orc, at, &rule, &next))
			break;
		w->f = leaf;
		step = guest_orc_apply(&rule, &w->f, w->stack);
		now = score(w, step, leaf.ip);
		if (now == CERTAIN)
			return step;
		if (now > most) {
			most = now;
			best = w->f;
		}
		/* The end by a later rule counts only where there is no more to be found. */
		if (!i || (step == ORC_STEP_END && guest_in_entry_area(leaf.sp)))
			first = step;
	}
	if (has_called(w, &leaf, &step))
		return step;
	/* It may have returned, too: then its return address is below the stack pointer. */
	if (returns_at(w, &leaf, leaf.sp - 8, false) || in_thunk(w, &leaf))
		return ORC_STEP_OK;
	w->f = best;
	if (most)
		return ORC_STEP_OK;
	return first == ORC_STEP_OK || first == ORC_STEP_USER ? ORC_STEP_BAD : first;
}

/*
 * Entry code on the entry stack, halfway: what the CPU has pushed on the way from user mode lies at
 * the stack's top, whatever has been put below since.
 */
static bool entry_frame(struct guest_kernel_walk *w, const struct guest_frame *leaf)
{
	enum { IRET_BYTES = 40, USER_CS = 0x33 };
	uint64_t top = (leaf->sp | 4095) + 1, cs;
	struct guest_frame f = {.bp = leaf->bp, .slot = top - IRET_BYTES};

	if (!guest_in_entry_area(leaf->sp) || guest_stack_word(w->stack, f.slot, &f.ip) ||
	    guest_stack_word(w->stack, f.slot + 8, &cs) || cs != USER_CS || f.ip >> 63 ||
	    guest_stack_word(w->stack, f.slot + 24, &f.sp))
		return false;
	if (leaf->sp <= top - PT_REGS_BYTES &&
	    guest_stack_word(w->stack, top - PT_REGS_BYTES + PT_BP * 8, &f.bp))
		return false;
	w->f = f;
	return true;
}

static enum chain_end end_of(enum guest_orc_step step)
{
	switch (step) {
	case ORC_STEP_END:
	case ORC_STEP_USER:
		return CHAIN_OUTERMOST;
	case ORC_STEP_NO_RULE:
		return CHAIN_NO_RULE;
	case ORC_STEP_UNREADABLE:
		return CHAIN_UNREADABLE;
	default:
		return CHAIN_BAD_FRAME;
	}
}

static enum chain_end walk(struct guest_kernel_walk *w, uint64_t *out, unsigned max, unsigned *n)
{
	bool known = true;

	*n = 0;
	w->slots.n = 0;
	w->entered_from_user = false;
	w->task_stack = 0;
	w->f.exact = true;
	w->f.slot = 0;
	note_stack(w, w->f.sp);
	if (!max)
		return CHAIN_DEPTH;
	out[(*n)++] = w->f.ip;
	for (;;) {
		enum guest_orc_step step = w->f.slot ? climb(w, &known) : leaf_step(w);

		if (step == ORC_STEP_OK || step == ORC_STEP_USER) {
			if (w->slots.n < 2)
				w->slots.at[w->slots.n++] = w->f.slot;
			note_stack(w, w->f.slot + 1);
		}
		w->entered_from_user = step == ORC_STEP_USER;
		if (step != ORC_STEP_OK)
			return end_of(step);
		if (*n == max)
			return CHAIN_DEPTH;
		note_stack(w, w->f.sp);
		out[(*n)++] = w->f.ip;
	}
}

enum chain_end guest_chain_kernel(struct guest_kernel_walk *w, uint64_t *out, unsigned max,
				  unsigned *n)
{
	const struct guest_frame leaf = w->f;
	enum chain_end end = walk(w, out, max, n);

	if (end == CHAIN_OUTERMOST || end == CHAIN_DEPTH || !entry_frame(w, &leaf))
		return end;
	w->entered_from_user = true;
	return CHAIN_OUTERMOST;
}
