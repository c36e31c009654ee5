// SPDX-License-Identifier: GPL-2.0-only
#include "report/chaincache.h"

#include <stdlib.h>
#include <string.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

enum {
	SLOTS = 1 << 13,
	MAX_WORDS = 256, /* so that all of it is 16 MB at most; the kernel records 127 frames */
};

struct chaincache_slot {
	uint64_t hash;
	uint64_t *words; /* NULL: empty */
	size_t n, cap;
	uint32_t user_state, kernel_state;
	uint32_t node;
	uint8_t cpumode;
};

static uint64_t hash_of(const struct chain_key *key)
{
	return hash_bytes(key->words, key->n * sizeof(*key->words)) ^ key->user_state;
}

bool chaincache_get(const struct chaincache *c, const struct chain_key *key, uint32_t *node)
{
	const struct chaincache_slot *s;
	uint64_t hash;

	if (!c->slots || key->n > MAX_WORDS)
		return false;
	hash = hash_of(key);
	s = &c->slots[hash & (SLOTS - 1)];
	if (!s->words || s->hash != hash || s->n != key->n || s->cpumode != key->cpumode ||
	    s->user_state != key->user_state || s->kernel_state != key->kernel_state ||
	    memcmp(s->words, key->words, key->n * sizeof(*key->words)) != 0)
		return false;
	*node = s->node;
	return true;
}

void chaincache_put(struct chaincache *c, const struct chain_key *key, uint32_t node)
{
	struct chaincache_slot *s;
	uint64_t hash;

	if (key->n > MAX_WORDS)
		return;
	if (!c->slots)
		c->slots = xcalloc(SLOTS, sizeof(*c->slots));
	hash = hash_of(key);
	s = &c->slots[hash & (SLOTS - 1)];
	s->words = xgrow(s->words, &s->cap, key->n + 1, sizeof(*s->words));
	memcpy(s->words, key->words, key->n * sizeof(*key->words));
	s->hash = hash;
	s->n = key->n;
	s->user_state = key->user_state;
	s->kernel_state = key->kernel_state;
	s->cpumode = key->cpumode;
	s->node = node;
}

void chaincache_free(struct chaincache *c)
{
	for (size_t i = 0; c->slots && i < SLOTS; i++)
		free(c->slots[i].words);
	free(c->slots);
	c->slots = NULL;
}
