// SPDX-License-Identifier: GPL-2.0-only
/*
 * User call chains, by call frame information where the program has it, else by frame pointer. A
 * step is made by the first of some rules that knows the place; each result is checked, as what is
 * taken for a frame pointer may be anything: the return address must lie in an executable mapping
 * behind a call instruction, and the stack must grow towards its start.
 */
#include <errno.h>
#include <string.h>

#include "guest/cfi.h"
#include "guest/chain.h"

enum {
	CODE = 16,		/* bytes that are looked at at an address */
	MAX_BLOCK = 128,	/* bytes of straight code up to a call */
	MAX_RULES = 32,		/* rows of call frame information in such a block */
	MAX_FRAME = 1 << 20,	/* bytes of one stack frame */
	START_FRAMES = 1024,	/* libc's own frames at the start of the first thread's stack */
	START_TLS = 2048,	/* the same for other threads, thread-local data included */
	SIGFRAME_MCONTEXT = 40, /* struct ucontext up to uc_mcontext, whose words follow */
	SIGFRAME_RBP = 10,
	SIGFRAME_RSP = 15,
	SIGFRAME_RIP = 16,
};

enum step { NEXT_RULE, STEPPED, FAILED, OUTERMOST };

static int code_at(struct guest_user_walk *w, uint64_t va, uint8_t *buf, unsigned len)
{
	return guest_code_read(w->code, w->proc->as, w->proc->generation, va, buf, len);
}

static struct guest_map *executable(struct guest_user_walk *w, uint64_t addr)
{
	return guest_process_map(w->proc, addr);
}

/* Code that cannot be read (paged out) is given the benefit of the doubt. */
static bool is_return(struct guest_user_walk *w, uint64_t ra, uint64_t *target)
{
	return guest_code_call_before(w->code, w->proc->as, w->proc->generation, ra, target) !=
	       -ENOENT;
}

/* Where the kernel sends a signal handler back to: mov $15, %rax; syscall. */
static bool is_sigreturn(struct guest_user_walk *w, uint64_t ra)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t b[sizeof(code)];

	return !code_at(w, ra, b, sizeof(b)) && !memcmp(b, code, sizeof(b));
}

/* Nothing else is known than the frame pointer. */
static void forget_regs(struct guest_user_walk *w)
{
	w->regs.known = 0;
	unwind_set(&w->regs, unwind_abis[UNWIND_X86_64].fp, w->f.bp);
}

/*
 * Takes the return address at @slot, with the caller's frame pointer. false: it is none, the frame
 * is as it was.
 */
static bool take(struct guest_user_walk *w, uint64_t slot, uint64_t bp)
{
	uint64_t ra, target;

	if (guest_stack_word(w->stack, slot, &ra) || !executable(w, ra - 1) ||
	    (!is_return(w, ra, &target) && !is_sigreturn(w, ra)))
		return false;
	w->f.ip = ra;
	w->f.sp = slot + 8;
	w->f.bp = bp;
	w->f.slot = slot;
	w->f.exact = false;
	forget_regs(w);
	return true;
}

/* ---------- rules: call frame information ---------- */

static int read_stack(void *ctx, uint64_t addr, uint64_t *word)
{
	struct guest_user_walk *w = ctx;

	return guest_stack_word(w->stack, addr, word);
}

static struct unwind_regs regs_at(const struct guest_user_walk *w, uint64_t ip, uint64_t sp)
{
	struct unwind_regs r = w->regs;

	r.ip = ip;
	unwind_set(&r, unwind_abis[UNWIND_X86_64].sp, sp);
	return r;
}

static void set_frame(struct guest_user_walk *w, const struct unwind_regs *r, uint64_t slot,
		      bool exact)
{
	const struct unwind_abi *abi = &unwind_abis[UNWIND_X86_64];

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

/*
 * The caller's frame by a row, as if the function at hand were at @r. *target: where the call that
 * led here goes to, 0 if that is not in the code. NEXT_RULE: there is no such caller.
 */
static enum step step_row(struct guest_user_walk *w, const struct cfi_place *p,
			  struct unwind_regs *r, uint64_t *slot, uint64_t *target)
{
	enum unwind_result result = unwind_step(UNWIND_X86_64, &p->row, r, slot, read_stack, w);

	*target = 0;
	if (result == UNWIND_OUTERMOST)
		return OUTERMOST;
	if (result != UNWIND_STEPPED)
		return NEXT_RULE;
	if (p->row.signal)
		return executable(w, r->ip) ? STEPPED : NEXT_RULE;
	return executable(w, r->ip - 1) && (is_return(w, r->ip, target) || is_sigreturn(w, r->ip))
		       ? STEPPED
		       : NEXT_RULE;
}

/* A call pushes the address behind it, which may be another function's: the call is what counts. */
static int find_row(struct guest_user_walk *w, uint64_t ip, bool exact, struct cfi_place *p)
{
	return guest_cfi_find(w->km, w->proc, exact ? ip : ip - 1, w->time, p);
}

static enum step step_cfi(struct guest_user_walk *w)
{
	struct unwind_regs r = regs_at(w, w->f.ip, w->f.sp);
	uint64_t slot, target;
	struct cfi_place p;
	enum step done;

	if ((w->f.has_regs && !w->f.slot) || find_row(w, w->f.ip, w->f.exact, &p))
		return NEXT_RULE;
	done = step_row(w, &p, &r, &slot, &target);
	if (done == STEPPED)
		set_frame(w, &r, slot, p.row.signal);
	return done;
}

/* At the block's end the leaf has called a function: a return address behind ip has been pushed. */
static bool has_called(struct guest_user_walk *w)
{
	uint64_t ra, target, slot;
	struct unwind_regs r;
	struct cfi_place p;

	if (guest_stack_word(w->stack, w->f.sp, &ra) || ra - w->f.ip - 1 >= MAX_BLOCK ||
	    !is_return(w, ra, &target) || find_row(w, ra, false, &p))
		return false;
	r = regs_at(w, ra, w->f.sp + 8);
	if (step_row(w, &p, &r, &slot, &target) != STEPPED)
		return false;
	set_frame(w, &r, slot, false);
	return true;
}

/* Or it has returned: then its return address is below the stack pointer. */
static bool has_returned(struct guest_user_walk *w, uint64_t function)
{
	uint64_t ra, target;

	if (guest_stack_word(w->stack, w->f.sp - 8, &ra) || !executable(w, ra - 1) ||
	    !is_return(w, ra, &target) || target != function)
		return false;
	return take(w, w->f.sp - 8, w->f.bp);
}

/*
 * A vCPU's ip may lag behind its other registers: QEMU's translator keeps ip at the start of a
 * block while the stack pointer moves on. So of the rows from there on, as far as a block may go,
 * the one counts that leads to a call of this very function; failing that, the first that leads to
 * any call.
 */
static enum step step_cfi_leaf(struct guest_user_walk *w)
{
	uint64_t at = w->f.ip, slot, best_slot = 0, target, function = 0;
	struct unwind_regs r, best = {0};
	struct cfi_place p;

	if (!w->f.has_regs || w->f.slot)
		return NEXT_RULE;
	for (int i = 0; i < MAX_RULES && at - w->f.ip < MAX_BLOCK; i++, at = p.end) {
		if (find_row(w, at, true, &p) || (function && p.function != function))
			break;
		function = p.function;
		r = regs_at(w, w->f.ip, w->f.sp);
		if (step_row(w, &p, &r, &slot, &target) != STEPPED)
			continue;
		if (target == function) {
			set_frame(w, &r, slot, p.row.signal);
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
	set_frame(w, &best, best_slot, false);
	return STEPPED;
}

/* The ABI wants a frame pointer of 0 at the start of a stack. */
static enum step step_end(struct guest_user_walk *w)
{
	return w->f.slot && !w->f.exact && !w->f.bp ? OUTERMOST : NEXT_RULE;
}

/* ---------- rules: frame pointer ---------- */

/* In a signal's return code, what was interrupted is in the ucontext on the stack. */
static enum step step_signal(struct guest_user_walk *w)
{
	uint64_t context = w->f.sp + SIGFRAME_MCONTEXT, ip, sp, bp;

	if (!w->f.slot || !is_sigreturn(w, w->f.ip))
		return NEXT_RULE;
	if (guest_stack_word(w->stack, context + SIGFRAME_RIP * 8, &ip) ||
	    guest_stack_word(w->stack, context + SIGFRAME_RSP * 8, &sp) ||
	    guest_stack_word(w->stack, context + SIGFRAME_RBP * 8, &bp) || !executable(w, ip))
		return FAILED;
	w->f = (struct guest_frame){
		.ip = ip, .sp = sp, .bp = bp, .exact = true, .slot = context + SIGFRAME_RIP * 8};
	forget_regs(w);
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

static enum step step_edge(struct guest_user_walk *w)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t buf[CODE], *code = buf;
	uint64_t word, bp = w->f.bp, target;

	if (!w->f.exact || code_at(w, w->f.ip, buf, sizeof(buf)))
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
	if (!guest_stack_word(w->stack, w->f.sp, &word) && executable(w, word - 1) &&
	    is_return(w, word, &target) && target == w->f.ip)
		return take(w, w->f.sp, w->f.bp) ? STEPPED : NEXT_RULE;
	return NEXT_RULE;
}

/*
 * The same for a vCPU whose ip lags behind its other registers: QEMU's translator keeps ip at the
 * start of a block while the stack pointer moves on. Then the stack itself tells that the frame
 * pointer has just been pushed and not yet changed, that it has just been popped, or that the
 * function whose only block this is has returned.
 */
static enum step step_lagging(struct guest_user_walk *w)
{
	uint64_t ip = w->f.ip, sp = w->f.sp, bp = w->f.bp, top = 0, below = 0, target;

	if (!w->f.exact || guest_stack_word(w->stack, sp, &top))
		return NEXT_RULE;
	if (top == bp && take(w, sp + 8, bp))
		return STEPPED;
	if (top - ip - 1 < MAX_BLOCK) /* the block's call has pushed it, bp is the leaf's */
		return NEXT_RULE;
	if (guest_stack_word(w->stack, sp - 8, &below))
		return NEXT_RULE;
	if (below == bp && take(w, sp, bp))
		return STEPPED;
	if (executable(w, below - 1) && is_return(w, below, &target) && target == ip &&
	    take(w, sp - 8, bp))
		return STEPPED;
	return NEXT_RULE;
}

static enum step step_frame_pointer(struct guest_user_walk *w)
{
	uint64_t fp = w->f.bp, bp;

	if (fp < w->f.sp || fp - w->f.sp > MAX_FRAME || guest_stack_word(w->stack, fp, &bp))
		return FAILED;
	return take(w, fp + 8, bp) ? STEPPED : FAILED;
}

/* In the order in which they are asked. */
static enum step (*const rules[])(struct guest_user_walk *w) = {
	step_cfi, step_cfi_leaf, step_end, step_signal, step_edge, step_lagging, step_frame_pointer,
};

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
	       w->fsbase - sp < START_TLS;
}

static enum chain_end why_failed(struct guest_user_walk *w)
{
	uint64_t word;

	if (at_start(w))
		return CHAIN_OUTERMOST;
	if (w->f.bp >= w->f.sp && w->f.bp - w->f.sp <= MAX_FRAME && !(w->f.bp & 7) &&
	    guest_stack_word(w->stack, w->f.bp + 8, &word))
		return CHAIN_UNREADABLE;
	return CHAIN_BAD_FRAME;
}

static void hit(struct guest_user_walk *w, uint64_t addr)
{
	struct guest_map *m = executable(w, addr);

	if (m)
		guest_dsos_hit(w->dsos, m->dso);
}

enum chain_end guest_chain_user(struct guest_user_walk *w, uint64_t *out, unsigned max, unsigned *n)
{
	*n = 0;
	w->slots.n = 0;
	w->f.exact = true;
	w->f.slot = 0;
	unwind_set(&w->regs, unwind_abis[UNWIND_X86_64].fp, w->f.bp);
	if (!max)
		return CHAIN_DEPTH;
	out[(*n)++] = w->f.ip;
	hit(w, w->f.ip);
	for (;;) {
		enum step done = NEXT_RULE;
		uint64_t sp = w->f.sp;

		for (size_t i = 0; done == NEXT_RULE && i < sizeof(rules) / sizeof(*rules); i++)
			done = rules[i](w);
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
