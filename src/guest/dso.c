// SPDX-License-Identifier: GPL-2.0-only
#include "guest/dso.h"

#include <stdlib.h>
#include <string.h>

#include "guest/cfi.h"
#include "util/xalloc.h"

#define MAX_DSOS 65536

struct guest_span guest_span_of(const int32_t *offsets, int n)
{
	int32_t lo = INT32_MAX, hi = 0;

	for (int i = 0; i < n; i++) {
		if (offsets[i] < 0)
			return (struct guest_span){0};
		lo = offsets[i] < lo ? offsets[i] : lo;
		hi = offsets[i] > hi ? offsets[i] : hi;
	}
	return (struct guest_span){lo, hi - lo + 8};
}

/* What tells one from another. */
struct key {
	const char *path;
	const struct guest_inode *f;
	int32_t owner;
	uint64_t owner_start;
};

static uint64_t hash_of(const struct key *k)
{
	const uint64_t words[] = {hash_bytes(k->path, strlen(k->path)),
				  k->f->dev,
				  k->f->ino,
				  k->f->generation,
				  (uint32_t)k->owner,
				  k->owner_start};

	return hash_bytes(words, sizeof(words));
}

static bool same(const struct guest_dso *d, const struct key *k)
{
	return d->dev == k->f->dev && d->ino == k->f->ino &&
	       d->ino_generation == k->f->generation && d->owner == k->owner &&
	       d->owner_start == k->owner_start && !strcmp(d->path, k->path);
}

static struct guest_dso_entry *add(struct guest_dsos *t, const struct key *k, uint64_t hash)
{
	struct guest_dso_entry *e = xcalloc(1, sizeof(*e));

	t->entry = xgrow(t->entry, &t->cap, t->n + 1, sizeof(*t->entry));
	t->entry[t->n] = e;
	e->dso.id = t->n++;
	e->dso.path = xstrdup(k->path);
	e->dso.dev = k->f->dev;
	e->dso.ino = k->f->ino;
	e->dso.ino_generation = k->f->generation;
	e->dso.owner = k->owner;
	e->dso.owner_start = k->owner_start;
	e->same_hash = hashmap_get(&t->by_key, hash);
	hashmap_set(&t->by_key, hash, e);
	return e;
}

static struct guest_dso_entry *get(struct guest_dsos *t, const struct key *k)
{
	static const struct guest_inode none;
	const struct key rest = {.path = "[more files]", .f = &none};
	uint64_t hash = hash_of(k);
	struct guest_dso_entry *e;

	for (e = hashmap_get(&t->by_key, hash); e; e = e->same_hash)
		if (same(&e->dso, k))
			return e;
	if (t->n >= MAX_DSOS)
		return t->entry[MAX_DSOS - 1];
	if (t->n == MAX_DSOS - 1) /* the guest makes up files: the rest is one */
		return add(t, &rest, hash);
	return add(t, k, hash);
}

struct guest_dso_entry *guest_dsos_get(struct guest_dsos *t, const char *path,
				       const struct guest_inode *f)
{
	static const struct guest_inode none;
	const struct key k = {.path = path, .f = f ? f : &none};
	struct guest_dso_entry *e = get(t, &k);

	if (f && f->inode) {
		e->file = *f;
		e->dso.size = f->size;
	}
	return e;
}

struct guest_dso_entry *guest_dsos_get_owned(struct guest_dsos *t, const char *path,
					     const struct guest_inode *f, int32_t owner,
					     uint64_t owner_start)
{
	static const struct guest_inode none;
	const struct key k = {path, f ? f : &none, owner, owner_start};

	return get(t, &k);
}

struct guest_dso_entry *guest_dsos_by_id(struct guest_dsos *t, uint32_t id)
{
	return id < t->n ? t->entry[id] : NULL;
}

void guest_dsos_hit(struct guest_dsos *t, struct guest_dso_entry *e)
{
	if (e->dso.hit)
		return;
	e->dso.hit = true;
	if (t->next_hit == t->nr_hit)
		t->next_hit = t->nr_hit = 0;
	t->hit = xgrow(t->hit, &t->cap_hit, t->nr_hit + 1, sizeof(*t->hit));
	t->hit[t->nr_hit++] = e->dso.id;
}

void guest_dsos_forget_kernel(struct guest_dsos *t)
{
	for (size_t i = 0; i < t->n; i++) {
		t->entry[i]->file.inode = 0;
		t->entry[i]->base = 0;
		t->entry[i]->sought = false;
		t->entry[i]->perf_map.inode = 0;
	}
}

void guest_dsos_free(struct guest_dsos *t)
{
	for (size_t i = 0; i < t->n; i++) {
		guest_cfi_free(t->entry[i]->cfi);
		free((char *)t->entry[i]->dso.path);
		free(t->entry[i]);
	}
	free(t->entry);
	free(t->hit);
	hashmap_free(&t->by_key);
	*t = (struct guest_dsos){0};
}
