// SPDX-License-Identifier: GPL-2.0-only
#include "report/trie.h"

#include <stdlib.h>

#include "util/xalloc.h"

static uint32_t append(struct trie *t, uint32_t id)
{
	t->nodes = xgrow(t->nodes, &t->cap, id + 1ull, sizeof(*t->nodes));
	t->nodes[id] = (struct trie_node){0};
	return id;
}

void trie_init(struct trie *t)
{
	*t = (struct trie){.keys.width = 1};
	trie_clear(t);
}

void trie_clear(struct trie *t)
{
	const uint64_t none = UINT64_MAX;

	keyset_clear(&t->keys);
	append(t, keyset_append(&t->keys, &none));
}

void trie_free(struct trie *t)
{
	keyset_free(&t->keys);
	free(t->nodes);
	*t = (struct trie){.keys.width = 1};
}

uint32_t trie_child(struct trie *t, uint32_t parent, uint32_t label, bool *added)
{
	const uint64_t key = (uint64_t)parent << 32 | label, *keys = t->keys.keys;
	struct trie_node *p = &t->nodes[parent];
	bool is_new = !p->first;
	uint32_t id;

	if (added)
		*added = false;
	/* the root's key is no child's */
	if (keys[p->last] == key)
		return p->last;
	if (keys[p->first] == key)
		return p->last = p->first;
	if (is_new)
		p->first = id = keyset_append(&t->keys, &key);
	else
		id = keyset_add(&t->keys, &key, &is_new);
	p->last = id;
	if (is_new)
		append(t, id);
	if (added)
		*added = is_new;
	return id;
}
