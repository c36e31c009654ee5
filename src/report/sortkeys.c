// SPDX-License-Identifier: GPL-2.0-only
#include "report/sortkeys.h"

#include <stdlib.h>
#include <string.h>

#include "report/columns.h"
#include "util/xalloc.h"

enum term_kind {
	TERM_WORD,     /* ascending */
	TERM_CHILDREN, /* weight, thread, depth */
	TERM_SYMBOL,   /* has none, dso, start or address, end */
	TERM_CALL,     /* by the column's function */
};

static const unsigned widths[] = {
	[TERM_WORD] = 1, [TERM_CHILDREN] = 3, [TERM_SYMBOL] = 4, [TERM_CALL] = 0};

struct sort_term {
	enum term_kind kind;
	unsigned at; /* its first word */
	const struct column *column;
};

/* ------------------------------------------------------------------ ranks of texts */

#define NO_TEXT UINT64_MAX /* stands last */

struct text {
	const char *text;
	uint32_t index;
};

static int by_text(const void *a, const void *b)
{
	const struct text *x = a, *y = b;

	return x->text == y->text ? 0 : strcmp(x->text, y->text);
}

/* Of @n texts, of which some may be NULL; equal ones have the same. To be freed. */
static uint64_t *ranks(const char *const *texts, size_t n)
{
	struct text *sorted = xcalloc(n, sizeof(*sorted));
	uint64_t *rank = xcalloc(n, sizeof(*rank));
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		rank[i] = NO_TEXT;
		if (texts[i])
			sorted[m++] = (struct text){texts[i], (uint32_t)i};
	}
	qsort(sorted, m, sizeof(*sorted), by_text);
	for (size_t i = 0; i < m; i++)
		rank[sorted[i].index] =
			i && !by_text(&sorted[i - 1], &sorted[i]) ? rank[sorted[i - 1].index] : i;
	free(sorted);
	return rank;
}

static uint64_t *comm_ranks(const struct hist *h)
{
	size_t n = h->profile->context_keys.n;
	const char **texts = xcalloc(n, sizeof(*texts));
	uint64_t *rank;

	for (size_t i = 0; i < n; i++)
		texts[i] = h->profile->contexts[i].comm;
	rank = ranks(texts, n);
	free(texts);
	return rank;
}

/* By dso->index. */
static uint64_t *dso_ranks(const struct hist *h)
{
	const char **texts = NULL;
	size_t n = 0, cap = 0;
	uint64_t *rank;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		const struct dso *d = hist_frame_of(h, &h->entries[i])->dso;

		if (!d)
			continue;
		if (d->index >= n) {
			texts = xgrow(texts, &cap, d->index + 1ull, sizeof(*texts));
			memset(texts + n, 0, (d->index + 1ull - n) * sizeof(*texts));
			n = d->index + 1ull;
		}
		texts[d->index] = h->cfg.long_names ? d->long_name : d->short_name;
	}
	rank = ranks(texts, n);
	free(texts);
	return rank;
}

/* By frame. */
static uint64_t *name_ranks(const struct hist *h)
{
	size_t n = h->profile->frame_keys.n;
	const char **texts = xcalloc(n, sizeof(*texts));
	uint64_t *rank;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		uint32_t frame = h->entries[i].frame;

		texts[frame] = profile_frame_name(h->profile, frame);
	}
	rank = ranks(texts, n);
	free(texts);
	return rank;
}

/* ------------------------------------------------------------------ terms */

static enum term_kind kind_of(const struct hist *h, const struct column *c, enum sortkeys_by by)
{
	switch (c - columns) {
	case COLUMN_CHILDREN:
		return TERM_CHILDREN;
	case COLUMN_SYMBOL:
		return by == SORTKEYS_BY_KEYS ? TERM_SYMBOL : TERM_WORD;
	case COLUMN_COMM:
	case COLUMN_DSO:
		return TERM_WORD;
	}
	/* of a group of events there are too many */
	return c->value && !c->sort && h->cfg.nr_events == 1 ? TERM_WORD : TERM_CALL;
}

static void make_terms(struct sortkeys *k, enum sortkeys_by by)
{
	const struct layout *l = k->h->layout;

	k->terms = xcalloc(l->nr_sort, sizeof(*k->terms));
	for (unsigned i = 0; i < l->nr_sort; i++) {
		const struct column *c = l->sort[i];
		enum term_kind kind = kind_of(k->h, c, by);

		if (by == SORTKEYS_BY_KEYS ? c->kind == COLUMN_VALUE : l->sort_skipped[i])
			continue;
		k->terms[k->nr_terms++] =
			(struct sort_term){.kind = kind, .at = k->width, .column = c};
		k->width += widths[kind];
	}
}

static uint64_t *words_of(const struct sortkeys *k, uint32_t entry)
{
	return k->words + (size_t)entry * k->width;
}

static uint64_t dso_rank(const struct hist *h, uint32_t entry, const uint64_t *by_dso)
{
	const struct dso *d = hist_frame_of(h, &h->entries[entry])->dso;

	return d ? by_dso[d->index] : NO_TEXT;
}

static void put_children(uint64_t words[3], const struct hist *h, const struct hist_entry *e)
{
	words[0] = hist_weights(h, e, 0)->children_period;
	words[1] = (uintptr_t)e->thread;
	words[2] = e->max_depth;
}

static void put_symbol(uint64_t words[4], const struct hist *h, const struct hist_entry *e,
		       uint64_t dso)
{
	const struct symbol *sym = hist_frame_of(h, e)->sym;

	words[0] = !sym;
	words[1] = dso;
	words[2] = sym ? sym->start : e->addr;
	words[3] = sym ? sym->end : 0;
}

static void fill(struct sortkeys *k, const struct sort_term *t)
{
	const struct hist *h = k->h;
	enum column_id id = (enum column_id)(t->column - columns);
	uint64_t *by_dso = id == COLUMN_DSO || t->kind == TERM_SYMBOL ? dso_ranks(h) : NULL;
	uint64_t *rank = id == COLUMN_COMM			       ? comm_ranks(h)
			 : id == COLUMN_SYMBOL && t->kind == TERM_WORD ? name_ranks(h)
								       : NULL;

	for (uint32_t i = 0; i < h->nr_entries; i++) {
		const struct hist_entry *e = &h->entries[i];
		uint64_t *words = words_of(k, i) + t->at;

		if (t->kind == TERM_CHILDREN)
			put_children(words, h, e);
		else if (t->kind == TERM_SYMBOL)
			put_symbol(words, h, e, dso_rank(h, i, by_dso));
		else if (id == COLUMN_DSO)
			*words = dso_rank(h, i, by_dso);
		else if (rank)
			*words = rank[id == COLUMN_COMM ? e->context : e->frame];
		else /* the largest first */
			*words = ~t->column->value(hist_weights(h, e, 0));
	}
	free(by_dso);
	free(rank);
}

void sortkeys_init(struct sortkeys *k, const struct hist *h, enum sortkeys_by by)
{
	*k = (struct sortkeys){.h = h};
	make_terms(k, by);
	k->words = xcalloc(h->nr_entries, k->width * sizeof(*k->words));
	for (unsigned i = 0; i < k->nr_terms; i++)
		if (k->terms[i].kind != TERM_CALL)
			fill(k, &k->terms[i]);
}

void sortkeys_free(struct sortkeys *k)
{
	free(k->terms);
	free(k->words);
	*k = (struct sortkeys){0};
}

/* ------------------------------------------------------------------ comparing */

/* Of equal weight in one thread, the caller stands above the function that it calls. */
static int compare_children(const struct hist *h, const uint64_t *a, const uint64_t *b)
{
	int cmp = column_by_number(b[0], a[0]);

	if (cmp || !h->cfg.children || !h->cfg.chains || a[1] != b[1])
		return cmp;
	cmp = column_by_number(a[2], b[2]);
	return h->cfg.caller_order ? -cmp : cmp;
}

static int compare_symbols(const struct hist *h, const uint64_t *a, const uint64_t *b)
{
	int cmp = 0;

	if (a[0] && b[0])
		return column_by_address(a[2], b[2]);
	if (!(h->layout->parts[LOCATION_OWN] & LOCATION_DSO))
		cmp = column_by_number(a[1], b[1]);
	if (cmp || a[0] != b[0])
		return cmp ? cmp : a[0] ? 1 : -1;
	cmp = column_by_address(a[2], b[2]);
	return cmp ? cmp : column_by_address(a[3], b[3]);
}

int sortkeys_compare(const struct sortkeys *k, uint32_t a, uint32_t b)
{
	const uint64_t *x = words_of(k, a), *y = words_of(k, b);
	const struct hist_entry *entries = k->h->entries;
	int cmp = 0;

	for (unsigned i = 0; !cmp && i < k->nr_terms; i++) {
		const struct sort_term *t = &k->terms[i];

		switch (t->kind) {
		case TERM_WORD:
			cmp = column_by_number(x[t->at], y[t->at]);
			break;
		case TERM_CHILDREN:
			cmp = compare_children(k->h, x + t->at, y + t->at);
			break;
		case TERM_SYMBOL:
			cmp = compare_symbols(k->h, x + t->at, y + t->at);
			break;
		case TERM_CALL:
			cmp = column_sort(t->column, k->h, &entries[a], &entries[b]);
			break;
		}
	}
	return cmp;
}
