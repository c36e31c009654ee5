// SPDX-License-Identifier: GPL-2.0-only
/*
 * An open-addressing hash table from a 64-bit key to a pointer. Keys are hashed with a per-process
 * random seed, so that input (a guest, a file) cannot choose keys that collide.
 */
#ifndef VMPROF_UTIL_HASHMAP_H
#define VMPROF_UTIL_HASHMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hashmap_slot {
	uint64_t key;
	void *value; /* NULL: empty */
};

struct hashmap {
	struct hashmap_slot *slots;
	size_t cap; /* power of two, or 0 */
	size_t n;
};

void *hashmap_get(const struct hashmap *m, uint64_t key);	/* NULL if there is none */
void hashmap_set(struct hashmap *m, uint64_t key, void *value); /* @value not NULL; replaces */
void *hashmap_del(struct hashmap *m, uint64_t key); /* returns what was there, or NULL */
void hashmap_free(struct hashmap *m);		    /* frees the table, not the values */

/* for (size_t i = 0; (v = hashmap_next(m, &i, &key));) - key may be NULL; do not change m inside */
void *hashmap_next(const struct hashmap *m, size_t *i, uint64_t *key);

/* A seeded hash of bytes, for keys that are strings or records. */
uint64_t hash_bytes(const void *p, size_t n);
uint64_t hash_u64(uint64_t v);

/*
 * Interned strings: equal strings have equal pointers as long as the table lives.
 */
struct strtab;
struct strtab *strtab_new(void);
void strtab_free(struct strtab *t); /* NULL is fine */
const char *strtab_intern(struct strtab *t, const char *s);
const char *strtab_intern_n(struct strtab *t, const char *s, size_t n);

#endif
