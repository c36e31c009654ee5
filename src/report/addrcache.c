// SPDX-License-Identifier: GPL-2.0-only
#include "report/addrcache.h"

#include <stdlib.h>

#include "util/xalloc.h"

/* A file that chooses addresses which share a place only makes itself slow: no seed is needed. */
static uint64_t place(uint64_t space, uint64_t addr)
{
	return (addr ^ space * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull >>
	       (64 - ADDRCACHE_BITS);
}

uint32_t *addrcache_at(struct addrcache *c, uint64_t space, uint64_t addr, bool *found)
{
	struct addrcache_slot *s;

	if (!c->slots)
		c->slots = xcalloc(1u << ADDRCACHE_BITS, sizeof(*c->slots));
	s = &c->slots[place(space, addr)];
	*found = s->space == space && s->addr == addr;
	s->space = space;
	s->addr = addr;
	return &s->value;
}

void addrcache_free(struct addrcache *c)
{
	free(c->slots);
	c->slots = NULL;
}
