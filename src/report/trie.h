// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tree whose nodes are found by their parent and a label: call chains, outermost frame first.
 * Most nodes of such a tree have one child, which was made right behind them: what a node has first
 * and what was found last at it are looked at before any table is, and the table has only those
 * that are not first.
 */
#ifndef VMPROF_REPORT_TRIE_H
#define VMPROF_REPORT_TRIE_H

#include "report/keyset.h"

struct trie_node {
	uint32_t first, last; /* children: the first one, and the last that was found; 0: none */
};

struct trie {
	struct keyset keys; /* [0] is the root, and no key */
	struct trie_node *nodes;
	size_t cap;
};

void trie_init(struct trie *t);
void trie_clear(struct trie *t); /* the root alone; memory is kept as keyset_clear() keeps it */
void trie_free(struct trie *t);

/* The node of @label below @parent; *@added (may be NULL) says whether it is new. */
uint32_t trie_child(struct trie *t, uint32_t parent, uint32_t label, bool *added);

/* Nodes, the root included: ids are below it, and a parent's is below its children's. */
static inline uint32_t trie_size(const struct trie *t)
{
	return t->keys.n;
}

/* Not of the root. */
static inline uint32_t trie_parent(const struct trie *t, uint32_t node)
{
	return (uint32_t)(t->keys.keys[node] >> 32);
}

static inline uint32_t trie_label(const struct trie *t, uint32_t node)
{
	return (uint32_t)t->keys.keys[node];
}

#endif
