// SPDX-License-Identifier: GPL-2.0-only
#include "guest/orc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/x86.h"
#include "util/xalloc.h"

#define MAX_ENTRIES	   (1u << 22) /* of the kernel; Debian's has 440,000 */
#define MAX_MODULE_ENTRIES (1u << 20)
#define MAX_ALL_MODULES	   (1u << 24)

/* Linux's code segments. */
enum { KERNEL_CS = 0x10, USER32_CS = 0x23, USER_CS = 0x33 };

static void free_table(struct guest_orc_table *t)
{
	free(t->ip);
	free(t->entry);
	*t = (struct guest_orc_table){0};
}

/* @ip, @entries: where the arrays are in the guest. A table that cannot be read is empty. */
static int read_table(struct guest_orc *o, uint64_t ip, uint64_t entries, uint32_t n,
		      struct guest_orc_table *t)
{
	int rc;

	*t = (struct guest_orc_table){.base = ip, .n = n};
	t->ip = xcalloc(n, sizeof(*t->ip));
	t->entry = xcalloc(n, sizeof(*t->entry));
	rc = guest_virt_read(o->virt, o->as, ip, t->ip, n * sizeof(*t->ip));
	rc = rc ? rc : guest_virt_read(o->virt, o->as, entries, t->entry, n * sizeof(*t->entry));
	if (rc)
		free_table(t);
	return rc == -ESRCH ? rc : 0;
}

int guest_orc_init(struct guest_orc *o, struct guest_kernel *k, struct guest_virt *v)
{
	bool found[3];
	uint64_t start = guest_kernel_sym(k, "__start_orc_unwind_ip", &found[0]);
	uint64_t stop = guest_kernel_sym(k, "__stop_orc_unwind_ip", &found[1]);
	uint64_t entries = guest_kernel_sym(k, "__start_orc_unwind", &found[2]);
	bool has_end = guest_kernel_member(k, "orc_entry", "end") >= 0;
	bool has_signal = guest_kernel_member(k, "orc_entry", "signal") >= 0;

	*o = (struct guest_orc){.kernel = k, .virt = v, .as = guest_kernel_as(k)};
	guest_kernel_sym(k, "__start_orc_header", &found[0]);
	if (has_end)
		o->format = has_signal ? ORC_TYPES_63 : ORC_TYPES_OLD;
	else
		o->format = has_signal || found[0] ? ORC_TYPES_NEW : ORC_TYPES_OLD;
	if (!start || !found[1] || !found[2] || stop <= start || (stop - start) / 4 > MAX_ENTRIES)
		return 0;
	return read_table(o, start, entries, (stop - start) / 4, &o->main);
}

void guest_orc_free(struct guest_orc *o)
{
	struct guest_orc_table *t;

	free_table(&o->main);
	for (size_t i = 0; (t = hashmap_next(&o->modules, &i, NULL));) {
		free_table(t);
		free(t);
	}
	hashmap_free(&o->modules);
}

static uint64_t address(const struct guest_orc_table *t, uint32_t i)
{
	return t->base + 4ull * i + (uint64_t)(int64_t)t->ip[i];
}

/* Bit fields of the entry: sp_reg:4, bp_reg:4, type:2 or 3, then signal and end as the format says.
 */
static bool decode(const struct guest_orc *o, const uint8_t e[6], struct guest_orc_rule *rule)
{
	static const uint8_t old_types[] = {ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL, ORC_UNDEFINED};
	bool end;

	memcpy(&rule->sp_offset, e, 2);
	memcpy(&rule->bp_offset, e + 2, 2);
	rule->sp_reg = e[4] & 15;
	rule->bp_reg = e[4] >> 4;
	if (o->format == ORC_TYPES_NEW) {
		rule->type = e[5] & 7;
		rule->signal = e[5] >> 3 & 1;
		return rule->type <= ORC_REGS_PARTIAL;
	}
	rule->type = old_types[e[5] & 3];
	end = e[5] >> (o->format == ORC_TYPES_63 ? 3 : 2) & 1;
	rule->signal = o->format == ORC_TYPES_63 ? e[5] >> 2 & 1 : rule->type != ORC_CALL;
	if (rule->sp_reg == ORC_REG_UNDEFINED)
		rule->type = end ? ORC_END_OF_STACK : ORC_UNDEFINED;
	return true;
}

/* The last entry at or below @ip: of several with one address the last is the real one. */
static bool lookup(const struct guest_orc *o, const struct guest_orc_table *t, uint64_t ip,
		   struct guest_orc_rule *rule, uint64_t *next)
{
	uint32_t lo = 0, hi = t->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (address(t, mid) <= ip)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (next)
		*next = lo < t->n ? address(t, lo) : UINT64_MAX;
	return lo && decode(o, t->entry[lo - 1], rule);
}

static const struct guest_orc_table *module_table(struct guest_orc *o, uint64_t ip)
{
	const struct guest_module *mod = o->kernel ? guest_kernel_module(o->kernel, ip) : NULL;
	struct guest_orc_table *t;

	if (!mod || !mod->orc || !mod->orc_ip || !mod->num_orcs ||
	    mod->num_orcs > MAX_MODULE_ENTRIES)
		return NULL;
	t = hashmap_get(&o->modules, mod->id + 1ull);
	if (t)
		return t;
	if (o->module_entries + mod->num_orcs > MAX_ALL_MODULES)
		return NULL;
	t = xcalloc(1, sizeof(*t));
	read_table(o, mod->orc_ip, mod->orc, mod->num_orcs, t);
	o->module_entries += mod->num_orcs;
	hashmap_set(&o->modules, mod->id + 1ull, t);
	return t;
}

/* The rule for code without one that has frame pointers: BPF programs. As the kernel does it. */
static const struct guest_orc_rule frame_pointer_rule = {.sp_reg = ORC_REG_BP,
							 .sp_offset = 16,
							 .bp_reg = ORC_REG_PREV_SP,
							 .bp_offset = -16,
							 .type = ORC_CALL};

/* Before a function has made its frame, and halfway. */
static const struct guest_orc_rule entered_rule = {
	.sp_reg = ORC_REG_SP, .sp_offset = 8, .bp_reg = ORC_REG_UNDEFINED, .type = ORC_CALL};
static const struct guest_orc_rule pushed_rule = {.sp_reg = ORC_REG_SP,
						  .sp_offset = 16,
						  .bp_reg = ORC_REG_PREV_SP,
						  .bp_offset = -16,
						  .type = ORC_CALL};

static bool made_code_rule(struct guest_orc *o, uint64_t ip, struct guest_orc_rule *rule,
			   uint64_t *next)
{
	const struct guest_made_code *c = o->kernel ? guest_kernel_made_code(o->kernel, ip) : NULL;
	uint64_t until;

	if (!c)
		return false;
	until = c->end;
	*rule = frame_pointer_rule;
	if (ip <= c->push && c->push != c->start) {
		*rule = entered_rule;
		until = c->push + 1; /* push %rbp is one byte, mov three */
	} else if (ip <= c->push + 1 && c->push != c->start) {
		*rule = pushed_rule;
		until = c->push + 4;
	}
	if (next)
		*next = until;
	return true;
}

bool guest_orc_find(struct guest_orc *o, uint64_t ip, struct guest_orc_rule *rule, uint64_t *next)
{
	const struct guest_orc_table *t = &o->main;

	if (!t->n || ip < address(t, 0) || ip > address(t, t->n - 1))
		t = module_table(o, ip);
	return t ? lookup(o, t, ip, rule, next) : made_code_rule(o, ip, rule, next);
}

/* The caller's stack pointer (DWARF's canonical frame address). */
static enum guest_orc_step find_cfa(const struct guest_orc_rule *r, const struct guest_frame *f,
				    struct guest_stack *s, uint64_t *cfa)
{
	uint64_t off = (uint64_t)(int64_t)r->sp_offset;

	switch (r->sp_reg) {
	case ORC_REG_SP:
		*cfa = f->sp + off;
		return ORC_STEP_OK;
	case ORC_REG_BP:
		*cfa = f->bp + off;
		return ORC_STEP_OK;
	case ORC_REG_SP_INDIRECT:
		if (guest_stack_word(s, f->sp, cfa))
			return ORC_STEP_UNREADABLE;
		*cfa += off;
		return ORC_STEP_OK;
	case ORC_REG_BP_INDIRECT:
		return guest_stack_word(s, f->bp + off, cfa) ? ORC_STEP_UNREADABLE : ORC_STEP_OK;
	}
	if (!f->has_regs)
		return ORC_STEP_NO_RULE;
	switch (r->sp_reg) {
	case ORC_REG_R10:
		*cfa = f->r10;
		return ORC_STEP_OK;
	case ORC_REG_R13:
		*cfa = f->r13;
		return ORC_STEP_OK;
	case ORC_REG_DI:
		*cfa = f->di;
		return ORC_STEP_OK;
	case ORC_REG_DX:
		*cfa = f->dx;
		return ORC_STEP_OK;
	}
	return ORC_STEP_NO_RULE;
}

/* Words of a struct pt_regs at @at; 0 or -EFAULT. */
static int read_regs(struct guest_stack *s, uint64_t at, bool partial, struct guest_frame *f,
		     uint64_t *cs)
{
	uint64_t iret = partial ? at : at + PT_IP * 8ull;
	int rc = guest_stack_word(s, iret, &f->ip);

	f->slot = iret;
	rc = rc ? rc : guest_stack_word(s, iret + 8, cs);
	rc = rc ? rc : guest_stack_word(s, iret + 24, &f->sp);
	f->has_regs = false;
	if (rc || partial)
		return rc;
	rc = guest_stack_word(s, at + PT_BP * 8ull, &f->bp);
	rc = rc ? rc : guest_stack_word(s, at + PT_R10 * 8ull, &f->r10);
	rc = rc ? rc : guest_stack_word(s, at + PT_R13 * 8ull, &f->r13);
	rc = rc ? rc : guest_stack_word(s, at + PT_DI * 8ull, &f->di);
	rc = rc ? rc : guest_stack_word(s, at + PT_DX * 8ull, &f->dx);
	f->has_regs = !rc;
	return rc;
}

static enum guest_orc_step find_bp(const struct guest_orc_rule *r, uint64_t cfa, uint64_t old_bp,
				   struct guest_stack *s, struct guest_frame *f)
{
	uint64_t at = (uint64_t)(int64_t)r->bp_offset;

	switch (r->bp_reg) {
	case ORC_REG_UNDEFINED:
		return ORC_STEP_OK;
	case ORC_REG_PREV_SP:
		at += cfa;
		break;
	case ORC_REG_BP:
		at += old_bp;
		break;
	default:
		return ORC_STEP_NO_RULE;
	}
	return guest_stack_word(s, at, &f->bp) ? ORC_STEP_UNREADABLE : ORC_STEP_OK;
}

enum guest_orc_step guest_orc_apply(const struct guest_orc_rule *rule, struct guest_frame *f,
				    struct guest_stack *s)
{
	uint64_t cfa, cs = KERNEL_CS, old_bp = f->bp;
	enum guest_orc_step rc;

	if (rule->type == ORC_UNDEFINED)
		return ORC_STEP_NO_RULE;
	if (rule->type == ORC_END_OF_STACK)
		return ORC_STEP_END;
	rc = find_cfa(rule, f, s, &cfa);
	if (rc)
		return rc;
	if (rule->type == ORC_CALL) {
		if (guest_stack_word(s, cfa - 8, &f->ip))
			return ORC_STEP_UNREADABLE;
		f->slot = cfa - 8;
		f->sp = cfa;
		f->has_regs = false;
	} else if (read_regs(s, cfa, rule->type == ORC_REGS_PARTIAL, f, &cs)) {
		return ORC_STEP_UNREADABLE;
	}
	if (cs != KERNEL_CS && cs != USER_CS && cs != USER32_CS)
		return ORC_STEP_BAD;
	f->exact = rule->signal;
	rc = find_bp(rule, cfa, old_bp, s, f);
	if (rc)
		return rc;
	return cs == KERNEL_CS ? ORC_STEP_OK : ORC_STEP_USER;
}

enum guest_orc_step guest_orc_step(struct guest_orc *o, struct guest_frame *f,
				   struct guest_stack *s)
{
	struct guest_orc_rule rule;

	if (!guest_orc_find(o, f->exact ? f->ip : f->ip - 1, &rule, NULL)) {
		if (!f->slot)
			return ORC_STEP_NO_RULE; /* nothing says that bp is a frame pointer */
		rule = frame_pointer_rule;
	}
	return guest_orc_apply(&rule, f, s);
}
