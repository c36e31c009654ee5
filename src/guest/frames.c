// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sample's call chain, put together from a kernel and a user part.
 */
#include <string.h>
#include <linux/perf_event.h>

#include "guest/work.h"

enum {
	OTHER_STACK = 1 << 20, /* stack pointers so far apart are of different stacks */
	START_BYTES = 256,     /* at the top of an idle task's stack */
};

struct guest_frame guest_frame_of(const struct guest_regs *regs)
{
	return (struct guest_frame){
		.ip = regs->ip,
		.sp = regs->sp,
		.bp = regs->fp,
		.has_regs = true,
		.r10 = regs->gpr[X86_R8 + 2],
		.r13 = regs->gpr[X86_R8 + 5],
		.di = regs->gpr[X86_RDI],
		.dx = regs->gpr[X86_RDX],
	};
}

static void walk_kernel(struct guest_work *w)
{
	struct guest *g = w->g;

	w->kwalk = (struct guest_kernel_walk){
		.orc = &g->orc,
		.kernel = g->kernel,
		.code = g->code,
		.as = g->km.as,
		.stack = &w->stack,
		.thread_size = g->km.lay.thread_size,
		.irq_stack = w->vc->irq_stack,
		.lr = w->regs.gpr[ARM64_PT_LR],
		.saved_regs = g->km.lay.saved_regs,
		.regs_record = g->km.lay.regs_record,
		.record_type = g->km.lay.record_type,
		.f = guest_frame_of(&w->regs),
	};
	if (guest_is_arm64(g))
		w->out->kernel_end = guest_chain_kernel_arm64(&w->kwalk, w->frames,
							      g->cfg.max_chain, &w->nr_kernel);
	else
		w->out->kernel_end =
			guest_chain_kernel(&w->kwalk, w->frames, g->cfg.max_chain, &w->nr_kernel);
}

static bool other_stack(const struct guest_work *w, uint64_t a, uint64_t b)
{
	return (a ^ b) >= w->g->km.lay.thread_size;
}

/* Is the kernel's stack pointer still at or below @at, on the same stack? */
static bool below(const struct guest_work *w, const struct guest_regs *now, uint64_t at)
{
	return !now->cpl && now->sp <= at && at - now->sp < w->g->km.lay.thread_size;
}

/*
 * A stack that was copied with the registers is exact but not whole. What had to be read later is
 * good if the stack has not been unwound as far as that since; else the chain is as long as it was
 * copied.
 */
void guest_walk_kernel(struct guest_work *w)
{
	struct guest_regs now;

	walk_kernel(w);
	if (!w->stack.nr_given || w->stack.live_at == UINT64_MAX ||
	    (guest_peek(w, &now) && below(w, &now, w->stack.live_at)))
		return;
	w->stack.given_only = true;
	walk_kernel(w);
	w->stack.given_only = false;
	if (w->out->kernel_end != CHAIN_OUTERMOST)
		w->out->kernel_end = CHAIN_TORN;
}

/*
 * Where the thread's user stack pointer is by now, as far as can be known: in the registers if it
 * still runs in user mode, else where it was saved when the kernel was entered. 0: unknown.
 */
static uint64_t user_sp_now(struct guest_work *w, const struct guest_regs *now, uint64_t sp)
{
	struct guest *g = w->g;
	uint64_t saved = w->thread->stack + g->km.lay.saved_regs + guest_saved_sp(g);

	if (now->cpl == 3 && guest_root_of(g, now) == w->thread->process->as.root &&
	    now->sp - sp + OTHER_STACK < 2 * OTHER_STACK)
		return now->sp;
	if (guest_virt_read(g->virt, g->km.as, saved, &sp, 8))
		return 0;
	return sp;
}

bool guest_peek(struct guest_work *w, struct guest_regs *now)
{
	const struct guest_config *cfg = &w->g->cfg;

	return cfg->peek && !cfg->peek(cfg->peek_ctx, w->vcpu, now);
}

static bool user_torn(struct guest_work *w, const struct guest_slots *slots, uint64_t sp,
		      const struct guest_regs *now)
{
	uint64_t sp_now = user_sp_now(w, now, sp);

	if (w->out->user_end != CHAIN_OUTERMOST && w->out->user_end != CHAIN_DEPTH && sp_now > sp)
		return true; /* nonsense was read after the leaf had returned */
	return slots->n == 2 && sp_now > slots->at[1];
}

static bool moved(const struct guest_regs *a, const struct guest_regs *b)
{
	return a->ip != b->ip || a->sp != b->sp || a->fp != b->fp;
}

/* The kernel has not been left since: what was saved of user mode when it was entered is true. */
static bool still_inside(const struct guest_work *w)
{
	return w->have_now && !w->now.cpl && w->now.sp >> 63 &&
	       (guest_owns_stack(w, w->now.sp) ||
		w->now.sp - 1 - w->vc->irq_stack < w->g->km.lay.thread_size);
}

/*
 * Kernel frames: if the second one was popped too, the leaf's caller is only believed if the call
 * before the return address goes to the leaf's function.
 */
static bool kernel_torn(struct guest_work *w, const struct guest_regs *now)
{
	const struct guest_slots *slots = &w->kwalk.slots;
	/* Nonsense was met: where the vCPU stood still the stack is to blame, else the time. */
	if ((w->out->kernel_end == CHAIN_BAD_FRAME || w->out->kernel_end == CHAIN_UNREADABLE) &&
	    moved(&w->regs, now))
		return true;
	if (slots->n < 2 || w->nr_kernel < 2 || below(w, now, slots->at[1]))
		return false;
	/* aarch64 has a record on the stack that was left, which stays as long as the other is
	 * used. */
	if (guest_is_arm64(w->g) && (w->stack.nr_given || other_stack(w, now->sp, slots->at[1])))
		return false;
	return guest_kernel_call(&w->kwalk, w->frames[1], w->frames[0]) != CALL_DIRECT;
}

static void give_regs_arm64(struct unwind_regs *to, const struct guest_regs *regs)
{
	for (unsigned i = 0; i <= ARM64_PT_LR; i++)
		unwind_set(to, i, regs->gpr[i]);
}

static void give_regs(struct unwind_regs *to, const struct guest_regs *regs)
{
	/* DWARF has rdx before rcx, and rsi, rdi, rbp, rsp */
	static const uint8_t numbers[8] = {0, 2, 1, 3, 7, 6, 4, 5};

	for (unsigned i = 0; i < 16; i++)
		unwind_set(to, i < 8 ? numbers[i] : i, regs->gpr[i]);
}

static struct guest_slots walk_user(struct guest_work *w, struct guest_frame f)
{
	struct guest *g = w->g;
	struct guest_user_walk u = {
		.code = g->code,
		.stack = &w->stack,
		.proc = w->thread->process,
		.dsos = &g->dsos,
		.km = &g->km,
		.time = w->time,
		.fsbase = w->thread->pid == w->thread->tgid ? 0 : w->thread->fsbase,
		.f = f,
	};

	if (guest_is_arm64(g) && w->user)
		give_regs_arm64(&u.regs, &w->regs);
	else if (guest_is_arm64(g))
		u.regs = w->saved;
	else if (w->user && f.has_regs)
		give_regs(&u.regs, &w->regs);
	w->out->user_end = guest_chain_user(&u, w->frames + w->nr_kernel,
					    g->cfg.max_chain - w->nr_kernel, &w->nr_user);
	return u.slots;
}

/* As guest_walk_kernel() with a stack that was copied. */
static void walk_given_user(struct guest_work *w, struct guest_frame f)
{
	struct guest_regs now;
	uint64_t sp, at;

	walk_user(w, f);
	at = w->stack.live_at;
	if (at == UINT64_MAX)
		return;
	sp = guest_peek(w, &now) ? user_sp_now(w, &now, f.sp) : 0;
	if (sp && sp <= (at > f.sp ? at : f.sp)) /* what is looked at below sp is no frame */
		return;
	w->stack.given_only = true;
	walk_user(w, f);
	w->stack.given_only = false;
	if (w->out->user_end != CHAIN_OUTERMOST)
		w->out->user_end = CHAIN_TORN;
}

void guest_walk_user(struct guest_work *w, struct guest_frame f, const struct guest_regs *now)
{
	struct guest_regs fresh;
	struct guest_slots slots;

	if (w->stack.nr_given) {
		walk_given_user(w, f);
		return;
	}
	slots = walk_user(w, f);
	if (!now)
		now = guest_peek(w, &fresh) ? &fresh : NULL;
	if (now && user_torn(w, &slots, f.sp, now)) {
		w->out->user_end = CHAIN_TORN;
		w->nr_user = 1;
	}
}

/* A walk that failed halfway does not need to know the way: entry code saves them in one place. */
static bool saved_frame(struct guest_work *w, struct guest_frame *f)
{
	uint64_t at = w->thread->stack + w->g->km.lay.saved_regs, cs;

	*f = (struct guest_frame){0};
	if (w->out->kernel_end == CHAIN_OUTERMOST || !guest_owns_stack(w, w->regs.sp) ||
	    guest_stack_word(&w->stack, at + PT_CS * 8, &cs) || (cs & 3) != 3 ||
	    guest_stack_word(&w->stack, at + PT_IP * 8, &f->ip) ||
	    guest_stack_word(&w->stack, at + PT_SP * 8, &f->sp) ||
	    guest_stack_word(&w->stack, at + PT_BP * 8, &f->bp))
		return false;
	return guest_process_map(w->thread->process, f->ip);
}

/*
 * Entry and exit code, where the kernel's chain ends at once: of user mode's registers some are on
 * the stack, and what is not there yet, or no more, is in the CPU.
 */
static bool half_saved_frame(struct guest_work *w, struct guest_frame *f)
{
	uint64_t at = w->thread->stack + w->g->km.lay.saved_regs, sp = w->regs.sp;

	*f = guest_frame_of(&w->regs);
	f->ip = w->regs.gpr[X86_RCX];
	f->has_regs = false; /* not of that place in the code, all of them */
	return sp - at <= PT_SP * 8 && !guest_stack_word(&w->stack, at + PT_SP * 8, &f->sp) &&
	       (sp > at + PT_IP * 8 || !guest_stack_word(&w->stack, at + PT_IP * 8, &f->ip)) &&
	       (sp > at + PT_BP * 8 || !guest_stack_word(&w->stack, at + PT_BP * 8, &f->bp)) &&
	       guest_process_map(w->thread->process, f->ip);
}

/* On the way back to user mode its stack pointer is the first thing that goes to the entry stack.
 */
static uint64_t entry_stack_sp(struct guest_work *w)
{
	uint64_t sp = w->regs.sp, at = sp | 0xff8;

	if (!(sp & 4095))
		at = w->thread->stack + w->g->km.lay.saved_regs + PT_SP * 8;
	return guest_stack_word(&w->stack, at, &sp) ? 0 : sp;
}

/*
 * The user's registers where the walk through the kernel has not come to them: in the SYSCALL
 * instruction's entry and exit code they still are, or again, the CPU's.
 */
static bool user_frame(struct guest_work *w, struct guest_frame *f)
{
	*f = w->kwalk.f;
	if (w->kwalk.entered_from_user && w->out->kernel_end == CHAIN_OUTERMOST)
		return true;
	if (w->regs.sp >> 63 && !guest_in_entry_area(w->regs.sp))
		return saved_frame(w, f) || half_saved_frame(w, f);
	if (w->out->kernel_end != CHAIN_OUTERMOST)
		return false;
	*f = guest_frame_of(&w->regs);
	f->ip = w->regs.gpr[X86_RCX];
	if (w->regs.sp >> 63)
		f->sp = entry_stack_sp(w);
	return f->sp && guest_process_map(w->thread->process, f->ip);
}

/*
 * Exception entry, which saves them: one after the other they are on the stack and get cleared. The
 * stack pointer is taken to x21 when SP_EL0 gets the running task.
 */
static bool entry_frame_arm64(struct guest_work *w, struct guest_frame *f)
{
	enum { SAVED_SP = 21 };
	uint64_t at = w->thread->stack + w->g->km.lay.saved_regs, word;
	bool cleared = !w->regs.fp, task_set = w->regs.sp_el0 >> 63;

	*f = (struct guest_frame){
		.ip = w->regs.elr,
		.sp = task_set ? w->regs.gpr[SAVED_SP] : w->regs.sp_el0,
		.bp = w->regs.fp,
	};
	for (unsigned i = 0; i <= ARM64_PT_LR; i++) {
		word = w->regs.gpr[i];
		if (cleared && i < ARM64_PT_LR && guest_stack_word(&w->stack, at + i * 8, &word))
			continue;
		unwind_set(&w->saved, i, word);
		f->bp = i == ARM64_PT_FP ? word : f->bp;
	}
	return !(f->bp >> 63) && !(f->sp >> 63) && f->ip && !(f->ip >> 63);
}

/* They are in one place, but not yet, or of earlier, before exception entry has come to its end. */
static bool user_frame_arm64(struct guest_work *w, struct guest_frame *f)
{
	uint64_t at = w->thread->stack + w->g->km.lay.saved_regs, word;

	*f = (struct guest_frame){0};
	w->saved.known = 0;
	if (w->kwalk.at_border && !w->kwalk.entered_from_user)
		return entry_frame_arm64(w, f);
	if (!w->kwalk.entered_from_user || w->kwalk.task_stack != w->thread->stack ||
	    guest_stack_word(&w->stack, at + ARM64_PT_PC * 8, &f->ip) ||
	    guest_stack_word(&w->stack, at + ARM64_PT_SP * 8, &f->sp) ||
	    guest_stack_word(&w->stack, at + ARM64_PT_FP * 8, &f->bp))
		return false;
	for (unsigned i = 0; i <= ARM64_PT_LR; i++)
		if (!guest_stack_word(&w->stack, at + i * 8, &word))
			unwind_set(&w->saved, i, word);
	return !(f->ip >> 63);
}

/*
 * An idle task was begun by code that is no more there (__init), or that is returned to by hand:
 * what is below the stack's top is as good as the end that tables tell.
 */
static bool at_idle_start(const struct guest_work *w)
{
	const struct guest_thread *th = w->thread;
	uint64_t top = th->stack + w->g->km.lay.thread_size;

	return !th->pid && w->nr_kernel > 1 && top - w->kwalk.f.sp < START_BYTES;
}

bool guest_cut_kernel(struct guest_work *w, struct guest_frame *f)
{
	bool torn = w->have_now && kernel_torn(w, &w->now);

	if (!torn && w->out->kernel_end == CHAIN_BAD_FRAME && at_idle_start(w))
		w->out->kernel_end = CHAIN_OUTERMOST;
	if (torn) {
		w->out->kernel_end = CHAIN_TORN;
		w->nr_kernel = 1;
	}
	return w->thread->process->as.root && w->task.mm &&
	       (guest_is_arm64(w->g) ? user_frame_arm64(w, f) : user_frame(w, f)) &&
	       (!torn || still_inside(w));
}

void guest_put_chain(struct guest_work *w)
{
	struct sample *s = w->out;
	uint32_t n = 0;

	if (w->nr_kernel) {
		s->chain[n++] = (uint64_t)PERF_CONTEXT_KERNEL;
		memcpy(s->chain + n, w->frames, w->nr_kernel * sizeof(*w->frames));
		n += w->nr_kernel;
	}
	if (w->nr_user) {
		s->chain[n++] = (uint64_t)PERF_CONTEXT_USER;
		memcpy(s->chain + n, w->frames + w->nr_kernel, w->nr_user * sizeof(*w->frames));
		n += w->nr_user;
	}
	s->chain_len = n;
}
