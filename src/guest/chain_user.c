// SPDX-License-Identifier: GPL-2.0-only
/*
 * User call chains, by call frame information where the program has it, else by frame pointer. A
 * step is made by the first of some rules that knows the place; each result is checked, as what is
 * taken for a frame pointer may be anything: the return address must lie in an executable mapping
 * behind a call instruction, and the stack must grow towards its start.
 */
#include <errno.h>

#include "guest/chain_user.h"

enum {
	START_FRAMES = 1024, /* libc's own frames at the start of the first thread's stack */
};

int user_code(struct guest_user_walk *w, uint64_t va, uint8_t *buf, unsigned len)
{
	return guest_code_read(w->code, w->proc->as, w->proc->generation, va, buf, len);
}

struct guest_map *user_executable(struct guest_user_walk *w, uint64_t addr)
{
	return guest_process_map(w->proc, addr);
}

bool user_is_return(struct guest_user_walk *w, uint64_t ra, uint64_t *target)
{
	return guest_code_call_before(w->code, w->proc->as, w->proc->generation, ra, target) !=
	       -ENOENT;
}

bool user_may_return(struct guest_user_walk *w, uint64_t ra)
{
	uint64_t target;

	return user_executable(w, ra - 1) &&
	       (user_is_return(w, ra, &target) || w->abi->is_sigreturn(w, ra));
}

void user_forget_regs(struct guest_user_walk *w)
{
	w->regs.known = 0;
	unwind_set(&w->regs, unwind_abis[w->abi->arch].fp, w->f.bp);
}

/* ---------- rules: call frame information ---------- */

static int read_stack(void *ctx, uint64_t addr, uint64_t *word)
{
	struct guest_user_walk *w = ctx;

	return guest_stack_word(w->stack, addr, word);
}

struct unwind_regs user_regs_at(const struct guest_user_walk *w, uint64_t ip, uint64_t sp)
{
	struct unwind_regs r = w->regs;

	r.ip = ip;
	if (!w->f.sp_is_low)
		unwind_set(&r, unwind_abis[w->abi->arch].sp, sp);
	return r;
}

void user_set_frame(struct guest_user_walk *w, const struct unwind_regs *r, uint64_t slot,
		    bool exact)
{
	const struct unwind_abi *abi = &unwind_abis[w->abi->arch];

	w->regs = *r;
	w->f = (struct guest_frame){
		.ip = r->ip,
		.sp = r->r[abi->sp],
		/* not known: no address, and not 0, which would be the start of the stack */
		.bp = r->known >> abi->fp & 1 ? r->r[abi->fp] : UINT64_MAX,
		.slot = slot,
		.exact = exact,
	};
}

enum user_step user_step_row(struct guest_user_walk *w, const struct cfi_place *p,
			     struct unwind_regs *r, uint64_t *slot, uint64_t *target)
{
	enum unwind_result result = unwind_step(w->abi->arch, &p->row, r, slot, read_stack, w);

	*target = 0;
	if (result == UNWIND_OUTERMOST)
		return OUTERMOST;
	if (result != UNWIND_STEPPED)
		return NEXT_RULE;
	if (p->row.signal)
		return user_executable(w, r->ip) ? STEPPED : NEXT_RULE;
	return user_executable(w, r->ip - 1) &&
			       (user_is_return(w, r->ip, target) || w->abi->is_sigreturn(w, r->ip))
		       ? STEPPED
		       : NEXT_RULE;
}

int user_find_row(struct guest_user_walk *w, uint64_t ip, bool exact, struct cfi_place *p)
{
	return guest_cfi_find(w->km, w->proc, exact ? ip : ip - 1, w->time, p);
}

static enum user_step step_cfi(struct guest_user_walk *w)
{
	struct unwind_regs r = user_regs_at(w, w->f.ip, w->f.sp);
	uint64_t slot, target;
	struct cfi_place p;
	enum user_step done;

	if ((w->f.has_regs && !w->f.slot) || user_find_row(w, w->f.ip, w->f.exact, &p))
		return NEXT_RULE;
	done = user_step_row(w, &p, &r, &slot, &target);
	if (done == STEPPED)
		user_set_frame(w, &r, slot, p.row.signal);
	return done;
}

enum user_step user_step_end(struct guest_user_walk *w)
{
	return w->f.slot && !w->f.exact && !w->f.bp ? OUTERMOST : NEXT_RULE;
}

/* ---------- the walk ---------- */

/*
 * Where call frame information cannot be read: libc's functions below main() and below a thread's
 * first function have no frame pointers in most builds, so the chain breaks off there, but it is
 * whole as far as it can be if that is where the stack begins.
 */
static bool at_start(const struct guest_user_walk *w)
{
	uint64_t sp = w->f.sp;

	if (!w->f.slot)
		return false;
	return w->f.bp == 0 || w->proc->start_stack - sp < START_FRAMES ||
	       w->fsbase - sp < w->abi->tls;
}

static enum chain_end why_failed(struct guest_user_walk *w)
{
	uint64_t word;

	if (at_start(w))
		return CHAIN_OUTERMOST;
	if (w->f.bp >= w->f.sp && w->f.bp - w->f.sp <= USER_MAX_FRAME && !(w->f.bp & 7) &&
	    guest_stack_word(w->stack, w->f.bp + 8, &word))
		return CHAIN_UNREADABLE;
	return CHAIN_BAD_FRAME;
}

static void hit(struct guest_user_walk *w, uint64_t addr)
{
	struct guest_map *m = user_executable(w, addr);

	if (m)
		guest_dsos_hit(w->dsos, m->dso);
}

enum chain_end guest_chain_user(struct guest_user_walk *w, uint64_t *out, unsigned max, unsigned *n)
{
	bool arm64 = guest_virt_arch(w->km->virt) == GUEST_ARCH_AARCH64;

	w->abi = arm64 ? &user_arm64 : &user_x86;
	*n = 0;
	w->slots.n = 0;
	w->f.exact = true;
	w->f.slot = 0;
	unwind_set(&w->regs, unwind_abis[w->abi->arch].fp, w->f.bp);
	if (arm64)
		w->regs.code_bits = (1ull << guest_virt_paging(w->km->virt)->half[0].va_bits) - 1;
	if (!max)
		return CHAIN_DEPTH;
	out[(*n)++] = w->f.ip;
	hit(w, w->f.ip);
	for (;;) {
		uint64_t sp = w->f.sp;
		enum user_step done = step_cfi(w);

		for (const user_rule *rule = w->abi->rules; done == NEXT_RULE && *rule; rule++)
			done = (*rule)(w);
		if (done == OUTERMOST)
			return CHAIN_OUTERMOST;
		if (done != STEPPED)
			return why_failed(w);
		if (w->f.sp < sp + (*n > 1) && !w->f.exact)
			return CHAIN_BAD_FRAME;
		if (*n == max)
			return CHAIN_DEPTH;
		if (w->slots.n < 2)
			w->slots.at[w->slots.n++] = w->f.slot;
		out[(*n)++] = w->f.ip;
		hit(w, w->f.exact ? w->f.ip : w->f.ip - 1);
	}
}
