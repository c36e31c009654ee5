// SPDX-License-Identifier: GPL-2.0-only
#include "report/inlines.h"

#include <stdlib.h>

#include "util/xalloc.h"

/* Of callers of the call itself, as the session counts addresses of the DSO. */
static uint64_t place_of(const struct location *loc, enum frame_address where)
{
	return loc->offset + (loc->sym ? loc->sym->start : 0) - (where == ADDRESS_BEHIND_CALL);
}

const struct source *location_source(struct session *s, const struct location *loc,
				     enum frame_address where)
{
	static const struct source none;

	/* what is inlined is part of a function: there must be one */
	return loc->dso && loc->sym ? session_source(s, loc->dso, place_of(loc, where)) : &none;
}

void inlines_init(struct inlines *in)
{
	*in = (struct inlines){.places.width = 2};
}

uint32_t inlines_at(struct inlines *in, struct profile *p, const struct location *loc,
		    enum frame_address where)
{
	/* one list does for all places where nothing is known */
	uint64_t key[2] = {loc->sym ? (uintptr_t)loc->dso : 0, loc->sym ? place_of(loc, where) : 0};
	const struct source *src;
	struct location inner = *loc;
	struct inlined list = {0};
	bool added;
	uint32_t id = keyset_add(&in->places, key, &added);

	if (!added)
		return id;
	src = location_source(p->session, loc, where);
	if (src->n > 1)
		list.frames = xmalloc((src->n - 1) * sizeof(*list.frames));
	for (size_t i = src->n; i-- > 1;) {
		inner.sym = src->frames[i - 1].sym;
		list.frames[list.n++] = profile_frame_at(p, &inner, &src->frames[i - 1]);
	}
	in->lists = xgrow(in->lists, &in->cap, id + 1ull, sizeof(*in->lists));
	in->lists[id] = list;
	return id;
}

void inlines_free(struct inlines *in)
{
	for (uint32_t i = 0; i < in->places.n; i++)
		free(in->lists[i].frames);
	free(in->lists);
	keyset_free(&in->places);
}
