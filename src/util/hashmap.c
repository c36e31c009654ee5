// SPDX-License-Identifier: GPL-2.0-only
#include "util/hashmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "util/xalloc.h"

static uint64_t the_seed;

static __attribute__((noinline, cold)) uint64_t make_seed(void)
{
	uint64_t v = 0, none = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != sizeof(v))
		v ^= (uintptr_t)&the_seed;
	__atomic_compare_exchange_n(&the_seed, &none, v | 1, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return __atomic_load_n(&the_seed, __ATOMIC_RELAXED);
}

static inline uint64_t seed(void)
{
	uint64_t s = __atomic_load_n(&the_seed, __ATOMIC_RELAXED);

	return s ? s : make_seed();
}

/* Multiply-fold, as wyhash does it: one 64x64->128 multiplication, both halves xor-ed. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t hash_u64(uint64_t v)
{
	uint64_t s = seed();

	return fold(v ^ s, 0x9e3779b97f4a7c15ull ^ s << 1);
}

uint64_t hash_bytes(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t s = seed(), h = s ^ n, w;

	for (; n >= 8; b += 8, n -= 8) {
		memcpy(&w, b, 8);
		h = fold(h ^ w, 0xa0761d6478bd642full ^ s << 1);
	}
	w = 0;
	memcpy(&w, b, n);
	return fold(h ^ w, 0xe7037ed1a0b428dbull ^ s << 1);
}

static struct hashmap_slot *slot(const struct hashmap *m, uint64_t key)
{
	size_t i = hash_u64(key) & (m->cap - 1);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

void *hashmap_get(const struct hashmap *m, uint64_t key)
{
	return m->cap ? slot(m, key)->value : NULL;
}

static void resize(struct hashmap *m, size_t cap)
{
	struct hashmap old = *m;

	m->slots = xcalloc(cap, sizeof(*m->slots));
	m->cap = cap;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].value)
			*slot(m, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

void hashmap_set(struct hashmap *m, uint64_t key, void *value)
{
	struct hashmap_slot *s;

	if ((m->n + 1) * 4 > m->cap * 3)
		resize(m, m->cap ? xsize_mul(m->cap, 2) : 16);
	s = slot(m, key);
	if (!s->value)
		m->n++;
	s->key = key;
	s->value = value;
}

void *hashmap_del(struct hashmap *m, uint64_t key)
{
	struct hashmap_slot *s;
	void *value;
	size_t i;

	if (!m->cap)
		return NULL;
	s = slot(m, key);
	value = s->value;
	if (!value)
		return NULL;
	s->value = NULL;
	m->n--;
	/* Those behind may have been pushed on by the one that left: put them in again. */
	for (i = (size_t)(s - m->slots + 1) & (m->cap - 1); m->slots[i].value;
	     i = (i + 1) & (m->cap - 1)) {
		struct hashmap_slot moved = m->slots[i];

		m->slots[i].value = NULL;
		*slot(m, moved.key) = moved;
	}
	return value;
}

void hashmap_free(struct hashmap *m)
{
	free(m->slots);
	*m = (struct hashmap){0};
}

void *hashmap_next(const struct hashmap *m, size_t *i, uint64_t *key)
{
	for (; *i < m->cap; (*i)++) {
		if (m->slots[*i].value) {
			if (key)
				*key = m->slots[*i].key;
			return m->slots[(*i)++].value;
		}
	}
	return NULL;
}

struct str {
	struct str *next; /* same hash */
	size_t len;
	char s[];
};

struct strtab {
	struct hashmap by_hash;
};

struct strtab *strtab_new(void)
{
	return xcalloc(1, sizeof(struct strtab));
}

void strtab_free(struct strtab *t)
{
	struct str *s, *next;

	if (!t)
		return;
	for (size_t i = 0; (s = hashmap_next(&t->by_hash, &i, NULL));)
		for (; s; s = next) {
			next = s->next;
			free(s);
		}
	hashmap_free(&t->by_hash);
	free(t);
}

const char *strtab_intern_n(struct strtab *t, const char *s, size_t n)
{
	uint64_t h = hash_bytes(s, n);
	struct str *first = hashmap_get(&t->by_hash, h), *e;

	for (e = first; e; e = e->next)
		if (e->len == n && !memcmp(e->s, s, n))
			return e->s;
	e = xmalloc(sizeof(*e) + n + 1);
	e->next = first;
	e->len = n;
	memcpy(e->s, s, n);
	e->s[n] = 0;
	hashmap_set(&t->by_hash, h, e);
	return e->s;
}

const char *strtab_intern(struct strtab *t, const char *s)
{
	return strtab_intern_n(t, s, strlen(s));
}
