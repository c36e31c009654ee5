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

static uint32_t tag_of(const struct keyset *ks, const uint64_t *key)
{
	uint64_t hash = key_hash(ks, key);

	return (uint32_t)(hash ^ hash >> 32);
}

static void insert_slot(struct keyset *ks, struct keyset_slot slot)
{
	size_t i = slot.tag & (ks->nr_slots - 1);

	while (ks->slots[i].id)
		i = (i + 1) & (ks->nr_slots - 1);
	ks->slots[i] = slot;
}

/* No key is looked at for it. */
static void grow_slots(struct keyset *ks)
{
	struct keyset_slot *old = ks->slots;
	size_t n = ks->nr_slots;

	if ((ks->nr_used + 1ull) * 3 <= n * 2ull)
		return;
	ks->nr_slots = n ? xsize_mul(n, 2) : 64;
	ks->slots = xcalloc(ks->nr_slots, sizeof(*ks->slots));
	for (size_t i = 0; i < n; i++)
		if (old[i].id)
			insert_slot(ks, old[i]);
	free(old);
}

static bool same_key(const struct keyset *ks, uint32_t id, const uint64_t *key)
{
	const uint64_t *k = keyset_key(ks, id);

	for (unsigned i = 0; i < ks->width; i++)
		if (k[i] != key[i])
			return false;
	return true;
}

uint32_t keyset_append(struct keyset *ks, const uint64_t *key)
{
	/* ids are 32 bits: more keys than that are more memory than there is */
	if (ks->n == UINT32_MAX - 1)
		xsize_mul(SIZE_MAX, 2);
	ks->keys = xgrow(ks->keys, &ks->cap, ks->n + 1ull, ks->width * sizeof(*ks->keys));
	memcpy(ks->keys + (size_t)ks->n * ks->width, key, ks->width * sizeof(*key));
	return ks->n++;
}

uint32_t keyset_add(struct keyset *ks, const uint64_t *key, bool *added)
{
	uint32_t tag = tag_of(ks, key), id;

	if (added)
		*added = false;
	for (size_t i = tag; ks->nr_slots; i++) {
		const struct keyset_slot *s = &ks->slots[i & (ks->nr_slots - 1)];

		if (!s->id)
			break;
		if (s->tag == tag && same_key(ks, s->id - 1, key))
			return s->id - 1;
	}
	grow_slots(ks);
	id = keyset_append(ks, key);
	insert_slot(ks, (struct keyset_slot){.id = id + 1, .tag = tag});
	ks->nr_used++;
	if (added)
		*added = true;
	return id;
}

uint32_t keyset_add1(struct keyset *ks, uint64_t key, bool *added)
{
	return keyset_add(ks, &key, added);
}

void keyset_clear(struct keyset *ks)
{
	if (ks->nr_slots > 4096 && ks->n < ks->nr_slots / 16)
		keyset_free(ks);
	else if (ks->nr_used)
		memset(ks->slots, 0, ks->nr_slots * sizeof(*ks->slots));
	ks->n = ks->nr_used = 0;
}

void keyset_free(struct keyset *ks)
{
	free(ks->keys);
	free(ks->slots);
	*ks = (struct keyset){.width = ks->width};
}
