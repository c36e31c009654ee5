// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi_index.h"
#include "unwind/cfi_record.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

enum {
	MAX_PLACES = 1 << 18, /* addresses that are remembered */
};

struct place {
	int rc;
	struct cfi_place p; /* not more of it than it has rules */
};

struct cfi {
	enum unwind_arch arch;
	uint64_t hdr; /* 0: by @section and @index */
	struct cfi_section section;
	struct cfi_index index;
	bool have_table, no_table;
	uint64_t table, nr_entries;
	struct hashmap places; /* address -> struct place */
	size_t nr_places;
};

struct cfi *cfi_new(enum unwind_arch arch, uint64_t hdr)
{
	struct cfi *c = xcalloc(1, sizeof(*c));

	c->arch = arch;
	c->hdr = hdr;
	c->no_table = !hdr;
	return c;
}

/* cfi_read of what is in memory. */
static int read_section(void *ctx, uint64_t vaddr, void *buf, size_t len)
{
	const struct cfi_section *s = ctx;
	uint64_t in = vaddr - s->vaddr;

	if (in > s->size || len > s->size - in)
		return -EIO;
	memcpy(buf, s->bytes + in, len);
	return 0;
}

static struct cfi_from from_section(struct cfi *c)
{
	return (struct cfi_from){c->arch, c->section.debug_frame, read_section, &c->section};
}

struct cfi *cfi_new_section(enum unwind_arch arch, const struct cfi_section *section)
{
	struct cfi *c = cfi_new(arch, 0);
	struct cfi_from from;

	c->section = *section;
	from = from_section(c);
	cfi_index_build(&c->index, &from, &c->section);
	return c;
}

static void forget_places(struct cfi *c)
{
	void *place;

	for (size_t i = 0; (place = hashmap_next(&c->places, &i, NULL));)
		free(place);
	hashmap_free(&c->places);
	c->nr_places = 0;
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	forget_places(c);
	cfi_index_free(&c->index);
	free(c->section.bytes);
	free(c);
}

/* ---------- the index: Linux Standard Base 5.0, 10.6.2 ---------- */

/* Versions and encodings that all linkers use; others cannot be searched. */
bool cfi_has_table(const uint8_t *hdr, size_t len)
{
	static const uint8_t usual[4] = {1, DW_EH_PE_PCREL | DW_EH_PE_SDATA4, DW_EH_PE_UDATA4,
					 DW_EH_PE_DATAREL | DW_EH_PE_SDATA4};

	return len >= CFI_HDR_BYTES && !memcmp(hdr, usual, sizeof(usual));
}

uint64_t cfi_hdr_frames(const uint8_t *hdr, size_t len, uint64_t vaddr)
{
	struct dwarf_cursor c = {hdr, hdr + len, vaddr, false};
	uint64_t frames;
	uint8_t encoding;

	dwarf_skip(&c, 1);
	encoding = (uint8_t)dwarf_uint(&c, 1);
	dwarf_skip(&c, 2);
	frames = dwarf_pointer(&c, encoding, vaddr);
	return c.bad ? 0 : frames;
}

static int read_header(struct cfi *c, cfi_read read, void *ctx)
{
	uint8_t b[CFI_HDR_BYTES];
	struct dwarf_cursor at = {b + 8, b + sizeof(b), 0, false};
	int rc;

	if (c->have_table || c->no_table)
		return c->have_table ? 0 : -ENOENT;
	rc = read(ctx, c->hdr, b, sizeof(b));
	if (rc)
		return rc;
	c->have_table = cfi_has_table(b, sizeof(b));
	c->no_table = !c->have_table;
	c->table = c->hdr + CFI_HDR_BYTES;
	c->nr_entries = dwarf_uint(&at, 4);
	return c->have_table ? 0 : -ENOENT;
}

/* Entry @i: where its code begins, and its description. */
static int read_entry(struct cfi *c, uint64_t i, cfi_read read, void *ctx, uint64_t *start,
		      uint64_t *fde)
{
	uint8_t b[8];
	struct dwarf_cursor at = {b, b + sizeof(b), 0, false};
	int rc = read(ctx, c->table + i * sizeof(b), b, sizeof(b));

	*start = c->hdr + (uint64_t)dwarf_sint(&at, 4);
	*fde = c->hdr + (uint64_t)dwarf_sint(&at, 4);
	return rc;
}

static int search_table(struct cfi *c, uint64_t vaddr, cfi_read read, void *ctx, uint64_t *fde)
{
	uint64_t lo = 0, hi, start;
	int rc = read_header(c, read, ctx);

	if (rc)
		return rc;
	hi = c->nr_entries;
	*fde = 0;
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2, at;

		rc = read_entry(c, mid, read, ctx, &start, &at);
		if (rc)
			return rc;
		if (start > vaddr) {
			hi = mid;
		} else {
			*fde = at;
			lo = mid + 1;
		}
	}
	return *fde ? 0 : -ENOENT;
}

/* ---------- rows ---------- */

static size_t place_size(const struct cfi_place *p)
{
	return offsetof(struct cfi_place, row.rule) + p->row.nr_rules * sizeof(*p->row.rule);
}

static struct place *keep_place(struct cfi *c, uint64_t vaddr, int rc, const struct cfi_place *p)
{
	struct place *kept = xmalloc(offsetof(struct place, p) + place_size(p));

	if (c->nr_places++ >= MAX_PLACES)
		forget_places(c);
	kept->rc = rc;
	memcpy(&kept->p, p, place_size(p));
	hashmap_set(&c->places, vaddr, kept);
	return kept;
}

static int find(struct cfi *c, uint64_t vaddr, cfi_read read, void *ctx, struct cfi_place *out)
{
	struct cfi_from from = {c->arch, false, read, ctx};
	uint64_t fde;
	int rc;

	if (c->index.n) {
		from = from_section(c);
		rc = cfi_index_find(&c->index, vaddr, &fde);
	} else {
		rc = search_table(c, vaddr, read, ctx, &fde);
	}
	return rc ? rc : cfi_evaluate(&from, fde, vaddr, out);
}

int cfi_find(struct cfi *c, uint64_t vaddr, cfi_read read, void *ctx, struct cfi_place *out)
{
	struct place *p = hashmap_get(&c->places, vaddr);
	struct cfi_place found = {0};
	int rc;

	if (!p) {
		rc = find(c, vaddr, read, ctx, &found);
		if (rc && rc != -ENOENT && rc != -EIO)
			return rc;
		p = keep_place(c, vaddr, rc, &found);
	}
	memcpy(out, &p->p, place_size(&p->p));
	return p->rc;
}
