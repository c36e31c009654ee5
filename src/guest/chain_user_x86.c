// SPDX-License-Identifier: GPL-2.0-only
/*
 * User call chains of x86-64: by call frame information in the leaf, whose ip may lag, and by frame
 * pointer.
 */
#include <string.h>

#include "guest/chain_user.h"

enum {
	CODE = 16,		/* bytes that are looked at at an address */
	SIGFRAME_MCONTEXT = 40, /* struct ucontext up to uc_mcontext, whose words follow */
	SIGFRAME_RBP = 10,
	SIGFRAME_RSP = 15,
	SIGFRAME_RIP = 16,
	START_TLS = 2048,
};

/* Where the kernel sends a signal handler back to: mov $15, %rax; syscall. */
static bool is_sigreturn(struct guest_user_walk *w, uint64_t ra)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t b[sizeof(code)];

	return !user_code(w, ra, b, sizeof(b)) && !memcmp(b, code, sizeof(b));
}

/*
 * Takes the return address at @slot, with the caller's frame pointer. false: it is none, the frame
 * is as it was.
 */
static bool take(struct guest_user_walk *w, uint64_t slot, uint64_t bp)
{
	uint64_t ra;

	if (guest_stack_word(w->stack, slot, &ra) || !user_may_return(w, ra))
		return false;
	w->f.ip = ra;
	w->f.sp = slot + 8;
	w->f.bp = bp;
	w->f.slot = slot;
	w->f.exact = false;
	user_forget_regs(w);
	return true;
}

/* ---------- call frame information ---------- */

/* At the block's end the leaf has called a function: a return address behind ip has been pushed. */
static bool has_called(struct guest_user_walk *w)
{
	uint64_t ra, target, slot;
	struct unwind_regs r;
	struct cfi_place p;

	if (guest_stack_word(w->stack, w->f.sp, &ra) || ra - w->f.ip - 1 >= USER_MAX_BLOCK ||
	    !user_is_return(w, ra, &target) || user_find_row(w, ra, false, &p))
		return false;
	r = user_regs_at(w, ra, w->f.sp + 8);
	if (user_step_row(w, &p, &r, &slot, &target) != STEPPED)
		return false;
	user_set_frame(w, &r, slot, false);
	return true;
}

/* Or it has returned: then its return address is below the stack pointer. */
static bool has_returned(struct guest_user_walk *w, uint64_t function)
{
	uint64_t ra, target;

	if (guest_stack_word(w->stack, w->f.sp - 8, &ra) || !user_executable(w, ra - 1) ||
	    !user_is_return(w, ra, &target) || target != function)
		return false;
	return take(w, w->f.sp - 8, w->f.bp);
}

/*
 * A vCPU's ip may lag behind its other registers: QEMU's translator keeps ip at the start of a
 * block while the stack pointer moves on. So of the rows from there on, as far as a block may go,
 * the one counts that leads to a call of this very function; failing that, the first that leads to
 * any call.
 */
static enum user_step step_cfi_leaf(struct guest_user_walk *w)
{
	uint64_t at = w->f.ip, slot, best_slot = 0, target, function = 0;
	struct unwind_regs r, best = {0};
	struct cfi_place p;

	if (!w->f.has_regs || w->f.slot)
		return NEXT_RULE;
	for (int i = 0; i < USER_MAX_RULES && at - w->f.ip < USER_MAX_BLOCK; i++, at = p.end) {
		if (user_find_row(w, at, true, &p) || (function && p.function != function))
			break;
		function = p.function;
		r = user_regs_at(w, w->f.ip, w->f.sp);
		if (user_step_row(w, &p, &r, &slot, &target) != STEPPED)
			continue;
		if (target == function) {
			user_set_frame(w, &r, slot, p.row.signal);
			return STEPPED;
		}
		if (!best_slot) {
			best = r;
			best_slot = slot;
		}
	}
	if (function && (has_called(w) || has_returned(w, function)))
		return STEPPED;
	if (!best_slot)
		return NEXT_RULE;
	user_set_frame(w, &best, best_slot, false);
	return STEPPED;
}

/* ---------- frame pointer ---------- */

/* In a signal's return code, what was interrupted is in the ucontext on the stack. */
static enum user_step step_signal(struct guest_user_walk *w)
{
	uint64_t context = w->f.sp + SIGFRAME_MCONTEXT, ip, sp, bp;

	if (!w->f.slot || !is_sigreturn(w, w->f.ip))
		return NEXT_RULE;
	if (guest_stack_word(w->stack, context + SIGFRAME_RIP * 8, &ip) ||
	    guest_stack_word(w->stack, context + SIGFRAME_RSP * 8, &sp) ||
	    guest_stack_word(w->stack, context + SIGFRAME_RBP * 8, &bp) || !user_executable(w, ip))
		return FAILED;
	w->f = (struct guest_frame){
		.ip = ip, .sp = sp, .bp = bp, .exact = true, .slot = context + SIGFRAME_RIP * 8};
	user_forget_regs(w);
	return STEPPED;
}

/*
 * Before a function has made its frame, and after it has undone it, the frame pointer is its
 * caller's: a chain by it alone would leave the caller out. The instruction at hand tells, or a
 * direct call to this very place.
 */
static const struct {
	uint8_t len, code[6];
	uint8_t above; /* bytes on the stack above which the return address is */
} edges[] = {
	{1, {0x55}, 0},			  /* push %rbp */
	{3, {0x48, 0x89, 0xe5}, 8},	  /* mov %rsp, %rbp */
	{3, {0x48, 0x8b, 0xec}, 8},	  /* the other encoding */
	{1, {0xc3}, 0},			  /* ret */
	{2, {0xf3, 0xc3}, 0},		  /* rep ret */
	{2, {0xf2, 0xc3}, 0},		  /* bnd ret */
	{1, {0xc2}, 0},			  /* ret imm16 */
	{2, {0x5d, 0xc3}, 8},		  /* pop %rbp; ret */
	{2, {0xff, 0x25}, 0},		  /* jmp *x(%rip): PLT, tail call */
	{3, {0xf2, 0xff, 0x25}, 0},	  /* bnd jmp *x(%rip) */
	{6, {0x68, 0, 0, 0, 0, 0xe9}, 0}, /* push $n; jmp: PLT */
};

static bool edge_matches(size_t i, const uint8_t *code)
{
	if (edges[i].len == 6)
		return code[0] == edges[i].code[0] && code[5] == edges[i].code[5];
	return !memcmp(code, edges[i].code, edges[i].len);
}

static enum user_step step_edge(struct guest_user_walk *w)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t buf[CODE], *code = buf;
	uint64_t word, bp = w->f.bp, target;

	if (!w->f.exact || user_code(w, w->f.ip, buf, sizeof(buf)))
		return NEXT_RULE;
	if (!memcmp(code, endbr64, sizeof(endbr64)))
		code += sizeof(endbr64);
	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++) {
		if (!edge_matches(i, code))
			continue;
		if (edges[i].above && guest_stack_word(w->stack, w->f.sp, &bp))
			return NEXT_RULE;
		return take(w, w->f.sp + edges[i].above, bp) ? STEPPED : NEXT_RULE;
	}
	if (!guest_stack_word(w->stack, w->f.sp, &word) && user_executable(w, word - 1) &&
	    user_is_return(w, word, &target) && target == w->f.ip)
		return take(w, w->f.sp, w->f.bp) ? STEPPED : NEXT_RULE;
	return NEXT_RULE;
}

/*
 * The same for a vCPU whose ip lags behind its other registers: QEMU's translator keeps ip at the
 * start of a block while the stack pointer moves on. Then the stack itself tells that the frame
 * pointer has just been pushed and not yet changed, that it has just been popped, or that the
 * function whose only block this is has returned.
 */
static enum user_step step_lagging(struct guest_user_walk *w)
{
	uint64_t ip = w->f.ip, sp = w->f.sp, bp = w->f.bp, top = 0, below = 0, target;

	if (!w->f.exact || guest_stack_word(w->stack, sp, &top))
		return NEXT_RULE;
	if (top == bp && take(w, sp + 8, bp))
		return STEPPED;
	if (top - ip - 1 < USER_MAX_BLOCK) /* the block's call has pushed it, bp is the leaf's */
		return NEXT_RULE;
	if (guest_stack_word(w->stack, sp - 8, &below))
		return NEXT_RULE;
	if (below == bp && take(w, sp, bp))
		return STEPPED;
	if (user_executable(w, below - 1) && user_is_return(w, below, &target) && target == ip &&
	    take(w, sp - 8, bp))
		return STEPPED;
	return NEXT_RULE;
}

static enum user_step step_frame_pointer(struct guest_user_walk *w)
{
	uint64_t fp = w->f.bp, bp;

	if (fp < w->f.sp || fp - w->f.sp > USER_MAX_FRAME || guest_stack_word(w->stack, fp, &bp))
		return FAILED;
	return take(w, fp + 8, bp) ? STEPPED : FAILED;
}

static const user_rule rules[] = {
	step_cfi_leaf, user_step_end,	   step_signal, step_edge,
	step_lagging,  step_frame_pointer, NULL,
};

const struct user_abi user_x86 = {UNWIND_X86_64, rules, is_sigreturn, START_TLS};
