// SPDX-License-Identifier: GPL-2.0-only
#include "report/keyset.h"

#include <stdlib.h>
#include <string.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

static uint64_t key_hash(const struct keyset *ks, const uint64_t *key)
{
	return ks->width == 1 ? hash_u64(*key) : hash_bytes(key, ks->width * sizeof(*key));
}

static void insert_slot(struct keyset *ks, uint64_t hash, uint32_t id)
{
	size_t i = hash & (ks->nr_slots - 1);

	while (ks->slots[i].id)
		i = (i + 1) & (ks->nr_slots - 1);
	ks->slots[i] = (struct keyset_slot){.id = id + 1, .tag = (uint32_t)(hash >> 32)};
}

static void grow(struct keyset *ks)
{
	if ((ks->n + 1ull) * 3 > ks->nr_slots * 2ull) {
		free(ks->slots);
		ks->nr_slots = ks->nr_slots ? xsize_mul(ks->nr_slots, 2) : 64;
		ks->slots = xcalloc(ks->nr_slots, sizeof(*ks->slots));
		for (uint32_t id = 0; id < ks->n; id++)
			insert_slot(ks, key_hash(ks, keyset_key(ks, id)), id);
	}
	/* ids are 32 bits: more keys than that are more memory than there is */
	if (ks->n == UINT32_MAX - 1)
		xsize_mul(SIZE_MAX, 2);
	ks->keys = xgrow(ks->keys, &ks->cap, ks->n + 1ull, ks->width * sizeof(*ks->keys));
}

static bool same_key(const struct keyset *ks, uint32_t id, const uint64_t *key)
{
	const uint64_t *k = keyset_key(ks, id);

	for (unsigned i = 0; i < ks->width; i++)
		if (k[i] != key[i])
			return false;
	return true;
}

uint32_t keyset_add(struct keyset *ks, const uint64_t *key, bool *added)
{
	uint64_t hash = key_hash(ks, key);

	if (added)
		*added = false;
	for (size_t i = hash; ks->nr_slots; i++) {
		const struct keyset_slot *s = &ks->slots[i & (ks->nr_slots - 1)];

		if (!s->id)
			break;
		if (s->tag == (uint32_t)(hash >> 32) && same_key(ks, s->id - 1, key))
			return s->id - 1;
	}
	grow(ks);
	memcpy(ks->keys + (size_t)ks->n * ks->width, key, ks->width * sizeof(*key));
	insert_slot(ks, hash, ks->n);
	if (added)
		*added = true;
	return ks->n++;
}

uint32_t keyset_add1(struct keyset *ks, uint64_t key, bool *added)
{
	return keyset_add(ks, &key, added);
}

void keyset_clear(struct keyset *ks)
{
	if (ks->nr_slots > 4096 && ks->n < ks->nr_slots / 16)
		keyset_free(ks);
	else if (ks->slots)
		memset(ks->slots, 0, ks->nr_slots * sizeof(*ks->slots));
	ks->n = 0;
}

void keyset_free(struct keyset *ks)
{
	free(ks->keys);
	free(ks->slots);
	*ks = (struct keyset){.width = ks->width};
}
