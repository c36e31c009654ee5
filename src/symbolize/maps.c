// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/maps.h"

#include <stdlib.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

struct map_node {
	unsigned refs;
	struct map_node *left, *right;
	struct map map;
};

/* The heap order: seeded, so that no file can choose addresses that make a list of the tree. */
static uint64_t priority(const struct map_node *n)
{
	return hash_u64(n->map.start);
}

static void put(struct map_node *n)
{
	if (!n || --n->refs)
		return;
	put(n->left);
	put(n->right);
	free(n);
}

static struct map_node *get(struct map_node *n)
{
	if (n)
		n->refs++;
	return n;
}

static struct map_node *node_new(const struct map *map)
{
	struct map_node *n = xcalloc(1, sizeof(*n));

	n->refs = 1;
	n->map = *map;
	return n;
}

/* A node that nobody else sees, in place of @n whose reference is given up. */
static struct map_node *own(struct map_node *n)
{
	struct map_node *copy;

	if (n->refs == 1)
		return n;
	copy = node_new(&n->map);
	copy->left = get(n->left);
	copy->right = get(n->right);
	put(n);
	return copy;
}

/* @n, which is used up, into what starts below @addr and what does not. */
static void split(struct map_node *n, uint64_t addr, struct map_node **low, struct map_node **high)
{
	if (!n) {
		*low = *high = NULL;
		return;
	}
	n = own(n);
	if (n->map.start < addr) {
		split(n->right, addr, &n->right, high);
		*low = n;
	} else {
		split(n->left, addr, low, &n->left);
		*high = n;
	}
}

/* All of @low is below all of @high; both are used up. */
static struct map_node *join(struct map_node *low, struct map_node *high)
{
	if (!low || !high)
		return low ? low : high;
	if (priority(low) > priority(high)) {
		low = own(low);
		low->right = join(low->right, high);
		return low;
	}
	high = own(high);
	high->left = join(low, high->left);
	return high;
}

static const struct map *last_of(const struct map_node *n)
{
	while (n && n->right)
		n = n->right;
	return n ? &n->map : NULL;
}

/* What is left of a map from @addr on. */
static struct map_node *tail_of(const struct map *map, uint64_t addr)
{
	struct map tail;

	if (!map || map->end <= addr)
		return NULL;
	tail = *map;
	tail.start = addr;
	tail.pgoff += addr - map->start;
	return node_new(&tail);
}

/* The last map of @n, which is used up, ends at @addr. */
static struct map_node *cut_last(struct map_node *n, uint64_t addr)
{
	const struct map *last = last_of(n);
	struct map_node *rest, *cut;

	if (!last || last->end <= addr)
		return n;
	split(n, last->start, &rest, &cut);
	cut->map.end = addr;
	return join(rest, cut);
}

void maps_insert(struct maps *m, const struct map *map)
{
	struct map_node *low, *covered, *high, *tail;

	if (map->end <= map->start)
		return;
	m->last = NULL;
	split(m->root, map->start, &low, &high);
	split(high, map->end, &covered, &high);
	tail = tail_of(covered ? last_of(covered) : last_of(low), map->end);
	put(covered);
	low = join(cut_last(low, map->start), node_new(map));
	m->root = join(join(low, tail), high);
}

const struct map *maps_find(struct maps *m, uint64_t addr)
{
	struct map_node *n = m->last;

	if (n && addr >= n->map.start && addr < n->map.end)
		return &n->map;
	for (n = m->root; n;) {
		if (addr < n->map.start) {
			n = n->left;
		} else if (addr >= n->map.end) {
			n = n->right;
		} else {
			m->last = n;
			return &n->map;
		}
	}
	return NULL;
}

void maps_share(struct maps *m, struct maps *from)
{
	m->root = get(from->root);
	m->last = NULL;
}

void maps_clear(struct maps *m)
{
	put(m->root);
	m->root = NULL;
	m->last = NULL;
}
