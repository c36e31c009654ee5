// SPDX-License-Identifier: GPL-2.0-only
#include "report/historder.h"

#include <stdlib.h>

#include "report/rborder.h"
#include "util/xalloc.h"

/* An address whose distance from any other such one has the right sign. */
static bool is_near(uint64_t addr)
{
	return addr + (1ull << 62) < 1ull << 63;
}

/* Columns of which it is known that sort() and order() are orders, but for what is said below. */
static bool is_plain(const struct column *c)
{
	switch (c - columns) {
	case COLUMN_PID:
	case COLUMN_COMM:
	case COLUMN_DSO:
	case COLUMN_SYMBOL:
	case COLUMN_CPU:
	case COLUMN_CGROUP:
	case COLUMN_VM:
	case COLUMN_VCPU:
	case COLUMN_TID:
	case COLUMN_TGID:
		return true;
	}
	return c->kind == COLUMN_VALUE;
}

static bool all_plain(const struct layout *l)
{
	for (unsigned i = 0; i < l->nr_sort; i++)
		if (!is_plain(l->sort[i]))
			return false;
	return true;
}

/*
 * Is what perf compares by an order? Then its trees make what every sort makes. By symbol it is one
 * only where dsos are a key, too, and where no address is astray (column_by_address()).
 */
static bool keys_are_order(const struct hist *h)
{
	unsigned parts = h->layout->parts[LOCATION_OWN];

	if (!(parts & LOCATION_SYMBOL) && !h->profile->branches)
		return true;
	if (!all_plain(h->layout) || !(parts & LOCATION_DSO))
		return false;
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		const struct symbol *sym = hist_frame_of(h, &h->entries[i])->sym;

		if (!is_near(sym ? sym->start : h->entries[i].addr) || (sym && !is_near(sym->end)))
			return false;
	}
	return true;
}

/*
 * By the values of the keys alone: the order in which perf finds the entries when it sorts them.
 * It is none where symbols are compared without dsos, or addresses that are far apart.
 */
static int by_keys(const void *a, const void *b, void *ctx)
{
	const struct hist *h = ctx;
	const struct layout *l = h->layout;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int cmp = 0;

	for (unsigned i = 0; !cmp && i < l->nr_sort; i++) {
		const struct column *c = l->sort[i];

		if (c->kind != COLUMN_VALUE)
			cmp = (c->order ? c->order : c->sort)(h, &h->entries[ia], &h->entries[ib]);
	}
	return cmp ? cmp : ia < ib ? -1 : 1;
}

static bool stands_before(uint32_t a, uint32_t b, const void *ctx)
{
	return by_keys(&a, &b, (void *)ctx) < 0;
}

static void order_by_keys(struct hist *h)
{
	bool by_comm = false;

	if (keys_are_order(h)) {
		qsort_r(h->order, h->nr_entries, sizeof(*h->order), by_keys, h);
		return;
	}
	rborder(h->order, h->nr_entries, stands_before, h);
	/* perf puts them into a second tree where commands are a key */
	for (unsigned i = 0; i < h->layout->nr_sort; i++)
		by_comm |= h->layout->sort[i] == &columns[COLUMN_COMM];
	if (by_comm)
		rborder(h->order, h->nr_entries, stands_before, h);
}

static int as_shown(const struct hist *h, uint32_t a, uint32_t b)
{
	int cmp = 0;

	for (unsigned i = 0; !cmp && i < h->layout->nr_sort; i++)
		if (!h->layout->sort_skipped[i])
			cmp = column_sort(h->layout->sort[i], h, &h->entries[a], &h->entries[b]);
	return cmp;
}

static bool goes_first(uint32_t a, uint32_t b, const void *ctx)
{
	return as_shown(ctx, a, b) < 0;
}

/* Entries with the places that they had. */
struct placed {
	const struct hist *h;
	uint32_t *place;
};

static int by_shown_and_place(const void *a, const void *b, void *ctx)
{
	const struct placed *p = ctx;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int cmp = as_shown(p->h, ia, ib);

	return cmp ? cmp : p->place[ia] < p->place[ib] ? -1 : 1;
}

/* Children's weights are none: see children_sort(). */
static void order_as_shown(struct hist *h)
{
	struct placed p = {.h = h};

	if (h->cfg.children || !all_plain(h->layout)) {
		rborder(h->order, h->nr_entries, goes_first, h);
		return;
	}
	p.place = xcalloc(h->nr_entries, sizeof(*p.place));
	for (uint32_t i = 0; i < h->nr_entries; i++)
		p.place[h->order[i]] = i;
	qsort_r(h->order, h->nr_entries, sizeof(*h->order), by_shown_and_place, &p);
	free(p.place);
}

void historder(struct hist *h)
{
	h->order = xcalloc(h->nr_entries, sizeof(*h->order));
	for (uint32_t i = 0; i < h->nr_entries; i++)
		h->order[i] = i;
	order_by_keys(h);
	order_as_shown(h);
}
