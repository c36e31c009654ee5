// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMAs out of a maple tree (lib/maple_tree.c, kernels from 6.1 on) or an rbtree. Both are walked
 * level by level, so that all nodes of a level are read with few calls; both walks end whatever the
 * tree looks like, as depth and number of nodes are bounded.
 */
#include "guest/mm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

enum {
	NODE_BYTES = 256, /* a maple node; its address is aligned to that */
	MAX_DEPTH = 16,	  /* of a maple tree: 10 to the power of 16 ranges */
	RB_MAX_DEPTH = 64,
	MAX_NODES = 65536,
	NODE_BATCH = 16,
	VMA_BATCH = 32,
	VMA_BYTES = 512, /* more than a vm_area_struct up to the members that are read */
};

/* Node types, in bits 3 to 6 of a pointer to a node. */
enum { MAPLE_LEAF_64 = 1, MAPLE_RANGE_64 = 2, MAPLE_ARANGE_64 = 3 };

struct ref { /* to a node, a VMA or, in an rbtree, both */
	uint64_t at, min, max;
};

struct refs {
	struct ref *r;
	size_t n, cap;
};

static void add(struct refs *refs, uint64_t at, uint64_t min, uint64_t max)
{
	refs->r = xgrow(refs->r, &refs->cap, refs->n + 1, sizeof(*refs->r));
	refs->r[refs->n++] = (struct ref){at, min, max};
}

/* What was found below is looked at next. */
static void step_down(struct refs *level, struct refs *below)
{
	struct refs swap = *level;

	*level = *below;
	*below = swap;
	below->n = 0;
}

/* One node of the tree; adds nodes below to @below or VMAs to @vmas. false: it cannot be a node. */
static bool maple_node(const struct guest_layout *l, const uint8_t *raw, const struct ref *node,
		       struct refs *below, struct refs *vmas)
{
	unsigned type = node->at >> 3 & 15;
	bool arange = type == MAPLE_ARANGE_64;
	unsigned slots = arange ? 10 : 16;
	int32_t pivots = arange ? l->maple_arange_pivot : l->maple_range_pivot;
	int32_t slot = arange ? l->maple_arange_slot : l->maple_range_slot;
	uint64_t min = node->min;

	if (type != MAPLE_LEAF_64 && type != MAPLE_RANGE_64 && !arange)
		return false;
	for (unsigned i = 0; i < slots; i++) {
		uint64_t entry = guest_u64(raw, slot + 8 * (int)i);
		uint64_t max = i + 1 < slots ? guest_u64(raw, pivots + 8 * (int)i) : node->max;

		if (!max && i) /* no pivot: this is the node's last range */
			max = node->max;
		if (max < min || max > node->max)
			return false;
		if (entry && type == MAPLE_LEAF_64 && guest_is_kptr(entry))
			add(vmas, entry, min, max);
		else if (entry && type != MAPLE_LEAF_64)
			add(below, entry, min, max);
		if (max == node->max)
			return true;
		min = max + 1;
	}
	return false;
}

/* All nodes of one level. 0 or -ESRCH */
static int maple_level(struct guest_kmem *km, const struct refs *level, struct refs *below,
		       struct refs *vmas, bool *whole)
{
	uint8_t raw[NODE_BATCH][NODE_BYTES];
	struct guest_virt_io io[NODE_BATCH];

	for (size_t at = 0; at < level->n; at += NODE_BATCH) {
		int n = level->n - at < NODE_BATCH ? (int)(level->n - at) : NODE_BATCH, rc;

		for (int i = 0; i < n; i++)
			io[i] = (struct guest_virt_io){.va = level->r[at + i].at &
							     ~(uint64_t)(NODE_BYTES - 1),
						       .buf = raw[i],
						       .len = NODE_BYTES};
		rc = guest_virt_readv(km->virt, km->as, io, n);
		if (rc)
			return rc;
		for (int i = 0; i < n; i++) {
			const struct ref *node = &level->r[at + i];

			if (vmas->n + below->n > GUEST_MAX_VMAS || !(node->at >> 63) || !io[i].ok ||
			    !maple_node(&km->lay, raw[i], node, below, vmas))
				*whole = false;
		}
	}
	return 0;
}

static int maple_walk(struct guest_kmem *km, uint64_t root, struct refs *vmas, bool *whole)
{
	struct refs level = {0}, below = {0};
	size_t nodes = 0;
	int rc = 0;

	if ((root & 3) != 2 || root <= 4096) /* not a node: an empty map, or a map of byte 0 */
		return 0;
	add(&level, root, 0, UINT64_MAX);
	for (int depth = 0; !rc && level.n; depth++) {
		nodes += level.n;
		if (depth == MAX_DEPTH || nodes > MAX_NODES) {
			*whole = false;
			break;
		}
		rc = maple_level(km, &level, &below, vmas, whole);
		step_down(&level, &below);
	}
	free(level.r);
	free(below.r);
	return rc;
}

/* How much of struct vm_area_struct is read: up to the last member of interest. 0: cannot be. */
static uint32_t vma_bytes(const struct guest_layout *l)
{
	const int32_t members[] = {
		l->vma_start,
		l->vma_end,
		l->vma_mm,
		l->vma_flags,
		l->vma_pgoff,
		l->vma_file,
		l->vma_ops,
		l->vma_private,
		l->mm_root >= 0 ? l->vma_start : l->vma_rb + l->rb_left,
		l->mm_root >= 0 ? l->vma_start : l->vma_rb + l->rb_right,
	};
	struct guest_span span = guest_span_of(members, sizeof(members) / sizeof(*members));
	uint32_t bytes = span.len ? (uint32_t)(span.lo + span.len) : 0;

	if (l->mm_root >= 0 &&
	    (l->maple_range_pivot < 0 || l->maple_range_slot < 0 || l->maple_arange_pivot < 0 ||
	     l->maple_arange_slot < 0 || l->maple_range_slot + 16 * 8 > NODE_BYTES ||
	     l->maple_arange_slot + 10 * 8 > NODE_BYTES ||
	     l->maple_range_pivot + 15 * 8 > NODE_BYTES ||
	     l->maple_arange_pivot + 9 * 8 > NODE_BYTES))
		return 0;
	if (l->mm_root < 0 && (l->mm_rb < 0 || l->vma_rb < 0 || l->rb_left < 0 || l->rb_right < 0))
		return 0;
	return bytes <= VMA_BYTES ? bytes : 0;
}

static bool decode_vma(struct guest_kmem *km, const uint8_t *raw, const struct ref *ref,
		       uint64_t mm, struct guest_vma *v)
{
	const struct guest_layout *l = &km->lay;

	*v = (struct guest_vma){
		.start = guest_u64(raw, l->vma_start),
		.end = guest_u64(raw, l->vma_end),
		.flags = guest_u64(raw, l->vma_flags),
		.pgoff = guest_u64(raw, l->vma_pgoff) * guest_virt_page_size(km->virt),
		.file = guest_u64(raw, l->vma_file),
		.ops = guest_u64(raw, l->vma_ops),
		.private_data = guest_u64(raw, l->vma_private),
	};
	if (guest_u64(raw, l->vma_mm) != mm || v->start >= v->end || v->end >> 63 ||
	    (v->start | v->end) & 4095)
		return false;
	return l->mm_root < 0 || (v->start == ref->min && v->end - 1 == ref->max);
}

/* Reads the VMAs at @refs into @out; those below them in an rbtree go to @below. 0 or -ESRCH */
static int read_vmas(struct guest_kmem *km, const struct refs *refs, uint64_t mm,
		     struct guest_vmas *out, struct refs *below)
{
	const struct guest_layout *l = &km->lay;
	uint8_t raw[VMA_BATCH][VMA_BYTES];
	struct guest_virt_io io[VMA_BATCH];
	uint32_t bytes = vma_bytes(l);

	for (size_t at = 0; at < refs->n; at += VMA_BATCH) {
		int n = refs->n - at < VMA_BATCH ? (int)(refs->n - at) : VMA_BATCH, rc;

		for (int i = 0; i < n; i++)
			io[i] = (struct guest_virt_io){
				.va = refs->r[at + i].at, .buf = raw[i], .len = bytes};
		rc = guest_virt_readv(km->virt, km->as, io, n);
		if (rc)
			return rc;
		for (int i = 0; i < n; i++) {
			struct guest_vma v;

			if (!io[i].ok || !decode_vma(km, raw[i], &refs->r[at + i], mm, &v)) {
				out->whole = false;
				continue;
			}
			out->v = xgrow(out->v, &out->cap, out->n + 1, sizeof(*out->v));
			out->v[out->n++] = v;
			if (!below)
				continue;
			for (int side = 0; side < 2; side++) {
				uint64_t node = guest_u64(
					raw[i], l->vma_rb + (side ? l->rb_right : l->rb_left));

				if (guest_is_kptr(node))
					add(below, node - (uint64_t)l->vma_rb, 0, 0);
			}
		}
	}
	return 0;
}

static int rb_walk(struct guest_kmem *km, uint64_t root, uint64_t mm, struct guest_vmas *out)
{
	struct refs level = {0}, below = {0};
	int rc = 0;

	if (guest_is_kptr(root))
		add(&level, root - (uint64_t)km->lay.vma_rb, 0, 0);
	for (int depth = 0; !rc && level.n; depth++) {
		if (depth == RB_MAX_DEPTH || out->n + level.n > GUEST_MAX_VMAS) {
			out->whole = false;
			break;
		}
		rc = read_vmas(km, &level, mm, out, &below);
		step_down(&level, &below);
	}
	free(level.r);
	free(below.r);
	return rc;
}

static int by_start(const void *a, const void *b)
{
	const struct guest_vma *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts, and drops what overlaps: it was read while it moved, or the tree is nonsense. */
static void put_in_order(struct guest_vmas *out)
{
	size_t n = 0;

	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_start);
	for (size_t i = 0; i < out->n; i++) {
		if (n && out->v[i].start < out->v[n - 1].end)
			out->whole = false;
		else
			out->v[n++] = out->v[i];
	}
	out->n = n;
}

int guest_mm_walk(struct guest_kmem *km, uint64_t mm, struct guest_vmas *out)
{
	const struct guest_layout *l = &km->lay;
	int32_t where = l->mm_root >= 0 ? l->mm_root : l->mm_rb;
	struct refs refs = {0};
	uint32_t count = 0;
	uint64_t root = 0;
	int rc;

	out->n = 0;
	out->whole = false;
	if (!vma_bytes(l))
		return 0;
	rc = guest_virt_read(km->virt, km->as, mm + (uint64_t)where, &root, 8);
	out->whole = !rc;
	if (rc == -EFAULT)
		return 0;
	if (!rc && l->mm_root >= 0) {
		rc = maple_walk(km, root, &refs, &out->whole);
		rc = rc ? rc : read_vmas(km, &refs, mm, out, NULL);
	} else if (!rc) {
		rc = rb_walk(km, root, mm, out);
	}
	free(refs.r);
	put_in_order(out);
	if (guest_virt_read(km->virt, km->as, mm + (uint64_t)l->mm_map_count, &count, 4) ||
	    count != out->n)
		out->whole = false;
	return rc;
}

void guest_vmas_free(struct guest_vmas *v)
{
	free(v->v);
	*v = (struct guest_vmas){0};
}
