// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interns keys of a fixed number of 64-bit words: equal keys have equal ids, ids are dense and in
 * order of first appearance. What frames, contexts, chain nodes, stacks and histogram entries are
 * found by, so that no string is compared for a sample.
 */
#ifndef VMPROF_REPORT_KEYSET_H
#define VMPROF_REPORT_KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keyset_slot {
	uint32_t id;  /* + 1; 0 is empty */
	uint32_t tag; /* of the key's hash; its place follows from it */
};

struct keyset {
	unsigned width; /* words a key; set it, zero the rest */
	uint32_t n;
	uint64_t *keys;
	size_t cap;
	struct keyset_slot *slots;
	size_t nr_slots;  /* power of two, or 0 */
	uint32_t nr_used; /* of them */
};

/* The key's id; *added (may be NULL) says whether it is new. */
uint32_t keyset_add(struct keyset *ks, const uint64_t *key, bool *added);
/* The same for a set of width 1. */
uint32_t keyset_add1(struct keyset *ks, uint64_t key, bool *added);
/*
 * An id for a key that is not there yet, and that keyset_add() will not find: for who has a nearer
 * way to it.
 */
uint32_t keyset_append(struct keyset *ks, const uint64_t *key);
void keyset_clear(struct keyset *ks); /* empty; memory is kept unless it was far too much */
void keyset_free(struct keyset *ks);

static inline const uint64_t *keyset_key(const struct keyset *ks, uint32_t id)
{
	return ks->keys + (size_t)id * ks->width;
}

#endif
