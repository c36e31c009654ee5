// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file's bytes out of the guest's page cache: inode -> i_mapping -> i_pages, an xarray from page
 * index to folio. See Documentation/core-api/xarray.rst and include/linux/xarray.h for its entries.
 */
#include "guest/dso.h"

#include <errno.h>
#include <string.h>

enum {
	PAGE = 4096,
	XA_SLOTS = 64,
	XA_SHIFT = 6,
	MAX_DEPTH = 11, /* 64 bits of index, 6 a level */
	BATCH = 16,
	NODE_BYTES = 1024, /* more than a node up to its last slot */
};

/* The node that has the entries of @first and the next 64 << shift indices. */
struct leaf {
	bool valid;
	uint8_t shift;
	uint64_t first;
	uint64_t slot[XA_SLOTS];
};

static bool xa_is_internal(uint64_t entry)
{
	return (entry & 3) == 2;
}

static bool xa_is_node(uint64_t entry)
{
	return xa_is_internal(entry) && entry > 4096;
}

/* An entry of several indices stands in its first slot; the others say which one that is. */
static uint64_t leaf_entry(const struct leaf *leaf, uint64_t index)
{
	uint64_t entry = leaf->slot[index >> leaf->shift & (XA_SLOTS - 1)];

	if (xa_is_internal(entry) && entry >> 2 < XA_SLOTS)
		entry = leaf->slot[entry >> 2];
	return entry;
}

static bool leaf_has(const struct leaf *leaf, uint64_t index)
{
	return leaf->valid &&
	       index >> leaf->shift >> XA_SHIFT == leaf->first >> leaf->shift >> XA_SHIFT;
}

static int read_node(struct guest_kmem *km, uint64_t entry, struct leaf *leaf)
{
	const struct guest_layout *l = &km->lay;
	uint8_t raw[NODE_BYTES];
	int rc = guest_virt_read(km->virt, km->as, entry - 2, raw,
				 (size_t)l->xa_slots + sizeof(leaf->slot));

	if (rc)
		return rc;
	leaf->shift = raw[l->xa_shift];
	memcpy(leaf->slot, raw + l->xa_slots, sizeof(leaf->slot));
	return leaf->shift < 64 && leaf->shift % XA_SHIFT == 0 ? 0 : -EFAULT;
}

/* The entry at @index; 0: none. @leaf remembers the node it was found in. 0, -EFAULT, -ESRCH */
static int find_entry(struct guest_kmem *km, uint64_t head, uint64_t index, struct leaf *leaf,
		      uint64_t *entry)
{
	unsigned above = 64; /* shift of the node above: each level must be lower */

	if (leaf_has(leaf, index) && !xa_is_node(leaf_entry(leaf, index))) {
		*entry = leaf_entry(leaf, index);
		return 0;
	}
	leaf->valid = false;
	*entry = xa_is_node(head) || !index ? head : 0;
	while (xa_is_node(*entry)) {
		int rc = read_node(km, *entry, leaf);

		if (rc || leaf->shift >= above)
			return rc ? rc : -EFAULT;
		if (above == 64 && index >> leaf->shift >= XA_SLOTS) {
			*entry = 0; /* behind the end of the tree */
			return 0;
		}
		above = leaf->shift;
		leaf->first = index;
		*entry = leaf_entry(leaf, index);
		leaf->valid = true;
	}
	return 0;
}

struct page {
	uint64_t index, entry;
	uint64_t flags, first_index, mapping;
	uint64_t gpa; /* 0: not in the cache */
};

/* Where the pages' contents are, out of their struct pages. 0 or -ESRCH */
static int locate(struct guest_kmem *km, uint64_t mapping, uint64_t vmemmap, struct page *p, int n)
{
	const struct guest_layout *l = &km->lay;
	struct guest_virt_io io[3 * BATCH];
	int rc;

	for (int i = 0; i < n; i++) {
		/* Values (bit 0) are what was swapped out; internal ones are being changed. */
		uint32_t len = p[i].entry && !(p[i].entry & 3) ? 8 : 0;
		uint64_t at = p[i].entry;

		io[3 * i] = (struct guest_virt_io){at + l->page_flags, &p[i].flags, len, false};
		io[3 * i + 1] =
			(struct guest_virt_io){at + l->page_index, &p[i].first_index, len, false};
		io[3 * i + 2] =
			(struct guest_virt_io){at + l->page_mapping, &p[i].mapping, len, false};
	}
	rc = guest_virt_readv(km->virt, km->as, io, 3 * n);
	for (int i = 0; !rc && i < n; i++) {
		uint64_t nr = p[i].entry - vmemmap;

		p[i].gpa = 0;
		if (!io[3 * i].len || !io[3 * i].ok || !io[3 * i + 1].ok || !io[3 * i + 2].ok)
			continue;
		if (p[i].mapping != mapping || p[i].entry < vmemmap ||
		    nr % (uint32_t)l->page_size || !(p[i].flags >> l->pg_uptodate & 1) ||
		    p[i].first_index > p[i].index)
			continue;
		p[i].gpa = (nr / (uint32_t)l->page_size + p[i].index - p[i].first_index) * PAGE;
	}
	return rc;
}

struct cache {
	struct guest_kmem *km;
	const struct guest_inode *file;
	uint64_t head, vmemmap;
	struct leaf leaf;
};

/*
 * Ranges by the guest's own numbers of pages. Where its page tables have other ones the kernel's
 * map of all its memory leads there. 0 or -ESRCH
 */
static int read_frames(struct guest_kmem *km, struct guest_mem_io *io, int n)
{
	struct guest_virt_io via_map[BATCH];
	uint64_t base;
	int rc;

	if (!km->mem->machine_frames)
		return km->mem->ops->readv(km->mem, io, n);
	rc = guest_virt_read(km->virt, km->as, km->lay.page_offset_at, &base, 8);
	for (int i = 0; i < n; i++)
		via_map[i] = (struct guest_virt_io){base + io[i].gpa, io[i].buf, io[i].len, false};
	rc = rc ? rc : guest_virt_readv(km->virt, km->as, via_map, n);
	for (int i = 0; i < n; i++)
		io[i].ok = !rc && via_map[i].ok;
	return rc == -ESRCH ? rc : 0;
}

/* One batch of pages from @index on; @got says which were there. 0 or -ESRCH */
static int read_pages(struct cache *c, uint64_t index, int n, uint8_t (*out)[PAGE], bool *got)
{
	struct guest_kmem *km = c->km;
	struct page page[BATCH];
	struct guest_mem_io io[BATCH];
	int rc = 0, m = 0, which[BATCH];

	for (int i = 0; !rc && i < n; i++) {
		page[i] = (struct page){.index = index + (uint64_t)i};
		rc = find_entry(km, c->head, page[i].index, &c->leaf, &page[i].entry);
		if (rc == -EFAULT) /* being changed, or nonsense: as if not there */
			rc = 0, page[i].entry = 0;
	}
	rc = rc ? rc : locate(km, c->file->mapping, c->vmemmap, page, n);
	for (int i = 0; i < n; i++) {
		got[i] = false;
		if (rc || !page[i].gpa)
			continue;
		io[m] = (struct guest_mem_io){page[i].gpa, out[i], PAGE, false};
		which[m++] = i;
	}
	if (rc || !m)
		return rc;
	rc = read_frames(km, io, m);
	for (int i = 0; !rc && i < m; i++)
		got[which[i]] = io[i].ok;
	return rc;
}

static bool can_read(const struct guest_layout *l)
{
	return l->mapping_head >= 0 && l->xa_shift >= 0 && l->xa_slots >= 0 &&
	       l->xa_slots + (int)sizeof(((struct leaf *)0)->slot) <= NODE_BYTES &&
	       l->xa_shift < NODE_BYTES && l->page_flags >= 0 && l->page_index >= 0 &&
	       l->page_mapping >= 0 && l->page_size > 0 && l->pg_uptodate >= 0 &&
	       l->pg_uptodate < 64 && (l->vmemmap_at || l->vmemmap);
}

/* Is the inode still the file that it was? */
static int check_inode(struct guest_kmem *km, const struct guest_inode *f)
{
	const struct guest_layout *l = &km->lay;
	uint64_t ino = 0, mapping = 0;
	uint32_t generation = 0;
	struct guest_virt_io io[] = {
		{.va = f->inode + l->inode_ino, .buf = &ino, .len = 8},
		{.va = f->inode + l->inode_mapping, .buf = &mapping, .len = 8},
		{.va = f->inode + l->inode_generation, .buf = &generation, .len = 4},
	};
	int rc = guest_virt_readv(km->virt, km->as, io, 3);

	if (rc)
		return rc;
	return ino == f->ino && mapping == f->mapping && generation == f->generation ? 0 : -ESTALE;
}

ssize_t guest_pagecache_read(struct guest_kmem *km, const struct guest_inode *f, uint64_t off,
			     void *buf, size_t len, uint8_t *present)
{
	uint8_t pages[BATCH][PAGE], *out = buf;
	struct cache c = {.km = km, .file = f};
	uint64_t first = off / PAGE, end;
	bool got[BATCH];
	int rc;

	if (!f->inode || !f->cached || !can_read(&km->lay) ||
	    guest_virt_page_size(km->virt) != PAGE)
		return -ENODATA;
	if (present)
		memset(present, 0, ((off % PAGE + len + PAGE - 1) / PAGE + 7) / 8);
	if (off >= f->size)
		return 0;
	len = len < f->size - off ? len : f->size - off;
	end = off + len;
	rc = check_inode(km, f);
	rc = rc ? rc
		: guest_virt_read(km->virt, km->as, f->mapping + (uint64_t)km->lay.mapping_head,
				  &c.head, 8);
	c.vmemmap = km->lay.vmemmap;
	if (!rc && km->lay.vmemmap_at)
		rc = guest_virt_read(km->virt, km->as, km->lay.vmemmap_at, &c.vmemmap, 8);
	for (uint64_t at = first; !rc && at * PAGE < end; at += BATCH) {
		uint64_t left = (end + PAGE - 1) / PAGE - at;
		int n = left < BATCH ? (int)left : BATCH;

		rc = read_pages(&c, at, n, pages, got);
		for (int i = 0; !rc && i < n; i++) {
			uint64_t page = (at + (uint64_t)i) * PAGE;
			uint64_t from = page > off ? page : off;
			uint64_t to = page + PAGE < end ? page + PAGE : end;

			if (got[i])
				memcpy(out + (from - off), pages[i] + (from - page), to - from);
			else if (present)
				memset(out + (from - off), 0, to - from);
			else
				rc = -ENODATA;
			if (got[i] && present)
				present[(page / PAGE - first) / 8] |= 1u
								      << (page / PAGE - first) % 8;
		}
	}
	rc = rc ? rc : check_inode(km, f); /* reused while it was read? */
	return rc ? rc : (ssize_t)len;
}
