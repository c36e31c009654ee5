// SPDX-License-Identifier: GPL-2.0-only
#include "backend/frames.h"

#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

void frames_init(struct frames *f, const struct frames_ops *ops, void *ctx)
{
	*f = (struct frames){.ops = ops, .ctx = ctx};
}

static void drop_oldest(struct frames *f)
{
	struct frames_piece *p = &f->piece[f->first];

	for (unsigned i = 0; i < p->n; i++)
		if (hashmap_get(&f->where, p->frame[i] + 1) == p->at + (size_t)i * FRAME_SIZE)
			hashmap_del(&f->where, p->frame[i] + 1);
	f->ops->unmap(f->ctx, p->at, p->n);
	f->mapped -= p->n;
	f->first = (f->first + 1) % f->cap;
	f->nr--;
}

void frames_drop_all(struct frames *f)
{
	while (f->nr)
		drop_oldest(f);
}

void frames_free(struct frames *f)
{
	frames_drop_all(f);
	hashmap_free(&f->where);
	free(f->piece);
	*f = (struct frames){0};
}

void frames_expire(struct frames *f, uint64_t now)
{
	while (f->nr && now - f->piece[f->first].born >= FRAMES_AGE_NS)
		drop_oldest(f);
}

/* A place for one more piece, in the order of the ring. */
static struct frames_piece *new_piece(struct frames *f)
{
	if (f->nr == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 64;
		struct frames_piece *to = xcalloc(cap, sizeof(*to));

		for (size_t i = 0; i < f->nr; i++)
			to[i] = f->piece[(f->first + i) % f->cap];
		free(f->piece);
		f->piece = to;
		f->first = 0;
		f->cap = cap;
	}
	return &f->piece[(f->first + f->nr++) % f->cap];
}

static void map_missing(struct frames *f, const uint64_t *frame, unsigned n, uint64_t now)
{
	bool failed[FRAMES_BATCH] = {false};
	struct frames_piece *p;
	const uint8_t *at;

	while (f->mapped + n > FRAMES_MAX)
		drop_oldest(f);
	f->maps++;
	at = f->ops->map(f->ctx, frame, n, failed);
	if (!at)
		return;
	p = new_piece(f);
	p->at = at;
	p->born = now;
	p->n = n;
	memcpy(p->frame, frame, n * sizeof(*frame));
	f->mapped += n;
	for (unsigned i = 0; i < n; i++)
		if (!failed[i])
			hashmap_set(&f->where, frame[i] + 1,
				    (void *)(uintptr_t)(at + (size_t)i * FRAME_SIZE));
}

void frames_get(struct frames *f, const uint64_t *frame, unsigned n, uint64_t now,
		const uint8_t **page)
{
	uint64_t missing[FRAMES_BATCH] = {0};
	unsigned nr_missing = 0;

	frames_expire(f, now);
	/* Before any address is taken: to make room may unmap what is there. */
	while (f->nr && f->mapped + n > FRAMES_MAX)
		drop_oldest(f);
	for (unsigned i = 0; i < n; i++) {
		unsigned j = 0;

		page[i] = hashmap_get(&f->where, frame[i] + 1);
		f->hits += page[i] != NULL;
		while (!page[i] && j < nr_missing && missing[j] != frame[i])
			j++;
		if (!page[i] && j == nr_missing)
			missing[nr_missing++] = frame[i];
	}
	if (!nr_missing)
		return;
	map_missing(f, missing, nr_missing, now);
	for (unsigned i = 0; i < n; i++)
		if (!page[i])
			page[i] = hashmap_get(&f->where, frame[i] + 1);
}
