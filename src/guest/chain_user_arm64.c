// SPDX-License-Identifier: GPL-2.0-only
/*
 * User call chains of aarch64: by call frame information in the leaf, whose ip may lag, and by the
 * records that frame pointers lead along.
 */
#include <string.h>

#include "guest/arm64_code.h"
#include "guest/chain_user.h"

enum {
	AHEAD = 16, /* instructions that are looked at */
	LR = 30,
	/* struct rt_sigframe: the signal's information (128), struct ucontext up to uc_mcontext */
	SIGFRAME_REGS = 128 + 176 + 8,
	SIGFRAME_FP = 29,
	SIGFRAME_LR = 30,
	SIGFRAME_SP = 31,
	SIGFRAME_PC = 32,
	/* glibc has its struct pthread below the thread's pointer, then the thread's first frames.
	 */
	START_TLS = 4096,
};

/* mov x8, #139; svc #0 */
static bool is_sigreturn(struct guest_user_walk *w, uint64_t ip)
{
	static const uint32_t code[] = {0xd2801168, 0xd4000001};
	uint32_t b[2];

	return !user_code(w, ip, (uint8_t *)b, sizeof(b)) && !memcmp(b, code, sizeof(code));
}

static unsigned va_bits(const struct guest_user_walk *w)
{
	return guest_virt_paging(w->km->virt)->half[0].va_bits;
}

/* Return addresses in registers may have a code, or none any more. */
static uint64_t strip(const struct guest_user_walk *w, uint64_t va)
{
	return arm64_strip(va, va_bits(w));
}

static bool knows_lr(const struct guest_user_walk *w)
{
	return w->regs.known >> LR & 1;
}

/* ---------- the leaf, by call frame information ---------- */

/*
 * How well a row fits to the registers, of which ip may be the only one that is behind. A row that
 * has the return address in memory holds once it was stored: then x30 is still the same, or has
 * come from a call within the function, or the memory is of a moment later and a call of this
 * function is there all the same. A row that has it in x30 holds if that leads out of the function.
 */
static unsigned fit(const struct guest_user_walk *w, const struct cfi_place *p,
		    const struct unwind_regs *caller, uint64_t slot, uint64_t target)
{
	uint64_t lr = strip(w, w->regs.r[LR]);
	bool inside = lr - p->function - 1 < p->function_end - p->function;
	bool stored = slot && lr == caller->ip, direct = target == p->function;

	return 4u * direct + 2u * (slot ? stored || inside || direct : !inside) + stored;
}

/*
 * QEMU's translator keeps ip at the start of a block while the other registers move on. So the row
 * may be any from there on, as far as a block may go: the one that fits best, of equals the first.
 */
static enum user_step step_cfi_leaf(struct guest_user_walk *w)
{
	uint64_t at = w->f.ip, slot, best_slot = 0, target, function = 0;
	struct unwind_regs r, best = {0};
	bool found = false, exact = false;
	struct cfi_place p;
	unsigned most = 0;

	if (!w->f.has_regs || !knows_lr(w))
		return NEXT_RULE;
	for (int i = 0; i < USER_MAX_RULES && at - w->f.ip < USER_MAX_BLOCK; i++, at = p.end) {
		unsigned now;

		if (user_find_row(w, at, true, &p) || (function && p.function != function))
			break;
		function = p.function;
		r = user_regs_at(w, w->f.ip, w->f.sp);
		switch (user_step_row(w, &p, &r, &slot, &target)) {
		case STEPPED:
			break;
		case OUTERMOST:
			if (!i)
				return OUTERMOST;
			continue;
		default:
			continue;
		}
		now = fit(w, &p, &r, slot, target);
		if (found && now <= most)
			continue;
		found = true;
		most = now;
		best = r;
		best_slot = slot;
		exact = p.row.signal;
	}
	if (!found)
		return NEXT_RULE;
	/* In a register: the frame is gone when the stack pointer is above where it is now. */
	user_set_frame(w, &best, best_slot ? best_slot : w->f.sp, exact);
	return STEPPED;
}

/* ---------- without ---------- */

/* The return address @ra; of the caller's stack pointer it is known that it is not below @sp. */
static bool take(struct guest_user_walk *w, uint64_t ra, uint64_t fp, uint64_t sp, uint64_t slot)
{
	ra = strip(w, ra);
	if (!user_may_return(w, ra))
		return false;
	w->f = (struct guest_frame){.ip = ra, .sp = sp, .bp = fp, .slot = slot, .sp_is_low = true};
	user_forget_regs(w);
	return true;
}

/* In a signal's return code, what was interrupted is in the ucontext on the stack. */
static enum user_step step_signal(struct guest_user_walk *w)
{
	uint64_t at = w->f.sp + SIGFRAME_REGS, pc, sp, fp, lr;

	if (!w->f.slot || w->f.sp_is_low || !is_sigreturn(w, w->f.ip))
		return NEXT_RULE;
	if (guest_stack_word(w->stack, at + SIGFRAME_PC * 8, &pc) ||
	    guest_stack_word(w->stack, at + SIGFRAME_SP * 8, &sp) ||
	    guest_stack_word(w->stack, at + SIGFRAME_FP * 8, &fp) ||
	    guest_stack_word(w->stack, at + SIGFRAME_LR * 8, &lr) || !user_executable(w, pc))
		return FAILED;
	w->f = (struct guest_frame){
		.ip = pc, .sp = sp, .bp = fp, .exact = true, .slot = at + SIGFRAME_PC * 8};
	user_forget_regs(w);
	unwind_set(&w->regs, LR, lr);
	return STEPPED;
}

/* Where x30 is known: does the function still have its return address there? */
static enum user_step step_link(struct guest_user_walk *w)
{
	uint32_t code[AHEAD];
	uint64_t stored;

	if (!w->f.exact || !knows_lr(w))
		return NEXT_RULE;
	if (!guest_stack_word(w->stack, w->f.bp + 8, &stored) &&
	    strip(w, stored) == strip(w, w->regs.r[LR]))
		return NEXT_RULE; /* stored already, whatever ip says */
	if (user_code(w, w->f.ip, (uint8_t *)code, sizeof(code)) ||
	    arm64_frame_ahead(code, AHEAD) != ARM64_FRAME_NONE)
		return NEXT_RULE;
	return take(w, w->regs.r[LR], w->f.bp, w->f.sp, w->f.sp) ? STEPPED : NEXT_RULE;
}

static enum user_step step_record(struct guest_user_walk *w)
{
	uint64_t fp = w->f.bp, ra, caller;

	if (fp < w->f.sp || fp - w->f.sp > USER_MAX_FRAME || fp & 7 ||
	    guest_stack_word(w->stack, fp, &caller) || guest_stack_word(w->stack, fp + 8, &ra))
		return FAILED;
	return take(w, ra, caller, fp + 16, fp + 8) ? STEPPED : FAILED;
}

static const user_rule rules[] = {
	step_cfi_leaf, user_step_end, step_signal, step_link, step_record, NULL,
};

const struct user_abi user_arm64 = {UNWIND_AARCH64, rules, is_sigreturn, START_TLS};
