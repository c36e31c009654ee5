// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mappings of one address space: a treap by start address whose nodes may be shared. A fork
 * copies nothing, and a change afterwards copies the path to it: each costs O(log n), whatever a
 * file does with a hundred thousand mappings and as many forks.
 */
#ifndef VMPROF_SYMBOLIZE_MAPS_H
#define VMPROF_SYMBOLIZE_MAPS_H

#include "symbolize/machine.h"

struct map_node;

struct maps {
	struct map_node *root;
	struct map_node *last; /* found last: most addresses are in the same mapping as before */
};

void maps_clear(struct maps *m);
/* @m, which must be empty, becomes what @from is. */
void maps_share(struct maps *m, struct maps *from);
/* What @map overlaps is cut off or replaced. An empty or wrapping range is not inserted. */
void maps_insert(struct maps *m, const struct map *map);
/* Valid until the maps are changed. */
const struct map *maps_find(struct maps *m, uint64_t addr);

#endif
