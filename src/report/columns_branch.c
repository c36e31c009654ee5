// SPDX-License-Identifier: GPL-2.0-only
/* Columns of branches. Their order is perf's, which for some of them is none. */
#include <inttypes.h>
#include <string.h>

#include "report/columns.h"

void column_text(struct buf *b, const char *s, unsigned width)
{
	if (width)
		buf_printf(b, "%-*.*s", (int)width, (int)width, s);
	else
		buf_add(b, s, strlen(s));
}

void column_symbol(const struct hist *h, uint32_t frame, char level, uint64_t addr, unsigned width,
		   struct buf *b)
{
	const char *name = profile_frame_name(h->profile, frame);
	size_t len;

	if (!name) {
		buf_printf(b, "[%c] %#.*" PRIx64, level, ADDRESS_WIDTH, addr);
		return;
	}
	buf_printf(b, "[%c] ", level);
	len = strlen(name);
	buf_add(b, name, width && len > width - 4 ? width - 4 : len);
	if (frame_is_inlined(&h->profile->frames[frame]))
		buf_printf(b, " (inlined)");
}

unsigned column_symbol_width(const struct hist *h, uint32_t frame)
{
	const char *name = profile_frame_name(h->profile, frame);

	/* "[k] " before it, "0x" before an address */
	return name ? (unsigned)strlen(name) + 4 : ADDRESS_WIDTH + 6;
}

static struct branch branch_of(const struct hist *h, const struct hist_entry *e)
{
	return profile_branch_nth(h->profile, e->branch);
}

static const char *dso_name(const struct hist *h, uint32_t frame)
{
	return profile_dso_name(h->profile, h->profile->frames[frame].dso, h->cfg.long_names);
}

/* From Z to A. */
static int dso_sort(const struct hist *h, uint32_t x, uint32_t y)
{
	const struct dso *a = h->profile->frames[x].dso, *b = h->profile->frames[y].dso;

	if (!a || !b)
		return !b - !a;
	return h->cfg.long_names ? strcmp(b->long_name, a->long_name)
				 : strcmp(b->short_name, a->short_name);
}

static unsigned dso_width(const struct hist *h, uint32_t frame)
{
	/* where there is no symbol perf does not look */
	return h->profile->frames[frame].sym ? (unsigned)strlen(dso_name(h, frame)) : ADDRESS_WIDTH;
}

static int symbol_sort(const struct hist *h, uint32_t x, uint32_t y)
{
	const struct frame *a = &h->profile->frames[x], *b = &h->profile->frames[y];
	int cmp;

	if (!a->sym && !b->sym)
		return column_by_address(a->ip, b->ip);
	if (!a->sym || !b->sym)
		return !a->sym - !b->sym;
	cmp = column_by_address(a->sym->start, b->sym->start);
	return cmp ? cmp : column_by_address(a->sym->end, b->sym->end);
}

static void symbol_print(const struct hist *h, uint32_t frame, unsigned width, struct buf *b)
{
	const struct frame *f = &h->profile->frames[frame];

	column_symbol(h, frame, f->level, f->addr, width, b);
}

#define END_COLUMNS(end)                                                                           \
	int column_dso_##end##_sort(const struct hist *h, const struct hist_entry *x,              \
				    const struct hist_entry *y)                                    \
	{                                                                                          \
		return dso_sort(h, branch_of(h, x).end, branch_of(h, y).end);                      \
	}                                                                                          \
	unsigned column_dso_##end##_width(const struct hist *h, const struct hist_entry *e)        \
	{                                                                                          \
		return dso_width(h, branch_of(h, e).end);                                          \
	}                                                                                          \
	void column_dso_##end##_print(const struct hist *h, const struct hist_entry *e,            \
				      unsigned width, struct buf *b)                               \
	{                                                                                          \
		column_text(b, dso_name(h, branch_of(h, e).end), width);                           \
	}                                                                                          \
	int column_symbol_##end##_sort(const struct hist *h, const struct hist_entry *x,           \
				       const struct hist_entry *y)                                 \
	{                                                                                          \
		return symbol_sort(h, branch_of(h, x).end, branch_of(h, y).end);                   \
	}                                                                                          \
	unsigned column_symbol_##end##_width(const struct hist *h, const struct hist_entry *e)     \
	{                                                                                          \
		return column_symbol_width(h, branch_of(h, e).end);                                \
	}                                                                                          \
	void column_symbol_##end##_print(const struct hist *h, const struct hist_entry *e,         \
					 unsigned width, struct buf *b)                            \
	{                                                                                          \
		symbol_print(h, branch_of(h, e).end, width, b);                                    \
	}

END_COLUMNS(from)
END_COLUMNS(to)

/* What comes later stands before what differs from it. */
static int by_difference(bool differs)
{
	return differs ? -1 : 0;
}

int column_mispredict_sort(const struct hist *h, const struct hist_entry *x,
			   const struct hist_entry *y)
{
	struct branch a = branch_of(h, x), b = branch_of(h, y);

	return by_difference(a.mispredicted != b.mispredicted || a.predicted != b.predicted);
}

void column_mispredict_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			     struct buf *b)
{
	struct branch br = branch_of(h, e);

	column_text(b, br.predicted ? "N" : br.mispredicted ? "Y" : "N/A", width);
}

int column_in_tx_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	return by_difference(branch_of(h, x).in_tx != branch_of(h, y).in_tx);
}

void column_in_tx_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			struct buf *b)
{
	column_text(b, branch_of(h, e).in_tx ? "T" : ".", width);
}

int column_abort_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	return by_difference(branch_of(h, x).abort != branch_of(h, y).abort);
}

void column_abort_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			struct buf *b)
{
	column_text(b, branch_of(h, e).abort ? "A" : ".", width);
}

int column_cycles_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	return column_by_number(branch_of(h, y).cycles, branch_of(h, x).cycles);
}

void column_cycles_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			 struct buf *b)
{
	uint16_t cycles = branch_of(h, e).cycles;

	if (cycles)
		buf_printf(b, "%-*u", (int)width, cycles);
	else
		column_text(b, "-", width);
}
