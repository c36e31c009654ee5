// SPDX-License-Identifier: GPL-2.0-only
#include "report/rborder.h"

#include <stdlib.h>

#include "util/xalloc.h"

/* Nodes are numbers from 1; 0 is none, and black. child[0] is left. */
struct node {
	uint32_t child[2], parent;
	bool red;
};

struct tree {
	struct node *nodes;
	uint32_t root;
};

static unsigned side_of(const struct tree *t, uint32_t n)
{
	return t->nodes[t->nodes[n].parent].child[1] == n;
}

static void link_child(struct tree *t, uint32_t parent, unsigned side, uint32_t n)
{
	if (parent)
		t->nodes[parent].child[side] = n;
	else
		t->root = n;
	if (n)
		t->nodes[n].parent = parent;
}

/* @n's child on the other @side comes up, @n goes down to @side. */
static void rotate(struct tree *t, uint32_t n, unsigned side)
{
	uint32_t up = t->nodes[n].child[!side], parent = t->nodes[n].parent;
	unsigned at = parent ? side_of(t, n) : 0;

	link_child(t, n, !side, t->nodes[up].child[side]);
	link_child(t, parent, at, up);
	link_child(t, up, side, n);
}

static void rebalance(struct tree *t, uint32_t n)
{
	struct node *nodes = t->nodes;

	while (nodes[nodes[n].parent].red) {
		uint32_t parent = nodes[n].parent, grand = nodes[parent].parent;
		unsigned side = side_of(t, parent);
		uint32_t uncle = nodes[grand].child[!side];

		if (nodes[uncle].red) {
			nodes[parent].red = nodes[uncle].red = false;
			nodes[grand].red = true;
			n = grand;
			continue;
		}
		if (side_of(t, n) != side) {
			n = parent;
			rotate(t, n, side);
			parent = nodes[n].parent;
		}
		nodes[parent].red = false;
		nodes[grand].red = true;
		rotate(t, grand, !side);
	}
	nodes[t->root].red = false;
}

static uint32_t leftmost(const struct tree *t, uint32_t n)
{
	while (t->nodes[n].child[0])
		n = t->nodes[n].child[0];
	return n;
}

static uint32_t next(const struct tree *t, uint32_t n)
{
	if (t->nodes[n].child[1])
		return leftmost(t, t->nodes[n].child[1]);
	while (t->nodes[n].parent && side_of(t, n))
		n = t->nodes[n].parent;
	return t->nodes[n].parent;
}

void rborder(uint32_t *ids, uint32_t n, bool (*first)(uint32_t a, uint32_t b, const void *ctx),
	     const void *ctx)
{
	struct tree t = {.nodes = xcalloc(n + 1ull, sizeof(*t.nodes))};
	uint32_t *in = xcalloc(n, sizeof(*in)), node;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t parent = 0;
		unsigned side = 0;

		in[i] = ids[i];
		for (uint32_t p = t.root; p; p = t.nodes[p].child[side]) {
			parent = p;
			side = !first(in[i], in[p - 1], ctx);
		}
		t.nodes[i + 1].red = true;
		link_child(&t, parent, side, i + 1);
		rebalance(&t, i + 1);
	}
	node = n ? leftmost(&t, t.root) : 0;
	for (uint32_t i = 0; i < n; i++, node = next(&t, node))
		ids[i] = in[node - 1];
	free(in);
	free(t.nodes);
}
