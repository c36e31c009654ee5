// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/cfi_index.h"

#include <errno.h>
#include <stdlib.h>

#include "util/xalloc.h"

/* Descriptions that follow each other mostly have one common record. */
struct last_cie {
	uint64_t vaddr;
	int rc;
	bool used;
	uint8_t bytes[CFI_MAX_CIE];
	struct cfi_cie cie;
};

static void add_fde(struct cfi_index *x, const struct cfi_from *from, struct cfi_record *r,
		    uint64_t vaddr, struct last_cie *last)
{
	uint64_t cie = cfi_record_cie(from, r), start, len;

	if (!last->used || last->vaddr != cie) {
		last->rc = cfi_read_cie(from, cie, last->bytes, &last->cie);
		last->vaddr = cie;
		last->used = true;
	}
	if (last->rc)
		return;
	cfi_take_range(&last->cie, &r->body, &start, &len);
	if (r->body.bad || !len)
		return;
	x->entries = xgrow(x->entries, &x->cap, x->n + 1, sizeof(*x->entries));
	x->entries[x->n++] = (struct cfi_index_entry){start, vaddr};
}

/* Of functions that a linker has left out the addresses are 0, and many the same. */
static int by_start(const void *a, const void *b)
{
	const struct cfi_index_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->fde < y->fde ? -1 : x->fde > y->fde;
}

static bool is_sorted(const struct cfi_index *x)
{
	for (size_t i = 1; i < x->n; i++)
		if (by_start(&x->entries[i - 1], &x->entries[i]) > 0)
			return false;
	return true;
}

void cfi_index_build(struct cfi_index *x, const struct cfi_from *from, const struct cfi_section *s)
{
	struct dwarf_cursor c = {s->bytes, s->bytes + s->size, s->vaddr, false};
	struct last_cie *last = xcalloc(1, sizeof(*last));
	struct cfi_record r;

	while (c.end - c.p >= 4) {
		struct dwarf_cursor at = c;

		if (!dwarf_uint(&at, 4)) { /* the end of a part of it */
			c = at;
			continue;
		}
		at = c;
		if (cfi_record_start(from, &c, &r))
			break;
		if (!r.is_cie)
			add_fde(x, from, &r, at.vaddr, last);
	}
	free(last);
	if (!is_sorted(x))
		qsort(x->entries, x->n, sizeof(*x->entries), by_start);
}

void cfi_index_free(struct cfi_index *x)
{
	free(x->entries);
	*x = (struct cfi_index){0};
}

int cfi_index_find(const struct cfi_index *x, uint64_t vaddr, uint64_t *fde)
{
	size_t lo = 0, hi = x->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->entries[mid].start > vaddr)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (!lo)
		return -ENOENT;
	*fde = x->entries[lo - 1].fde;
	return 0;
}
