// SPDX-License-Identifier: GPL-2.0-only
#include "report/historder.h"

#include <stdlib.h>

#include "report/rborder.h"
#include "report/sortkeys.h"
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
static bool stands_before(uint32_t a, uint32_t b, const void *ctx)
{
	int cmp = sortkeys_compare(ctx, a, b);

	return cmp < 0 || (!cmp && a < b);
}

static int by_keys(const void *a, const void *b, void *ctx)
{
	return stands_before(*(const uint32_t *)a, *(const uint32_t *)b, ctx) ? -1 : 1;
}

static void order_by_keys(struct hist *h)
{
	struct sortkeys k;
	bool by_comm = false;

	sortkeys_init(&k, h, SORTKEYS_BY_KEYS);
	if (keys_are_order(h)) {
		qsort_r(h->order, h->nr_entries, sizeof(*h->order), by_keys, &k);
		sortkeys_free(&k);
		return;
	}
	rborder(h->order, h->nr_entries, stands_before, &k);
	/* perf puts them into a second tree where commands are a key */
	for (unsigned i = 0; i < h->layout->nr_sort; i++)
		by_comm |= h->layout->sort[i] == &columns[COLUMN_COMM];
	if (by_comm)
		rborder(h->order, h->nr_entries, stands_before, &k);
	sortkeys_free(&k);
}

static bool goes_first(uint32_t a, uint32_t b, const void *ctx)
{
	return sortkeys_compare(ctx, a, b) < 0;
}

/* Entries with the places that they had. */
struct placed {
	const struct sortkeys *keys;
	uint32_t *place;
};

static int by_shown_and_place(const void *a, const void *b, void *ctx)
{
	const struct placed *p = ctx;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int cmp = sortkeys_compare(p->keys, ia, ib);

	return cmp ? cmp : p->place[ia] < p->place[ib] ? -1 : 1;
}

/* Children's weights are no order: equal ones are compared within a thread only. */
static void order_as_shown(struct hist *h)
{
	struct sortkeys k;
	struct placed p = {.keys = &k};

	sortkeys_init(&k, h, SORTKEYS_AS_SHOWN);
	if (h->cfg.children || !all_plain(h->layout)) {
		rborder(h->order, h->nr_entries, goes_first, &k);
		sortkeys_free(&k);
		return;
	}
	p.place = xcalloc(h->nr_entries, sizeof(*p.place));
	for (uint32_t i = 0; i < h->nr_entries; i++)
		p.place[h->order[i]] = i;
	qsort_r(h->order, h->nr_entries, sizeof(*h->order), by_shown_and_place, &p);
	free(p.place);
	sortkeys_free(&k);
}

void historder(struct hist *h)
{
	h->order = xcalloc(h->nr_entries, sizeof(*h->order));
	for (uint32_t i = 0; i < h->nr_entries; i++)
		h->order[i] = i;
	order_by_keys(h);
	order_as_shown(h);
}
