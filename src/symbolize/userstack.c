// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/userstack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "symbolize/session.h"
#include "util/xalloc.h"

#define X86_64_SEGMENTS 0xf000u /* DS, ES, FS, GS: on x86-64 the kernel refuses them */
#define NO_REGISTER	0xff

/*
 * perf's numbers (arch/.../include/uapi/asm/perf_regs.h) of the registers, by those of DWARF. Which
 * architecture it is, its mask tells: pipes have no header, and others have the low 16 all set.
 */
static const struct regs_layout {
	uint64_t must, must_not;
	uint8_t ip;
	uint8_t reg[UNWIND_REGS];
} layouts[] = {
	[UNWIND_X86_64] =
		{
			.must = 1u << 7 | 1u << 8,
			.must_not = X86_64_SEGMENTS | UINT64_MAX << 24,
			.ip = 8,
			.reg = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23,
				[16 ... 31] = NO_REGISTER},
		},
	[UNWIND_AARCH64] =
		{
			.must = 1ull << 31 | 1ull << 32,
			.must_not = 0,
			.ip = 32,
			.reg = {0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
				16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
		},
};
enum { NR_LAYOUTS = sizeof(layouts) / sizeof(*layouts) };

struct walk {
	struct session *s;
	struct thread *t;
	enum unwind_arch arch;
	const uint8_t *stack;
	uint64_t start, size; /* of the copy */
	struct unwind_regs regs;
	bool exact; /* regs.ip is the instruction that runs, not behind a call */
	bool above; /* a word above the copy was asked for */
};

static bool find_arch(const struct perfdata_record *rec, enum unwind_arch *arch)
{
	uint64_t mask = rec->parts->regs_user.mask;

	if (rec->parts->regs_user.abi != PERF_SAMPLE_REGS_ABI_64)
		return false;
	for (unsigned i = 0; i < NR_LAYOUTS; i++) {
		const struct regs_layout *l = &layouts[i];

		if ((mask & l->must) == l->must && !(mask & l->must_not)) {
			*arch = (enum unwind_arch)i;
			return true;
		}
	}
	return false;
}

static uint64_t word_of(const struct perfdata_record *rec, unsigned bit)
{
	uint64_t below = rec->parts->regs_user.mask & ((1ull << bit) - 1);

	return rec->parts->regs_user.words[__builtin_popcountll(below)];
}

static void take_regs(struct walk *w, const struct perfdata_record *rec)
{
	const struct regs_layout *l = &layouts[w->arch];
	uint64_t mask = rec->parts->regs_user.mask;

	w->regs.known = 0;
	w->regs.code_bits = 0;
	w->regs.ip = word_of(rec, l->ip);
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		if (l->reg[i] != NO_REGISTER && mask >> l->reg[i] & 1)
			unwind_set(&w->regs, i, word_of(rec, l->reg[i]));
	w->start = w->regs.r[unwind_abis[w->arch].sp];
}

static int read_stack(void *ctx, uint64_t addr, uint64_t *word)
{
	struct walk *w = ctx;
	uint64_t in = addr - w->start;

	if (addr < w->start || in > w->size || sizeof(*word) > w->size - in) {
		w->above = addr >= w->start;
		return -EFAULT;
	}
	memcpy(word, w->stack + in, sizeof(*word));
	return 0;
}

/* The row for the code that the frame is in: for a caller, of its call and not what comes next. */
static int find_row(struct walk *w, const struct map *map, struct cfi_place *place)
{
	uint64_t offset;

	if (!map)
		return -ENOENT;
	offset = w->regs.ip - !w->exact - map->start + map->pgoff;
	return dso_find_row((struct dso_priv *)map->dso, w->arch, offset, place);
}

static enum userstack_end why(const struct walk *w, enum unwind_result r)
{
	switch (r) {
	case UNWIND_OUTERMOST:
		return USERSTACK_OUTERMOST;
	case UNWIND_UNREADABLE:
		return w->above ? USERSTACK_CUT : USERSTACK_BAD_FRAME;
	case UNWIND_BAD:
		return USERSTACK_BAD_FRAME;
	default:
		return USERSTACK_NO_RULE;
	}
}

/* Code that nothing is known of: where no frame pointer is, any register may be in its place. */
static enum userstack_end why_fp(const struct walk *w, enum unwind_result r)
{
	return r == UNWIND_OUTERMOST ? USERSTACK_OUTERMOST : USERSTACK_NO_RULE;
}

/*
 * The functions at which Go's runtime ends a stack ("TOPFRAME"): what lies behind their frame is no
 * return address, nor is the frame pointer of a thread's first function anything. As in its own
 * table of functions, or in a symbol table.
 */
static bool begins_stack(const char *name)
{
	static const char *const functions[] = {"runtime.goexit", "runtime.mstart",
						"runtime.rt0_go"};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		size_t len = strlen(functions[i]);

		if (!strncmp(name, functions[i], len) &&
		    (!name[len] || !strcmp(name + len, ".abi0")))
			return true;
	}
	return false;
}

static enum userstack_end unless_begun(const struct walk *w, const struct map *map,
				       enum userstack_end end)
{
	const struct symbol *sym = NULL;

	if (map && (end == USERSTACK_NO_RULE || end == USERSTACK_BAD_FRAME))
		sym = dso_find_symbol((struct dso_priv *)map->dso,
				      w->regs.ip - !w->exact - map->start + map->pgoff);
	return sym && begins_stack(sym->name) ? USERSTACK_OUTERMOST : end;
}

/* Old records do not tell how it is mapped. */
static bool is_code(const struct map *map)
{
	return map && (!map->prot || map->prot & PROT_EXEC);
}

static void put(struct session *s, size_t i, uint64_t ip)
{
	s->user_stack = xgrow(s->user_stack, &s->user_stack_cap, i + 1, sizeof(*s->user_stack));
	s->user_stack[i] = ip;
}

static enum userstack_end walk(struct walk *w, size_t max, size_t *n)
{
	for (*n = 0;;) {
		const struct map *map =
			session_find_map(w->s, w->t, PERF_RECORD_MISC_USER, w->regs.ip - !w->exact);
		struct cfi_place p;
		enum unwind_result r;
		uint64_t slot;
		bool known;
		int rc;

		if (*n && !is_code(map))
			return w->regs.ip ? USERSTACK_BAD_FRAME : USERSTACK_OUTERMOST;
		rc = find_row(w, map, &p);
		known = !rc;
		if (*n == max)
			return USERSTACK_DEPTH;
		/* Nobody called the code that a signal handler returns to. */
		put(w->s, (*n)++, w->regs.ip - !(w->exact || (known && p.row.signal)));
		if (rc == -ENXIO)
			return USERSTACK_NO_FILE;
		r = known ? unwind_step(w->arch, &p.row, &w->regs, &slot, read_stack, w)
			  : unwind_step_fp(w->arch, &w->regs, &slot, read_stack, w);
		if (r != UNWIND_STEPPED)
			return unless_begun(w, map, known ? why(w, r) : why_fp(w, r));
		w->exact = known && p.row.signal;
	}
}

/*
 * Is a copy of what @t had in user space? A host's recorder copies of a guest's sample the stack of
 * the process that is the VM; what was merged has no such copies, but those of recorders in VMs.
 */
static bool is_of(const struct session *s, const struct thread *t)
{
	return t->machine->pid == -1 || s->nr_marks;
}

const uint64_t *session_user_stack(struct session *s, struct thread *t,
				   const struct perfdata_record *rec, size_t max, size_t *n)
{
	const struct perfdata_parts *parts = rec->parts;
	struct walk w = {.s = s, .t = t, .exact = true};

	*n = 0;
	if (!parts || !parts->regs_user.words || !parts->stack_size || !is_of(s, t))
		return NULL;
	if (!find_arch(rec, &w.arch)) {
		s->user_stack_ends[USERSTACK_NO_REGS]++;
		return NULL;
	}
	w.stack = parts->stack;
	w.size = parts->stack_size;
	take_regs(&w, rec);
	s->user_stack_ends[walk(&w, max, n)]++;
	return s->user_stack;
}

const uint64_t *session_user_stack_ends(const struct session *s)
{
	return s->user_stack_ends;
}
